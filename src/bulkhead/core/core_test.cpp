#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

const std::string acme =
    "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\n"
    "spec: {class: frontier-training, quota: {guarantee: 2}, priorityGrant: 100}\n";
const std::string rival =
    "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: rival}\n"
    "spec: {class: research, priorityGrant: 50}\n";

const std::string other_tenant =
    "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: other}\n"
    "spec: {class: research, priorityGrant: 50}\n";

std::string work(const std::string& name, const std::string& tenant, const std::string& more) {
    return "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: " + name +
           "}\nspec: {tenant: " + tenant + ", " + more + "}\n";
}

bool all_clean(const GpuNode& node) {
    for (const NodeGpus& gpu : node.status.gpus)
        for (const GpuSlice& slice : gpu.slices)
            if (slice.state != CleanState::available) return false;
    return true;
}

TEST(Core, a_node_nobody_knows_starts_dirty_and_is_wiped_before_it_is_leased) {
    Plane plane{1};
    EXPECT_TRUE(all_clean(plane.node("n0")));
    EXPECT_EQ(plane.node("n0").status.host->state, CleanState::available);
    EXPECT_EQ(plane.nodes["n0"]->model.read({UnitKind::memory, 0, 0}), 0u);
    EXPECT_GE(plane.logged("wiped"), 4);  // two GPUs, the drive, functions, the host
}

TEST(Core, one_workload_goes_all_the_way_through) {
    Plane plane;
    ASSERT_TRUE(plane.apply(acme).outcome);
    ASSERT_TRUE(plane.apply(work("train", "acme", "gpu: {count: 1}, tasks: 2")).outcome);
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::pending);
    plane.settle();
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::running);
    EXPECT_EQ(plane.logged("lease-active"), 1);
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "train").outcome);
    plane.settle();
    EXPECT_FALSE(plane.exists("train"));
    EXPECT_TRUE(all_clean(plane.node("n0")) && all_clean(plane.node("n1")));
    EXPECT_EQ(plane.logged("lease-closed"), 1);
    EXPECT_EQ(plane.core->snapshot().leases.size(), 0u);
    for (const auto& [name, node] : plane.nodes)
        for (const UnitId unit : node->model.units())
            if (unit.kind == UnitKind::memory) {
                EXPECT_EQ(node->model.read(unit), 0u);
            }
}

TEST(Core, what_is_refused_leaves_no_trace) {
    Plane plane;
    ASSERT_TRUE(plane.apply(acme).outcome);
    const auto rows = plane.rows;
    const std::size_t leaves = plane.log.size();
    struct Row {
        std::string says, yaml;
        Code code;
    };
    for (const Row& row : {
             Row{"an unknown tenant", work("x", "nobody", "gpu: {count: 1}"), Code::invalid},
             Row{"a priority nobody granted", work("x", "acme", "gpu: {count: 1}, priority: 900"), Code::denied},
             Row{"a mechanism its class does not have", work("x", "acme", "gpu: {fraction: 0.5, mechanism: mps}"),
                 Code::denied},
             Row{"one good and one bad object", acme + "---\n" + work("x", "nobody", "gpu: {count: 1}"), Code::invalid},
             Row{"a guarantee beyond the fleet",
                 "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: big}\nspec: {class: "
                 "frontier-training, quota: {guarantee: 99}}\n",
                 Code::invalid},
         }) {
        const Answer answer = plane.apply(row.yaml);
        ASSERT_FALSE(answer.outcome) << row.says;
        EXPECT_EQ(answer.outcome.error().code, row.code) << row.says << ": " << answer.outcome.error().what;
        EXPECT_FALSE(answer.outcome.error().remedy.empty()) << row.says;
        EXPECT_EQ(plane.rows, rows) << row.says;
        EXPECT_EQ(plane.log.size(), leaves) << row.says;
    }
}

TEST(Core, a_stale_version_changes_nothing) {
    Plane plane;
    ASSERT_TRUE(plane.apply(rival).outcome);
    Tenant tenant = plane.find<Tenant>("rival");
    const std::string version = tenant.metadata.resourceVersion;
    tenant.spec.priorityGrant = 10;
    ASSERT_TRUE(plane.ask(command::Apply{.objects = {tenant}, .if_version = version}).outcome);
    const Answer stale = plane.ask(command::Apply{.objects = {tenant}, .if_version = version});
    ASSERT_FALSE(stale.outcome);
    EXPECT_EQ(stale.outcome.error().code, Code::conflict);
    EXPECT_EQ(plane.find<Tenant>("rival").metadata.generation, 2);
    const Answer twice = plane.apply(rival, command::Mode::create);
    EXPECT_EQ(twice.outcome.error().code, Code::conflict);
}

TEST(Core, applying_the_same_again_changes_nothing_and_logs_nothing) {
    Plane plane;
    ASSERT_TRUE(plane.apply(rival).outcome);
    const std::size_t leaves = plane.log.size();
    const Answer again = plane.apply(rival);
    EXPECT_THAT(again.body, HasSubstr("unchanged"));
    EXPECT_EQ(plane.log.size(), leaves);
}

TEST(Core, a_restart_from_its_rows_knows_what_it_knew) {
    Plane plane;
    ASSERT_TRUE(plane.apply(acme + "---\n" + rival).outcome);
    ASSERT_TRUE(plane.apply(work("train", "acme", "gpu: {count: 1}")).outcome);
    ASSERT_TRUE(plane.apply(work("note", "rival", "gpu: {profile: 3g.40gb}")).outcome);
    plane.settle(200);
    const Snapshot before = plane.core->snapshot();
    plane.restart(2);
    for (const auto& [name, node] : plane.nodes) plane.hello(name);
    plane.settle();
    const Snapshot after = plane.core->snapshot();
    ASSERT_EQ(before.leases.size(), 2u);
    ASSERT_EQ(after.leases.size(), before.leases.size());
    for (std::size_t i = 0; i < before.leases.size(); ++i) {
        EXPECT_EQ(before.leases[i].spec, after.leases[i].spec);
        EXPECT_EQ(after.leases[i].status->phase, LeasePhase::active);
    }
    EXPECT_EQ(before.tenants, after.tenants);
    EXPECT_EQ(before.nodes.front().status.gpus, after.nodes.front().status.gpus);
}

TEST(Core, a_silent_node_is_fenced_and_its_work_goes_elsewhere_only_after_long) {
    Plane plane;
    ASSERT_TRUE(plane.apply(acme).outcome);
    ASSERT_TRUE(plane.apply(work("train", "acme", "gpu: {count: 2}")).outcome);
    plane.settle();
    const std::string first = plane.core->snapshot().leases.front().spec.slices.front().node;
    const std::string lease = plane.workload("train").status->lease;
    plane.nodes[first]->reachable = false;
    plane.settle(60);
    EXPECT_EQ(plane.node(first).status.phase, NodePhase::fenced);
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::running) << "running work keeps running";
    plane.settle(300);
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::running);
    EXPECT_NE(plane.workload("train").status->lease, lease) << "placed elsewhere";
    EXPECT_EQ(plane.core->snapshot().leases.size(), 2u) << "the old one waits for its node";
    EXPECT_FALSE(all_clean(plane.node(first)));
    plane.nodes[first]->reachable = true;
    plane.hello(first);
    plane.settle();
    EXPECT_EQ(plane.core->snapshot().leases.size(), 1u);
    EXPECT_TRUE(all_clean(plane.node(first)));
}

TEST(Core, a_wipe_that_cannot_be_verified_quarantines_until_somebody_repairs) {
    Plane plane{1};
    ASSERT_TRUE(plane.apply(acme).outcome);
    ASSERT_TRUE(plane.apply(work("train", "acme", "gpu: {count: 2}")).outcome);
    plane.settle();
    plane.nodes["n0"]->model.faults({UnitKind::memory, 0}).lie = 2;
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "train").outcome);
    plane.settle();
    EXPECT_EQ(plane.node("n0").status.gpus[0].slices.front().state, CleanState::quarantined);
    EXPECT_EQ(plane.node("n0").status.gpus[1].slices.front().state, CleanState::available);
    EXPECT_EQ(plane.logged("wipe-failed"), 1);
    EXPECT_FALSE(plane.exists("train")) << "the lease closes; the device stays out";
    ASSERT_TRUE(
        plane.ask(command::Repair{.node = "n0", .kind = UnitKind::memory, .device = 0, .why = "looked at it"}).outcome);
    plane.settle();
    EXPECT_TRUE(all_clean(plane.node("n0")));
}

TEST(Core, what_returns_from_quarantine_is_burnt_in_and_a_restart_does_not_forget_it) {
    Plane plane{1};
    ASSERT_TRUE(plane.apply(acme).outcome);
    plane.settle();
    plane.fault("n0", {UnitKind::memory, 0, "Xid 48"});
    EXPECT_EQ(plane.node("n0").status.gpus[0].slices.front().state, CleanState::quarantined);
    plane.nodes["n0"]->reachable = false;  // the order is given, and does not arrive
    ASSERT_TRUE(
        plane.ask(command::Repair{.node = "n0", .kind = UnitKind::memory, .device = 0, .why = "replaced"}).outcome);
    plane.orders.clear();
    plane.restart(2);
    plane.nodes["n0"]->reachable = true;
    plane.hello("n0");
    plane.settle();
    std::size_t burnt_in = 0;
    for (const Order& order : plane.orders)
        if (const auto* sanitize = std::get_if<Sanitize>(&order.what))
            for (const WipeTask& task : sanitize->wipes) {
                EXPECT_EQ(task.burn_in, task.kind == UnitKind::memory && task.device == 0);
                burnt_in += task.burn_in ? 1 : 0;
            }
    EXPECT_GE(burnt_in, 1u);
    EXPECT_TRUE(all_clean(plane.node("n0")));
}

TEST(Core, a_gpu_that_is_drained_keeps_its_tenant_and_takes_no_other) {
    Plane plane{1};
    ASSERT_TRUE(plane.apply(acme).outcome);
    ASSERT_TRUE(plane.apply(work("train", "acme", "gpu: {count: 1}")).outcome);
    plane.settle();
    const GpuNode before = plane.node("n0");
    std::uint16_t held = 0;
    while (before.status.gpus[held].slices.front().state != CleanState::in_use) ++held;
    const auto state = [&](std::size_t gpu) { return plane.node("n0").status.gpus[gpu].slices.front().state; };
    const auto drain = [&](std::uint16_t gpu) {
        plane.fault("n0", {UnitKind::memory, gpu, "Xid 63", true});
        plane.settle();
    };
    const auto free = static_cast<std::uint16_t>(held == 0 ? 1 : 0);
    drain(held);
    drain(free);
    EXPECT_EQ(state(held), CleanState::in_use);
    EXPECT_EQ(state(free), CleanState::quarantined);
    EXPECT_TRUE(plane.exists("train"));
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "train").outcome);
    plane.settle();
    EXPECT_EQ(state(held), CleanState::quarantined);
    EXPECT_GE(plane.logged("wiped"), 1) << "its tenant gets the evidence all the same";
    for (const std::uint16_t gpu : {held, free})
        ASSERT_TRUE(
            plane.ask(command::Repair{.node = "n0", .kind = UnitKind::memory, .device = gpu, .why = "reset"}).outcome);
    plane.settle();
    EXPECT_EQ(state(held), CleanState::available);
    EXPECT_EQ(state(free), CleanState::available);
}

TEST(Core, evidence_that_another_key_signed_is_no_evidence) {
    Plane plane{1};
    ASSERT_TRUE(plane.apply(acme).outcome);
    ASSERT_TRUE(plane.apply(work("train", "acme", "gpu: {count: 1}")).outcome);
    plane.settle();
    Plane::Node& node = *plane.nodes["n0"];
    const auto records = node.executor->compacted();
    node.executor.emplace(NodeIdentity{.node = "n0", .grade = Grade::simulated},
                          *evidence::SigningKey::from_seed(std::string(32, 'z')), records);
    node.executor->resume(plane.now, node.model.boot_id());
    plane.hello("n0");
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "train").outcome);
    plane.settle();
    EXPECT_EQ(plane.node("n0").status.gpus[0].slices.front().state, CleanState::quarantined);
}

TEST(Core, a_hold_keeps_instead_of_wiping_and_lifting_it_wipes) {
    Plane plane{1};
    ASSERT_TRUE(plane.apply(acme).outcome);
    ASSERT_TRUE(plane.apply(work("train", "acme", "gpu: {count: 1}")).outcome);
    plane.settle();
    ASSERT_TRUE(plane.ask(command::Hold{.tenant = "acme", .why = "court order"}).outcome);
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "train").outcome);
    plane.settle();
    EXPECT_EQ(plane.node("n0").status.gpus[0].slices.front().state, CleanState::quarantined);
    EXPECT_NE(plane.nodes["n0"]->model.read({UnitKind::memory, 0, 0}), 0u) << "what it left is still there";
    ASSERT_TRUE(plane.ask(command::Hold{.tenant = "acme", .on = false, .why = "done"}).outcome);
    plane.settle();
    EXPECT_EQ(plane.nodes["n0"]->model.read({UnitKind::memory, 0, 0}), 0u);
    EXPECT_TRUE(all_clean(plane.node("n0")));
}

TEST(Core, freezing_a_tenant_stops_it_at_once_and_thawing_lets_it_go_on) {
    Plane plane;
    ASSERT_TRUE(plane.apply(acme).outcome);
    ASSERT_TRUE(plane.apply(work("train", "acme", "gpu: {count: 1}")).outcome);
    plane.settle();
    ASSERT_TRUE(plane.ask(command::Freeze{.tenant = "acme", .why = "incident"}).outcome);
    EXPECT_TRUE(plane.nodes["n0"]->model.running().empty() && plane.nodes["n1"]->model.running().empty());
    plane.settle();
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::pending);
    EXPECT_THAT(plane.workload("train").status->reasons.front(), HasSubstr("frozen"));
    ASSERT_TRUE(plane.ask(command::Freeze{.tenant = "acme", .on = false}).outcome);
    plane.settle();
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::running);
}

TEST(Core, a_drained_node_empties_and_takes_nothing_new) {
    Plane plane;
    ASSERT_TRUE(plane.apply(acme).outcome);
    ASSERT_TRUE(plane.apply(work("train", "acme", "gpu: {count: 2}")).outcome);
    plane.settle();
    const std::string first = plane.core->snapshot().leases.front().spec.slices.front().node;
    ASSERT_TRUE(plane.ask(command::Drain{.node = first}).outcome);
    plane.settle();
    EXPECT_TRUE(all_clean(plane.node(first)));
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::running);
    EXPECT_NE(plane.core->snapshot().leases.front().spec.slices.front().node, first);
}

TEST(Core, distrusting_tenants_follow_each_other_on_a_kernel_only_after_a_verified_reboot) {
    Plane plane{1};
    ASSERT_TRUE(plane.apply(other_tenant + "---\n" + rival).outcome);
    ASSERT_TRUE(plane.apply(work("train", "other", "gpu: {count: 1, mechanism: whole}")).outcome);
    plane.settle();
    const std::int64_t boots = plane.nodes["n0"]->model.boots();
    ASSERT_TRUE(plane.apply(work("note", "rival", "gpu: {profile: 1g.10gb}")).outcome);
    plane.settle();
    EXPECT_EQ(plane.workload("note").status->phase, WorkloadPhase::pending) << "other's code is on that kernel";
    EXPECT_FALSE(plane.workload("note").status->reasons.empty());
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "train").outcome);
    plane.settle();
    EXPECT_EQ(plane.workload("note").status->phase, WorkloadPhase::running);
    EXPECT_EQ(plane.nodes["n0"]->model.boots(), boots + 1);
}

TEST(Core, restored_from_a_backup_it_leases_nothing_before_every_node_was_heard_of) {
    Plane plane;
    ASSERT_TRUE(plane.apply(acme).outcome);
    plane.settle();
    const auto backup = plane.rows;
    ASSERT_TRUE(plane.apply(work("train", "acme", "gpu: {count: 2}")).outcome);
    plane.settle();
    // The lease is younger than the backup.
    plane.rows = backup;
    plane.restart(5, true);
    EXPECT_THAT(plane.log.back(), HasSubstr("\"restored\""));
    plane.hello("n0");
    ASSERT_TRUE(plane.apply(work("other", "acme", "gpu: {count: 1}")).outcome);
    plane.settle();
    EXPECT_EQ(plane.workload("other").status->phase, WorkloadPhase::pending);
    EXPECT_THAT(plane.workload("other").status->reasons.front(), HasSubstr("restored from a backup"));
    plane.hello("n1");
    plane.settle();
    EXPECT_EQ(plane.workload("other").status->phase, WorkloadPhase::running);
    EXPECT_EQ(plane.nodes["n0"]->model.running().size() + plane.nodes["n1"]->model.running().size(), 1u)
        << "what ran under the lost lease was stopped and wiped";
}

TEST(Core, strangers_are_turned_away) {
    Plane plane{1};
    plane.event(AgentHello{"ghost", 77, {}});
    EXPECT_THAT(plane.closes.back(), HasSubstr("not enrolled"));
    Hello future;
    future.protocol = agent_protocol + 1;
    plane.event(AgentHello{"n0", 78, future});
    EXPECT_THAT(plane.closes.back(), HasSubstr("protocol " + std::to_string(agent_protocol + 1)));
    ASSERT_TRUE(plane.ask(command::Revoke{.node = "n0", .why = "stolen"}).outcome);
    plane.hello("n0");
    EXPECT_THAT(plane.closes.back(), HasSubstr("revoked"));
    for (const command::Enrol& bad :
         {command::Enrol{
              .node = "Bad Name", .spec = {.site = "fra"}, .evidence_key = print(plane.nodes["n0"]->key.public_key())},
          command::Enrol{.node = "ok", .spec = {.site = "fra"}, .evidence_key = "nonsense"},
          command::Enrol{
              .node = "ok", .spec = {.site = "nowhere"}, .evidence_key = print(plane.nodes["n0"]->key.public_key())}})
        EXPECT_FALSE(plane.ask(bad).outcome) << bad.node;
}

TEST(Core, usage_is_the_time_a_lease_was_active_to_the_millisecond) {
    Plane plane{1};
    ASSERT_TRUE(plane.apply(acme).outcome);
    ASSERT_TRUE(plane.apply(work("train", "acme", "gpu: {count: 1}")).outcome);
    plane.settle();
    const Instant from = *plane.core->snapshot().leases.front().status->activeAt;
    plane.now = plane.now + Duration{12'345};
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "train").outcome);
    int found = 0;
    for (const auto& [key, body] : plane.rows)
        if (key.first == Table::usage) {
            ++found;
            EXPECT_THAT(body, HasSubstr(print(from)));
            EXPECT_THAT(body, HasSubstr(print(plane.now)));
        }
    EXPECT_EQ(found, 1);
}

TEST(Core, the_queue_and_the_explanation_say_why) {
    Plane plane{1};
    ASSERT_TRUE(plane.apply(acme).outcome);
    ASSERT_TRUE(plane.apply(work("one", "acme", "gpu: {count: 2}")).outcome);
    ASSERT_TRUE(plane.apply(work("two", "acme", "gpu: {count: 2}")).outcome);
    plane.settle();
    const Answer queue = plane.ask(command::Queue{});
    EXPECT_THAT(queue.body, HasSubstr("\"two\""));
    EXPECT_THAT(queue.body, HasSubstr("at most 2"));
    const Answer why = plane.ask(command::Explain{"two"});
    EXPECT_THAT(why.body, HasSubstr("\"contract\""));
    EXPECT_EQ(plane.ask(command::Explain{"three"}).outcome.error().code, Code::not_found);
}

}  // namespace
}  // namespace bulkhead
