#include "bulkhead/sched/plan_moves.hpp"

#include <algorithm>
#include <bit>

namespace bulkhead::sched {

namespace {

constexpr std::int64_t copy_costs = 200, task_costs = 16;  // looks: a copy of the fleet, a task on trial

constexpr TopologyLevel levels_above_node[] = {TopologyLevel::nvlink_domain, TopologyLevel::leaf, TopologyLevel::rack,
                                               TopologyLevel::zone, TopologyLevel::site};

constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t with) {
    hash = (hash ^ with) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

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

// GPUs that cannot be told apart, from the state before any task of the job is here. Not those that evicted work is on,
// nor any while something is dirty.
std::vector<std::int8_t> Engine::State::MoveTrial::twins_on(Trial& trial, NodeNo node) const {
    const FleetIndex& around = trial.fleet;
    if (around.dirty(node)) return {};
    std::uint64_t leaving = 0;
    for (SeatNo s = around.first_seat(node); s != nil; s = around.seat(s).next_here)
        if (around.seat(s).ending || (s < trial.leaves.size() && trial.leaves[s])) leaving |= around.seat(s).gpus;
    around.suppose(trial.supposed, node, [](const SeatRec&) { return false; });
    const std::vector<Cell>& cells = trial.supposed.cells;
    std::vector<std::int8_t> twin(cells.size(), -1);
    for (std::size_t gpu = 1; gpu < cells.size(); ++gpu)
        for (std::size_t before = gpu; before-- > 0;)
            if (cells[before] == cells[gpu] && ((leaving >> before | leaving >> gpu) & 1u) == 0) {
                twin[gpu] = static_cast<std::int8_t>(before);
                break;
            }
    return twin;
}

// By node: an earlier empty one that it cannot be told from, or itself.
std::vector<NodeNo> Engine::State::MoveTrial::twin_nodes() {
    const FleetIndex& around = *base;
    std::vector<NodeNo> like(around.nodes()), empty;
    std::vector<FleetIndex::Supposed> looks_like;
    for (NodeNo node = 0; node < around.nodes(); ++node) {
        like[node] = node;
        if (around.first_seat(node) != nil || around.dirty(node) || around.shares_fabric(node) ||
            around.host_users(node).kind() == Company::Kind::strangers)
            continue;
        FleetIndex::Supposed its;
        around.suppose(its, node, [](const SeatRec&) { return false; });
        its.view.cells = {};
        for (std::size_t i = empty.size(); i-- > 0 && like[node] == node;) {
            const FleetIndex::Supposed& other = looks_like[i];
            const bool same_place = std::ranges::all_of(levels_above_node, [&](TopologyLevel level) {
                return around.domain_of(node, level) == around.domain_of(empty[i], level);
            });
            if (same_place && its.cells == other.cells && its.view.cpu == other.view.cpu &&
                its.view.memory == other.view.memory && its.view.kind == other.view.kind &&
                its.view.functions == other.view.functions && its.view.drives == other.view.drives &&
                its.view.hosts == other.view.hosts && its.view.open == other.view.open &&
                its.view.host_busy == other.view.host_busy && its.view.can_reboot == other.view.can_reboot &&
                search.usable(node) == search.usable(empty[i]))
                like[node] = empty[i];
        }
        empty.push_back(node);
        looks_like.push_back(std::move(its));
    }
    return like;
}

void Engine::State::MoveTrial::count_cores() {
    FleetIndex::Supposed its;
    for (NodeNo node = 0; node < base->nodes(); ++node) {
        base->suppose(its, node, [](const SeatRec& seat) { return seat.ending; });
        cores += std::max<std::int64_t>(its.view.cpu, 0);
        memory += std::max<std::int64_t>(its.view.memory, 0);
    }
}

bool Engine::State::MoveTrial::has_cores(const Plan& plan) const {
    std::int64_t with_cores = cores, with_memory = memory;
    const auto give = [&](const SeatRec& seat) {
        if (seat.shape == nil) return;
        with_cores += seat.tasks * base->shape(seat.shape).need.cpu;
        with_memory += seat.tasks * base->shape(seat.shape).need.memory;
    };
    for (const JobNo victim : plan.victims)
        for (SeatNo seat = state.jobs[victim].seats; seat != nil; seat = base->seat(seat).next_of_job)
            give(base->seat(seat));
    for (const Shrink& shrink : plan.shrinks)
        for (const SeatNo seat : shrink.seats) give(base->seat(seat));
    const TaskNeed& need = base->shape(search.job.shape).need;
    return (need.cpu == 0 || with_cores / need.cpu >= search.tasks) &&
           (need.memory == 0 || with_memory / need.memory >= search.tasks);
}

// How many tasks of the claimant a node would take if no other job came to it.
void Engine::State::MoveTrial::look_again(Trial& trial, NodeNo node) {
    if (!search.usable(node)) return;
    --trial.looks;
    const auto left = [&](const SeatRec& seat) {
        const SeatNo number = trial.fleet.number_of(seat);
        return seat.ending || (number < trial.leaves.size() && trial.leaves[number]);
    };
    const auto takes = static_cast<std::int32_t>(
        trial.fleet.capacity_without(trial.supposed, node, search.job.shape, search.job.tenant, left));
    std::int64_t& sum = trial.sums[trial.fleet.domain_of(node, search.job.within)];
    sum += takes - trial.room[node];
    trial.room[node] = takes;
}

void Engine::State::MoveTrial::look_again_around(Trial& trial, NodeNo node) {
    if (!trial.fleet.shares_fabric(node)) return look_again(trial, node);
    for (NodeNo each = 0; each < trial.fleet.nodes(); ++each)
        if (trial.fleet.shares_fabric(each)) look_again(trial, each);
}

bool Engine::State::MoveTrial::place_claimant(Trial& trial) {
    std::vector<std::vector<FleetIndex::Portion>> bins(trial.sums.size());
    for (NodeNo node = 0; node < trial.fleet.nodes(); ++node)
        if (trial.room[node] > 0)
            bins[trial.fleet.domain_of(node, search.job.within)].push_back({node, trial.room[node]});
    for (std::vector<FleetIndex::Portion>& bin : bins)
        if (auto found = trial.fleet.arrange(search.job, search.tasks, bin); !found.empty()) {
            trial.plan.where = std::move(found);
            return true;
        }
    return false;
}

bool Engine::State::MoveTrial::may_still_fit(const Trial& trial) const {
    return std::ranges::any_of(trial.sums, [&](std::int64_t sum) { return sum >= search.tasks; });
}

// Each by itself: the room that is left for it now.
bool Engine::State::MoveTrial::later_jobs_fit(Trial& trial, std::size_t from) const {
    for (std::size_t at = from; at < trial.plan.moves.size(); ++at) {
        const JobRec& rec = state.jobs[trial.plan.moves[at].job];
        std::int64_t room = 0;
        for (NodeNo node = 0; node < trial.fleet.nodes() && room < rec.placed; ++node) {
            --trial.looks;
            room += trial.fleet.capacity(node, rec.job.shape, rec.job.tenant);
        }
        if (room < rec.placed) return false;
    }
    return true;
}

bool Engine::State::MoveTrial::place_job(Trial& trial, std::size_t at) {
    if (at == trial.plan.moves.size()) return closes_no_more(trial.fleet, trial.scattered) && place_claimant(trial);
    if (at > 0 && !trial.failed.insert(mixed(trial.signature, at)).second) return false;
    const Relocation& moved = trial.plan.moves[at];
    const Job& job = state.jobs[moved.job].job;
    Placing placing{.at = at, .taken = {}, .room = std::vector<std::int64_t>(trial.fleet.nodes() + 1), .twin = {}};
    for (NodeNo node = static_cast<NodeNo>(trial.fleet.nodes()); node-- > 0;)
        placing.room[node] = placing.room[node + 1] + trial.fleet.capacity(node, job.shape, job.tenant);
    trial.looks -= static_cast<std::int64_t>(trial.fleet.nodes());
    return placing.room[0] >= state.jobs[moved.job].placed && later_jobs_fit(trial, at + 1) &&
           place_task(trial, placing);
}

bool Engine::State::MoveTrial::place_task(Trial& trial, Placing& placing) {
    Relocation& moved = trial.plan.moves[placing.at];
    const JobRec& rec = state.jobs[moved.job];
    FleetIndex& around = trial.fleet;
    std::vector<SeatNo>& taken = placing.taken;
    if (std::ssize(taken) == rec.placed) {
        if (!keeps_groups(around, rec.job, taken)) return false;
        moved.to.clear();
        const std::uint64_t before = trial.signature;
        for (const SeatNo seat : taken) {
            moved.to.push_back(around.described(seat));
            const SeatRec& its = around.seat(seat);
            // A sum: it does not matter which of two equal jobs is where.
            trial.signature += mixed(mixed(mixed(mixed(1, its.gpus), its.node), its.shape),
                                     std::uint64_t{its.tenant} << 16 | std::uint64_t{its.start} << 8 | its.profile);
        }
        const bool done = place_job(trial, placing.at + 1);
        trial.signature = before;
        return done;
    }
    const std::int64_t left = rec.placed - std::ssize(taken);
    const NodeNo first = taken.empty() ? 0 : around.seat(taken.back()).node;
    const bool is_share = around.whole_gpus(rec.job.shape) == 0;
    for (NodeNo node = first; node < around.nodes(); ++node) {
        const bool goes_on = !taken.empty() && node == first;
        if (!goes_on && placing.room[node] < left) break;  // no later node has more
        if (!taken.empty() && around.domain_of(node, rec.job.within) != around.domain_of(first, rec.job.within))
            continue;
        if (const NodeNo twin = trial.twins[node]; twin != node && around.first_seat(twin) == nil) continue;
        std::vector<std::int8_t> before;
        if (!goes_on) {
            before = std::move(placing.twin);
            placing.twin = is_share ? twins_on(trial, node) : std::vector<std::int8_t>{};
        }
        const auto here = [&](int gpu) {
            return std::ranges::count_if(taken, [&](SeatNo seat) {
                return around.seat(seat).node == node && std::countr_zero(around.seat(seat).gpus) == gpu;
            });
        };
        bool done = false;
        for (const FleetIndex::Choice& choice : around.choices(node, rec.job.shape, rec.job.tenant)) {
            if (is_share) {
                if (goes_on && choice.gpu < std::countr_zero(around.seat(taken.back()).gpus)) continue;
                // Of GPUs that are alike the first has the most tasks.
                const int twin = choice.gpu < placing.twin.size() ? placing.twin[choice.gpu] : -1;
                if (twin >= 0 && here(choice.gpu) >= here(twin)) continue;
            }
            if ((trial.looks -= task_costs) <= 0) {
                search.spent = true;
                break;
            }
            const std::int32_t room_before = trial.room[node];
            taken.push_back(around.take(node, rec.job, moved.job, choice));
            look_again_around(trial, node);
            done = may_still_fit(trial) && place_task(trial, placing);
            around.release(taken.back(), true);
            taken.pop_back();
            if (around.shares_fabric(node)) {
                look_again_around(trial, node);
            } else {
                trial.sums[around.domain_of(node, search.job.within)] += room_before - trial.room[node];
                trial.room[node] = room_before;
            }
            if (done) break;
        }
        if (!goes_on) placing.twin = std::move(before);
        if (done) return true;
        if (trial.looks <= 0) return false;
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
    if (looks <= 0) {
        search.spent = true;
        return false;
    }
    if (!base) {
        base = state.fleet;
        base->forget_rankings();
        base->remember_hosts(false);
        twins = twin_nodes();
        count_cores();
    }
    if (!has_cores(plan)) return false;
    looks -= copy_costs + 4 * static_cast<std::int64_t>(state.fleet.nodes());
    // The largest first: they have the fewest places.
    std::ranges::stable_sort(plan.moves, std::ranges::greater{}, [&](const Relocation& moved) {
        const JobRec& rec = state.jobs[moved.job];
        return std::pair{state.fleet.whole_gpus(rec.job.shape), rec.holds()};
    });
    Trial trial{.fleet = *base, .plan = plan, .scattered = scattered, .looks = looks, .twins = twins};
    trial.leaves.resize(state.fleet.seats());
    for (const JobNo victim : plan.victims)
        for (SeatNo seat = state.jobs[victim].seats; seat != nil; seat = state.fleet.seat(seat).next_of_job)
            trial.leaves[seat] = true;
    for (const Shrink& shrink : plan.shrinks)
        for (const SeatNo seat : shrink.seats) trial.leaves[seat] = true;
    for (const Relocation& moved : plan.moves)
        for (SeatNo seat = state.jobs[moved.job].seats; seat != nil; seat = state.fleet.seat(seat).next_of_job)
            trial.fleet.release(seat, !state.settings.wipes);
    trial.room.resize(state.fleet.nodes());
    trial.sums.resize(state.fleet.domain_count(search.job.within));
    for (NodeNo node = 0; node < state.fleet.nodes(); ++node) look_again(trial, node);
    return may_still_fit(trial) && place_job(trial, 0);
}

}  // namespace bulkhead::sched
