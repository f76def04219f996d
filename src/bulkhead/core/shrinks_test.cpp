// An elastic gang gives up spare tasks for a guarantee: it is saved, stopped and wiped, and starts again with the tasks
// that it keeps, in the place that it had. Nothing else uses that place meanwhile.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

// Two nodes of four GPUs. `gang` runs on all eight with a task for each GPU, and needs two.
struct Elastic : Plane {
    explicit Elastic(const std::string& saves = ", checkpoint: {command: [save], within: 30s}") : Plane{0} {
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
            tenant("vision", 0) + tenant("owner", 4));
        submit("gang", "vision", ", tasks: 8, minTasks: 2, cpu: 1, command: [train]" + saves);
        settle(30);
        EXPECT_EQ(tasks("gang"), 8) << words("gang");
    }
    static std::string tenant(const std::string& name, int guarantee) {
        return fmt::format(
            "---\napiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {}}}\n"
            "spec:\n  class: research\n  priorityGrant: 100\n  quota: {{guarantee: {}}}\n"
            "  trustDomain: {{name: lab, consent: {{by: head, at: 2026-11-01T00:00:00Z}}}}\n",
            name, guarantee);
    }
    void submit(const std::string& name, const std::string& owner, const std::string& more, int gpus = 1) {
        accept(
            fmt::format("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {{name: {}}}\n"
                        "spec: {{tenant: {}, gpu: {{count: {}, mechanism: whole}}{}}}\n",
                        name, owner, gpus, more));
    }
    void claim(int gpus = 3) { submit("claim", "owner", ", cpu: 1", gpus); }

    bool runs(const std::string& name) const { return workload(name).status->phase == WorkloadPhase::running; }
    GpuLease lease(const std::string& name) const { return find<GpuLease>(workload(name).status->lease); }
    std::int64_t tasks(const std::string& name) const { return runs(name) ? lease(name).spec.tasks.value_or(0) : 0; }
    std::string words(const std::string& name) const { return testing::PrintToString(workload(name).status->reasons); }
};

TEST(Shrinks, a_gang_gives_up_spare_tasks_and_starts_again_with_the_others) {
    Elastic plane;
    plane.claim();
    plane.settle(120);
    EXPECT_EQ(plane.tasks("claim"), 1) << plane.words("claim");
    ASSERT_EQ(plane.tasks("gang"), 5) << plane.words("gang");
    const WorkHistory history = plane.workload("gang").status->history;
    EXPECT_EQ(history.starts, 2);
    EXPECT_EQ(history.failures, 0);
    EXPECT_EQ(history.lost, Duration{}) << "it was saved";
    ASSERT_EQ(history.attempts.size(), 1u);
    EXPECT_THAT(history.attempts[0].says, StartsWith("reclaimed: "));
    EXPECT_THAT(history.attempts[0].says, HasSubstr("starts again with 5 of its 8 tasks"));
    EXPECT_EQ(history.saved.size(), 2u) << "both nodes saved";
    EXPECT_THAT(plane.told("gang"), Contains("BULKHEAD_TASKS=5"));
    EXPECT_THAT(plane.told("gang"), Contains("BULKHEAD_CHECKPOINTS=2")) << "its nodes have other parts than before";
    EXPECT_EQ(plane.lease("gang").status->gpus, Gpus::whole(5));
    const std::size_t leaves = plane.log.size();
    plane.settle(600);
    EXPECT_EQ(plane.log.size(), leaves) << "nothing moves any more";
}

// Tasks of one node make room for a claimant that needs a whole node; what both nodes saved is told to the one left.
TEST(Shrinks, a_gang_that_lost_a_node_is_told_what_all_its_nodes_saved) {
    Elastic plane;
    plane.claim(4);
    plane.settle(120);
    EXPECT_TRUE(plane.runs("claim")) << plane.words("claim");
    ASSERT_EQ(plane.tasks("gang"), 4) << plane.words("gang");
    EXPECT_THAT(plane.told("gang"), Contains("BULKHEAD_NODES=1"));
    EXPECT_THAT(plane.told("gang"), Contains("BULKHEAD_CHECKPOINTS=2"));
    const std::vector<std::string> saved = plane.workload("gang").status->history.saved;
    ASSERT_EQ(saved.size(), 2u);
    EXPECT_THAT(plane.told("gang"), Contains("BULKHEAD_CHECKPOINT_0=" + saved[0]));
    EXPECT_THAT(plane.told("gang"), Contains("BULKHEAD_CHECKPOINT_1=" + saved[1]));
}

TEST(Shrinks, the_place_that_it_keeps_is_given_to_nothing_else_while_it_is_wiped) {
    Elastic plane;
    plane.holds_back = Plane::is_wipe;
    plane.claim();
    plane.settle(5);
    ASSERT_EQ(plane.workload("gang").status->phase, WorkloadPhase::stopping);
    plane.submit("greedy", "vision", ", cpu: 1", 2);
    plane.settle(90);
    plane.carry_all();
    EXPECT_EQ(plane.tasks("gang"), 5) << plane.words("gang");
    EXPECT_TRUE(plane.runs("claim")) << plane.words("claim");
    EXPECT_FALSE(plane.runs("greedy"));
}

TEST(Shrinks, nothing_starts_where_its_tasks_still_run) {
    Elastic plane;
    plane.holds_back = Plane::is_stop;
    plane.claim();
    plane.settle(90);
    EXPECT_FALSE(plane.runs("claim"));
    EXPECT_EQ(plane.workload("claim").status->lease, "");
    plane.carry_all();
    EXPECT_TRUE(plane.runs("claim")) << plane.words("claim");
    EXPECT_EQ(plane.tasks("gang"), 5) << plane.words("gang");
}

TEST(Shrinks, a_new_process_in_the_middle_ends_the_same) {
    Elastic plane;
    plane.holds_back = Plane::is_wipe;
    plane.claim();
    plane.settle(5);
    ASSERT_EQ(plane.workload("gang").status->phase, WorkloadPhase::stopping);
    plane.restart(2);
    for (auto& [name, node] : plane.nodes) plane.hello(name);
    plane.carry_all();
    EXPECT_TRUE(plane.runs("claim")) << plane.words("claim");
    EXPECT_EQ(plane.tasks("gang"), 5) << plane.words("gang");
    EXPECT_EQ(plane.workload("gang").status->history.lost, Duration{});
}

TEST(Shrinks, a_lowered_limit_takes_spare_tasks) {
    Elastic plane;
    std::string limited = Elastic::tenant("vision", 0);
    limited.replace(limited.find("{guarantee: 0}"), 14, "{guarantee: 0, limit: 3}");
    plane.accept(limited);
    plane.settle(120);
    EXPECT_EQ(plane.tasks("gang"), 3) << plane.words("gang");
    EXPECT_EQ(plane.workload("gang").status->history.lost, Duration{});
}

// The claim is gone before the gang has stopped. It starts with what was promised to it; the room that is free would be
// taken from it again by the next short claim.
TEST(Shrinks, it_starts_with_the_tasks_that_it_was_told_to_keep) {
    Elastic plane;
    plane.holds_back = Plane::is_wipe;
    plane.claim();
    plane.settle(5);
    ASSERT_EQ(plane.workload("gang").status->phase, WorkloadPhase::stopping);
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "claim").outcome);
    plane.carry_all();
    EXPECT_EQ(plane.tasks("gang"), 5) << plane.words("gang");
}

TEST(Shrinks, a_gang_that_saves_its_work_too_seldom_goes_whole) {
    Elastic plane{", checkpointInterval: 6h"};
    plane.claim();
    plane.settle(120);
    const WorkHistory history = plane.workload("gang").status->history;
    ASSERT_EQ(history.attempts.size(), 1u);
    EXPECT_THAT(history.attempts[0].says, testing::Not(HasSubstr("starts again with")));
    EXPECT_TRUE(plane.runs("claim")) << plane.words("claim");
}

// One that never saves would lose the whole of its work, which is what an eviction costs: it counts as one.
TEST(Shrinks, a_gang_that_saves_nothing_goes_whole_and_starts_with_what_is_left) {
    Elastic plane{""};
    plane.claim();
    plane.settle(120);
    EXPECT_TRUE(plane.runs("claim")) << plane.words("claim");
    EXPECT_EQ(plane.tasks("gang"), 5) << plane.words("gang");
    const WorkHistory history = plane.workload("gang").status->history;
    ASSERT_EQ(history.attempts.size(), 1u);
    EXPECT_THAT(history.attempts[0].says, testing::Not(HasSubstr("starts again with")));
    EXPECT_GT(history.lost, Duration{});
}

}  // namespace
}  // namespace bulkhead
