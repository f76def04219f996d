// What is idle is lent, and comes back: through real nodes, with the wipe in between.
#include <gtest/gtest.h>

#include <algorithm>

#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

std::string tenant(const std::string& name, int guarantee, const std::string& more = {}) {
    return "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: " + name +
           "}\nspec:\n  class: research\n  trustDomain: {name: lab, consent: {by: head of lab, at: "
           "2026-11-01T00:00:00Z}}\n"
           "  quota: {guarantee: " +
           std::to_string(guarantee) + more + "}\n";
}

std::string work(const std::string& name, const std::string& owner) {
    return "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: " + name +
           "}\nspec: {tenant: " + owner + ", gpu: {count: 1, mechanism: whole}, preemptible: true}\n";
}

struct Lab : Plane {
    Lab() : Plane{2} {  // four GPUs
        const Answer answer = apply(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n"
            "  threatModel: internal\n  sites: [{name: fra, jurisdiction: eu}]\n"
            "  versionGate: {shippedAdvisories: false}\n"
            "  trustDomains: [{name: lab, members: [early, owner]}]\n---\n" +
            tenant("early", 0) + "---\n" + tenant("owner", 2));
        EXPECT_TRUE(answer.outcome) << answer.outcome.error().what;
    }
    int running(const std::string& owner) const {
        int count = 0;
        for (const GpuWorkload& each : core->snapshot().workloads)
            count += each.spec.tenant == owner && each.status->phase == WorkloadPhase::running ? 1 : 0;
        return count;
    }
};

TEST(Lending, a_guarantee_that_was_lent_comes_back_and_no_more_than_that) {
    Lab lab;
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(lab.apply(work("e" + std::to_string(i), "early")).outcome);
    lab.settle();
    EXPECT_EQ(lab.running("early"), 4);  // nobody else asked
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(lab.apply(work("o" + std::to_string(i), "owner")).outcome);
    lab.settle(60);
    EXPECT_EQ(lab.running("owner"), 2);
    EXPECT_EQ(lab.running("early"), 2);
    // And then nothing moves any more.
    const std::size_t leaves = lab.log.size();
    lab.settle(300);
    EXPECT_EQ(lab.log.size(), leaves);
}

TEST(Lending, what_was_freed_is_kept_for_the_claimant_while_it_is_wiped) {
    Lab lab;
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(lab.apply(work("e" + std::to_string(i), "early")).outcome);
    lab.settle();
    ASSERT_EQ(lab.running("early"), 4);
    ASSERT_TRUE(lab.apply(work("claim", "owner")).outcome);
    ASSERT_TRUE(lab.apply(work("thief", "early")).outcome);
    lab.settle(60);
    EXPECT_EQ(lab.workload("claim").status->phase, WorkloadPhase::running);
    EXPECT_EQ(lab.running("early"), 3);
}

TEST(Lending, what_was_lent_may_run_for_as_long_as_its_tenant_was_promised) {
    Lab lab;
    ASSERT_TRUE(lab.apply(tenant("early", 0, ", reclaimMinRuntime: 10m")).outcome);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(lab.apply(work("e" + std::to_string(i), "early")).outcome);
    lab.settle();
    ASSERT_EQ(lab.running("early"), 4);
    ASSERT_TRUE(lab.apply(work("claim", "owner")).outcome);
    lab.settle(300);
    EXPECT_EQ(lab.running("early"), 4);
    lab.settle(420);
    EXPECT_EQ(lab.running("early"), 3);
    EXPECT_EQ(lab.workload("claim").status->phase, WorkloadPhase::running);
}

TEST(Lending, a_lowered_limit_ends_leases_until_the_tenant_is_within_it) {
    Lab lab;
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(lab.apply(work("e" + std::to_string(i), "early")).outcome);
    lab.settle();
    ASSERT_EQ(lab.running("early"), 4);
    ASSERT_TRUE(lab.apply(tenant("early", 0, ", limit: 2")).outcome);
    lab.settle(60);
    EXPECT_EQ(lab.running("early"), 2);
}

TEST(Lending, an_elastic_gang_starts_with_what_there_is_and_holds_no_more) {
    Lab lab;
    ASSERT_TRUE(lab.apply(work("o", "owner")).outcome);
    lab.settle();
    const auto elastic = [&](const std::string& name, int least) {
        return "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: " + name +
               "}\nspec: {tenant: early, gpu: {count: 1, mechanism: whole}, tasks: 8, minTasks: " +
               std::to_string(least) + ", preemptible: true}\n";
    };
    ASSERT_TRUE(lab.apply(elastic("picky", 4)).outcome);
    lab.settle();
    EXPECT_EQ(lab.workload("picky").status->phase, WorkloadPhase::pending);
    ASSERT_TRUE(lab.remove(ObjectKind::workload, "picky").outcome);
    ASSERT_TRUE(lab.apply(elastic("modest", 2)).outcome);
    lab.settle();
    ASSERT_EQ(lab.workload("modest").status->phase, WorkloadPhase::running);
    const auto leases = lab.core->snapshot().leases;
    const auto lease = std::ranges::find(leases, "modest", [](const GpuLease& each) { return each.spec.workload; });
    ASSERT_NE(lease, leases.end());
    EXPECT_EQ(lease->spec.tasks, 3);
    EXPECT_EQ(lease->spec.slices.size(), 3u);
    EXPECT_EQ(lease->status->gpus, Gpus::whole(3));
    // The owner's second GPU is its own: the gang goes as one, and comes back smaller.
    ASSERT_TRUE(lab.apply(work("o2", "owner")).outcome);
    lab.settle(120);
    EXPECT_EQ(lab.running("owner"), 2);
    EXPECT_EQ(lab.running("early"), 1);
}

TEST(Lending, short_jobs_of_equal_tenants_alternate_on_one_gpu) {
    Plane plane{0};
    NodeModelSpec one = Plane::model_spec("n0");
    one.gpus = 1;
    plane.add_node(one);
    const Answer lab = plane.apply(
        "apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n"
        "  threatModel: internal\n  sites: [{name: fra, jurisdiction: eu}]\n"
        "  versionGate: {shippedAdvisories: false}\n"
        "  trustDomains: [{name: lab, members: [early, owner]}]\n---\n" +
        tenant("early", 0) + "---\n" + tenant("owner", 0));
    ASSERT_TRUE(lab.outcome) << lab.outcome.error().what;
    for (const std::string owner : {"early", "owner"})
        for (int i = 0; i < 3; ++i)
            ASSERT_TRUE(plane.apply(work(owner.substr(0, 1) + std::to_string(i), owner)).outcome);
    std::string turns;
    for (int job = 0; job < 6; ++job) {
        std::string running;
        for (int second = 0; second < 60 && running.empty(); ++second) {
            plane.settle(1);
            for (const GpuWorkload& each : plane.core->snapshot().workloads)
                if (each.status->phase == WorkloadPhase::running) running = each.metadata.name;
        }
        ASSERT_FALSE(running.empty()) << turns;
        turns += running.front();
        plane.settle(3);
        ASSERT_TRUE(plane.remove(ObjectKind::workload, running).outcome);
    }
    EXPECT_EQ(turns, "eoeoeo") << "each job of three seconds counts before the next turn";
}

TEST(Lending, a_new_process_knows_who_may_not_be_disturbed) {
    Lab lab;
    ASSERT_TRUE(
        lab.apply("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: pinned}\nspec: {tenant: "
                  "owner, gpu: {count: 1, mechanism: whole}, tasks: 2, preemptible: false}\n")
            .outcome);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(lab.apply(work("o" + std::to_string(i), "owner")).outcome);
    lab.settle();
    ASSERT_EQ(lab.running("owner"), 3);
    lab.restart(2);
    for (auto& [name, node] : lab.nodes) lab.hello(name);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(lab.apply(work("e" + std::to_string(i), "early")).outcome);
    lab.settle(120);
    EXPECT_EQ(lab.workload("pinned").status->phase, WorkloadPhase::running);
}

}  // namespace
}  // namespace bulkhead
