#include "bulkhead/evidence/fabric_statement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/evidence/certificate.hpp"
#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/evidence/keys_test.hpp"
#include "bulkhead/evidence/merkle.hpp"

namespace bulkhead::evidence {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

FabricStatement some_test() {
    FabricStatement statement{.node = "node-1", .nic = "0000:3b:00.0"};
    statement.fence = FabricFence::nic;
    statement.began = Instant{1'000};
    statement.ended = Instant{9'000};
    statement.honest_passes = true;
    statement.attempts = {{"forged-mac", "a frame", AttemptEnd::stopped, "the NIC"},
                          {"forged-gid", "a frame", AttemptEnd::got_through, {}},
                          {"raw-ip-socket", "a socket", AttemptEnd::not_tried, "the tenant is root there"}};
    statement.grade = Grade::emulated;
    statement.boot = "boot-1";
    statement.ticket = 7;
    statement.agent_version = "0.1.0";
    return statement;
}

TEST(FabricStatements, are_read_as_they_were_written) {
    const auto read = read_fabric_statement(fabric_statement_text(some_test()));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(*read, some_test());
}

TEST(FabricStatements, that_no_test_of_ours_would_make_are_refused) {
    FabricStatement twice = some_test(), many = some_test(), backwards = some_test();
    twice.attempts[1].name = "forged-mac";
    backwards.ended = Instant{10};
    for (int i = 0; i < 64; ++i)
        many.attempts.push_back({"attempt-" + std::to_string(i), "x", AttemptEnd::stopped, {}});
    for (const FabricStatement& wrong : {twice, many, backwards})
        EXPECT_FALSE(read_fabric_statement(fabric_statement_text(wrong)));
    EXPECT_FALSE(read_fabric_statement("{}"));
}

// What it comes to is nobody's word.
TEST(FabricStatements, come_to_what_their_attempts_say) {
    const std::string text = fabric_statement_text(some_test());
    const NodeFabricTest test = summary_of(some_test(), text);
    EXPECT_EQ(test.found, FabricFound::open);
    EXPECT_THAT(test.stopped, ElementsAre("forged-mac"));
    EXPECT_THAT(test.through, ElementsAre("forged-gid"));
    EXPECT_THAT(test.untried, ElementsAre("raw-ip-socket"));
    EXPECT_EQ(test.digest.size(), 64u);
    EXPECT_EQ(test.record, -1) << "whoever logs it says where";
    FabricStatement closed = some_test();
    closed.attempts[1].end = AttemptEnd::stopped;
    EXPECT_EQ(summary_of(closed, text).found, FabricFound::closed);
    closed.why = "the link went away";
    EXPECT_EQ(summary_of(closed, text).found, FabricFound::unproven) << "it broke off";
    EXPECT_EQ(summary_of(closed, text).why, "the link went away");
    FabricStatement open = some_test();
    open.why = "the link went away";
    EXPECT_EQ(summary_of(open, text).found, FabricFound::open) << "what got through got through";
}

// A log of two leaves: the node's key, and its test.
struct TestLog {
    SigningKey log_key = key_of_seed('L'), node_key = key_of_seed('n');
    VerifierKey verifier{"log.example/fleet", log_key.public_key()};

    Certificate certificate_of(const Record& record) const {
        const std::string salt(salt_size, 's');
        const std::string key = payload_of(key_added(Instant{1}, "core", "node-1", node_key.public_key()));
        const std::string tested = payload_of(record);
        const Hash key_entry = commit_to(salt, key), test_entry = commit_to(salt, tested);
        const Hash first = leaf_hash(bytes_of(key_entry)), second = leaf_hash(bytes_of(test_entry));
        const Hash root = node_hash(first, second);
        Certificate certificate{.record = proven_leaf(1, salt, tested, std::vector<Hash>{first}), .checkpoint = {}};
        certificate.key = proven_leaf(0, salt, key, std::vector<Hash>{second});
        certificate.checkpoint = sign_checkpoint({.origin = verifier.name, .size = 2, .root = root}, log_key);
        return certificate;
    }
    Record record_of(const FabricStatement& statement, const SigningKey& by) const {
        Record record{.kind = RecordKind::fabric_tested, .at = Instant{2}, .actor = "node:node-1"};
        record.node = "node-1";
        record.unit = "nic 0000:3b:00.0";
        record.detail["found"] = "open";
        record.grade = Grade::emulated;
        record.evidence = sign_statement(by, fabric_statement_text(statement));
        return record;
    }
};

TEST(FabricStatements, are_believed_offline_by_the_log_and_the_nodes_key) {
    const TestLog log;
    const auto verified =
        verify_certificate(log.certificate_of(log.record_of(some_test(), log.node_key)), log.verifier);
    ASSERT_TRUE(verified) << verified.error().what;
    ASSERT_TRUE(verified->fabric);
    EXPECT_EQ(*verified->fabric, some_test());
    EXPECT_THAT(verified->proven, Contains(HasSubstr("GOT THROUGH: forged-gid")));
    EXPECT_THAT(verified->not_proven, Contains(HasSubstr("what was not tried: raw-ip-socket")));
}

TEST(FabricStatements, are_not_believed_by_a_record_that_says_otherwise) {
    const TestLog log;
    const auto refused = [&](const Record& record) {
        return !verify_certificate(log.certificate_of(record), log.verifier);
    };
    const Record good = log.record_of(some_test(), log.node_key);
    Record prettier = good, elsewhere = good, better = good, unsigned_ = good;
    prettier.detail["found"] = "closed";
    elsewhere.unit = "nic 0000:af:00.0";
    better.grade = Grade::silicon;
    unsigned_.evidence.reset();
    EXPECT_FALSE(refused(good));
    for (const Record& record : {prettier, elsewhere, better, unsigned_}) EXPECT_TRUE(refused(record));
    EXPECT_TRUE(refused(log.record_of(some_test(), log.log_key))) << "somebody else signed it";
}

}  // namespace
}  // namespace bulkhead::evidence
