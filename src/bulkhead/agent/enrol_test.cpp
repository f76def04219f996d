#include "bulkhead/agent/enrol.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "bulkhead/agent/fleet_test.hpp"
#include "bulkhead/auth/token.hpp"
#include "bulkhead/evidence/signing.hpp"

namespace bulkhead::agent {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace fs = std::filesystem;
using testing::HasSubstr;

struct Reply {
    unsigned status = 200;
    std::string body;
};

// An HTTPS server that serves one caller after the other, until it is destroyed.
class Door {
public:
    using Answer = std::function<Reply(const std::string& body)>;
    explicit Door(Answer answer, const auth::KeyPair& identity = fleet().server,
                  const std::string& chain = fleet().ca.certificate)
        : answer_(std::move(answer)) {
        const std::string shown = identity.certificate + chain;
        tls_.use_certificate_chain(asio::buffer(shown));
        tls_.use_private_key(asio::buffer(identity.key), asio::ssl::context::pem);
        thread_ = std::jthread{[this] {
            while (!over_) serve();
        }};
    }
    ~Door() {
        over_ = true;
        asio::io_context io;
        asio::ip::tcp::socket knock{io};
        boost::system::error_code ignored;
        knock.connect(acceptor_.local_endpoint(), ignored);
    }
    std::string address(std::string_view host = "127.0.0.1") const {
        return "https://" + std::string{host} + ":" + std::to_string(acceptor_.local_endpoint().port());
    }

private:
    void serve() {
        try {
            boost::beast::ssl_stream<asio::ip::tcp::socket> stream{acceptor_.accept(), tls_};
            if (over_) return;
            stream.handshake(asio::ssl::stream_base::server);
            boost::beast::flat_buffer buffer;
            http::request<http::string_body> request;
            http::read(stream, buffer, request);
            EXPECT_EQ(request.method(), http::verb::post);
            EXPECT_EQ(request.target(), auth::enrolment_path);
            const Reply reply = answer_(request.body());
            http::response<http::string_body> response{static_cast<http::status>(reply.status), 11};
            response.body() = reply.body;
            response.prepare_payload();
            http::write(stream, response);
            stream.shutdown();
        } catch (const std::exception&) {
            // callers who hang up are what these tests are about
        }
    }
    Answer answer_;
    asio::io_context io_;
    asio::ssl::context tls_{asio::ssl::context::tls_server};
    asio::ip::tcp::acceptor acceptor_{io_, {asio::ip::address_v4::loopback(), 0}};
    std::atomic<bool> over_ = false;
    std::jthread thread_;
};

// What a control plane does: looks at the token, certifies the node.
class Office {
public:
    Office() {
        const auto minted = auth::mint_enrolment_token("node-*", wall_clock() + Duration::hours(1), wall_clock());
        token = minted->text;
        (void)book_.put(minted->stored);
    }
    Reply operator()(const std::string& body) {
        const auto request = auth::read_enrolment_request(body);
        if (!request) return {400, "{\"detail\": \"unreadable\"}"};
        last = *request;
        if (auto used = book_.redeem(request->token, request->name, wall_clock()); !used)
            return {403, "{\"title\": \"denied\", \"detail\": \"" + used.error().what.substr(0, 5) + " is not good\"}"};
        const auto made = auth::sign_request(ca, request->request, request->name, fleet().today);
        if (!made) return {400, "{}"};
        return {201, print(auth::EnrolmentAnswer{*made, shown_ca, "control.example:7444"})};
    }
    std::string token;
    auth::KeyPair ca = fleet().ca;
    std::string shown_ca = fleet().ca.certificate;
    std::optional<auth::EnrolmentRequest> last;

private:
    auth::TokenBook book_;
};

struct Enrolment : testing::Test {
    Enrolment() { base = ::mkdtemp(pattern); }
    ~Enrolment() override { fs::remove_all(base); }
    EnrolOptions options(const Door& door) const {
        return {.server = {.address = door.address(),
                           .ca = fleet().ca.certificate,
                           .ca_fingerprint = "",
                           .within = {5'000}},
                .name = "node-17",
                .token = office->token,
                .spec = {.site = "fra", .rack = "r4"},
                .folder = base + "/identity"};
    }
    char pattern[32] = "/tmp/bulkhead-enrol-XXXXXX";
    std::string base;
    std::optional<Office> office{std::in_place};
};

TEST_F(Enrolment, makes_a_machine_a_node) {
    Door door{std::ref(*office)};
    const auto identity = enrol(options(door));
    ASSERT_TRUE(identity) << identity.error().what;
    EXPECT_EQ(identity->name, "node-17");
    EXPECT_EQ(identity->agents, "control.example:7444");
    EXPECT_EQ(auth::verify_peer(fleet().ca.certificate, identity->certificate, wall_clock())->node, "node-17");
    EXPECT_EQ(office->last->spec.rack, "r4");
    EXPECT_EQ(evidence::print(evidence::SigningKey::from_seed(identity->evidence_seed)->public_key()),
              office->last->evidenceKey);
    for (const auto& entry : fs::directory_iterator{base + "/identity"}) {
        EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write) << entry.path();
    }
    EXPECT_EQ(fs::status(base + "/identity").permissions(), fs::perms::owner_all);

    const auto again = load_identity(base + "/identity");
    ASSERT_TRUE(again) << again.error().what;
    EXPECT_EQ(again->key, identity->key);
    EXPECT_EQ(again->evidence_seed, identity->evidence_seed);
    EXPECT_EQ(enrol(options(door)).error().code, Code::conflict) << "a node already";
}

TEST_F(Enrolment, knows_the_server_by_its_ca_or_the_fingerprint_alone) {
    Door door{std::ref(*office)};
    EnrolOptions asked = options(door);
    asked.server.ca.clear();
    asked.server.ca_fingerprint = *auth::fingerprint(fleet().ca.certificate);
    const auto identity = enrol(asked);
    ASSERT_TRUE(identity) << identity.error().what;
    EXPECT_EQ(identity->ca, fleet().ca.certificate);
}

TEST_F(Enrolment, shows_its_token_to_nobody_else) {
    const auth::KeyPair other_ca = *auth::create_ca("test fleet", fleet().decade);
    const auth::KeyPair impostor = *auth::issue_server(other_ca, {{"localhost"}, {"127.0.0.1"}}, fleet().today);
    const auth::KeyPair expired = *auth::issue_server(fleet().ca, {{"localhost"}, {"127.0.0.1"}}, fleet().yesterday);
    const auth::KeyPair elsewhere =
        *auth::issue_server(fleet().ca, {{"elsewhere.example"}, {"127.0.0.2"}}, fleet().today);
    const auth::KeyPair a_node = fleet().node("node-3");
    struct Row {
        const char* says;
        const auth::KeyPair& shown;
        const std::string& chain;
    };
    const Row rows[] = {
        {"another CA of the same name", impostor, other_ca.certificate},
        {"another CA, with ours in the chain for show", impostor, fleet().ca.certificate},
        {"expired", expired, fleet().ca.certificate},
        {"for another address", elsewhere, fleet().ca.certificate},
        {"a node that plays server", a_node, fleet().ca.certificate},
    };
    for (const Row& row : rows)
        for (const bool by_fingerprint : {false, true}) {
            Door door{std::ref(*office), row.shown, row.chain};
            EnrolOptions asked = options(door);
            if (by_fingerprint) {
                asked.server.ca.clear();
                asked.server.ca_fingerprint = *auth::fingerprint(fleet().ca.certificate);
            }
            const auto identity = enrol(asked);
            ASSERT_FALSE(identity) << row.says;
            EXPECT_EQ(identity.error().code, Code::denied) << row.says << ": " << identity.error().what;
        }
    EXPECT_FALSE(office->last) << "not a byte of the request was seen";
}

TEST_F(Enrolment, a_refusal_comes_with_its_reason_and_leaves_no_identity) {
    Door door{std::ref(*office)};
    EnrolOptions asked = options(door);
    asked.token = auth::new_token();
    const auto refused = enrol(asked);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::denied);
    EXPECT_THAT(refused.error().what, HasSubstr("is not good"));
    EXPECT_EQ(load_identity(asked.folder).error().code, Code::not_found);
    const std::string evidence = office->last->evidenceKey;

    const auto second = enrol(options(door));
    ASSERT_TRUE(second) << second.error().what;
    EXPECT_EQ(office->last->evidenceKey, evidence) << "the same node as at the first try";
}

TEST_F(Enrolment, an_answer_is_believed_only_as_far_as_it_can_be_checked) {
    const auth::KeyPair other_ca = *auth::create_ca("test fleet", fleet().decade);
    struct Row {
        const char* says;
        Door::Answer answer;
    };
    const Row rows[] = {
        {"nothing", [](const std::string&) { return Reply{}; }},
        {"not JSON", [](const std::string&) { return Reply{200, "certificate: x\n"}; }},
        {"too much", [](const std::string&) { return Reply{200, std::string(1 << 20, ' ')}; }},
        {"a certificate of another CA",
         [&](const std::string& body) {
             office->ca = other_ca;
             return (*office)(body);
         }},
        {"another CA throughout",
         [&](const std::string& body) {
             office->ca = other_ca;
             office->shown_ca = other_ca.certificate;
             return (*office)(body);
         }},
        {"somebody else's certificate",
         [&](const std::string&) {
             return Reply{
                 200, print(auth::EnrolmentAnswer{fleet().node("node-17").certificate, fleet().ca.certificate, "a:1"})};
         }},
        {"a failure of the server", [](const std::string&) { return Reply{503, "<html>"}; }},
    };
    for (const Row& row : rows) {
        office.emplace();
        Door door{row.answer};
        const auto identity = enrol(options(door));
        ASSERT_FALSE(identity) << row.says;
        EXPECT_FALSE(fs::exists(base + "/identity/node.json")) << row.says;
    }
}

TEST_F(Enrolment, gives_up_in_time) {
    asio::io_context io;
    asio::ip::tcp::acceptor silent{io, {asio::ip::address_v4::loopback(), 0}};
    const auto port = std::to_string(silent.local_endpoint().port());
    const auto answer = ask_for_enrolment({"127.0.0.1:" + port, fleet().ca.certificate, "", {200}}, {});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::timeout);
    silent.close();
    EXPECT_EQ(ask_for_enrolment({"127.0.0.1:" + port, fleet().ca.certificate, "", {200}}, {}).error().code,
              Code::unavailable);
}

TEST_F(Enrolment, what_cannot_be_an_address_or_a_pin_is_refused) {
    const std::string& ca = fleet().ca.certificate;
    for (const char* address :
         {"", "http://a:1", "https://", "a:b", "https://a:123456", "[::1:7443", "user@host:1", "a/b"})
        EXPECT_EQ(ask_for_enrolment({address, ca, "", {100}}, {}).error().code, Code::invalid) << address;
    EXPECT_EQ(ask_for_enrolment({"a:1", "", "", {100}}, {}).error().code, Code::invalid) << "no pin";
    EXPECT_EQ(ask_for_enrolment({"a:1", ca, std::string(64, 'a'), {100}}, {}).error().code, Code::invalid)
        << "two pins";
    EXPECT_EQ(ask_for_enrolment({"a:1", "", "abc", {100}}, {}).error().code, Code::invalid) << "half a pin";
    EXPECT_EQ(ask_for_enrolment({"a:1", "rubbish", "", {100}}, {}).error().code, Code::invalid);
}

TEST_F(Enrolment, an_identity_whose_parts_do_not_belong_together_is_refused) {
    Door door{std::ref(*office)};
    ASSERT_TRUE(enrol(options(door)));
    const std::string folder = base + "/identity";
    const auto replaced = [&](const std::string& file, const std::string& content) {
        fs::copy(folder, base + "/copy");
        std::ofstream{base + "/copy/" + file} << content;
        const auto loaded = load_identity(base + "/copy");
        fs::remove_all(base + "/copy");
        return !loaded;
    };
    EXPECT_TRUE(replaced("tls.key", fleet().node("node-17").key));
    EXPECT_TRUE(replaced("tls.crt", fleet().node("node-18").certificate));
    EXPECT_TRUE(replaced("evidence.key", "not hex"));
    EXPECT_TRUE(replaced("node.json", "{\"name\": \"node-18\", \"agents\": \"a:1\"}"));
    EXPECT_TRUE(replaced("node.json", "{}"));
    ::chmod((folder + "/tls.key").c_str(), 0644);
    EXPECT_EQ(load_identity(folder).error().code, Code::denied);
}

}  // namespace
}  // namespace bulkhead::agent
