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
    // One that was made smaller in this cycle has a place already: the one that it was moved to.
    if (lease == turn.state.leases.end() || lease->second.object.status->phase == LeasePhase::ending) return;
    end_lease(turn, lease->second,
              "moved: it starts again in another place, because the capacity around it is needed as a whole");
    turn.state.promises.push_back({.workload = moved.workload, .freed = true, .expected = turn.now, .tasks = moved.to});
}

void carry_out_shrink(Turn& turn, LeaseRun& lease, std::vector<sched::TaskSeat> stays, const std::string& why) {
    if (lease.object.status->phase == LeasePhase::ending) return;
    end_lease(turn, lease, why);
    turn.state.workloads.at(lease.workload).stays = std::ssize(stays);
    turn.state.promises.push_back(
        {.workload = lease.workload, .freed = true, .expected = turn.now, .tasks = std::move(stays)});
}

bool may_shrink(const GpuWorkloadSpec& spec) {
    constexpr Duration little{600'000};
    const bool loses_little = spec.checkpoint || (spec.checkpointInterval && *spec.checkpointInterval <= little);
    return spec.minTasks && loses_little && !spec.storage.localNvme;
}

bool waits_for_a_move(Turn& turn, const sched::Statement& statement, const sched::Binding& binding) {
    const std::vector<sched::Node>& fleet = turn.state.fleet;
    const auto meet = [&](std::uint32_t a, std::uint32_t b) {
        return a == b || (!fleet[a].nvlink_domain.empty() && fleet[a].nvlink_domain == fleet[b].nvlink_domain);
    };
    const auto goes_to_one_of = [&](const std::vector<std::uint32_t>& nodes) {
        return std::ranges::any_of(binding.tasks, [&](const sched::TaskSeat& task) {
            return std::ranges::any_of(nodes, [&](std::uint32_t left) { return meet(task.node, left); });
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
