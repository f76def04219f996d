// Running work that starts again in another place, with fewer tasks or with more. It is saved, stopped and wiped like
// work that is evicted, with the difference that its next place is kept for it: nothing else starts there meanwhile.
#include <fmt/core.h>

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

void start_again(Turn& turn, LeaseRun& lease, std::vector<sched::TaskSeat> tasks, const std::string& why) {
    if (lease.object.status->phase == LeasePhase::ending) return;
    end_lease(turn, lease, why);
    turn.state.workloads.at(lease.workload).stays = std::ssize(tasks);
    turn.state.promises.push_back(
        {.workload = lease.workload, .freed = true, .expected = turn.now, .tasks = std::move(tasks)});
}

void carry_out_growth(Turn& turn, const sched::Binding& binding, std::vector<sched::TaskSeat> tasks) {
    const WorkloadRun& workload = turn.state.workloads.at(binding.workload);
    const auto lease = turn.state.leases.find(workload.lease);
    if (lease == turn.state.leases.end()) return;
    const std::string why = fmt::format(
        "grows: there is room for more of its tasks ({}); it starts again with {} of the {} that it asks for",
        binding.tasks.size(), tasks.size(), workload.object.spec.tasks);
    start_again(turn, lease->second, std::move(tasks), why);
}

namespace {

// A restart to grow costs every running task this much: what it lost since it last saved, and the time until it runs
// again.
Duration cost_of_restart(const GpuWorkloadSpec& spec) {
    constexpr Duration until_it_runs_again{300'000};
    const Duration lost = spec.checkpoint ? Duration{} : spec.checkpointInterval.value_or(Duration{});
    return {until_it_runs_again.ms + lost.ms};
}

// How long work of the tenant runs before work of its own tenant may interrupt it.
Duration least_run_of(const Core::State& state, const std::string& tenant) {
    constexpr Duration least{600'000};
    std::string name = tenant;
    for (auto found = state.tenants.find(name); found != state.tenants.end(); found = state.tenants.find(name)) {
        const TenantSpec& spec = found->second.object.spec;
        if (spec.quota.preemptMinRuntime) return std::max(least, *spec.quota.preemptMinRuntime);
        if (spec.parent.empty()) break;
        name = spec.parent;
    }
    return least;
}

bool runs_everywhere(const Core::State& state, const LeaseRun& lease) {
    return std::ranges::all_of(lease.parts, [&](const Part& part) {
        const auto index = state.fleet_index.find(part.node);
        return part.phase == PartPhase::running && index != state.fleet_index.end() && state.fleet[index->second].open;
    });
}

}  // namespace

std::optional<Lack> lack_of(Core::State& state, const LeaseRun& lease, Instant now) {
    const auto found = state.workloads.find(lease.workload);
    const GpuLeaseStatus& status = *lease.object.status;
    if (found == state.workloads.end() || found->second.lease != lease.key || status.phase == LeasePhase::ending)
        return std::nullopt;
    const WorkloadRun& workload = found->second;
    const GpuWorkloadSpec& spec = workload.object.spec;
    const std::int64_t runs = lease.object.spec.tasks.value_or(spec.tasks);
    if (!may_shrink(spec) || runs >= spec.tasks || workload.object.status->deleting) return std::nullopt;
    // Its terms may have changed since it was bound, and then its tasks count otherwise.
    const bool same_terms = workload.contract && workload.contract->preemptible &&
                            workload.contract->gpus.units % spec.tasks == 0 &&
                            workload.contract->gpus.units / spec.tasks * runs == status.gpus.units;
    if (!same_terms) return std::nullopt;
    constexpr Duration look_again{60'000};
    Lack out{.asks = spec.tasks, .next = now + look_again};
    if (spec.network.rdma) out.asks = std::min(spec.tasks, runs + fabric_room(state, spec.tenant));
    out.asks = std::max(out.asks, runs);
    if (out.asks == runs || !status.activeAt || !runs_everywhere(state, lease)) return out;
    // It has gone without the tasks that it lacks for as long as they need to make up for the restart.
    const std::int64_t cost = cost_of_restart(spec).ms * runs;
    const Duration least = least_run_of(state, spec.tenant), ran = now - *status.activeAt;
    if (const std::int64_t wait = std::max(least.ms, (cost + out.asks - runs - 1) / (out.asks - runs)); ran.ms < wait)
        out.next = *status.activeAt + Duration{wait};
    else
        out.grow_by = std::max<std::int64_t>((cost + ran.ms - 1) / ran.ms, 1);
    return out;
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
