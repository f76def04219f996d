// Wiped, read back, signed; what is tried again, and what never is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bulkhead/node/rig_test.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

TEST(Executor, evidence_of_a_wipe_is_not_evidence_after_the_next_use) {
    Rig rig;
    rig.clean_all();
    const Prepare first = rig.half();
    rig.order(first);
    const Release release = rig.release_of(first);
    rig.order(release);
    EXPECT_TRUE(rig.last<WipeReport>().verified);
    rig.order(release);
    EXPECT_TRUE(rig.last<WipeReport>().verified) << "asked again, it says again what it did";
    const Prepare second = rig.half();
    rig.order(second);
    rig.order(Start{second.lease});
    rig.order(Release{second.lease, {}});  // and nothing is wiped: a legal hold
    rig.reports.clear();
    rig.order(release);
    const WipeReport answer = rig.last<WipeReport>();
    EXPECT_FALSE(answer.verified);
    EXPECT_TRUE(answer.stale);
    EXPECT_TRUE(answer.evidence.signature.empty());
    EXPECT_THAT(answer.why, HasSubstr("used since"));
    EXPECT_NE(rig.model.read({UnitKind::memory, 0, 5}), 0u) << "an old ticket wipes nothing";
}

TEST(Executor, a_ticket_that_it_knows_of_another_wipe_answers_nothing) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half();
    rig.order(lease);
    rig.order(Start{lease.lease});
    const Release release = rig.release_of(lease);
    rig.order(release);
    ASSERT_TRUE(rig.last<WipeReport>().verified);
    WipeTask of_another = release.wipes.front();
    of_another.lease = "lease-of-another-life";
    WipeTask elsewhere = release.wipes.front();
    elsewhere.device = 1;
    for (const WipeTask& twice : {of_another, elsewhere}) {
        rig.reports.clear();
        rig.order(Sanitize{{twice}});
        const WipeReport answer = rig.last<WipeReport>();
        EXPECT_TRUE(answer.stale);
        EXPECT_EQ(answer.device, twice.device) << "of what was asked";
        EXPECT_THAT(answer.why, HasSubstr("given to another wipe"));
        EXPECT_TRUE(answer.evidence.signature.empty());
    }
}

TEST(Executor, a_wipe_of_what_a_lease_holds_is_refused) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half();
    rig.order(lease);
    rig.order(Start{lease.lease});
    const Sanitize wipe{.wipes = {{UnitKind::memory, 0, 0, 8, rig.key()}}};
    rig.order(wipe);
    EXPECT_FALSE(rig.last<WipeReport>().verified);
    EXPECT_THAT(rig.last<WipeReport>().why, HasSubstr("in use"));
    EXPECT_EQ(rig.model.read({UnitKind::memory, 0, 4}), static_cast<std::uint64_t>(lease.lease));
    rig.order(Release{rig.key(), {{UnitKind::memory, 0, 4, 4, rig.key()}}});
    EXPECT_FALSE(rig.last<WipeReport>().verified);
    EXPECT_TRUE(rig.operations<Wipe>().size() == 6u) << "only those of the beginning";
}

TEST(Executor, residue_is_wiped_once_more_and_the_evidence_says_so) {
    Rig rig;
    rig.model.faults({UnitKind::memory, 0}).lie = 1;
    rig.order(Sanitize{.wipes = {{UnitKind::memory, 0, 0, 8, rig.key()}}});
    EXPECT_TRUE(rig.last<WipeReport>().verified);
    EXPECT_EQ(statement_in(rig.last<WipeReport>()).method, "model fill, second pass");
}

// A second pass would look elsewhere, and could miss what this one has met.
TEST(Executor, a_drive_that_kept_something_has_failed_and_is_not_tried_until_it_passes) {
    Rig rig;
    rig.model.faults({UnitKind::drive, 0}).lie = 1;
    const std::size_t before = rig.operations<Wipe>().size();
    rig.order(Sanitize{.wipes = {{UnitKind::drive, 0, 0, 1, rig.key()}}});
    EXPECT_FALSE(rig.last<WipeReport>().verified);
    EXPECT_THAT(rig.last<WipeReport>().why, HasSubstr("bytes were left"));
    EXPECT_EQ(statement_in(rig.last<WipeReport>()).result, evidence::WipeResult::failed);
    EXPECT_EQ(rig.operations<Wipe>().size(), before + 1);
}

TEST(Executor, residue_after_the_second_pass_fails) {
    Rig rig;
    rig.model.faults({UnitKind::memory, 0}).lie = 2;
    rig.order(Sanitize{.wipes = {{UnitKind::memory, 0, 0, 8, rig.key()}}});
    const WipeReport report = rig.last<WipeReport>();
    EXPECT_FALSE(report.verified);
    EXPECT_THAT(report.why, HasSubstr("second pass"));
    EXPECT_EQ(statement_in(report).result, evidence::WipeResult::failed);
    rig.order(rig.half());
    EXPECT_EQ(rig.phase(), PartPhase::refused);
}

TEST(Executor, a_gpu_that_stays_dirty_is_reset_once_where_that_is_allowed) {
    struct Row {
        const char* says;
        bool allowed;
        std::uint32_t lies;  // wipes, and then resets, that say they did and did not
        std::size_t resets;
        bool verified;
        const char* method;
    };
    const Row rows[] = {
        {"one pass more was enough", true, 1, 0, true, "model fill, second pass"},
        {"what two passes left is gone after a reset", true, 2, 1, true, "model fill, second pass, after a GPU reset"},
        {"what a reset leaves stays out of use", true, 4, 1, false, "model fill, second pass, after a GPU reset"},
        {"nobody is asked twice who did not allow it", false, 2, 0, false, "model fill, second pass"},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(row.says);
        Rig rig{{.gpus = 2}, {.gpu_reset = row.allowed}};
        rig.model.faults({UnitKind::memory, 0}).lie = row.lies;
        rig.order(Sanitize{.wipes = {{UnitKind::memory, 0, 0, 8, rig.key()}}});
        EXPECT_EQ(rig.operations<ResetGpu>().size(), row.resets);
        EXPECT_EQ(rig.last<WipeReport>().verified, row.verified) << rig.last<WipeReport>().why;
        EXPECT_EQ(statement_in(rig.last<WipeReport>()).method, row.method);
        rig.order(rig.half());
        EXPECT_EQ(rig.phase(), row.verified ? PartPhase::prepared : PartPhase::refused);
    }
}

TEST(Executor, a_wipe_that_fails_outright_is_tried_again_after_a_reset) {
    Rig rig{{.gpus = 1}, {.gpu_reset = true}};
    rig.model.faults({UnitKind::memory, 0}).fail = 1;
    rig.order(Sanitize{.wipes = {{UnitKind::memory, 0, 0, 8, rig.key()}}});
    EXPECT_TRUE(rig.last<WipeReport>().verified) << rig.last<WipeReport>().why;
    EXPECT_EQ(statement_in(rig.last<WipeReport>()).method, "model fill, after a GPU reset");
}

TEST(Executor, a_gpu_that_somebody_else_is_on_is_not_reset) {
    Rig rig{{.gpus = 1}, {.gpu_reset = true}};
    rig.clean_all();
    const Prepare stays = rig.half(4), goes = rig.half(0);
    for (const Prepare& lease : {stays, goes}) {
        rig.order(lease);
        rig.order(Start{lease.lease});
    }
    rig.model.faults({UnitKind::memory, 0}).lie = 2;
    rig.order(rig.release_of(goes));
    EXPECT_FALSE(rig.last<WipeReport>().verified);
    EXPECT_TRUE(rig.operations<ResetGpu>().empty());
    EXPECT_EQ(rig.executor->ledger().leases.at(stays.lease).phase, PartPhase::running);
}

// A legal hold: the lease is over, and nobody was told to wipe what it left.
TEST(Executor, a_gpu_that_holds_what_is_kept_is_not_reset) {
    Rig rig{{.gpus = 1}, {.gpu_reset = true}};
    rig.clean_all();
    const Prepare kept = rig.half(4), goes = rig.half(0);
    for (const Prepare& lease : {kept, goes}) {
        rig.order(lease);
        rig.order(Start{lease.lease});
    }
    rig.order(Release{kept.lease, {}});
    rig.model.faults({UnitKind::memory, 0}).lie = 2;
    rig.order(rig.release_of(goes));
    EXPECT_FALSE(rig.last<WipeReport>().verified);
    EXPECT_TRUE(rig.operations<ResetGpu>().empty());
}

TEST(Executor, a_burn_in_is_passed_the_first_time_or_not_at_all) {
    Rig rig{{.gpus = 1}, {.gpu_reset = true}};
    rig.model.faults({UnitKind::memory, 0}).lie = 1;
    rig.order(Sanitize{.wipes = {{.kind = UnitKind::memory, .size = 8, .ticket = rig.key(), .burn_in = true}}});
    EXPECT_FALSE(rig.last<WipeReport>().verified);
    EXPECT_THAT(rig.last<WipeReport>().why, HasSubstr("burn-in"));
    EXPECT_EQ(rig.operations<Wipe>().size(), 1u);
    EXPECT_TRUE(rig.operations<ResetGpu>().empty());
}

TEST(Executor, a_drain_ends_when_all_of_the_gpu_has_passed_and_none_came_meanwhile) {
    Rig rig;
    rig.clean_all();
    const Prepare stays = rig.half(4);
    rig.order(stays);
    rig.order(Start{stays.lease});
    const FaultReport drain{UnitKind::memory, 0, "Xid 92", true};
    rig.carry(rig.executor->on_fault(rig.now, drain));
    rig.order(Sanitize{.wipes = {{.kind = UnitKind::memory, .size = 4, .ticket = rig.key(), .burn_in = true}}});
    EXPECT_TRUE(rig.last<WipeReport>().verified);
    rig.order(rig.half(0));
    EXPECT_EQ(rig.phase(), PartPhase::refused) << "somebody is still on the other half";
    rig.order(rig.release_of(stays));
    rig.give(Sanitize{.wipes = {{.kind = UnitKind::memory, .size = 8, .ticket = rig.key(), .burn_in = true}}});
    rig.carry(rig.executor->on_fault(rig.now, drain));
    rig.settle();
    EXPECT_FALSE(rig.last<WipeReport>().verified);
    EXPECT_THAT(rig.last<WipeReport>().why, HasSubstr("while its burn-in ran"));
    rig.order(Sanitize{.wipes = {{.kind = UnitKind::memory, .size = 8, .ticket = rig.key(), .burn_in = true}}});
    rig.order(rig.half(0));
    EXPECT_EQ(rig.phase(), PartPhase::prepared);
}

TEST(Executor, a_reset_that_was_cut_short_is_not_begun_again_and_not_claimed) {
    Rig rig{{.gpus = 1}, {.gpu_reset = true}};
    rig.model.faults({UnitKind::memory, 0}).lie = 2;
    rig.give(Sanitize{.wipes = {{UnitKind::memory, 0, 0, 8, rig.key()}}});
    while (rig.operations<ResetGpu>().empty() && rig.step()) {
    }
    ASSERT_EQ(rig.operations<ResetGpu>().size(), 1u);
    rig.restart();
    rig.settle();
    EXPECT_EQ(rig.operations<ResetGpu>().size(), 1u);
    EXPECT_TRUE(rig.last<WipeReport>().verified);
    EXPECT_EQ(statement_in(rig.last<WipeReport>()).method,
              "model fill, second pass, after a GPU reset of which nothing is known");
}

TEST(Executor, who_is_on_a_gpu_that_is_drained_stays_and_nobody_comes_after_them) {
    Rig rig;
    rig.clean_all();
    const Prepare stays = rig.half(4), late = rig.half(0);
    rig.order(stays);
    rig.order(Start{stays.lease});
    rig.carry(rig.executor->on_fault(rig.now, {UnitKind::memory, 0, "Xid 63", true}));
    EXPECT_TRUE(rig.last<FaultReport>().drain);
    EXPECT_EQ(rig.executor->ledger().leases.at(stays.lease).phase, PartPhase::running);
    rig.order(late);
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("gpu0 is drained: Xid 63"));
    rig.restart();
    rig.order(rig.release_of(stays));
    EXPECT_TRUE(rig.last<WipeReport>().verified) << "a tenant's memory is wiped as ever";
    const FaultReport again = rig.last<FaultReport>();
    EXPECT_TRUE(again.drain);
    EXPECT_EQ(again.why, "Xid 63");
    rig.order(rig.half(0));
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    rig.order(Sanitize{.wipes = {{.kind = UnitKind::memory, .size = 8, .ticket = rig.key(), .burn_in = true}}});
    EXPECT_THAT(statement_in(rig.last<WipeReport>()).method, HasSubstr("burn-in"));
    rig.order(rig.half(0));
    EXPECT_EQ(rig.phase(), PartPhase::prepared);
}

TEST(Executor, a_failed_wipe_is_never_tried_again_under_its_ticket) {
    Rig rig;
    rig.model.faults({UnitKind::drive, 0}).fail = 1;
    const Sanitize order{.wipes = {{UnitKind::drive, 0, 0, 1, rig.key()}}};
    rig.order(order);
    const WipeReport failed = rig.last<WipeReport>();
    EXPECT_FALSE(failed.verified);
    rig.order(order);
    EXPECT_EQ(rig.last<WipeReport>(), failed);
    rig.order(Sanitize{.wipes = {{UnitKind::drive, 0, 0, 1, rig.key()}}});
    EXPECT_TRUE(rig.last<WipeReport>().verified) << "a new ticket is a new attempt";
}

TEST(Executor, an_older_ticket_that_comes_late_does_nothing) {
    Rig rig;
    const Sanitize older{.wipes = {{UnitKind::drive, 0, 0, 1, rig.key()}}};
    rig.order(Sanitize{.wipes = {{UnitKind::drive, 0, 0, 1, rig.key()}}});
    rig.ever_begun.clear();
    rig.order(older);
    EXPECT_FALSE(rig.last<WipeReport>().verified);
    EXPECT_TRUE(rig.ever_begun.empty());
    EXPECT_TRUE(rig.executor->ledger().clean({UnitKind::drive, 0, 0})) << "what the newer one proved stays proven";
}

TEST(Executor, malformed_wipes_are_answered) {
    Rig rig;
    for (const WipeTask& task : {WipeTask{UnitKind::memory, 0, 0, 0, 5}, WipeTask{UnitKind::memory, 0, 63, 2, 6},
                                 WipeTask{UnitKind::host, 1, 0, 1, 7}, WipeTask{UnitKind::drive, 0, 0, 1, 0}}) {
        rig.order(Sanitize{.wipes = {task}});
        EXPECT_FALSE(rig.last<WipeReport>().verified);
        EXPECT_EQ(rig.last<WipeReport>().ticket, task.ticket);
    }
    EXPECT_TRUE(rig.ever_begun.empty());
}

TEST(Executor, a_verification_that_read_nothing_proves_nothing) {
    Rig rig;
    const Key ticket = rig.key();
    rig.give(Sanitize{.wipes = {{UnitKind::memory, 0, 0, 8, ticket}}});
    rig.carry(rig.executor->on_result(rig.now, {.number = rig.begun[0].number, .ok = true, .bytes = 80}));
    rig.carry(rig.executor->on_result(rig.now, {.number = rig.begun[1].number, .ok = true, .bytes = 0}));
    EXPECT_FALSE(rig.last<WipeReport>().verified);
}

}  // namespace
}  // namespace bulkhead
