#include "bulkhead/evidence/certificate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/evidence/keys_test.hpp"
#include "bulkhead/evidence/merkle.hpp"

namespace bulkhead::evidence {
namespace {

using testing::HasSubstr;

const std::string log_name = "log.example/fleet";

const SigningKey& log_key() {
    static const SigningKey key = key_of_seed('L');
    return key;
}
VerifierKey log_vkey() { return {log_name, log_key().public_key()}; }
VerifierKey lab_vkey() { return {lab_name(log_name), key_of_seed('B').public_key()}; }

// What the log's key says of its lab's.
std::string introduction(const SigningKey& by = log_key(), const VerifierKey& lab = lab_vkey()) {
    Note note = introduced(lab);
    sign_note(note, log_name, by);
    return print(note);
}
// As a server gives away what no hardware did.
Certificate of_the_lab(Certificate made) {
    made.checkpoint = signed_by_lab(parse_note(made.checkpoint)->text, log_name, key_of_seed('B'));
    made.lab = introduction();
    return made;
}

// A small log in memory, from which certificates are made as the control plane makes them.
struct Log {
    struct Leaf {
        std::string salt, payload;
    };
    std::vector<Leaf> leaves;

    std::uint64_t add(std::string payload) {
        leaves.push_back({std::string(16, static_cast<char>('0' + leaves.size())), std::move(payload)});
        return leaves.size() - 1;
    }
    std::uint64_t add(const Record& record) { return add(payload_of(record)); }

    Hash leaf(std::size_t i) const { return leaf_hash(bytes_of(commit_to(leaves[i].salt, leaves[i].payload))); }
    Hash root(std::size_t begin, std::size_t end) const {
        Frontier frontier;
        for (std::size_t i = begin; i < end; ++i) frontier.append(leaf(i));
        return frontier.root();
    }
    ProvenLeaf proven(std::uint64_t index) const {
        const auto proof = prove_inclusion(index, leaves.size(), [&](unsigned level, std::uint64_t i) -> Result<Hash> {
            return root(i << level, (i + 1) << level);
        });
        return proven_leaf(index, leaves[index].salt, leaves[index].payload, *proof);
    }
    std::string checkpoint() const {
        return sign_checkpoint({log_name, leaves.size(), root(0, leaves.size()), {}}, log_key());
    }
    Certificate certify(std::uint64_t record, std::optional<std::uint64_t> key) const {
        Certificate made;
        made.record = proven(record);
        if (key) made.key = proven(*key);
        made.checkpoint = checkpoint();
        return made;
    }
};

// One wipe, and everything about it that a test may want to be otherwise.
struct Story {
    SigningKey node_key = key_of_seed('n');
    Record added = key_added({1000}, "api:admin", "node-7", node_key.public_key());
    WipeStatement wipe;
    Record record{.kind = RecordKind::wiped, .at = {9000}, .actor = "node:node-7"};
    bool key_first = true;
    std::function<void(SignedEvidence&)> tamper = [](SignedEvidence&) {};

    Story() {
        wipe.node = record.node = "node-7";
        wipe.unit = record.unit = "gpu3/slices 4-7";
        wipe.lease = record.lease = "lease-81";
        wipe.tenants = {record.tenant = "acme"};
        wipe.device = "GPU-5e1f";
        wipe.method = "overwrite";
        wipe.began = {5000};
        wipe.ended = {8000};
        wipe.bytes = wipe.bytes_verified = 4096;
        wipe.result = WipeResult::verified;
        wipe.grade = Grade::silicon;
        record.grade = Grade::silicon;
    }

    Certificate certificate() const {
        Record full = record;
        if (!full.evidence) {
            full.evidence = sign_statement(node_key, statement_text(wipe));
            tamper(*full.evidence);
        }
        Log log;
        log.add(Record{.kind = RecordKind::started, .actor = "core"});
        const std::uint64_t first = log.add(key_first ? added : full);
        log.add(Record{.kind = RecordKind::leased, .actor = "core"});
        const std::uint64_t second = log.add(key_first ? full : added);
        log.add(Record{.kind = RecordKind::usage, .actor = "core"});
        return key_first ? log.certify(second, first) : log.certify(first, second);
    }
};

std::string refusal(const Certificate& certificate, const Expectations& expected = {}) {
    const auto verified = verify_certificate(certificate, log_vkey(), expected);
    return verified ? "accepted" : verified.error().what;
}

TEST(Certificate, proves_a_wipe_to_whoever_trusts_the_log_key) {
    const Certificate certificate = read_certificate(print(Story{}.certificate())).value();
    const Verified verified = verify_certificate(certificate, log_vkey(), {}).value();
    EXPECT_EQ(verified.index, 3u);
    EXPECT_EQ(verified.checkpoint.size, 5u);
    EXPECT_EQ(verified.record.tenant, "acme");
    ASSERT_TRUE(verified.statement);
    EXPECT_EQ(verified.statement->device, "GPU-5e1f");
    EXPECT_EQ(verified.node_key, key_of_seed('n').public_key());
    EXPECT_EQ(verified.proven[0],
              "the log log.example/fleet holds this record (wiped) at leaf 3 of the 5 it has signed for");
    EXPECT_THAT(verified.proven[1], HasSubstr("gpu3/slices 4-7 of device GPU-5e1f was wiped (overwrite, 4096 bytes"));
    EXPECT_THAT(verified.not_proven[0], HasSubstr("known as silicon"));
    EXPECT_FALSE(verified.of_lab);
}

TEST(Certificate, of_a_lease_proves_that_it_was_recorded_and_says_no_more) {
    Log log;
    const auto index = log.add(Record{.kind = RecordKind::leased, .actor = "core", .lease = "lease-81"});
    const Verified verified = verify_certificate(log.certify(index, {}), log_vkey(), {.lease = "lease-81"}).value();
    EXPECT_FALSE(verified.statement);
    EXPECT_EQ(verified.proven.size(), 1u);
    EXPECT_THAT(verified.not_proven.at(0), HasSubstr("that anything was wiped"));
}

TEST(Certificate, says_which_part_of_the_story_does_not_hold) {
    struct Row {
        std::string_view says;
        std::function<void(Story&)> spoil;
        std::string_view refusal;
    };
    const Row rows[] = {
        {"another node", [](Story& s) { s.wipe.node = "node-8"; },
         "the record is about node \"node-7\", and the signed statement says \"node-8\""},
        {"another unit", [](Story& s) { s.wipe.unit = "gpu3/slices 0-3"; },
         "the record is about unit \"gpu3/slices 4-7\", and the signed statement says \"gpu3/slices 0-3\""},
        {"another lease", [](Story& s) { s.wipe.lease = "lease-80"; }, "the record is about lease \"lease-81\""},
        {"another tenant", [](Story& s) { s.wipe.tenants = {"beta"}; }, "the record is about tenant 'acme', whom"},
        {"a better grade in the record than signed", [](Story& s) { s.wipe.grade = Grade::documented; },
         "the record is graded silicon, and the signed statement documented"},
        {"no grade in the record", [](Story& s) { s.record.grade.reset(); }, "graded not at all"},
        {"a wipe that failed", [](Story& s) { s.wipe.result = WipeResult::failed; },
         "the record says wiped, and the signed statement says failed"},
        {"an end before the beginning", [](Story& s) { s.wipe.ended = {4000}; }, "contradicts itself"},
        {"more verified than wiped", [](Story& s) { s.wipe.bytes_verified = 4097; }, "contradicts itself"},
        {"a key of another node", [](Story& s) { s.added.node = "node-8"; },
         "the record is about node \"node-7\", and the key was added for node \"node-8\""},
        {"a key that came later", [](Story& s) { s.key_first = false; }, "added at leaf 3, after the record at leaf 1"},
        {"a key that did not sign",
         [](Story& s) { s.added = key_added({1}, "a", "node-7", key_of_seed('m').public_key()); },
         "the statement of node node-7: the statement names key"},
        {"a record that adds no key", [](Story& s) { s.added.kind = RecordKind::key_retired; },
         "the key record: a record of kind key-retired adds no key"},
        {"a statement changed after signing",
         [](Story& s) { s.tamper = [](SignedEvidence& e) { e.statement += " "; }; }, "does not fit the statement"},
        {"a signature of nothing", [](Story& s) { s.tamper = [](SignedEvidence& e) { e.signature = "AAAA"; }; },
         "does not fit the statement"},
        {"a statement that is none", [](Story& s) { s.record.evidence = sign_statement(s.node_key, "{}"); },
         "statement:1:1: node is missing"},
    };
    ASSERT_EQ(refusal(Story{}.certificate()), "accepted");
    for (const Row& row : rows) {
        Story story;
        row.spoil(story);
        EXPECT_THAT(refusal(story.certificate()), HasSubstr(row.refusal)) << row.says;
    }
}

TEST(Certificate, says_which_part_of_the_proof_does_not_hold) {
    struct Row {
        std::string_view says;
        std::function<void(Certificate&)> spoil;
        std::string_view refusal;
    };
    const Row rows[] = {
        {"another payload", [](Certificate& c) { c.record.payload.replace(c.record.payload.find("acme"), 4, "beta"); },
         "the record at leaf 3 is not what the log holds there: the inclusion proof gives root"},
        {"another salt", [](Certificate& c) { c.record.salt[0] = '0'; }, "the record at leaf 3 is not what"},
        {"no salt", [](Certificate& c) { c.record.salt = ""; }, "its salt is not 16 bytes in hex"},
        {"another place", [](Certificate& c) { c.record.index = 2; }, "the record at leaf 2 is not what"},
        {"a place beyond the log", [](Certificate& c) { c.record.index = 5; }, "a tree of 5 leaves has no leaf 5"},
        {"a negative place", [](Certificate& c) { c.record.index = -1; }, "leaves are counted from 0"},
        {"a shorter proof", [](Certificate& c) { c.record.proof.pop_back(); }, "the inclusion proof has 2 hashes"},
        {"a proof that is no hashes", [](Certificate& c) { c.record.proof[0] = "x"; }, "is no hash in base64"},
        {"another key payload", [](Certificate& c) { c.key->payload += ' '; }, "the key record at leaf 1 is not what"},
        {"no key", [](Certificate& c) { c.key.reset(); }, "does not show whose key signed it"},
        {"another size in the checkpoint",
         [](Certificate& c) { c.checkpoint.replace(c.checkpoint.find("\n5\n"), 3, "\n6\n"); },
         "the checkpoint: the signature of log.example/fleet does not fit the note's text"},
        {"no checkpoint", [](Certificate& c) { c.checkpoint.clear(); }, "the checkpoint: not a signed note"},
    };
    for (const Row& row : rows) {
        Certificate certificate = Story{}.certificate();
        row.spoil(certificate);
        EXPECT_THAT(refusal(certificate), HasSubstr(row.refusal)) << row.says;
    }
    Certificate foreign = Story{}.certificate();
    EXPECT_FALSE(verify_certificate(foreign, VerifierKey{log_name, key_of_seed('x').public_key()}));
    EXPECT_FALSE(verify_certificate(foreign, VerifierKey{"other.example", log_key().public_key()}));
}

TEST(Certificate, a_wiped_record_without_a_statement_proves_nothing) {
    Log log;
    const auto index = log.add(Record{.kind = RecordKind::wiped, .actor = "core"});
    EXPECT_EQ(refusal(log.certify(index, {})), "the record says wiped, and no node has signed for it");
}

TEST(Certificate, a_key_that_proves_nothing_is_not_carried_along) {
    Log log;
    const auto key = log.add(key_added({1}, "core", "node-7", key_of_seed('n').public_key()));
    const auto index = log.add(Record{.kind = RecordKind::leased, .actor = "core"});
    EXPECT_THAT(refusal(log.certify(index, key)), HasSubstr("needs no key"));
}

TEST(Certificate, a_payload_that_is_no_record_is_refused) {
    Log log;
    const auto index = log.add("free text");
    EXPECT_THAT(refusal(log.certify(index, {})), HasSubstr("the record at leaf 0: record is not a JSON object"));
}

TEST(Certificate, is_about_what_was_asked) {
    const Certificate certificate = Story{}.certificate();
    EXPECT_EQ(refusal(certificate, {.tenant = "acme",
                                    .lease = "lease-81",
                                    .node = "node-7",
                                    .unit = "gpu3/slices 4-7",
                                    .weakest = Grade::silicon}),
              "accepted");
    EXPECT_EQ(refusal(certificate, {.tenant = "beta"}),
              "the record is about tenant \"acme\", and you asked about \"beta\"");
    EXPECT_THAT(refusal(certificate, {.lease = "lease-8"}), HasSubstr("about lease"));
    EXPECT_THAT(refusal(certificate, {.node = "node-8"}), HasSubstr("about node"));
    EXPECT_THAT(refusal(certificate, {.unit = "host"}), HasSubstr("about unit"));
    Story weaker;
    weaker.record.grade = weaker.wipe.grade = Grade::assumed;
    EXPECT_EQ(refusal(weaker.certificate(), {.weakest = Grade::silicon}),
              "the record is graded assumed, and you asked for silicon or better");
}

TEST(Certificate, names_a_tenant_only_to_whoever_is_given_its_salt) {
    const TenantOpening acme = opening_of("secret", "acme"), beta = opening_of("secret", "beta");
    Story story;
    story.record.tenant = pseudonym(acme);
    story.wipe.tenants = {pseudonym(beta), pseudonym(acme)};
    Certificate certificate = story.certificate();
    EXPECT_EQ(print(certificate).find("acme"), std::string::npos);
    EXPECT_EQ(refusal(certificate), "accepted") << "it proves the same to anybody";
    EXPECT_THAT(refusal(certificate, {.tenant = "acme"}), HasSubstr("by the pseudonym ~"));
    EXPECT_EQ(refusal(certificate, {.tenant = pseudonym(acme)}), "accepted");
    certificate.tenant = acme;
    EXPECT_EQ(refusal(certificate, {.tenant = "acme"}), "accepted");
    EXPECT_EQ(verify_certificate(certificate, log_vkey())->tenant, "acme");
    EXPECT_THAT(refusal(certificate, {.tenant = "beta"}), HasSubstr("about tenant \"acme\""));
    certificate.tenant = beta;
    EXPECT_THAT(refusal(certificate), HasSubstr("says its tenant is \"beta\", and the record does not"));
    Certificate older = Story{}.certificate();
    older.tenant = acme;
    EXPECT_THAT(refusal(older), HasSubstr("the record does not")) << "a record with a name has nothing to open";
}

TEST(LabCertificate, is_accepted_by_whoever_says_so_and_by_nobody_else) {
    for (const Grade grade : {Grade::simulated, Grade::emulated}) {
        Story story;
        story.record.grade = story.wipe.grade = grade;
        const Certificate certificate = read_certificate(print(of_the_lab(story.certificate()))).value();
        const auto by_default = verify_certificate(certificate, log_vkey());
        ASSERT_FALSE(by_default);
        EXPECT_EQ(by_default.error().code, Code::denied);
        EXPECT_THAT(by_default.error().what, HasSubstr("it is not about hardware"));
        const Verified verified = verify_certificate(certificate, log_vkey(), {.accept_lab = true}).value();
        EXPECT_TRUE(verified.of_lab);
        EXPECT_EQ(verified.lab, lab_vkey());
        EXPECT_THAT(verified.not_proven[0], HasSubstr("anything about hardware: this was " + std::string{word(grade)}));
        // Whoever knows nothing of labs, and trusts the log's key alone, finds a checkpoint that nobody has signed.
        EXPECT_FALSE(open_checkpoint(certificate.checkpoint, log_vkey()));
    }
}

TEST(LabCertificate, grade_and_key_must_agree) {
    Story story;
    EXPECT_THAT(refusal(of_the_lab(story.certificate()), {.accept_lab = true}),
                HasSubstr("the record is graded silicon, and the lab's key log.example/fleet/lab+"));
    for (const Grade grade : {Grade::documented, Grade::assumed}) {
        story.record.grade = story.wipe.grade = grade;
        EXPECT_EQ(refusal(story.certificate()), "accepted") << "known less well, but nobody says it was software";
        EXPECT_THAT(refusal(of_the_lab(story.certificate()), {.accept_lab = true}), HasSubstr("signed for it"));
    }
    Log log;
    const auto index = log.add(Record{.kind = RecordKind::leased, .actor = "core"});
    EXPECT_THAT(refusal(of_the_lab(log.certify(index, {})), {.accept_lab = true}), HasSubstr("graded not at all"));

    // A lab's certificate under the log's own signature, which everybody can get: checkpoints are public.
    story.record.grade = story.wipe.grade = Grade::emulated;
    EXPECT_EQ(refusal(story.certificate()), "the record is graded emulated, and signed with the log's own key");
    const auto older = verify_certificate(story.certificate(), log_vkey(), {.accept_lab = true});
    ASSERT_TRUE(older) << "as servers did before labs had a key; whoever accepts a lab loses nothing by it";
    EXPECT_TRUE(older->of_lab);
    EXPECT_FALSE(older->lab);
}

TEST(LabCertificate, believes_only_a_key_that_the_log_introduces) {
    Story story;
    story.record.grade = story.wipe.grade = Grade::simulated;
    const Certificate good = of_the_lab(story.certificate());
    struct Row {
        std::string_view says;
        std::function<void(Certificate&)> spoil;
        std::string_view refusal;
    };
    const Row rows[] = {
        {"introduced by somebody else", [](Certificate& c) { c.lab = introduction(key_of_seed('x')); },
         "no key that is trusted here has signed the note"},
        {"another key than signed",
         [](Certificate& c) { c.lab = introduction(log_key(), {lab_name(log_name), key_of_seed('x').public_key()}); },
         "no key that is trusted here has signed the note"},
        {"the lab of another log",
         [](Certificate& c) { c.lab = introduction(log_key(), {"other/lab", key_of_seed('B').public_key()}); },
         "a lab's key of the name other/lab, introduced by log.example/fleet"},
        {"a checkpoint is no introduction", [](Certificate& c) { c.lab = Story{}.certificate().checkpoint; },
         "introduces no lab's key"},
        {"no introduction", [](Certificate& c) { c.lab = ""; }, "not a signed note"},
        {"left out", [](Certificate& c) { c.lab.reset(); }, "no key that is trusted here has signed the note"},
        {"signed for another log",
         [](Certificate& c) {
             c.checkpoint =
                 signed_by_lab("other\n1\n" + to_base64(std::string(32, 'r')) + "\n", log_name, key_of_seed('B'));
         },
         "a checkpoint of other, signed by the lab of log.example/fleet"},
        {"not signed", [](Certificate& c) { c.checkpoint = Story{}.certificate().checkpoint; },
         "no key that is trusted here has signed the note"},
    };
    ASSERT_EQ(refusal(good, {.accept_lab = true}), "accepted");
    for (const Row& row : rows) {
        Certificate spoilt = good;
        row.spoil(spoilt);
        EXPECT_THAT(refusal(spoilt, {.accept_lab = true}), HasSubstr(row.refusal)) << row.says;
    }
}

TEST(LabCertificate, a_key_that_was_replaced_introduces_no_lab_any_more) {
    Story story;
    story.record.grade = story.wipe.grade = Grade::simulated;
    Certificate certificate = of_the_lab(story.certificate());  // of a tree of 5 leaves
    const auto verified = [&](std::uint64_t most) {
        const LogKeys keys{{{log_vkey(), most}, {{log_name, key_of_seed('M').public_key()}}}};
        return verify_certificate(certificate, keys, {.accept_lab = true}).has_value();
    };
    EXPECT_TRUE(verified(5));
    EXPECT_FALSE(verified(4));
    Note both = parse_note(*certificate.lab).value();
    sign_note(both, log_name, key_of_seed('M'));
    certificate.lab = print(both);
    EXPECT_TRUE(verified(4)) << "while one replaces the other, both sign";
}

TEST(Certificate, reads_only_what_it_knows) {
    const std::string good = print(Story{}.certificate());
    EXPECT_TRUE(read_certificate("\n  " + good));
    const auto changed = [&](std::string_view from, std::string_view to) {
        std::string text = good;
        return text.replace(text.find(from), from.size(), to);
    };
    EXPECT_THAT(read_certificate(changed("/v1", "/v2")).error().what, HasSubstr("certificate/v2"));
    EXPECT_THAT(read_certificate(changed("\"salt\"", "\"sugar\"")).error().what, HasSubstr("unknown field \"sugar\""));
    EXPECT_FALSE(read_certificate(""));
    EXPECT_FALSE(read_certificate("{}"));
    EXPECT_FALSE(read_certificate(good + good));
    EXPECT_FALSE(read_certificate(std::string_view{good}.substr(0, good.size() / 2)));
}

}  // namespace
}  // namespace bulkhead::evidence
