#include "bulkhead/node/executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bulkhead/node/rig_test.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

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
    EXPECT_EQ(
        rig.last<LeaseReport>(),
        (LeaseReport{
            .lease = hit.lease, .phase = PartPhase::failed, .why = "gpu0: Xid 79", .fault = PartFault::interrupted}));
    EXPECT_EQ(rig.executor->ledger().leases.at(spared.lease).phase, PartPhase::prepared);
    rig.order(rig.half(0));
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("faulty"));
}

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
    EXPECT_EQ(rig.last<LeaseReport>(), (LeaseReport{.lease = lease.lease,
                                                    .phase = PartPhase::failed,
                                                    .why = "the host was restarted",
                                                    .fault = PartFault::interrupted}));
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
