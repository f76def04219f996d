// Room that is being freed for waiting workloads: since when, and by when each starts at the latest. The bound begins
// anew, with an entry in the log, when what was being freed for a workload can no longer serve it.
#include <algorithm>
#include <iterator>

#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/state.hpp"

namespace bulkhead {

using lifecycle::UnitState;

namespace {

bool has_unit_in(NodeRun& node, UnitState state) {
    const std::vector<Device*> devices = node.devices();
    return std::ranges::any_of(devices, [&](const Device* device) {
        return std::ranges::any_of(device->units, [&](const Unit& unit) { return unit.state == state; });
    });
}

// Why nodes that were being freed no longer are. The first cause that is found.
std::string why_no_longer(Core::State& state, const std::vector<Key>& nodes) {
    for (const Key key : nodes) {
        const auto found = state.nodes.find(key);
        if (found == state.nodes.end()) return "a node was removed";
        NodeRun& node = found->second;
        const std::string& name = node.object.metadata.name;
        if (node.object.spec.unschedulable) return fmt::format("node {} was drained", name);
        if (!node.unfit.empty()) return fmt::format("node {} cannot start anything", name);
        if (node.phase == NodePhase::fenced) return fmt::format("node {} is silent", name);
        if (has_unit_in(node, UnitState::held)) return fmt::format("a legal hold keeps units of node {}", name);
        if (has_unit_in(node, UnitState::quarantined))
            return fmt::format("a wipe failed on node {}, or a device of it is out of use", name);
    }
    return "its room is looked for elsewhere";
}

bool needs_reboot(Core::State& state, const NodeRun& node, const std::string& tenant) {
    const sched::TenantNo own = state.relations.number(tenant);
    return std::ranges::any_of(node.host_used_by, [&](const std::string& user) {
        return state.relations.trust(own, state.relations.number(user)) == PeerTrust::distrusting;
    });
}

}  // namespace

void follow_freeing(Turn& turn) {
    Core::State& state = turn.state;
    std::vector<Key> keys;
    keys.reserve(state.nodes.size());
    for (const auto& [key, node] : state.nodes) keys.push_back(key);
    std::map<Key, const sched::Promise*> promises;
    for (const sched::Promise& promise : state.promises)
        if (promise.freed || promise.guaranteed) promises[promise.workload] = &promise;
    for (const Key key : state.pending) {
        WorkloadRun& workload = state.workloads.at(key);
        const auto found = promises.find(key);
        std::vector<Key> nodes;
        if (found != promises.end())
            for (const sched::TaskSeat& task : found->second->tasks) nodes.push_back(keys.at(task.node));
        std::ranges::sort(nodes);
        const auto twice = std::ranges::unique(nodes);
        nodes.erase(twice.begin(), twice.end());
        if (workload.freeing && workload.freeing->nodes != nodes) {
            turn.log({.kind = evidence::RecordKind::bound_restarted,
                      .actor = "core",
                      .tenant = workload.object.spec.tenant,
                      .object = "GpuWorkload/" + workload.object.metadata.name,
                      .detail = {{"since", print(workload.freeing->since)},
                                 {"why", why_no_longer(state, workload.freeing->nodes)}}});
            workload.freeing.reset();
        }
        if (nodes.empty() || workload.freeing) continue;
        const bool reboots = std::ranges::any_of(
            nodes, [&](Key node) { return needs_reboot(state, state.nodes.at(node), workload.object.spec.tenant); });
        const std::optional<Instant> expected = found->second->expected;
        const Duration run = expected && *expected > turn.now ? *expected - turn.now : Duration{};
        const FleetPolicySpec policy = state.policy ? state.policy->object.spec : FleetPolicySpec{};
        workload.freeing = Freeing{turn.now, return_bound(policy, run, reboots), std::move(nodes)};
    }
}

std::optional<Reason> bound_of(const WorkloadRun& workload) {
    if (!workload.freeing) return std::nullopt;
    const Freeing& freeing = *workload.freeing;
    return Reason{"wait.bound",
                  {{"since", print(freeing.since)},
                   {"by", print(freeing.since + freeing.bound.sum())},
                   {"run", print(freeing.bound.run)},
                   {"save", print(freeing.bound.save)},
                   {"stop", print(freeing.bound.stop)},
                   {"wipe", print(freeing.bound.wipe)},
                   {"reboot", print(freeing.bound.reboot)}}};
}

}  // namespace bulkhead
