#include "bulkhead/node/executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bulkhead/evidence/statement.hpp"
#include "bulkhead/node/rig_test.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

evidence::WipeStatement statement_in(const WipeReport& report) {
    EXPECT_TRUE(evidence::verify_statement(test_key().public_key(), report.evidence));
    const auto read = evidence::read_statement(report.evidence.statement);
    EXPECT_TRUE(read) << read.error().what;
    return read ? *read : evidence::WipeStatement{};
}

// ---- the gate

TEST(NodeGate, what_the_journal_does_not_know_is_dirty) {
    Rig rig;
    rig.order(rig.half());
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("unknown here"));
    EXPECT_TRUE(rig.ever_begun.empty());
}

TEST(NodeGate, what_was_wiped_and_verified_is_handed_out_once) {
    Rig rig;
    rig.clean_all();
    const Prepare first = rig.half(), second = rig.half();
    rig.order(first);
    EXPECT_EQ(rig.phase(), PartPhase::prepared);
    rig.order(second);
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("in use by lease"));
}

TEST(NodeGate, a_unit_is_dirty_from_the_moment_its_preparation_begins) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half();
    rig.give(lease);  // no operation has been carried out
    EXPECT_FALSE(rig.executor->ledger().clean({UnitKind::memory, 0, 4}));
    Release release = rig.release_of(lease);
    release.wipes.clear();  // as under a legal hold
    rig.order(release);
    EXPECT_EQ(rig.phase(), PartPhase::stopped);
    rig.order(rig.half());
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("dirty"));
}

TEST(NodeGate, a_unit_with_a_wipe_ordered_is_not_handed_out_even_if_an_earlier_one_ended_well) {
    Rig rig;
    Sanitize twice{.wipes = {{UnitKind::memory, 0, 4, 4, rig.key()}, {UnitKind::memory, 0, 4, 4, rig.key()}}};
    rig.give(twice);
    rig.step();
    rig.step();  // the first is verified, the second has begun
    ASSERT_TRUE(rig.last<WipeReport>().verified);
    rig.give(rig.half());
    EXPECT_EQ(rig.phase(), PartPhase::refused);
}

TEST(NodeGate, bad_orders_are_refused_with_the_reason) {
    struct Row {
        std::string_view says;
        GpuPart part;
        std::string_view because;
    };
    const Row rows[] = {
        {"no slices", {.gpu = 0, .start = 0, .size = 0, .profile = "3g.40gb"}, "has no slices"},
        {"more slices than any board", {.gpu = 0, .start = 60, .size = 8}, "has no slices"},
        {"no share", {.gpu = 0, .start = 0, .size = 4, .profile = "3g.40gb", .share = 0}, "thousandths"},
        {"too large a share", {.gpu = 0, .start = 0, .size = 4, .profile = "3g.40gb", .share = 1001}, "thousandths"},
        {"a GPU that is not there", {.gpu = 9, .start = 0, .size = 4, .profile = "3g.40gb"}, "unknown here"},
        {"one slice twice", {.gpu = 0, .start = 7, .size = 1, .profile = "1g.10gb"}, "named twice"},
    };
    for (const Row& row : rows) {
        Rig rig;
        rig.clean_all();
        Prepare order = rig.half();
        order.gpus.push_back(row.part);
        rig.order(order);
        EXPECT_EQ(rig.phase(), PartPhase::refused) << row.says;
        EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr(row.because)) << row.says;
    }
}

TEST(NodeGate, a_refused_lease_stays_refused_when_its_order_comes_late_again) {
    Rig rig;
    const Prepare lease = rig.half();
    rig.order(lease);
    ASSERT_EQ(rig.phase(), PartPhase::refused);
    rig.clean_all();
    rig.order(lease);
    EXPECT_EQ(rig.phase(), PartPhase::refused);
}

TEST(NodeGate, a_prepare_that_comes_after_its_release_takes_nothing) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half();
    rig.order(lease);
    rig.order(rig.release_of(lease));
    rig.ever_begun.clear();
    rig.order(lease);
    EXPECT_EQ(rig.phase(), PartPhase::stopped);
    EXPECT_TRUE(rig.ever_begun.empty());
}

TEST(NodeGate, very_old_leases_count_as_over) {
    Rig rig;
    const Prepare old = rig.half();
    rig.order(old);
    for (std::size_t i = 0; i < Ledger::closed_max + 1; ++i) {
        rig.order(rig.half());
        rig.carry(rig.executor->on_ack(rig.reports.back().number));
    }
    EXPECT_EQ(rig.executor->ledger().closed.size(), Ledger::closed_max);
    rig.order(old);
    EXPECT_EQ(rig.phase(), PartPhase::stopped);
}

TEST(NodeGate, shares_of_one_instance_may_sit_together_up_to_the_whole) {
    Rig rig;
    rig.clean_all();
    Prepare a = rig.half(), b = rig.half(), c = rig.half(), other_shape = rig.half();
    a.gpus[0].share = 400;
    b.gpus[0].share = 600;
    c.gpus[0].share = 100;
    other_shape.gpus[0] = {.gpu = 0, .start = 4, .size = 2, .profile = "2g.20gb", .share = 100};
    rig.order(a);
    EXPECT_EQ(rig.phase(), PartPhase::prepared);
    rig.order(Start{a.lease});
    rig.order(other_shape);
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    rig.order(b);
    EXPECT_EQ(rig.phase(), PartPhase::prepared) << "though the first has made it dirty";
    rig.order(c);
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("1100"));
    Prepare whole = rig.half();
    rig.order(whole);
    EXPECT_EQ(rig.phase(), PartPhase::refused) << "who wants all of it shares with nobody";
}

TEST(NodeGate, nobody_joins_an_instance_that_is_being_given_up) {
    Rig rig;
    rig.clean_all();
    Prepare a = rig.half(), b = rig.half();
    a.gpus[0].share = b.gpus[0].share = 500;
    rig.order(a);
    rig.give(rig.release_of(a));
    rig.give(b);
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("given up"));
}

TEST(NodeGate, a_host_that_was_never_measured_can_be_required_to_be) {
    Rig rig{{.gpus = 1}, {.host_must_be_known = true}};
    rig.clean_all();
    rig.order(rig.half());
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    rig.order(Sanitize{.wipes = {{UnitKind::host, 0, 0, 1, rig.key()}}});
    EXPECT_TRUE(rig.last<WipeReport>().verified);
    rig.order(rig.half());
    EXPECT_EQ(rig.phase(), PartPhase::prepared);
}

// ---- the life of a lease

TEST(Executor, prepares_starts_stops_and_wipes_with_signed_evidence) {
    Rig rig;
    rig.clean_all();
    Prepare lease = rig.half();
    lease.drives = {1};
    lease.functions = {0};
    rig.order(lease);
    EXPECT_EQ(rig.phase(), PartPhase::prepared);
    EXPECT_TRUE(rig.model.running().empty()) << "no tenant code before Start";
    EXPECT_THAT(rig.model.instances(0), testing::ElementsAre(NodeModel::Instance{"3g.40gb", 4, 4}));
    rig.order(Start{lease.lease});
    EXPECT_EQ(rig.phase(), PartPhase::running);
    EXPECT_EQ(rig.model.read({UnitKind::memory, 0, 5}), static_cast<std::uint64_t>(lease.lease));

    const Release release = rig.release_of(lease);
    rig.order(release);
    EXPECT_EQ(rig.phase(), PartPhase::stopped);
    EXPECT_TRUE(rig.model.instances(0).empty());
    const auto wipes = rig.all<WipeReport>();
    ASSERT_EQ(wipes.size(), 3u);
    for (const WipeReport& wipe : wipes) {
        EXPECT_TRUE(wipe.verified) << wipe.why;
        EXPECT_EQ(statement_in(wipe).result, evidence::WipeResult::verified);
    }
    const auto memory = std::ranges::find(wipes, UnitKind::memory, &WipeReport::kind);
    ASSERT_NE(memory, wipes.end());
    const evidence::WipeStatement said = statement_in(*memory);
    EXPECT_EQ(said.node, "node-1");
    EXPECT_EQ(said.unit, "gpu0/slices 4-7");
    EXPECT_EQ(said.lease, release.wipes[0].lease);
    EXPECT_EQ(said.tenants, std::vector<std::string>{"acme"});
    EXPECT_EQ(said.grade, Grade::simulated);
    EXPECT_EQ(said.ticket, release.wipes[0].ticket);
    EXPECT_GT(said.bytes, 0);
    EXPECT_EQ(said.bytes_verified, said.bytes);
    EXPECT_LT(said.began, said.ended);
    EXPECT_THAT(said.device, HasSubstr("GPU-"));
    EXPECT_EQ(rig.model.read({UnitKind::memory, 0, 5}), 0u);
    EXPECT_TRUE(rig.executor->idle());
}

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

TEST(Executor, every_order_may_come_twice) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half();
    rig.order(lease);
    const std::size_t operations = rig.ever_begun.size();
    rig.order(lease);
    EXPECT_EQ(rig.phase(), PartPhase::prepared);
    EXPECT_EQ(rig.ever_begun.size(), operations);
    rig.order(Start{lease.lease});
    rig.order(Start{lease.lease});
    EXPECT_EQ(rig.phase(), PartPhase::running);
    EXPECT_EQ(rig.operations<StartTenant>().size(), 1u);
    const Release release = rig.release_of(lease);
    rig.order(release);
    const WipeReport first = rig.last<WipeReport>();
    rig.reports.clear();
    rig.ever_begun.clear();
    rig.order(release);
    EXPECT_EQ(rig.phase(), PartPhase::stopped);
    EXPECT_EQ(rig.last<WipeReport>(), first) << "the evidence as it was, not a new one";
    EXPECT_TRUE(rig.ever_begun.empty());
}

TEST(Executor, a_repeated_report_keeps_its_number_until_it_is_acknowledged) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half();
    rig.order(lease);
    const std::int64_t number = rig.reports.back().number;
    rig.order(lease);
    EXPECT_EQ(rig.reports.back().number, number);
    rig.carry(rig.executor->on_ack(number));
    EXPECT_TRUE(rig.executor->unacknowledged().empty());
    rig.order(lease);
    EXPECT_GT(rig.reports.back().number, number);
}

TEST(Executor, nothing_starts_that_is_not_prepared) {
    Rig rig;
    rig.clean_all();
    rig.order(Start{rig.key()});
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    const Prepare lease = rig.half();
    rig.give(lease);
    rig.give(Start{lease.lease});
    EXPECT_EQ(rig.phase(), PartPhase::preparing);
    rig.settle();
    EXPECT_EQ(rig.phase(), PartPhase::prepared);
    EXPECT_TRUE(rig.operations<StartTenant>().empty());
}

TEST(Executor, a_step_that_fails_fails_the_lease_and_its_release_cleans_up) {
    Rig rig;
    rig.clean_all();
    Prepare lease = rig.half();
    lease.gpus.push_back({.gpu = 1, .start = 0, .size = 4, .profile = "4g.40gb"});
    lease.drives = {0};
    rig.model.faults({UnitKind::memory, 1}).fail = 1;
    rig.order(lease);
    EXPECT_EQ(rig.phase(), PartPhase::failed);
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("gpu1"));
    EXPECT_EQ(rig.model.instances(0).size(), 1u);
    rig.order(Start{lease.lease});
    EXPECT_EQ(rig.phase(), PartPhase::failed);
    rig.order(rig.release_of(lease));
    EXPECT_EQ(rig.phase(), PartPhase::stopped);
    EXPECT_TRUE(rig.model.instances(0).empty());
    for (const WipeReport& wipe : rig.all<WipeReport>()) EXPECT_TRUE(wipe.verified) << wipe.why;
}

TEST(Executor, devices_are_worked_on_side_by_side_and_each_by_one_operation_at_a_time) {
    Rig rig;
    rig.give(rig.all_units());
    EXPECT_EQ(rig.begun.size(), 6u) << "two GPUs, two drives, two functions at once";
    Rig one;
    one.give(Sanitize{.wipes = {{UnitKind::memory, 0, 0, 4, one.key()}, {UnitKind::memory, 0, 4, 4, one.key()}}});
    EXPECT_EQ(one.begun.size(), 1u);
    one.settle();
    EXPECT_EQ(one.all<WipeReport>().size(), 2u);
}

TEST(Executor, an_instance_that_is_shared_is_destroyed_by_the_last_to_leave) {
    for (const bool at_once : {false, true}) {
        Rig rig;
        rig.clean_all();
        Prepare a = rig.half(), b = rig.half();
        a.gpus[0].share = b.gpus[0].share = 500;
        rig.order(a);
        rig.order(b);
        Release of_a = rig.release_of(a);
        of_a.wipes.clear();  // the other still shares it
        rig.give(of_a);
        if (!at_once) {
            rig.settle();
            EXPECT_EQ(rig.phase(), PartPhase::stopped);
            EXPECT_EQ(rig.model.instances(0).size(), 1u);
        }
        rig.order(rig.release_of(b));
        EXPECT_TRUE(rig.model.instances(0).empty());
        EXPECT_TRUE(rig.last<WipeReport>().verified);
    }
}

TEST(Executor, a_wipe_waits_for_a_lease_that_is_still_being_stopped_and_is_not_refused) {
    Rig rig;
    rig.clean_all();
    Prepare a = rig.half(), b = rig.half();
    a.gpus[0].share = b.gpus[0].share = 500;
    for (const Prepare& lease : {a, b}) {
        rig.order(lease);
        rig.order(Start{lease.lease});
    }
    Release of_a = rig.release_of(a);
    of_a.wipes.clear();
    rig.give(of_a);
    rig.give(rig.release_of(b));
    ASSERT_EQ(rig.begun.size(), 2u);
    std::swap(rig.begun[0], rig.begun[1]);
    rig.step();  // the last to be released is the first to stop
    EXPECT_EQ(rig.last<LeaseReport>(), (LeaseReport{b.lease, PartPhase::stopped, {}}));
    EXPECT_EQ(rig.begun.size(), 1u) << "the other's code is still there";
    rig.settle();
    EXPECT_TRUE(rig.last<WipeReport>().verified) << rig.last<WipeReport>().why;
    EXPECT_TRUE(rig.model.instances(0).empty());
}

TEST(Executor, a_release_during_preparation_waits_for_what_is_under_way_and_takes_it_apart) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half();
    rig.give(lease);
    ASSERT_EQ(rig.begun.size(), 1u);
    rig.give(rig.release_of(lease));
    rig.settle();
    EXPECT_EQ(rig.phase(), PartPhase::stopped);
    EXPECT_TRUE(rig.model.instances(0).empty());
    EXPECT_TRUE(rig.last<WipeReport>().verified);
}

TEST(Executor, a_lease_nobody_knows_here_is_stopped_and_its_units_wiped) {
    Rig rig;
    rig.order(Release{rig.key(), {{UnitKind::drive, 1, 0, 1, rig.key()}}});
    EXPECT_EQ(rig.phase(), PartPhase::stopped);
    EXPECT_TRUE(rig.last<WipeReport>().verified);
    EXPECT_EQ(rig.operations<StopTenant>().size(), 1u);
}

// ---- wipes that do not go well

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

// ---- what hangs, what is lost, what does not stop

TEST(Executor, an_operation_that_hangs_fails_after_its_limit_and_blocks_its_device_until_it_answers) {
    Rig rig;
    rig.model.faults({UnitKind::memory, 0}).hang = 1;
    rig.order(Sanitize{.wipes = {{UnitKind::memory, 0, 0, 8, rig.key()}}});
    EXPECT_TRUE(rig.reports.empty());
    const std::int64_t hung = rig.ever_begun.back().number;
    ASSERT_TRUE(rig.executor->next_deadline());
    rig.pass(rig.identity.limits.wipe_memory);
    EXPECT_FALSE(rig.last<WipeReport>().verified);
    EXPECT_THAT(rig.last<WipeReport>().why, HasSubstr("no answer within 10m"));
    rig.ever_begun.clear();
    rig.order(Sanitize{.wipes = {{UnitKind::memory, 0, 0, 8, rig.key()}}});
    EXPECT_FALSE(rig.last<WipeReport>().verified);
    EXPECT_TRUE(rig.ever_begun.empty()) << "nobody knows what the first one will still do";
    rig.carry(rig.executor->on_result(rig.now, {.number = hung, .ok = true}));
    rig.order(Sanitize{.wipes = {{UnitKind::memory, 0, 0, 8, rig.key()}}});
    EXPECT_TRUE(rig.last<WipeReport>().verified);
}

TEST(Executor, a_start_that_hangs_keeps_its_units_until_it_is_over) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half();
    rig.order(lease);
    rig.model.hang_starts(1);
    rig.order(Start{lease.lease});
    const Operation hung = rig.ever_begun.back();
    rig.pass(rig.identity.limits.start);
    EXPECT_EQ(rig.phase(), PartPhase::failed);
    rig.order(rig.release_of(lease));
    EXPECT_EQ(rig.phase(), PartPhase::failed) << "it might start the moment after it was stopped";
    EXPECT_FALSE(rig.last<WipeReport>().verified);
    rig.carry(rig.executor->on_result(rig.now, *rig.model.carry_out(hung)));
    ASSERT_EQ(rig.model.running().size(), 1u) << "as it now did";
    rig.order(rig.release_of(lease));
    EXPECT_EQ(rig.phase(), PartPhase::stopped);
    EXPECT_TRUE(rig.last<WipeReport>().verified);
    EXPECT_TRUE(rig.model.running().empty());
}

TEST(Executor, a_tenant_that_does_not_stop_keeps_its_units_and_nothing_is_wiped) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half();
    rig.order(lease);
    rig.order(Start{lease.lease});
    rig.model.fail_stops(1);
    const Release release = rig.release_of(lease);
    rig.order(release);
    EXPECT_EQ(rig.phase(), PartPhase::failed);
    EXPECT_FALSE(rig.last<WipeReport>().verified);
    EXPECT_EQ(rig.model.instances(0).size(), 1u);
    rig.order(release);
    EXPECT_EQ(rig.phase(), PartPhase::stopped) << "a release may be ordered again";
    EXPECT_FALSE(rig.last<WipeReport>().verified) << "but its tickets are answered";
    rig.order(Sanitize{.wipes = {{UnitKind::memory, 0, 4, 4, rig.key()}}});
    EXPECT_TRUE(rig.last<WipeReport>().verified);
}

TEST(Executor, a_device_that_cannot_be_taken_apart_is_faulty_and_the_rest_of_the_lease_goes_on) {
    Rig rig;
    rig.clean_all();
    Prepare lease = rig.half();
    lease.drives = {0};
    rig.order(lease);
    rig.order(Start{lease.lease});
    rig.model.set_lost(0, true);
    rig.order(rig.release_of(lease));
    EXPECT_EQ(rig.phase(), PartPhase::stopped);
    EXPECT_EQ(rig.last<FaultReport>().device, 0u);
    const auto wipes = rig.all<WipeReport>();
    ASSERT_EQ(wipes.size(), 2u);
    for (const WipeReport& wipe : wipes) EXPECT_EQ(wipe.verified, wipe.kind == UnitKind::drive) << wipe.why;
    EXPECT_TRUE(rig.executor->ledger().faulty.contains({UnitKind::memory, 0}));
    rig.model.set_lost(0, false);
    rig.order(Sanitize{.wipes = {{UnitKind::memory, 0, 0, 8, rig.key()}}});
    EXPECT_TRUE(rig.last<WipeReport>().verified);
    EXPECT_TRUE(rig.executor->ledger().faulty.empty()) << "repaired is what can be wiped";
}

TEST(Executor, a_gpu_that_falls_off_the_bus_fails_its_leases) {
    Rig rig;
    rig.clean_all();
    const Prepare hit = rig.half(), spared = rig.half(0, 1);
    rig.order(hit);
    rig.order(Start{hit.lease});
    rig.order(spared);
    rig.carry(rig.executor->on_fault(rig.now, {UnitKind::memory, 0, "Xid 79"}));
    EXPECT_EQ(rig.last<FaultReport>().why, "Xid 79");
    EXPECT_EQ(rig.last<LeaseReport>(), (LeaseReport{hit.lease, PartPhase::failed, "gpu0: Xid 79"}));
    EXPECT_EQ(rig.executor->ledger().leases.at(spared.lease).phase, PartPhase::prepared);
    rig.order(rig.half(0));
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("faulty"));
}

// ---- the host

TEST(Executor, the_host_is_not_rebooted_under_a_lease_of_any_tier) {
    for (const Tier tier : {Tier::container, Tier::vm}) {
        Rig rig;
        rig.clean_all();
        Prepare lease = rig.half();
        lease.tier = tier;
        rig.order(lease);
        rig.order(Sanitize{.wipes = {{UnitKind::host, 0, 0, 1, rig.key()}}});
        EXPECT_FALSE(rig.last<WipeReport>().verified) << word(tier);
        EXPECT_EQ(rig.model.boots(), 1);
    }
}

TEST(Executor, a_reboot_waits_until_all_else_is_done_and_nothing_begins_before_it_is_over) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half(), other = rig.half(0, 1);
    rig.order(lease);
    rig.order(Start{lease.lease});
    rig.order(other);
    Release release = rig.release_of(lease);
    release.wipes.push_back({UnitKind::host, 0, 0, 1, rig.key()});
    const Sanitize later{.wipes = {{UnitKind::drive, 0, 0, 1, rig.key()}}};
    rig.give(rig.release_of(other));
    rig.give(release);
    rig.give(later);
    bool rebooting = false;
    while (!rig.begun.empty()) {
        const auto* wipe = std::get_if<Wipe>(&rig.begun.front().what);
        rebooting = wipe != nullptr && wipe->kind == UnitKind::host;
        if (rebooting) {
            EXPECT_EQ(rig.begun.size(), 1u);
            rig.give(rig.half(0, 1));
            EXPECT_EQ(rig.phase(), PartPhase::refused);
        }
        rig.step();
    }
    EXPECT_EQ(rig.model.boots(), 2);
    for (const WipeReport& wipe : rig.all<WipeReport>()) EXPECT_TRUE(wipe.verified) << wipe.why;
    EXPECT_TRUE(rig.executor->ledger().host_tenants.empty());
    EXPECT_TRUE(rig.executor->ledger().clean({UnitKind::host, 0, 0}));
}

TEST(Executor, a_host_that_boots_another_image_is_closed_to_tenants_that_share_its_kernel) {
    Rig rig;
    rig.clean_all();
    rig.model.set_image_good(false);
    rig.order(Sanitize{.wipes = {{UnitKind::host, 0, 0, 1, rig.key()}}});
    EXPECT_FALSE(rig.last<WipeReport>().verified);
    rig.order(rig.half());
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    Prepare in_a_vm = rig.half();
    in_a_vm.tier = Tier::vm;
    rig.order(in_a_vm);
    EXPECT_EQ(rig.phase(), PartPhase::prepared);
}

TEST(Executor, a_reboot_that_takes_the_agent_along_is_verified_and_not_done_again) {
    Rig rig;
    rig.give(Sanitize{.wipes = {{UnitKind::host, 0, 0, 1, rig.key()}}});
    ASSERT_TRUE(rig.model.carry_out(rig.begun.front()));  // and the agent dies with the host
    rig.restart();
    rig.settle();
    EXPECT_TRUE(rig.last<WipeReport>().verified) << rig.last<WipeReport>().why;
    EXPECT_EQ(rig.model.boots(), 2);
}

TEST(Executor, leases_do_not_survive_a_restart_of_the_host) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half();
    rig.order(lease);
    rig.order(Start{lease.lease});
    rig.model.crash_host();
    rig.restart();
    EXPECT_EQ(rig.last<LeaseReport>(), (LeaseReport{lease.lease, PartPhase::failed, "the host was restarted"}));
    rig.order(rig.release_of(lease));
    EXPECT_EQ(rig.phase(), PartPhase::stopped);
    EXPECT_TRUE(rig.last<WipeReport>().verified);
}

TEST(Executor, a_hung_device_is_cured_by_a_reboot) {
    Rig rig;
    rig.model.faults({UnitKind::memory, 0}).hang = 1;
    rig.order(Sanitize{.wipes = {{UnitKind::memory, 0, 0, 8, rig.key()}}});
    rig.pass(rig.identity.limits.wipe_memory);
    rig.order(Sanitize{.wipes = {{UnitKind::host, 0, 0, 1, rig.key()}, {UnitKind::memory, 0, 0, 8, rig.key()}}});
    for (const WipeReport& wipe : rig.all<WipeReport>())
        if (wipe.kind == UnitKind::host) {
            EXPECT_TRUE(wipe.verified) << wipe.why;
        }
    EXPECT_TRUE(rig.last<WipeReport>().verified);
}

// ---- epochs and sessions

TEST(Executor, orders_below_the_highest_epoch_are_not_obeyed_and_not_reported) {
    Rig rig;
    rig.clean_all();
    rig.carry(rig.executor->on_welcome(7));
    rig.reports.clear();
    rig.order(rig.half());  // of epoch 1
    EXPECT_THAT(rig.ignored, HasSubstr("epoch 1"));
    EXPECT_TRUE(rig.reports.empty());
    rig.restart();
    EXPECT_EQ(rig.executor->epoch(), 7) << "the highest epoch is durable";
    rig.carry(rig.executor->on_welcome(6));
    EXPECT_FALSE(rig.ignored.empty());
    rig.epoch = 8;
    rig.order(rig.half());
    EXPECT_EQ(rig.phase(), PartPhase::prepared);
    EXPECT_EQ(rig.executor->epoch(), 8);
}

TEST(Executor, hello_tells_all_that_a_restored_control_plane_must_learn) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half();
    rig.order(lease);
    const Hello hello = rig.executor->hello(rig.model.inventory(), rig.model.boot_id());
    EXPECT_EQ(hello.epoch_seen, 1);
    ASSERT_EQ(hello.leases.size(), 1u);
    EXPECT_EQ(hello.leases[0].lease, lease.lease);
    EXPECT_EQ(hello.leases[0].phase, PartPhase::prepared);
    EXPECT_EQ(hello.leases[0].tenant, "acme");
    EXPECT_EQ(hello.leases[0].units.size(), 5u) << "four slices and the kernel";
    EXPECT_EQ(hello.units.size(), 16u + 2 + 2 + 1);
    for (const KnownUnit& unit : hello.units) {
        const bool leased = (unit.unit.kind == UnitKind::memory && unit.unit.device == 0 && unit.unit.slice >= 4) ||
                            unit.unit.kind == UnitKind::host;
        EXPECT_EQ(unit.clean, !leased) << unit_text(unit.unit.kind, unit.unit.device, unit.unit.slice);
    }
    ASSERT_TRUE(hello.inventory.host);
    EXPECT_EQ(hello.inventory.host->usedBy, std::vector<std::string>{"acme"});
    EXPECT_EQ(hello.inventory.host->state, CleanState::in_use);
}

TEST(Executor, a_unit_that_is_being_wiped_is_not_told_as_clean) {
    Rig rig;
    rig.clean_all();
    rig.give(Sanitize{.wipes = {{UnitKind::drive, 0, 0, 1, rig.key()}}});
    for (const KnownUnit& known : rig.executor->hello({}, {}).units)
        EXPECT_EQ(known.clean, known.unit != (UnitId{UnitKind::drive, 0, 0}));
}

TEST(Executor, answers_to_another_process_are_not_heard) {
    Rig rig;
    rig.give(Sanitize{.wipes = {{UnitKind::drive, 0, 0, 1, rig.key()}}});
    const Operation old = rig.begun.front();
    rig.restart();
    ASSERT_EQ(rig.begun.size(), 1u);
    EXPECT_NE(rig.begun.front().number, old.number);
    const Outcome nothing = rig.executor->on_result(rig.now, {.number = old.number, .ok = true, .bytes = 1});
    EXPECT_TRUE(nothing.journal.empty() && nothing.begin.empty() && nothing.reports.empty());
    rig.settle();
    EXPECT_TRUE(rig.last<WipeReport>().verified);
}

TEST(Executor, a_short_journal_says_the_same_as_the_long_one) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half();
    rig.order(lease);
    rig.give(Start{lease.lease});
    Ledger from_short;
    for (const JournalRecord& record : rig.executor->compacted()) play_back(from_short, record);
    EXPECT_EQ(from_short, rig.executor->ledger());
    rig.journal = rig.executor->compacted();
    rig.restart();
    rig.settle();
    EXPECT_EQ(rig.phase(), PartPhase::running);
}

}  // namespace
}  // namespace bulkhead
