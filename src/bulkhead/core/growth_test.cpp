// An elastic gang that runs with fewer tasks than it asks for grows: it is saved, stopped and wiped, and starts again
// in the places that it had and in new ones. It does so where that is worth the restart, and others do not take the new
// places back.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::StartsWith;

constexpr int minute = 60;

// Two nodes of four GPUs, and tenants of one trust domain. A task has one GPU.
struct Growing : Plane {
    explicit Growing(int vision = 0, int owner = 0) : Plane{0} {
        for (const char* name : {"n0", "n1"}) {
            NodeModelSpec spec = model_spec(name);
            spec.gpus = 4;
            add_node(spec);
        }
        settle();
        accept(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n"
            "  threatModel: internal\n  sites: [{name: fra, jurisdiction: eu}]\n"
            "  versionGate: {shippedAdvisories: false}\n"
            "  trustDomains: [{name: lab, members: [vision, owner]}]\n" +
            tenant("vision", vision) + tenant("owner", owner));
    }
    static std::string tenant(const std::string& name, int guarantee, const std::string& more = "") {
        return fmt::format(
            "---\napiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {}}}\n"
            "spec:\n  class: research\n  priorityGrant: 100\n  quota: {{guarantee: {}{}}}\n"
            "  trustDomain: {{name: lab, consent: {{by: head, at: 2026-11-01T00:00:00Z}}}}\n",
            name, guarantee, more);
    }
    void submit(const std::string& name, const std::string& owner, int gpus, const std::string& more) {
        accept(
            fmt::format("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {{name: {}}}\n"
                        "spec: {{tenant: {}, gpu: {{count: {}, mechanism: whole}}, cpu: 1{}}}\n",
                        name, owner, gpus, more));
    }
    void job(const std::string& name, const std::string& owner = "owner", int gpus = 1) {
        submit(name, owner, gpus, "");
    }
    void gang(const std::string& name = "gang", const std::string& owner = "vision", int least = 2,
              const std::string& saves = ", checkpoint: {command: [save], within: 30s}") {
        submit(name, owner, 1, fmt::format(", tasks: 8, minTasks: {}, command: [train]{}", least, saves));
    }
    void run_minutes(int minutes) { settle(minutes * minute); }

    bool runs(const std::string& name) const { return workload(name).status->phase == WorkloadPhase::running; }
    GpuLease lease(const std::string& name) const { return find<GpuLease>(workload(name).status->lease); }
    std::int64_t tasks(const std::string& name) const { return runs(name) ? lease(name).spec.tasks.value_or(0) : 0; }
    std::string words(const std::string& name) const { return testing::PrintToString(workload(name).status->reasons); }
    std::set<std::string> places(const std::string& name) const {
        std::set<std::string> out;
        for (const LeasedSlice& slice : lease(name).spec.slices)
            out.insert(fmt::format("{}/{}", slice.node, slice.gpu));
        return out;
    }
};

// `other` has three GPUs, and `gang` the other five.
struct GrowingIntoFreeRoom : Growing {
    explicit GrowingIntoFreeRoom(const std::string& saves = ", checkpoint: {command: [save], within: 30s}") {
        job("other", "owner", 3);
        settle();
        gang("gang", "vision", 2, saves);
        settle(30);
        EXPECT_EQ(tasks("gang"), 5) << words("gang");
    }
};

TEST(Grows, a_running_gang_starts_again_in_its_old_places_and_those_that_became_free) {
    GrowingIntoFreeRoom plane;
    const std::set<std::string> before = plane.places("gang");
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "other").outcome);
    plane.run_minutes(5);
    EXPECT_EQ(plane.tasks("gang"), 5) << "it has just started";
    plane.run_minutes(10);
    ASSERT_EQ(plane.tasks("gang"), 8) << plane.words("gang");
    EXPECT_THAT(plane.places("gang"), IsSupersetOf(before));
    EXPECT_EQ(plane.lease("gang").status->gpus, Gpus::whole(8));
    EXPECT_THAT(plane.told("gang"), Contains("BULKHEAD_TASKS=8"));
    EXPECT_THAT(plane.told("gang"), Contains("BULKHEAD_CHECKPOINTS=2"));
    const WorkHistory history = plane.workload("gang").status->history;
    EXPECT_EQ(history.starts, 2);
    EXPECT_EQ(history.failures, 0);
    EXPECT_EQ(history.lost, Duration{}) << "it was saved";
    ASSERT_EQ(history.attempts.size(), 1u);
    EXPECT_THAT(history.attempts[0].says, StartsWith("grows: "));
    EXPECT_THAT(history.attempts[0].says, HasSubstr("starts again with 8 of the 8"));
    const std::size_t leaves = plane.log.size();
    plane.run_minutes(120);
    EXPECT_EQ(plane.log.size(), leaves) << "nothing moves any more";
}

TEST(Grows, a_gang_that_loses_much_at_a_restart_keeps_its_size) {
    for (const char* saves : {"", ", checkpointInterval: 6h"}) {
        GrowingIntoFreeRoom plane{saves};
        ASSERT_TRUE(plane.remove(ObjectKind::workload, "other").outcome);
        plane.run_minutes(180);
        EXPECT_EQ(plane.tasks("gang"), 5) << saves;
        EXPECT_EQ(plane.workload("gang").status->history.starts, 1);
    }
}

// Seven tasks lose five minutes each, and one task makes up for that in 35.
TEST(Grows, one_task_more_is_worth_the_restart_of_many_only_after_a_while) {
    Growing plane;
    plane.job("other");
    plane.settle();
    plane.gang();
    plane.settle(30);
    ASSERT_EQ(plane.tasks("gang"), 7) << plane.words("gang");
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "other").outcome);
    plane.run_minutes(33);
    EXPECT_EQ(plane.tasks("gang"), 7);
    plane.run_minutes(6);
    EXPECT_EQ(plane.tasks("gang"), 8) << plane.words("gang");
}

TEST(Grows, a_gang_runs_for_the_minimum_run_time_of_its_tenant_first) {
    GrowingIntoFreeRoom plane;
    plane.accept(Growing::tenant("vision", 0, ", preemptMinRuntime: 1h"));
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "other").outcome);
    plane.run_minutes(55);
    EXPECT_EQ(plane.tasks("gang"), 5);
    plane.run_minutes(10);
    EXPECT_EQ(plane.tasks("gang"), 8) << plane.words("gang");
}

TEST(Grows, a_job_of_the_same_tenant_that_waits_goes_first) {
    GrowingIntoFreeRoom plane;
    plane.run_minutes(15);
    plane.submit("next", "vision", 2, "");
    plane.settle(5);
    EXPECT_FALSE(plane.runs("next"));
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "other").outcome);
    plane.run_minutes(5);
    EXPECT_TRUE(plane.runs("next")) << plane.words("next");
}

// Six jobs of `owner`, which is guaranteed nothing, and a gang with two tasks of a tenant that is guaranteed six.
struct GrowingByReclaim : Growing {
    GrowingByReclaim() : Growing{6, 0} {
        for (int i = 0; i < 6; ++i) job(fmt::format("o{}", i));
        settle();
        gang();
        settle(30);
        EXPECT_EQ(tasks("gang"), 2) << words("gang");
    }
    std::int64_t jobs_that_run() const {
        std::int64_t out = 0;
        for (int i = 0; i < 6; ++i) out += runs(fmt::format("o{}", i)) ? 1 : 0;
        return out;
    }
};

TEST(Grows, a_gang_below_its_guarantee_takes_what_it_lacks_from_others) {
    GrowingByReclaim plane;
    plane.run_minutes(30);
    const std::int64_t tasks = plane.tasks("gang");
    EXPECT_GE(tasks, 6) << plane.words("gang");
    EXPECT_EQ(tasks + plane.jobs_that_run(), 8) << "nothing idles";
    EXPECT_EQ(plane.workload("gang").status->history.starts, 2) << "all at once";
    EXPECT_EQ(plane.workload("gang").status->history.lost, Duration{});
    const std::size_t leaves = plane.log.size();
    plane.run_minutes(120);
    EXPECT_EQ(plane.log.size(), leaves) << "nothing moves any more";
}

TEST(Grows, a_gang_runs_on_until_its_new_places_are_clean) {
    GrowingByReclaim plane;
    plane.holds_back = Plane::is_wipe;
    plane.run_minutes(30);
    EXPECT_LT(plane.jobs_that_run(), 6);
    EXPECT_EQ(plane.tasks("gang"), 2) << "what others left is not wiped";
    EXPECT_EQ(plane.workload("gang").status->history.starts, 1);
    plane.job("thief");
    plane.settle(60);
    EXPECT_FALSE(plane.runs("thief"));
    plane.carry_on();
    plane.settle(10);
    EXPECT_EQ(plane.workload("gang").status->phase, WorkloadPhase::stopping) << "its own places are wiped now";
    plane.carry_all();
    EXPECT_GE(plane.tasks("gang"), 6) << plane.words("gang");
    EXPECT_FALSE(plane.runs("thief"));
}

TEST(Grows, a_new_process_in_the_middle_loses_nothing) {
    GrowingByReclaim plane;
    plane.holds_back = Plane::is_wipe;
    plane.run_minutes(30);
    plane.restart(2);
    for (auto& [name, node] : plane.nodes) plane.hello(name);
    plane.carry_all();
    plane.holds_back = {};
    plane.run_minutes(60);
    EXPECT_GE(plane.tasks("gang"), 6) << plane.words("gang");
    EXPECT_EQ(plane.tasks("gang") + plane.jobs_that_run(), 8);
    EXPECT_EQ(plane.workload("gang").status->history.lost, Duration{});
}

TEST(Grows, a_gang_that_ends_while_room_is_made_for_it_leaves_that_room_to_others) {
    GrowingByReclaim plane;
    plane.holds_back = Plane::is_wipe;
    plane.run_minutes(30);
    ASSERT_EQ(plane.tasks("gang"), 2);
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "gang").outcome);
    plane.carry_all();
    EXPECT_FALSE(plane.exists("gang"));
    EXPECT_EQ(plane.jobs_that_run(), 6);
}

TEST(Grows, a_gang_that_gave_up_tasks_takes_them_back_when_the_claim_is_gone_and_not_before) {
    Growing plane{0, 4};
    plane.gang();
    plane.run_minutes(15);
    ASSERT_EQ(plane.tasks("gang"), 8);
    plane.job("claim", "owner", 3);
    plane.run_minutes(180);
    EXPECT_TRUE(plane.runs("claim"));
    EXPECT_EQ(plane.tasks("gang"), 5);
    EXPECT_EQ(plane.workload("gang").status->history.starts, 2);
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "claim").outcome);
    plane.run_minutes(15);
    EXPECT_EQ(plane.tasks("gang"), 8) << plane.words("gang");
}

// The first gang has all GPUs; each then grows or shrinks to its half, and nothing changes after that.
TEST(Grows, two_gangs_come_to_rest) {
    Growing plane;
    plane.gang("first", "owner", 1);
    plane.run_minutes(20);
    ASSERT_EQ(plane.tasks("first"), 8);
    plane.gang("second", "vision", 1);
    plane.run_minutes(240);
    EXPECT_EQ(plane.tasks("first"), 4);
    EXPECT_EQ(plane.tasks("second"), 4);
    EXPECT_LE(plane.workload("first").status->history.starts, 3);
    EXPECT_LE(plane.workload("second").status->history.starts, 3);
    const std::size_t leaves = plane.log.size();
    plane.run_minutes(240);
    EXPECT_EQ(plane.log.size(), leaves) << "nothing moves any more";
}

}  // namespace
}  // namespace bulkhead
