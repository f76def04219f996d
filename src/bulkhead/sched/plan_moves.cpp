#include "bulkhead/sched/plan_moves.hpp"

#include <algorithm>

namespace bulkhead::sched {

namespace {

constexpr std::int64_t copy_costs = 100;  // looks

// Every way to put so many tasks of a job on nodes that take `room` of them, fullest nodes first; `use` says whether to
// stop.
template <class Use>
bool each_spread(const FleetIndex& around, const Job& job, std::int32_t tasks,
                 const std::vector<FleetIndex::Portion>& room, std::int64_t& looks, const Use& use) {
    std::vector<FleetIndex::Portion> chosen;
    const auto fits_topology = [&] {
        for (const FleetIndex::Portion& each : chosen)
            if (around.domain_of(each.node, job.within) != around.domain_of(chosen.front().node, job.within))
                return false;
        if (job.group <= 1 || job.group_within == TopologyLevel::none) return true;
        for (const FleetIndex::Portion& each : chosen) {
            std::int32_t here = 0;
            for (const FleetIndex::Portion& other : chosen)
                if (around.domain_of(other.node, job.group_within) == around.domain_of(each.node, job.group_within))
                    here += other.tasks;
            if (here % job.group != 0) return false;
        }
        return true;
    };
    const auto add = [&](auto&& self, std::size_t at, std::int32_t left) -> bool {
        if (--looks <= 0) return false;
        if (left == 0) return fits_topology() && use(chosen);
        if (at == room.size()) return false;
        for (std::int32_t n = std::min(left, room[at].tasks); n >= 0; --n) {
            if (n > 0) chosen.push_back({room[at].node, n});
            if (self(self, at + 1, left - n)) return true;
            if (n > 0) chosen.pop_back();
        }
        return false;
    };
    return add(add, 0, tasks);
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

bool Engine::State::MoveTrial::place_moved(FleetIndex& around, Plan& plan, std::size_t at,
                                           std::span<const TenantNo> scattered, std::int64_t& looks) {
    if (at == plan.moves.size()) return closes_no_more(around, scattered);
    Relocation& moved = plan.moves[at];
    const JobRec& rec = state.jobs[moved.job];
    std::vector<FleetIndex::Portion> room;
    // A node that is rebooted for the claimant has to stay empty until then.
    const auto is_rebooted = [&](NodeNo node) {
        return std::ranges::find(plan.where, node, &FleetIndex::Portion::node) != plan.where.end() &&
               around.wants_reboot(node, search.job.shape, search.job.tenant);
    };
    for (NodeNo node = 0; node < around.nodes(); ++node) {
        if (is_rebooted(node)) continue;
        if (const std::int64_t takes = around.capacity(node, rec.job.shape, rec.job.tenant); takes > 0)
            room.push_back({node, static_cast<std::int32_t>(takes)});
    }
    return each_spread(around, rec.job, rec.placed, room, looks, [&](const std::vector<FleetIndex::Portion>& to) {
        std::vector<SeatNo> taken;
        for (const FleetIndex::Portion& portion : to)
            for (std::int32_t i = 0; i < portion.tasks; ++i)
                taken.push_back(around.take(portion.node, rec.job, moved.job));
        moved.to = to;
        const bool done = place_moved(around, plan, at + 1, scattered, looks);
        for (const SeatNo seat : taken) around.release(seat, true);
        return done;
    });
}

bool Engine::State::MoveTrial::place_claimant(FleetIndex& around, Plan& plan, std::span<const TenantNo> scattered,
                                              std::int64_t& looks) {
    const auto left = [](const SeatRec& seat) { return seat.ending; };
    FleetIndex::Supposed supposed;
    std::vector<FleetIndex::Portion> room;
    for (NodeNo node = 0; node < around.nodes(); ++node)
        if (search.usable(node))
            if (const std::int64_t takes =
                    around.capacity_without(supposed, node, search.job.shape, search.job.tenant, left);
                takes > 0)
                room.push_back({node, static_cast<std::int32_t>(takes)});
    return each_spread(around, search.job, search.tasks, room, looks,
                       [&](const std::vector<FleetIndex::Portion>& where) {
                           std::vector<SeatNo> kept;
                           for (const FleetIndex::Portion& portion : where)
                               around.promise(portion, search.job, search.number, left, kept);
                           const bool whole = std::ssize(kept) == search.tasks;
                           plan.where = where;
                           const bool done = whole && place_moved(around, plan, 0, scattered, looks);
                           for (const SeatNo seat : kept) around.release(seat, false);
                           return done;
                       });
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
    FleetIndex around = *base;
    for (const Relocation& moved : plan.moves)
        for (SeatNo seat = state.jobs[moved.job].seats; seat != nil; seat = state.fleet.seat(seat).next_of_job)
            around.release(seat, !state.settings.wipes);
    for (const JobNo victim : plan.victims)
        for (SeatNo seat = state.jobs[victim].seats; seat != nil; seat = state.fleet.seat(seat).next_of_job)
            around.set_ending(seat, true);
    for (const Shrink& shrink : plan.shrinks)
        for (const SeatNo seat : shrink.seats) around.set_ending(seat, true);
    return place_claimant(around, plan, scattered, looks);
}

}  // namespace bulkhead::sched
