// Small work that keeps a node closed is moved to make room for a guarantee: it is saved, stopped and wiped, and starts
// again in the place that is kept for it. Nothing else uses either place meanwhile, whatever fails on the way.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Two nodes of eight GPUs. Work `a` and `b` of one trust domain runs on one node each, and fits on one.
struct Scattered : Plane {
    Scattered() : Plane{0} {
        for (const char* name : {"n0", "n1"}) {
            NodeModelSpec spec = model_spec(name);
            spec.gpus = 8;
            add_node(spec);
        }
        settle();
        accept(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n"
            "  threatModel: internal\n  sites: [{name: fra, jurisdiction: eu}]\n"
            "  versionGate: {shippedAdvisories: false}\n"
            "  trustDomains: [{name: lab, members: [vision, speech, owner]}]\n" +
            tenant("vision", "research", 0, true) + tenant("speech", "research", 0, true) +
            tenant("owner", "research", 7, true) + tenant("big", "frontier-training", 8, false));
        // A node has 64 cores: `a` has to go to the other node than the first filler, and `b` to the other than the
        // second, which fits beside `a` alone.
        start("first", "vision", 60);
        start("a", "vision", 8);
        start("second", "vision", 52);
        EXPECT_TRUE(remove(ObjectKind::workload, "first").outcome);
        settle(60);
        start("b", "speech", 8);
        EXPECT_TRUE(remove(ObjectKind::workload, "second").outcome);
        settle(60);
        EXPECT_TRUE(runs("a") && runs("b"));
        EXPECT_NE(place("a"), place("b"));
    }
    static std::string tenant(const std::string& name, const std::string& of_class, int guarantee, bool in_lab) {
        return fmt::format(
            "---\napiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {}}}\n"
            "spec:\n  class: {}\n  priorityGrant: 100\n  quota: {{guarantee: {}}}\n{}",
            name, of_class, guarantee,
            in_lab ? "  trustDomain: {name: lab, consent: {by: head, at: 2026-11-01T00:00:00Z}}\n" : "");
    }
    void submit(const std::string& name, const std::string& owner, const std::string& gpu, const std::string& more) {
        accept(
            fmt::format("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {{name: {}}}\n"
                        "spec: {{tenant: {}, gpu: {{{}}}{}}}\n",
                        name, owner, gpu, more));
    }
    void start(const std::string& name, const std::string& owner, int cores) {
        submit(name, owner, "count: 1, mechanism: whole",
               fmt::format(", cpu: {}, command: [train], checkpoint: {{command: [save], within: 30s}}", cores));
        settle(30);
    }
    void claim() { submit("train", "big", "count: 8", ", priority: 100"); }

    WorkloadPhase phase(const std::string& name) const { return workload(name).status->phase; }
    bool runs(const std::string& name) const { return phase(name) == WorkloadPhase::running; }
    std::string place(const std::string& name) const {  // its node; empty: it has no lease
        const std::string lease = workload(name).status->lease;
        return lease.empty() ? std::string{} : find<GpuLease>(lease).spec.slices.at(0).node;
    }
    std::string words(const std::string& name) const { return testing::PrintToString(workload(name).status->reasons); }
    WorkHistory history(const std::string& name) const { return workload(name).status->history; }
    // Of `a` and `b`, the one that was moved.
    std::string moved() const { return history("a").starts > 1 || phase("a") != WorkloadPhase::running ? "a" : "b"; }
    std::string other(const std::string& name) const { return name == "a" ? "b" : "a"; }
    int moves_logged() const {
        return static_cast<int>(std::ranges::count_if(log, [](const std::string& leaf) {
            return leaf.contains("\"lease-ending\"") && leaf.contains("\"moved: ");
        }));
    }
    std::string last(const std::string& kind, const std::string& about) const {
        for (auto entry = log.rbegin(); entry != log.rend(); ++entry)
            if (entry->starts_with("{\"kind\":\"" + kind + "\"") && entry->contains(about)) return *entry;
        return {};
    }
};

TEST(Moves, a_node_that_small_work_keeps_closed_is_emptied_by_a_move) {
    Scattered plane;
    const std::map<std::string, std::string> boots{{"n0", plane.nodes["n0"]->model.boot_id()},
                                                   {"n1", plane.nodes["n1"]->model.boot_id()}};
    plane.claim();
    plane.settle(120);
    ASSERT_TRUE(plane.runs("train")) << plane.words("train");
    ASSERT_TRUE(plane.runs("a")) << plane.words("a");
    ASSERT_TRUE(plane.runs("b")) << plane.words("b");
    EXPECT_EQ(plane.place("a"), plane.place("b"));
    EXPECT_NE(plane.place("train"), plane.place("a"));
    EXPECT_NE(plane.nodes[plane.place("train")]->model.boot_id(), boots.at(plane.place("train")))
        << "a stranger used its host";
    EXPECT_EQ(plane.moves_logged(), 1);
    const std::string moved = plane.moved();
    const WorkHistory history = plane.history(moved);
    EXPECT_EQ(history.starts, 2);
    EXPECT_EQ(history.interruptions, 1);
    EXPECT_EQ(history.failures, 0);
    EXPECT_EQ(history.lost, Duration{}) << "it was saved";
    ASSERT_EQ(history.attempts.size(), 1u);
    EXPECT_EQ(history.attempts[0].attempt, 1);
    EXPECT_EQ(history.attempts[0].reason, FailureReason::interrupted);
    EXPECT_THAT(history.attempts[0].says, StartsWith("moved: "));
    EXPECT_EQ(history.attempts[0].nodes, (std::vector<std::string>{plane.place("train")}));
    ASSERT_EQ(history.saved.size(), 1u);
    EXPECT_THAT(plane.told(moved), Contains("BULKHEAD_START=2"));
    EXPECT_THAT(plane.told(moved), Contains("BULKHEAD_CHECKPOINT=" + history.saved[0]));
    EXPECT_EQ(plane.find<GpuLease>(plane.workload(moved).status->lease).status->attempt, 2);
    EXPECT_THAT(plane.last("lease-closed", "GpuWorkload/" + moved), HasSubstr("\"lost-gpu-ms\":\"0\""));
    EXPECT_EQ(plane.history(plane.other(moved)).starts, 1);
    const std::size_t leaves = plane.log.size();
    plane.settle(300);
    EXPECT_EQ(plane.log.size(), leaves) << "nothing moves any more";
}

TEST(Moves, the_new_place_is_kept_while_the_work_stops_and_is_wiped) {
    Scattered plane;
    plane.holds_back = Plane::is_wipe;
    plane.claim();
    plane.settle(5);
    const std::string moved = plane.moved(), stays = plane.other(moved);
    ASSERT_EQ(plane.phase(moved), WorkloadPhase::stopping);
    // All that is free beside the one that stays, with the one GPU that is kept.
    plane.submit("greedy", "vision", "count: 7, mechanism: whole", "");
    plane.settle(90);
    EXPECT_EQ(plane.phase("greedy"), WorkloadPhase::pending);
    plane.carry_all();
    EXPECT_TRUE(plane.runs(moved)) << plane.words(moved);
    EXPECT_EQ(plane.place(moved), plane.place(stays));
    EXPECT_TRUE(plane.runs("train")) << plane.words("train");
    EXPECT_EQ(plane.phase("greedy"), WorkloadPhase::pending);
}

TEST(Moves, work_that_is_deleted_while_it_stops_keeps_no_place) {
    Scattered plane;
    plane.holds_back = Plane::is_wipe;
    plane.claim();
    plane.settle(5);
    const std::string moved = plane.moved();
    ASSERT_EQ(plane.phase(moved), WorkloadPhase::stopping);
    ASSERT_TRUE(plane.remove(ObjectKind::workload, moved).outcome);
    plane.submit("greedy", "vision", "count: 7, mechanism: whole", "");
    plane.settle(90);
    EXPECT_TRUE(plane.runs("greedy")) << plane.words("greedy");
}

TEST(Moves, work_that_could_not_be_saved_is_moved_and_what_it_lost_is_counted) {
    Scattered plane;
    plane.settle(600);
    plane.holds_back = Plane::is_stop;
    plane.claim();
    plane.settle(5);
    const std::string moved = plane.moved(),
                      from = plane.find<GpuLease>(plane.workload(moved).status->lease).spec.slices.at(0).node;
    ASSERT_EQ(plane.phase(moved), WorkloadPhase::stopping);
    // Its processes are gone before it is saved.
    NodeModel& model = plane.nodes[from]->model;
    ASSERT_EQ(model.running().size(), 1u);
    ASSERT_TRUE(model.carry_out({1'000'000, StopTenant{model.running().front()}})->ok);
    plane.carry_all();
    ASSERT_TRUE(plane.runs("train")) << plane.words("train");
    ASSERT_TRUE(plane.runs(moved)) << plane.words(moved);
    EXPECT_GE(plane.history(moved).lost, Duration{600'000});
    EXPECT_TRUE(plane.history(moved).saved.empty());
    EXPECT_THAT(plane.told(moved), Not(Contains(StartsWith("BULKHEAD_CHECKPOINT="))));
    EXPECT_THAT(plane.last("lease-closed", "GpuWorkload/" + moved), HasSubstr("not saved on " + from));
}

TEST(Moves, a_target_that_is_lost_during_the_move_does_not_stop_the_claimant) {
    Scattered plane;
    plane.holds_back = Plane::is_wipe;
    plane.claim();
    plane.settle(5);
    const std::string moved = plane.moved(), stays = plane.other(moved), target = plane.place(stays);
    ASSERT_EQ(plane.phase(moved), WorkloadPhase::stopping);
    plane.nodes[target]->reachable = false;
    plane.nodes[target]->session = 0;
    plane.settle(60);
    plane.carry_all();
    EXPECT_FALSE(plane.runs(moved)) << "its new place does not answer";
    plane.settle(600);
    ASSERT_TRUE(plane.runs("train")) << plane.words("train");
    EXPECT_NE(plane.place("train"), target);
    EXPECT_EQ(plane.phase(moved), WorkloadPhase::pending) << plane.words(moved);
    plane.holds_back = nullptr;
    plane.nodes[target]->reachable = true;
    plane.hello(target);
    plane.settle(300);
    EXPECT_TRUE(plane.runs(moved)) << plane.words(moved);
    EXPECT_TRUE(plane.runs(stays)) << plane.words(stays);
    EXPECT_EQ(plane.place(moved), target);
    EXPECT_TRUE(plane.runs("train"));
}

TEST(Moves, a_new_process_in_the_middle_of_a_move_ends_in_the_same_places) {
    Scattered plane;
    plane.holds_back = Plane::is_wipe;
    plane.claim();
    plane.settle(5);
    const std::string moved = plane.moved(), stays = plane.other(moved), target = plane.place(stays);
    ASSERT_EQ(plane.phase(moved), WorkloadPhase::stopping);
    plane.restart(2);
    for (auto& [name, node] : plane.nodes) plane.hello(name);
    plane.carry_all();
    ASSERT_TRUE(plane.runs("train")) << plane.words("train");
    ASSERT_TRUE(plane.runs(moved)) << plane.words(moved);
    EXPECT_TRUE(plane.runs(stays));
    EXPECT_EQ(plane.place(moved), target);
    EXPECT_EQ(plane.place(stays), target);
    EXPECT_EQ(plane.history(moved).lost, Duration{});
    const std::size_t leaves = plane.log.size();
    plane.settle(300);
    EXPECT_EQ(plane.log.size(), leaves) << "nothing moves any more";
}

// The claimant needs none of the GPUs that the moved work holds, but no other tenant may be on its node.
TEST(Moves, nothing_is_bound_beside_work_that_has_not_left_yet) {
    Scattered plane;
    plane.holds_back = Plane::is_stop;
    plane.submit("alone", "owner", "count: 6, mechanism: whole", ", isolation: {node: same-tenant}");
    plane.settle(5);
    const std::string moved = plane.moved(), stays = plane.other(moved);
    ASSERT_EQ(plane.phase(moved), WorkloadPhase::stopping) << plane.words("alone");
    plane.settle(90);
    EXPECT_EQ(plane.phase("alone"), WorkloadPhase::pending) << "the moved work still runs there";
    plane.carry_all();
    ASSERT_TRUE(plane.runs("alone")) << plane.words("alone");
    ASSERT_TRUE(plane.runs(moved)) << plane.words(moved);
    EXPECT_EQ(plane.place(moved), plane.place(stays));
    EXPECT_NE(plane.place("alone"), plane.place(stays));
}

}  // namespace
}  // namespace bulkhead
