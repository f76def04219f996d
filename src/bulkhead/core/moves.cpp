// Running work that starts again in another place or with fewer tasks. It is saved, stopped and wiped like work that is
// evicted, with the difference that its next place is kept for it: nothing else starts there meanwhile.
#include <algorithm>

#include "bulkhead/core/state.hpp"

namespace bulkhead {

std::vector<Key> stopping_with_a_place(Core::State& state) {
    std::vector<Key> out;
    for (const sched::Promise& promise : state.promises) {
        const auto workload = state.workloads.find(promise.workload);
        if (workload == state.workloads.end() || state.pending.contains(promise.workload)) continue;
        const auto lease = state.leases.find(workload->second.lease);
        if (lease == state.leases.end() || lease->second.object.status->phase != LeasePhase::ending) continue;
        read_terms(state, workload->second);
        if (workload->second.contract && comes_back(state, lease->second)) out.push_back(promise.workload);
    }
    return out;
}

void carry_out_move(Turn& turn, const sched::Move& moved) {
    const WorkloadRun& workload = turn.state.workloads.at(moved.workload);
    const auto lease = turn.state.leases.find(workload.lease);
    if (lease == turn.state.leases.end()) return;
    end_lease(turn, lease->second,
              "moved: it starts again in another place, because the capacity around it is needed as a whole");
    turn.state.promises.push_back({.workload = moved.workload, .freed = true, .expected = turn.now, .tasks = moved.to});
}

namespace {

// The scheduler knows which GPUs a running task has. Its network function is one of the lease's on that node.
void give_functions(Core::State& state, LeaseRun& lease, std::vector<sched::TaskSeat>& stays) {
    std::vector<Key> nodes;
    nodes.reserve(state.nodes.size());
    for (const auto& [key, node] : state.nodes) nodes.push_back(key);
    std::map<Key, std::size_t> given;
    for (sched::TaskSeat& task : stays) {
        const Part* part = part_on(lease, nodes.at(task.node));
        if (part == nullptr) continue;
        const std::size_t next = given[part->node]++;
        if (next < part->prepare.functions.size()) task.functions = {part->prepare.functions[next]};
    }
}

}  // namespace

void carry_out_shrink(Turn& turn, LeaseRun& lease, std::vector<sched::TaskSeat> stays, const std::string& why) {
    if (lease.object.status->phase == LeasePhase::ending) return;
    give_functions(turn.state, lease, stays);
    end_lease(turn, lease, why);
    turn.state.promises.push_back(
        {.workload = lease.workload, .freed = true, .expected = turn.now, .tasks = std::move(stays)});
}

bool may_shrink(const GpuWorkloadSpec& spec) {
    return spec.minTasks && (spec.checkpoint || spec.checkpointInterval) && !spec.storage.localNvme;
}

bool waits_for_a_move(Turn& turn, const sched::Statement& statement, const sched::Binding& binding) {
    const auto goes_to_one_of = [&](const std::vector<std::uint32_t>& nodes) {
        return std::ranges::any_of(binding.tasks, [&](const sched::TaskSeat& task) {
            return std::ranges::find(nodes, task.node) != nodes.end();
        });
    };
    const bool waits = std::ranges::any_of(statement.move, goes_to_one_of, &sched::Move::from) ||
                       std::ranges::any_of(statement.evict, [&](const sched::Eviction& eviction) {
                           return !eviction.whole && goes_to_one_of(eviction.nodes);
                       });
    if (waits)
        turn.state.promises.push_back(
            {.workload = binding.workload, .freed = true, .expected = turn.now, .tasks = binding.tasks});
    return waits;
}

}  // namespace bulkhead
