// A guarantee that small work of others keeps closed comes back: through stop, wipe and verified reboot, on real
// executors; and the place that is freed goes to the claimant and to no other work.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

struct Whole : Plane {  // two nodes of eight GPUs, each of which can show a verified reboot
    Whole() : Plane{0} {
        for (const char* name : {"n0", "n1"}) {
            NodeModelSpec spec = model_spec(name);
            spec.gpus = 8;
            add_node(spec);
        }
        settle();
        EXPECT_TRUE(
            accepted("apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n"
                     "  threatModel: internal\n  sites: [{name: fra, jurisdiction: eu}]\n"
                     "  versionGate: {shippedAdvisories: false}\n"
                     "  trustDomains: [{name: lab, members: [vision, speech]}]\n" +
                     tenant("s1", "batch", 0) + tenant("s2", "batch", 0) + tenant("s3", "batch", 0) +
                     tenant("vision", "research", 0, "lab") + tenant("speech", "research", 0, "lab") +
                     tenant("big", "frontier-training", 8)));
    }
    static std::string tenant(const std::string& name, const std::string& of_class, int guarantee,
                              const std::string& domain = {}) {
        return fmt::format(
            "---\napiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {}}}\n"
            "spec:\n  class: {}\n  priorityGrant: 100\n  quota: {{guarantee: {}}}\n{}",
            name, of_class, guarantee,
            domain.empty() ? ""
                           : fmt::format("  trustDomain: {{name: {}, consent: {{by: head, at: "
                                         "2026-11-01T00:00:00Z}}}}\n",
                                         domain));
    }
    static std::string work(const std::string& name, const std::string& owner, const std::string& gpu,
                            const std::string& more = {}) {
        return fmt::format(
            "---\napiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {{name: {}}}\n"
            "spec: {{tenant: {}, gpu: {{{}}}{}}}\n",
            name, owner, gpu, more);
    }
    bool accepted(const std::string& yaml) {
        const Answer answer = apply(yaml);
        EXPECT_TRUE(answer.outcome) << answer.outcome.error().what << "\n" << answer.outcome.error().remedy;
        return answer.outcome.has_value();
    }
    WorkloadPhase phase(const std::string& name) const { return workload(name).status->phase; }
    bool runs(const std::string& name) const { return phase(name) == WorkloadPhase::running; }
    std::string place(const std::string& name) const {  // its node; empty: it has no lease
        const std::string lease = workload(name).status->lease;
        return lease.empty() ? std::string{} : find<GpuLease>(lease).spec.slices.at(0).node;
    }
    std::string words(const std::string& name) const {
        std::string all;
        const GpuWorkload its = workload(name);
        for (const std::string& reason : its.status->reasons) all += reason + "; ";
        return all;
    }
    void two_crumbs() {
        ASSERT_TRUE(accepted(work("c1", "s1", "fraction: 0.1") + work("c2", "s2", "fraction: 0.1")));
        settle();
        ASSERT_TRUE(runs("c1")) << words("c1");
        ASSERT_TRUE(runs("c2")) << words("c2");
        ASSERT_NE(place("c1"), place("c2")) << "distrusting tenants share no kernel";
    }
    // The two crumbs' other: whose node is freed.
    std::string freed() const { return phase("c1") == WorkloadPhase::running ? "c2" : "c1"; }
};

TEST(Guarantee, a_node_closed_by_a_tenth_of_a_gpu_comes_back_to_the_tenant_it_is_guaranteed_to) {
    Whole plane;
    plane.two_crumbs();
    const std::map<std::string, std::string> boots{{"n0", plane.nodes["n0"]->model.boot_id()},
                                                   {"n1", plane.nodes["n1"]->model.boot_id()}};
    ASSERT_TRUE(plane.accepted(Whole::work("train", "big", "count: 8", ", priority: 100")));
    plane.settle(60);
    ASSERT_TRUE(plane.runs("train")) << plane.words("train");
    const std::string node = plane.place("train");
    EXPECT_NE(plane.nodes[node]->model.boot_id(), boots.at(node)) << "its host was used by a stranger";
    EXPECT_EQ(plane.runs("c1") + plane.runs("c2"), 1) << "the other one was in the way of no claim";
    EXPECT_EQ(plane.workload(plane.freed()).status->history.interruptions, 1);
}

TEST(Guarantee, what_is_freed_is_kept_through_wipe_reboot_and_a_drain_of_the_other_node) {
    Whole plane;
    plane.two_crumbs();
    const std::string places[] = {plane.place("c1"), plane.place("c2")};
    plane.holds_back = Plane::is_wipe;
    ASSERT_TRUE(plane.accepted(Whole::work("train", "big", "count: 8", ", priority: 100")));
    plane.settle(5);
    const std::string victim = plane.freed(), node = places[victim == "c1" ? 0 : 1],
                      other = places[victim == "c1" ? 1 : 0];
    ASSERT_EQ(plane.phase(victim), WorkloadPhase::stopping) << plane.words("train");
    ASSERT_GT(plane.held_back(), 0u);
    // Other work finds no room: this node is promised, and a stranger is on the other one.
    ASSERT_TRUE(plane.accepted(Whole::work("thief", "s3", "fraction: 0.1")));
    plane.settle(90);
    EXPECT_EQ(plane.phase("thief"), WorkloadPhase::pending);
    ASSERT_TRUE(plane.ask(command::Drain{.node = other, .on = true}).outcome);
    plane.settle(5);
    ASSERT_TRUE(plane.ask(command::Drain{.node = other, .on = false}).outcome);
    plane.settle(90);
    plane.carry_on();  // the memory is clean; the host is being rebooted
    plane.settle(90);
    EXPECT_EQ(plane.phase("train"), WorkloadPhase::pending);
    for (const GpuLease& lease : plane.core->snapshot().leases)
        EXPECT_NE(lease.spec.slices.at(0).node, node) << lease.spec.workload << " is where only `train` may go";
    EXPECT_GT(plane.held_back(), 0u);
    for (int round = 0; round < 6; ++round) {
        plane.carry_on();
        plane.settle(5);
    }
    ASSERT_TRUE(plane.runs("train")) << plane.words("train");
    EXPECT_EQ(plane.place("train"), node);
}

// The claim waits for a reboot that is under way; no running work is evicted for it.
TEST(Guarantee, a_node_that_is_being_rebooted_for_lesser_work_serves_the_claim_and_no_work_is_evicted) {
    Whole plane;
    plane.two_crumbs();
    const std::string place = plane.place("c1");
    ASSERT_TRUE(plane.accepted(Whole::work("thief", "s3", "fraction: 0.1")));
    plane.settle(5);
    plane.holds_back = Plane::is_wipe;
    ASSERT_TRUE(plane.ask(command::Delete{.kind = ObjectKind::workload, .name = "c1", .if_version = {}, .tenant = "s1"})
                    .outcome);
    plane.settle(5);
    plane.carry_on();  // the memory is clean; the host is being rebooted
    plane.settle(5);
    ASSERT_EQ(plane.phase("thief"), WorkloadPhase::pending);
    ASSERT_TRUE(plane.accepted(Whole::work("train", "big", "count: 8", ", priority: 100")));
    plane.settle(30);
    EXPECT_TRUE(plane.runs("c2"));
    for (int round = 0; round < 6; ++round) {
        plane.carry_on();
        plane.settle(5);
    }
    EXPECT_TRUE(plane.runs("train")) << plane.words("train");
    EXPECT_EQ(plane.place("train"), place);
    EXPECT_TRUE(plane.runs("c2"));
    EXPECT_FALSE(plane.runs("thief"));
}

TEST(Guarantee, a_claim_is_served_as_soon_as_a_minimum_run_time_is_over) {
    Whole plane;
    for (const char* owner : {"s1", "s2"})
        ASSERT_TRUE(plane.accepted(
            fmt::format("apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {}}}\n"
                        "spec: {{class: batch, priorityGrant: 100, quota: {{guarantee: 0, reclaimMinRuntime: 95s}}}}\n",
                        owner)));
    plane.two_crumbs();
    const Instant began = plane.now;
    ASSERT_TRUE(plane.accepted(Whole::work("train", "big", "count: 8", ", priority: 100")));
    while (plane.now < began + Duration{200'000} && plane.runs("c1") && plane.runs("c2")) plane.settle(1);
    EXPECT_LE((plane.now - began).ms, 100'000) << "the next look without a reason would be at 120 s";
    plane.settle(120);
    EXPECT_TRUE(plane.runs("train")) << plane.words("train");
}

TEST(Guarantee, the_answer_says_by_when_the_room_is_free) {
    Whole plane;
    plane.two_crumbs();
    plane.holds_back = Plane::is_wipe;
    ASSERT_TRUE(plane.accepted(Whole::work("train", "big", "count: 8", ", priority: 100")));
    plane.settle(5);
    const auto bound = [&] {
        const std::string words = plane.words("train");
        return words.substr(0, words.find(';'));
    };
    const std::string first = bound();
    EXPECT_THAT(first, testing::HasSubstr("is being freed since "));
    EXPECT_THAT(first, testing::HasSubstr("2h to reboot"));
    plane.settle(90);
    EXPECT_EQ(bound(), first) << "the bound does not slide";
    EXPECT_EQ(plane.logged("bound-restarted"), 0);
}

TEST(Guarantee, a_lost_node_restarts_the_bound_and_the_log_says_so) {
    Whole plane;
    plane.two_crumbs();
    const std::string places[] = {plane.place("c1"), plane.place("c2")};
    plane.holds_back = Plane::is_wipe;
    ASSERT_TRUE(plane.accepted(Whole::work("train", "big", "count: 8", ", priority: 100")));
    plane.settle(5);
    const std::string node = places[plane.freed() == "c1" ? 0 : 1];
    plane.nodes[node]->reachable = false;
    plane.settle(60);
    EXPECT_EQ(plane.logged("bound-restarted"), 0) << "it may come back";
    plane.settle(400);
    EXPECT_EQ(plane.logged("bound-restarted"), 1);
    for (int round = 0; round < 8; ++round) {
        plane.carry_on();
        plane.settle(10);
    }
    ASSERT_TRUE(plane.runs("train")) << plane.words("train");
    EXPECT_NE(plane.place("train"), node);
}

TEST(Guarantee, a_new_process_forgets_what_it_kept_and_the_claimant_still_starts) {
    Whole plane;
    plane.two_crumbs();
    plane.holds_back = Plane::is_wipe;
    ASSERT_TRUE(plane.accepted(Whole::work("train", "big", "count: 8", ", priority: 100")));
    plane.settle(5);
    ASSERT_EQ(plane.phase(plane.freed()), WorkloadPhase::stopping);
    plane.restart(2);
    for (auto& [name, node] : plane.nodes) plane.hello(name);
    ASSERT_TRUE(plane.accepted(Whole::work("thief", "s3", "fraction: 0.1")));
    for (int round = 0; round < 8; ++round) {
        plane.carry_on();
        plane.settle(10);
    }
    EXPECT_TRUE(plane.runs("train")) << plane.words("train");
    const std::size_t leaves = plane.log.size();
    plane.settle(300);
    EXPECT_EQ(plane.log.size(), leaves) << "nothing moves any more";
}

TEST(Guarantee, a_node_that_cannot_be_rebooted_is_left_to_those_who_used_it) {
    Whole plane;
    plane.two_crumbs();
    // Their hosts' history stays: nothing is gained by ending their work.
    for (const char* name : {"n0", "n1"}) {
        plane.nodes[name]->model = NodeModel{[&] {
            NodeModelSpec spec = Plane::model_spec(name);
            spec.gpus = 8;
            std::erase(spec.capabilities, Capability::verified_reboot);
            return spec;
        }()};
        plane.hello(name);
    }
    plane.settle();
    const bool c1 = plane.runs("c1"), c2 = plane.runs("c2");
    plane.apply(Whole::work("train", "big", "count: 8", ", priority: 100"));
    plane.settle(120);
    EXPECT_FALSE(plane.runs("train"));
    EXPECT_EQ(plane.runs("c1"), c1);
    EXPECT_EQ(plane.runs("c2"), c2);
}

TEST(Guarantee, a_host_that_cannot_be_rebooted_counts_for_its_users_alone_when_guarantees_are_admitted) {
    Plane plane{0};
    for (const char* name : {"n0", "n1"}) {
        NodeModelSpec spec = Plane::model_spec(name);
        spec.gpus = 8;
        std::erase(spec.capabilities, Capability::verified_reboot);
        plane.add_node(spec);
    }
    plane.settle();
    ASSERT_TRUE(plane
                    .apply("apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n"
                           "  threatModel: internal\n  sites: [{name: fra, jurisdiction: eu}]\n"
                           "  versionGate: {shippedAdvisories: false}\n" +
                           Whole::tenant("s1", "batch", 0) + Whole::tenant("big", "frontier-training", 8))
                    .outcome);
    ASSERT_TRUE(plane.apply(Whole::work("c1", "s1", "fraction: 0.1")).outcome);
    plane.settle();
    const std::string second = Whole::tenant("second", "frontier-training", 1);
    const Answer refused = plane.apply(second);
    ASSERT_FALSE(refused.outcome) << "one of the two nodes is left to s1";
    EXPECT_THAT(refused.outcome.error().what, testing::HasSubstr("second"));
    EXPECT_THAT(refused.outcome.error().what, testing::HasSubstr("1 node with 8 GPUs may serve them"));
    ASSERT_TRUE(plane.apply(Whole::tenant("second", "frontier-training", 0)).outcome);
    // A lost node does not keep what changes nothing about guarantees from being applied.
    ASSERT_TRUE(plane.ask(command::Drain{.node = "n0", .on = true}).outcome);
    ASSERT_TRUE(plane.ask(command::Drain{.node = "n1", .on = true}).outcome);
    EXPECT_TRUE(plane.apply(Whole::tenant("third", "batch", 0)).outcome);
    EXPECT_FALSE(plane.apply(Whole::tenant("third", "batch", 1)).outcome);
    EXPECT_TRUE(plane.apply(Whole::tenant("big", "frontier-training", 7)).outcome);
}

// Three tenants without guarantees and two nodes that no two of them may share. A gang that evicts another with its
// least size and then starts larger than its tenant's due would be evicted in turn, for ever.
TEST(Guarantee, elastic_gangs_of_distrusting_tenants_do_not_evict_each_other_in_turn) {
    Whole plane;
    for (const char* owner : {"s1", "s2", "s3"}) {
        ASSERT_TRUE(plane.accepted(
            Whole::work(std::string{"gang-"} + owner, owner, "count: 1, mechanism: whole", ", tasks: 8, minTasks: 1")));
        plane.settle(5);
    }
    plane.settle(600);
    const std::size_t leaves = plane.log.size();
    plane.settle(1200);
    EXPECT_EQ(plane.log.size(), leaves) << plane.log.back();
    EXPECT_EQ(plane.runs("gang-s1") + plane.runs("gang-s2") + plane.runs("gang-s3"), 2);
    EXPECT_TRUE(plane.runs("gang-s3")) << "its tenant had nothing, and the others had more than they were due";
    EXPECT_EQ(plane.find<GpuLease>(plane.workload("gang-s3").status->lease).spec.tasks, 3)
        << "8 GPUs that are not guaranteed to another tenant, divided by three";
}

// A gang of a stranger's has left n0 and cannot be asked on n1: n0 is rebooted and leased all the same.
TEST(Guarantee, a_node_that_a_gang_has_left_is_rebooted_while_the_gang_cannot_end_elsewhere) {
    Whole plane;
    ASSERT_TRUE(plane.accepted(plane.work("gang", "s1", "count: 4", ", tasks: 2, cpu: 40")));
    plane.settle(30);
    ASSERT_TRUE(plane.runs("gang")) << plane.words("gang");
    plane.nodes["n1"]->reachable = false;
    plane.nodes["n1"]->session = 0;
    const std::string boot = plane.nodes["n0"]->model.boot_id();
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "gang").outcome);
    ASSERT_TRUE(plane.accepted(plane.work("train", "big", "count: 8", ", priority: 100")));
    plane.settle(120);
    EXPECT_EQ(plane.phase("gang"), WorkloadPhase::stopping) << "n1 has not said that it ended";
    ASSERT_TRUE(plane.runs("train")) << plane.words("train");
    EXPECT_EQ(plane.place("train"), "n0");
    EXPECT_NE(plane.nodes["n0"]->model.boot_id(), boot) << "a stranger used its host";
    plane.nodes["n1"]->reachable = true;
    plane.hello("n1");
    plane.settle(120);
    EXPECT_FALSE(plane.exists("gang"));
    EXPECT_TRUE(plane.runs("train"));
}

}  // namespace
}  // namespace bulkhead
