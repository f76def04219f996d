#include "bulkhead/sched/plan_moves.hpp"

#include <algorithm>
#include <bit>

namespace bulkhead::sched {

namespace {

constexpr std::int64_t copy_costs = 200;  // looks

// Groups of a gang are whole in each domain.
bool keeps_groups(const FleetIndex& around, const Job& job, std::span<const SeatNo> taken) {
    if (job.group <= 1 || job.group_within == TopologyLevel::none) return true;
    return std::ranges::all_of(taken, [&](SeatNo one) {
        const auto domain = around.domain_of(around.seat(one).node, job.group_within);
        const auto here = std::ranges::count_if(
            taken, [&](SeatNo other) { return around.domain_of(around.seat(other).node, job.group_within) == domain; });
        return here % job.group == 0;
    });
}

}  // namespace

bool Engine::State::MoveTrial::closes_no_more(const FleetIndex& around, std::span<const TenantNo> scattered) {
    if (scattered.empty()) return true;
    if (footprints_before.empty()) footprints_before = state.footprints(state.fleet);
    const std::vector<std::int64_t> after = state.footprints(around);
    return std::ranges::all_of(scattered, [&](TenantNo tenant) {
        return after[tenant] <= footprints_before[tenant] + rounding_of_footprints;
    });
}

bool Engine::State::MoveTrial::place_claimant(Trial& trial) {
    const auto left = [&](const SeatRec& seat) {
        const SeatNo number = trial.fleet.number_of(seat);
        return seat.ending || (number < trial.leaves.size() && trial.leaves[number]);
    };
    FleetIndex::Supposed supposed;
    std::vector<std::vector<FleetIndex::Portion>> bins(trial.fleet.domain_count(search.job.within));
    for (NodeNo node = 0; node < trial.fleet.nodes(); ++node) {
        if (!search.usable(node)) continue;
        --trial.looks;
        const auto takes = static_cast<std::int32_t>(
            trial.fleet.capacity_without(supposed, node, search.job.shape, search.job.tenant, left));
        if (takes > 0) bins[trial.fleet.domain_of(node, search.job.within)].push_back({node, takes});
    }
    for (std::vector<FleetIndex::Portion>& bin : bins)
        if (auto found = trial.fleet.arrange(search.job, search.tasks, bin); !found.empty()) {
            trial.plan.where = std::move(found);
            return true;
        }
    return false;
}

bool Engine::State::MoveTrial::place_job(Trial& trial, std::size_t at) {
    if (at == trial.plan.moves.size()) return closes_no_more(trial.fleet, trial.scattered) && place_claimant(trial);
    std::vector<SeatNo> taken;
    return place_task(trial, at, taken);
}

bool Engine::State::MoveTrial::place_task(Trial& trial, std::size_t at, std::vector<SeatNo>& taken) {
    if (--trial.looks <= 0) return false;
    Relocation& moved = trial.plan.moves[at];
    const JobRec& rec = state.jobs[moved.job];
    FleetIndex& around = trial.fleet;
    if (std::ssize(taken) == rec.placed) {
        if (!keeps_groups(around, rec.job, taken)) return false;
        moved.to.clear();
        for (const SeatNo seat : taken) moved.to.push_back(around.described(seat));
        return place_job(trial, at + 1);
    }
    const NodeNo first = taken.empty() ? 0 : around.seat(taken.back()).node;
    for (NodeNo node = first; node < around.nodes(); ++node) {
        if (!taken.empty() && around.domain_of(node, rec.job.within) != around.domain_of(first, rec.job.within))
            continue;
        for (const FleetIndex::Choice& choice : around.choices(node, rec.job.shape, rec.job.tenant)) {
            const bool is_share = around.whole_gpus(rec.job.shape) == 0;
            if (is_share && !taken.empty() && node == first &&
                choice.gpu < std::countr_zero(around.seat(taken.back()).gpus))
                continue;
            taken.push_back(around.take(node, rec.job, moved.job, choice));
            const bool done = place_task(trial, at, taken);
            around.release(taken.back(), true);
            taken.pop_back();
            if (done) return true;
        }
    }
    return false;
}

// Evicted work is still where it is, because a job moves at once.
bool Engine::State::MoveTrial::place_all(Plan& plan, std::span<const TenantNo> scattered, std::int64_t& looks) {
    // What moves takes as much elsewhere: the claimant needs room that is free, or that is given.
    std::int64_t given = 0;
    for (const JobNo victim : plan.victims) given += state.jobs[victim].holds();
    for (const Shrink& shrink : plan.shrinks)
        given += state.jobs[shrink.job].job.counted(static_cast<std::int64_t>(shrink.seats.size()));
    if (state.fleet.free_units() + given < search.protection.asked) return false;
    if (!base) {
        base = state.fleet;
        base->forget_rankings();
        base->remember_hosts(false);
    }
    looks -= copy_costs;
    Trial trial{.fleet = *base, .plan = plan, .scattered = scattered, .looks = looks};
    trial.leaves.resize(state.fleet.seats());
    for (const JobNo victim : plan.victims)
        for (SeatNo seat = state.jobs[victim].seats; seat != nil; seat = state.fleet.seat(seat).next_of_job)
            trial.leaves[seat] = true;
    for (const Shrink& shrink : plan.shrinks)
        for (const SeatNo seat : shrink.seats) trial.leaves[seat] = true;
    for (const Relocation& moved : plan.moves)
        for (SeatNo seat = state.jobs[moved.job].seats; seat != nil; seat = state.fleet.seat(seat).next_of_job)
            trial.fleet.release(seat, !state.settings.wipes);
    return place_job(trial, 0);
}

}  // namespace bulkhead::sched
