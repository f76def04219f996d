#include "bulkhead/evidence/fabric_statement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/evidence/fabric_log_test.hpp"

namespace bulkhead::evidence {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(FabricStatements, are_read_as_they_were_written) {
    const auto read = read_fabric_statement(fabric_statement_text(some_fabric_test()));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(*read, some_fabric_test());
}

TEST(FabricStatements, that_no_test_of_ours_would_make_are_refused) {
    FabricStatement twice = some_fabric_test(), many = some_fabric_test(), backwards = some_fabric_test(),
                    words = some_fabric_test();
    twice.attempts[1].name = "forged-mac";
    words.attempts[1].name = "Nothing; all is well";
    backwards.ended = Instant{10};
    for (int i = 0; i < 64; ++i)
        many.attempts.push_back({"attempt-" + std::to_string(i), "x", AttemptEnd::stopped, {}});
    for (const FabricStatement& wrong : {twice, many, backwards, words})
        EXPECT_FALSE(read_fabric_statement(fabric_statement_text(wrong)));
    EXPECT_FALSE(read_fabric_statement("{}"));
}

// What it comes to is nobody's word.
TEST(FabricStatements, come_to_what_their_attempts_say) {
    const std::string text = fabric_statement_text(some_fabric_test());
    const NodeFabricTest test = summary_of(some_fabric_test(), text);
    EXPECT_EQ(test.found, FabricFound::open);
    EXPECT_THAT(test.stopped, ElementsAre("forged-mac"));
    EXPECT_THAT(test.through, ElementsAre("forged-gid"));
    EXPECT_THAT(test.untried, ElementsAre("raw-ip-socket"));
    EXPECT_EQ(test.digest.size(), 64u);
    EXPECT_EQ(test.record, -1) << "whoever logs it says where";
    FabricStatement closed = some_fabric_test();
    closed.attempts[1].end = AttemptEnd::stopped;
    EXPECT_EQ(summary_of(closed, text).found, FabricFound::closed);
    closed.why = "the link went away";
    EXPECT_EQ(summary_of(closed, text).found, FabricFound::unproven) << "it broke off";
    EXPECT_EQ(summary_of(closed, text).why, "the link went away");
    FabricStatement open = some_fabric_test();
    open.why = "the link went away";
    EXPECT_EQ(summary_of(open, text).found, FabricFound::open) << "what got through got through";
}

TEST(FabricStatements, are_believed_offline_by_the_log_and_the_nodes_key) {
    const FabricLog log;
    const Certificate certificate = log.certificate_of(FabricLog::record_of(some_fabric_test(), log.node_key));
    const auto verified = verify_certificate(certificate, log.verifier, {.accept_lab = true});
    ASSERT_TRUE(verified) << verified.error().what;
    ASSERT_TRUE(verified->fabric);
    EXPECT_TRUE(verified->lab) << "its lab's key signed it";
    EXPECT_EQ(*verified->fabric, some_fabric_test());
    EXPECT_THAT(verified->proven, Contains(HasSubstr("GOT THROUGH: forged-gid")));
    EXPECT_THAT(verified->not_proven, Contains(HasSubstr("what was not tried: raw-ip-socket")));
    const auto by_default = verify_certificate(certificate, log.verifier);
    ASSERT_FALSE(by_default);
    EXPECT_EQ(by_default.error().code, Code::denied) << "it is not about hardware";

    FabricStatement of_silicon = some_fabric_test();
    of_silicon.grade = Grade::silicon;
    EXPECT_TRUE(
        verify_certificate(log.certificate_of(FabricLog::record_of(of_silicon, log.node_key), false), log.verifier));
}

TEST(FabricStatements, are_not_believed_by_a_record_that_says_otherwise) {
    const FabricLog log;
    const auto refusal = [&](const Record& record) {
        const auto verified = verify_certificate(log.certificate_of(record), log.verifier, {.accept_lab = true});
        return verified ? std::string{"accepted"} : verified.error().what;
    };
    const Record good = FabricLog::record_of(some_fabric_test(), log.node_key);
    Record prettier = good, elsewhere = good, simulated = good, unsigned_ = good;
    prettier.detail["found"] = "closed";
    elsewhere.unit = "nic 0000:af:00.0";
    simulated.grade = Grade::simulated;
    unsigned_.evidence.reset();
    FabricStatement without_fences = some_fabric_test();
    without_fences.fence = FabricFence::off;
    without_fences.attempts.erase(without_fences.attempts.begin());
    EXPECT_EQ(refusal(good), "accepted");
    EXPECT_THAT(refusal(prettier), HasSubstr("does not say what the signed statement comes to: open"));
    EXPECT_THAT(refusal(elsewhere), HasSubstr("unit \"nic 0000:af:00.0\""));
    EXPECT_THAT(refusal(simulated), HasSubstr("graded simulated, and the signed statement emulated"));
    EXPECT_THAT(refusal(unsigned_), HasSubstr("no node has signed for it"));
    EXPECT_THAT(refusal(FabricLog::record_of(some_fabric_test(), log.log_key)), HasSubstr("key"))
        << "somebody else signed it";
    EXPECT_THAT(refusal(FabricLog::record_of(without_fences, log.node_key)), HasSubstr("with the fences off"));
}

}  // namespace
}  // namespace bulkhead::evidence
