// A fleet's objects as a scene: contracts decide who may go where, leases are what runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/codec/load.hpp"
#include "bulkhead/sched/play.hpp"

namespace bulkhead::sched {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view fleet = R"(
apiVersion: bulkhead.dev/v1alpha1
kind: FleetPolicy
metadata: {name: fleet}
spec:
  threatModel: internal
  sites: [{name: fra, jurisdiction: eu}, {name: iad, jurisdiction: us}]
  trustDomains: [{name: lab, members: [vision, speech]}]
---
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {name: vision}
spec:
  class: research
  trustDomain: {name: lab, consent: {by: a@lab.example, at: 2026-01-01T00:00:00Z}}
  quota: {guarantee: 4, limit: 12, weight: 3, overQuotaPriority: 2}
  priorityGrant: 20
---
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {name: speech}
spec:
  class: research
  trustDomain: {name: lab, consent: {by: b@lab.example, at: 2026-01-01T00:00:00Z}}
  placement: {jurisdictions: [eu]}
---
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {name: aurora}
spec: {class: frontier-training, quota: {guarantee: 1}}
---
apiVersion: bulkhead.dev/v1alpha1
kind: GpuNode
metadata: {name: east}
spec: {site: fra, zone: a, rack: r1}
status:
  observedAt: 2026-11-15T09:00:00Z
  gpus:
    - {model: h100-80gb-sxm5, slices: [{start: 0, state: in_use}]}
    - {model: h100-80gb-sxm5, slices: [{start: 0, state: available}, {start: 4, state: quarantined}]}
    - {model: h100-80gb-sxm5, count: 6}
  cpu: 128
  memory: 1Ti
  capabilities: [{name: mig}, {name: mps}, {name: time-slicing}, {name: rdma}]
  versions: [{component: driver, version: 580.159.04}, {component: container-toolkit, version: 1.19.1}]
  drives: [{serial: S1, size: 1T, state: available}, {serial: S2, size: 2T, state: quarantined}]
  host: {state: in_use, usedBy: [vision]}
---
apiVersion: bulkhead.dev/v1alpha1
kind: GpuNode
metadata: {name: west}
spec: {site: iad, unschedulable: true}
status:
  observedAt: 2026-11-15T09:00:00Z
  gpus: [{model: h100-80gb-sxm5, count: 8}]
  cpu: 128
  memory: 1Ti
  nvlink: fabric
  capabilities: [{name: mig}, {name: mps}, {name: time-slicing}]
  versions: [{component: driver, version: 580.159.04}, {component: container-toolkit, version: 1.19.1}]
---
apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata: {name: trains}
spec: {tenant: vision, gpu: {count: 1}}
status: {phase: running, lease: l1}
---
apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata: {name: waits}
spec:
  tenant: speech
  tasks: 4
  gpu: {count: 1}
  topology: {within: rack, groupTasks: 2, groupWithin: node}
status: {phase: pending, since: 2026-11-15T08:00:00Z}
---
apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata: {name: too-proud}
spec: {tenant: speech, gpu: {count: 1}, priority: 900}
---
apiVersion: bulkhead.dev/v1alpha1
kind: GpuLease
metadata: {name: l1}
spec:
  tenant: vision
  workload: trains
  mechanism: whole
  tier: container
  slices: [{node: east, gpu: 0}]
status: {phase: active, gpus: 1, activeAt: 2026-11-15T07:00:00Z}
)";

Scene scene_with(std::string_view more = {}) {
    const std::vector<SourceText> files{{"fleet.yaml", std::string{fleet} + std::string{more}}};
    const Loaded loaded = load(files);
    for (const Diagnostic& error : loaded.errors) ADD_FAILURE() << print(error);
    for (const Finding& finding : inconsistencies(loaded.snapshot))
        ADD_FAILURE() << finding.name << ": " << finding.what;
    return scene_of(loaded.snapshot, parse_instant("2026-11-15T09:00:00Z").value());
}

TEST(SceneOfSnapshot, tenants_bring_their_quota_class_and_trust) {
    const Scene made = scene_with();
    ASSERT_THAT(made.tenants, SizeIs(3));
    EXPECT_EQ(made.tenants[0].name, "vision");
    EXPECT_EQ(made.tenants[0].guarantee, Gpus::whole(4));
    EXPECT_EQ(made.tenants[0].limit, Gpus::whole(12));
    EXPECT_EQ(made.tenants[0].weight, 3);
    EXPECT_EQ(made.tenants[0].grant, 20);
    EXPECT_EQ(made.tenants[0].domain, made.tenants[1].domain) << "both said so";
    EXPECT_NE(made.tenants[0].domain, made.tenants[2].domain);
    EXPECT_FALSE(made.tenants[0].hard);
    EXPECT_TRUE(made.tenants[2].hard) << "its class has a hard quota";
}

TEST(SceneOfSnapshot, nodes_are_as_they_were_observed) {
    const Scene made = scene_with();
    ASSERT_THAT(made.nodes, SizeIs(2));
    const Node& east = made.nodes[0];
    ASSERT_THAT(east.gpus, SizeIs(8));
    EXPECT_EQ(east.gpus[0].available, 0) << "in use";
    EXPECT_EQ(east.gpus[1].available, 0x0F);
    EXPECT_EQ(east.gpus[1].lost, 0xF0);
    EXPECT_TRUE(east.gpus[7].empty()) << "nothing is said of it";
    EXPECT_THAT(east.drives, ElementsAre(0)) << "the other is quarantined";
    EXPECT_THAT(east.functions, SizeIs(8)) << "it can do RDMA, and nobody counted yet";
    EXPECT_THAT(east.host_used_by, ElementsAre(0));
    EXPECT_TRUE(east.open);
    EXPECT_FALSE(made.nodes[1].open);
    EXPECT_TRUE(made.nodes[1].board_is_one) << "its fabric cannot be partitioned";
}

TEST(SceneOfSnapshot, a_gpu_that_is_drained_has_room_for_nobody) {
    const Scene made = scene_with(R"(
---
apiVersion: bulkhead.dev/v1alpha1
kind: GpuNode
metadata: {name: south}
spec: {site: fra}
status:
  observedAt: 2026-11-15T09:00:00Z
  gpus:
    - {model: h100-80gb-sxm5, draining: Xid 63, slices: [{start: 0, state: in_use}, {start: 4, state: available}]}
    - {model: h100-80gb-sxm5, draining: Xid 92}
  cpu: 128
)");
    ASSERT_THAT(made.nodes, SizeIs(3));
    for (const Gpu& gpu : made.nodes[2].gpus) {
        EXPECT_EQ(gpu.available, 0);
        EXPECT_EQ(gpu.lost, gpu.all());
    }
}

TEST(SceneOfSnapshot, a_contract_names_the_kinds_of_nodes_that_may_serve_it) {
    const Scene made = scene_with();
    ASSERT_THAT(made.jobs, SizeIs(2));
    const SceneJob& waits = made.jobs[1];
    EXPECT_THAT(waits.need.kinds, ElementsAre(made.nodes[0].kind)) << "its tenant stays in the eu";
    EXPECT_NE(made.nodes[0].kind, made.nodes[1].kind);
    EXPECT_EQ(waits.job.tasks, 4);
    EXPECT_EQ(waits.job.gpus, Gpus::whole(1)) << "for one task";
    EXPECT_EQ(waits.job.group, 2);
    EXPECT_EQ(waits.job.group_within, TopologyLevel::node);
    EXPECT_EQ(print(waits.job.submitted), "2026-11-15T08:00:00Z");
    EXPECT_TRUE(waits.need.any_model);
}

TEST(SceneOfSnapshot, what_policy_refuses_is_told_and_not_placed) {
    const Scene made = scene_with();
    ASSERT_THAT(made.refused, SizeIs(1));
    EXPECT_EQ(made.refused.front().workload, "too-proud");
    EXPECT_THAT(made.refused.front().objections, testing::Not(IsEmpty()));
}

TEST(SceneOfSnapshot, leases_are_what_runs) {
    const Scene made = scene_with();
    const SceneJob& trains = made.jobs[0];
    ASSERT_THAT(trains.runs, SizeIs(1));
    EXPECT_EQ(trains.runs[0].node, 0u);
    EXPECT_THAT(trains.runs[0].gpus, ElementsAre(0));
    EXPECT_EQ(print(trains.started), "2026-11-15T07:00:00Z");
    const Played played = play(made, {});
    ASSERT_THAT(played.running, SizeIs(2));
    for (const TaskSeat& task : played.running[1].tasks) {
        EXPECT_EQ(task.node, 0u);
        EXPECT_THAT(task.gpus, testing::Each(testing::Ge(2))) << "0 is taken, 1 half lost";
    }
}

TEST(SceneOfSnapshot, a_lease_that_ends_keeps_its_place_and_its_work_waits) {
    const Scene made = scene_with(
        "---\napiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: leaves}\n"
        "spec: {tenant: vision, gpu: {count: 2}}\n"
        "---\napiVersion: bulkhead.dev/v1alpha1\nkind: GpuLease\nmetadata: {name: l2}\n"
        "spec: {tenant: vision, workload: leaves, mechanism: whole, tier: container,\n"
        "  slices: [{node: east, gpu: 2}, {node: east, gpu: 3}]}\n"
        "status: {phase: ending, gpus: 2}\n");
    ASSERT_THAT(made.jobs, SizeIs(3));
    EXPECT_THAT(made.jobs[2].runs, IsEmpty());
    ASSERT_TRUE(made.jobs[2].held_back);
    EXPECT_EQ(made.jobs[2].held_back->code, "wait.stopping");
    ASSERT_THAT(made.nodes[0].residents, SizeIs(1));
    EXPECT_THAT(made.nodes[0].gpus[2].seats, SizeIs(1));
    EXPECT_EQ(made.nodes[0].gpus[3].available, 0);
}

TEST(SceneOfSnapshot, shares_of_one_gpu_are_tasks_again) {
    const Scene made = scene_with(
        "---\napiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: halves}\n"
        "spec: {tenant: vision, tasks: 3, gpu: {fraction: 0.25}}\n"
        "---\napiVersion: bulkhead.dev/v1alpha1\nkind: GpuLease\nmetadata: {name: l2}\n"
        "spec: {tenant: vision, workload: halves, mechanism: mps, tier: container,\n"
        "  slices: [{node: east, gpu: 2, share: 500}, {node: east, gpu: 3, share: 250}]}\n"
        "status: {phase: active, gpus: 0.75}\n");
    ASSERT_THAT(made.jobs, SizeIs(3)) << (made.refused.size() > 1 ? made.refused[1].objections.front().says : "");
    ASSERT_THAT(made.jobs[2].runs, SizeIs(3)) << "one lease holds one larger share of a GPU for two of them";
    EXPECT_THAT(made.jobs[2].runs[1].gpus, ElementsAre(2));
    EXPECT_EQ(made.jobs[2].runs[1].seats[0].share, 250);
    EXPECT_THAT(made.jobs[2].runs[2].gpus, ElementsAre(3));
}

}  // namespace
}  // namespace bulkhead::sched
