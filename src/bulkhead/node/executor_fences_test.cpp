// Tests of the fences, as far as a node without hardware goes: who asked, what is signed, and that nothing is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/node/journal.hpp"
#include "bulkhead/node/rig_test.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

evidence::FabricStatement found_closed(Key ticket = 0) {
    evidence::FabricStatement found{.node = "somebody else", .nic = "0000:3b:00.0"};
    found.honest_passes = true;
    found.attempts = {{"forged-mac", "a frame", AttemptEnd::stopped, "the guard"}};
    found.grade = Grade::emulated;
    found.ticket = ticket;
    return found;
}

TEST(FenceTests, are_signed_by_the_node_and_told_until_they_are_heard) {
    Rig rig;
    rig.carry(rig.executor->on_fabric_tested(found_closed(7)));
    ASSERT_EQ(rig.reports.size(), 1u);
    const auto& report = std::get<FabricTestReport>(rig.reports[0].what);
    EXPECT_EQ(report.ticket, 7);
    EXPECT_TRUE(evidence::verify_statement(test_key().public_key(), report.evidence));
    const auto statement = evidence::read_fabric_statement(report.evidence.statement);
    ASSERT_TRUE(statement);
    EXPECT_EQ(statement->node, "node-1") << "the node says who it is, and not its hardware";
    EXPECT_EQ(statement->agent_version, rig.identity.agent_version);
    rig.restart();
    ASSERT_EQ(rig.executor->unacknowledged().size(), 1u);
    EXPECT_EQ(rig.executor->unacknowledged()[0], rig.reports[0]);
    rig.carry(rig.executor->on_ack(rig.reports[0].number));
    EXPECT_TRUE(rig.executor->unacknowledged().empty());
}

TEST(FenceTests, are_in_the_journal_on_disk_as_they_were) {
    Rig rig;
    rig.carry(rig.executor->on_fabric_tested(found_closed()));
    rig.carry(rig.executor->on_no_fabric_test(9, "no function is free"));
    const auto read = read_journal(journal_frame(1, rig.journal));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(read->records, rig.journal);
}

TEST(FenceTests, are_begun_once_for_each_that_is_asked_for) {
    Rig rig;
    const auto asked = [&](Key ticket) { return rig.executor->on_order(rig.now, {rig.epoch, TestFabric{ticket}}); };
    EXPECT_EQ(asked(5).test_fabric, 5);
    EXPECT_EQ(asked(5).test_fabric, std::nullopt) << "the same order again: it is under way";
    EXPECT_EQ(asked(6).test_fabric, 6);
    EXPECT_THAT(asked(0).ignored, HasSubstr("no ticket"));
    rig.restart();
    EXPECT_EQ(asked(6).test_fabric, 6) << "whatever was under way ended with the process";
    EXPECT_EQ(rig.executor->on_order(rig.now, {rig.epoch - 1, TestFabric{8}}).test_fabric, std::nullopt)
        << "another epoch's order";
}

// An agent that starts over and over while nobody hears it.
TEST(FenceTests, that_nobody_hears_do_not_fill_the_journal) {
    Rig rig;
    for (int i = 0; i < 100; ++i) {
        evidence::FabricStatement found = found_closed();
        found.began = found.ended = Instant{i};
        rig.carry(rig.executor->on_fabric_tested(std::move(found)));
    }
    EXPECT_EQ(rig.executor->unacknowledged().size(), 64u);
    EXPECT_THAT(rig.ignored, HasSubstr("not been heard"));
    rig.carry(rig.executor->on_fabric_tested(found_closed(7)));
    EXPECT_EQ(rig.executor->unacknowledged().size(), 65u) << "somebody waits for it";
    for (int i = 0; i < 400; ++i) {
        evidence::FabricStatement open = found_closed();
        open.attempts[0].end = AttemptEnd::got_through;
        open.began = open.ended = Instant{i};
        rig.carry(rig.executor->on_fabric_tested(std::move(open)));
        if (i == 0) {
            EXPECT_EQ(rig.executor->unacknowledged().size(), 66u) << "that must be known";
        }
    }
    EXPECT_EQ(rig.executor->unacknowledged().size(), 256u);
}

}  // namespace
}  // namespace bulkhead
