#include "bulkhead/auth/ca.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/auth/x509.hpp"

namespace bulkhead::auth {
namespace {

using testing::HasSubstr;

const Instant now = *parse_instant("2026-11-15T09:00:00Z");
const Validity years{now, now + Duration::days(3650)};
const Validity month{now, now + Duration::days(30)};

// Making keys takes time; every test can share one fleet.
struct Fleet {
    KeyPair ca = *create_ca("bulkhead fleet", years);
    KeyPair other_ca = *create_ca("bulkhead fleet", years);  // the same name, another key
    KeyAndRequest node = *make_request("node-17");
    std::string certificate = *sign_request(ca, node.request, "node-17", month);
};
const Fleet& fleet() {
    static const Fleet made;
    return made;
}

std::string with_flipped(std::string pem, std::size_t from_end) {
    char& digit = pem[pem.find("-----END") - from_end];
    digit = digit == 'A' ? 'B' : 'A';
    return pem;
}

TEST(Ca, a_node_is_who_its_certificate_says) {
    const auto peer = verify_peer(fleet().ca.certificate, fleet().certificate, now + Duration::hours(1));
    ASSERT_TRUE(peer) << peer.error().what;
    EXPECT_EQ(peer->node, "node-17");
    EXPECT_EQ(peer->validity, month);
    EXPECT_EQ(peer->fingerprint, *fingerprint(fleet().certificate));
    EXPECT_EQ(peer->fingerprint.size(), 64u);
    EXPECT_EQ(*peer, *read_peer(fleet().certificate));
}

TEST(Ca, a_certificate_is_good_in_its_time_and_under_its_own_ca_only) {
    struct Row {
        const char *says, *ca;
        Instant at;
        bool good;
    };
    const Row rows[] = {
        {"on its first second", fleet().ca.certificate.c_str(), now, true},
        {"a day before it begins", fleet().ca.certificate.c_str(), {now.ms - Duration::days(1).ms}, false},
        {"a second after it ends", fleet().ca.certificate.c_str(), {month.until.ms + 1000}, false},
        {"under another CA of the same name", fleet().other_ca.certificate.c_str(), now, false},
    };
    for (const Row& row : rows) {
        const auto peer = verify_peer(row.ca, fleet().certificate, row.at);
        EXPECT_EQ(peer.has_value(), row.good) << row.says;
        if (!peer) {
            EXPECT_EQ(peer.error().code, Code::denied) << row.says;
        }
    }
}

TEST(Ca, only_a_nodes_certificate_names_a_node) {
    const auto server = issue_server(fleet().ca, {{"control.example"}, {"127.0.0.1", "::1"}}, month);
    ASSERT_TRUE(server);
    EXPECT_FALSE(read_peer(server->certificate)) << "a server";
    EXPECT_FALSE(verify_peer(fleet().ca.certificate, server->certificate, now)) << "a server, as a client";
    EXPECT_FALSE(read_peer(fleet().ca.certificate)) << "the CA itself";
    EXPECT_FALSE(verify_peer(fleet().ca.certificate, fleet().ca.certificate, now)) << "the CA itself, as a client";
}

TEST(Ca, a_node_cannot_sign_for_others) {
    const KeyPair would_be{fleet().node.key, fleet().certificate};
    const auto victim = make_request("node-18");
    const auto forged = sign_request(would_be, victim->request, "node-18", month);
    ASSERT_FALSE(forged);
    EXPECT_THAT(forged.error().what, HasSubstr("not a CA"));
}

TEST(Ca, a_request_is_refused_unless_it_is_whole_and_names_the_admitted_node) {
    struct Row {
        const char* says;
        std::string request;
        const char* node;
        Code code;
    };
    const std::string& good = fleet().node.request;
    const Row rows[] = {
        {"another node's name", good, "node-18", Code::denied},
        {"a name that begins the same", good, "node-1", Code::denied},
        {"a signature changed on the way", with_flipped(good, 12), "node-17", Code::denied},
        {"no request at all", "", "node-17", Code::invalid},
        {"a certificate instead", fleet().certificate, "node-17", Code::invalid},
        {"cut in the middle", good.substr(0, good.size() / 2), "node-17", Code::invalid},
        {"something before it", "hello\n" + good, "node-17", Code::invalid},
        {"twice", good + good, "node-17", Code::invalid},
        {"a megabyte", good + std::string(1 << 20, '\n'), "node-17", Code::invalid},
        {"a name that is no name", good, "node 17", Code::invalid},
    };
    for (const Row& row : rows) {
        const auto signed_by_us = sign_request(fleet().ca, row.request, row.node, month);
        ASSERT_FALSE(signed_by_us) << row.says;
        EXPECT_EQ(signed_by_us.error().code, row.code) << row.says << ": " << signed_by_us.error().what;
    }
}

TEST(Ca, every_byte_of_a_request_counts) {
    const std::string& good = fleet().node.request;
    const std::size_t body = good.find('\n') + 1, end = good.find("-----END");
    for (std::size_t at = body; at < end; ++at) {
        if (good[at] == '\n' || good[at] == '=') continue;
        std::string changed = good;
        changed[at] = changed[at] == 'A' ? 'Q' : 'A';
        const auto made = sign_request(fleet().ca, changed, "node-17", month);
        EXPECT_FALSE(made) << "character " << at << " was changed from " << good[at];
    }
}

TEST(Ca, a_request_with_a_weak_key_is_refused) {
    const PrivateKey weak{EVP_EC_gen("P-224")};
    const Request request{X509_REQ_new()};
    ASSERT_EQ(X509_REQ_set_pubkey(request.get(), weak.get()), 1);
    X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(request.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("node-17"), -1, -1, 0);
    ASSERT_GT(X509_REQ_sign(request.get(), weak.get(), EVP_sha256()), 0);
    const auto made = sign_request(fleet().ca, *print_pem(*request), "node-17", month);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().what, HasSubstr("P-256"));
}

TEST(Ca, what_a_request_asks_for_besides_its_name_is_not_given) {
    const auto key = read_private_key(fleet().node.key);
    const Request request{X509_REQ_new()};
    ASSERT_EQ(X509_REQ_set_pubkey(request.get(), key->get()), 1);
    X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(request.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("node-17"), -1, -1, 0);
    STACK_OF(X509_EXTENSION)* wishes = sk_X509_EXTENSION_new_null();
    sk_X509_EXTENSION_push(wishes, X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE"));
    sk_X509_EXTENSION_push(wishes,
                           X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "URI:bulkhead:node:node-1"));
    ASSERT_EQ(X509_REQ_add_extensions(request.get(), wishes), 1);
    sk_X509_EXTENSION_pop_free(wishes, X509_EXTENSION_free);
    ASSERT_GT(X509_REQ_sign(request.get(), key->get(), EVP_sha256()), 0);

    const auto made = sign_request(fleet().ca, *print_pem(*request), "node-17", month);
    ASSERT_TRUE(made) << made.error().what;
    EXPECT_EQ(verify_peer(fleet().ca.certificate, *made, now)->node, "node-17");
    EXPECT_EQ(X509_check_ca(read_certificate(*made)->get()), 0);
}

TEST(Ca, certificates_differ_and_none_outlives_its_ca) {
    const auto again = sign_request(fleet().ca, fleet().node.request, "node-17", month);
    EXPECT_NE(read_peer(*again)->serial, read_peer(fleet().certificate)->serial);
    const auto endless = sign_request(fleet().ca, fleet().node.request, "node-17", {now, now + Duration::days(36500)});
    EXPECT_EQ(read_peer(*endless)->validity.until, years.until);
    EXPECT_FALSE(
        sign_request(fleet().ca, fleet().node.request, "node-17", {years.until, years.until + Duration::days(1)}))
        << "the CA has ended";
    EXPECT_FALSE(sign_request(fleet().ca, fleet().node.request, "node-17", {now, now})) << "an empty span";
}

TEST(Ca, a_request_can_be_made_again_from_the_same_key) {
    const auto renewal = make_request("node-17", fleet().node.key);
    ASSERT_TRUE(renewal);
    EXPECT_TRUE(sign_request(fleet().ca, *renewal, "node-17", month));
}

TEST(Ca, a_server_needs_names_that_can_be_names) {
    EXPECT_FALSE(issue_server(fleet().ca, {}, month)) << "none";
    EXPECT_FALSE(issue_server(fleet().ca, {{"good.example,DNS:evil.example"}, {}}, month)) << "two in one";
    EXPECT_FALSE(issue_server(fleet().ca, {{}, {"10.0.0.300"}}, month)) << "no address";
    EXPECT_FALSE(issue_server({fleet().other_ca.key, fleet().ca.certificate}, {{"a.example"}, {}}, month))
        << "a key of another CA";
}

TEST(Ca, an_encrypted_key_is_refused_without_asking_for_its_password) {
    const auto read =
        read_private_key("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIH=\n-----END ENCRYPTED PRIVATE KEY-----\n");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::invalid);
    EXPECT_FALSE(
        read_private_key("-----BEGIN PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n"
                         "-----END PRIVATE KEY-----\n"));
}

}  // namespace
}  // namespace bulkhead::auth
