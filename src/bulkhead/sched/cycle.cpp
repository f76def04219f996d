// One cycle: limits first, then guarantee claims, then all other work in its turn, then growth into what is left.
#include <algorithm>
#include <unordered_map>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

using Phase = JobRec::Phase;

namespace {

constexpr int searches_in_a_cycle = 24;    // searches of the fleet for victims, up to four for one claimant
constexpr int backfills_in_a_cycle = 256;  // tries of jobs like one that found no room in this cycle

}  // namespace

struct Engine::State::Round {
    int disturbed = 0;  // claimants that others were disturbed for
    int reserved = 0, guaranteed = 0;
    int backfills = backfills_in_a_cycle;
    bool others_wait = false;    // a job within its due did not start
    std::vector<JobNo> waiting;  // in the order in which they were looked at
};

std::uint64_t Engine::State::signature(const Job& job) const {
    std::uint64_t hash = 0x2545F4914F6CDD1Du;
    const auto add = [&](std::uint64_t word) {
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 31;
    };
    add(std::uint64_t{job.shape} << 32 | job.tenant);
    add(static_cast<std::uint64_t>(job.tasks) << 32 | static_cast<std::uint32_t>(job.least));
    add(static_cast<std::uint64_t>(job.within) << 40 | static_cast<std::uint64_t>(job.group_within) << 32 |
        static_cast<std::uint32_t>(job.group));
    add(static_cast<std::uint64_t>(job.priority) << 1 | (job.preemptible ? 1u : 0u));
    return hash;
}

// A gang below its minimum does no work and holds GPUs.
void Engine::State::clear_stale(Statement& statement, Instant now) {
    for (std::size_t i = 0; i < running.size(); ++i) {
        JobRec& rec = jobs[running[i]];
        if (rec.phase != Phase::running || rec.placed >= rec.fewest()) continue;
        if (now - rec.started < settings.stale_grace) continue;
        Eviction eviction{.workload = rec.job.key, .action = Action::stale};
        eviction.tasks = rec.placed;
        eviction.reasons.push_back(
            {"evict.stale", {{"tasks", std::int64_t{rec.placed}}, {"least", std::int64_t{rec.fewest()}}}});
        for (SeatNo seat = rec.seats; seat != nil; seat = fleet.seat(seat).next_of_job)
            eviction.nodes.push_back(fleet.seat(seat).node);
        set_ending(running[i]);
        statement.evict.push_back(std::move(eviction));
    }
}

void Engine::State::serve(JobNo job, bool guaranteed, Round& served, Statement& statement, Instant now) {
    const RoomClaim* claim = claim_of(job);
    if (claim != nullptr && claim->freed_for_it) return;
    const JobRec& rec = jobs[job];
    const std::uint64_t its_signature = signature(rec.job);
    if (failed.contains(its_signature)) {
        // A job like it found no room, but this one may be short enough for room that is reserved.
        if (claim == nullptr && !guaranteed && served.backfills-- > 0 && within_quota(rec.job, rec.fewest()))
            backfill(job, now, statement);
        return;
    }
    if (claim != nullptr) expect(*claim, false);
    const bool over = !within_quota(rec.job, rec.fewest());
    if (claim != nullptr) expect(*claim, true);
    if (guaranteed) {
        serve_guaranteed(job, over, served, statement, now);
    } else {
        Binding binding;
        if (!over && claim == nullptr) {
            if (place(job, now, &binding) || (deserves(job) && drop_undeserved_claims() && place(job, now, &binding))) {
                binding.backfilled = served.others_wait;
                statement.bind.push_back(std::move(binding));
                return;
            }
            if (backfill(job, now, statement)) return;
        }
        if (make_room(job, over, served, statement, now)) return;
        if (!over && rec.grows == nil && fits_due(job)) {
            served.others_wait = true;
            if (claim_of(job) == nullptr && served.reserved < settings.reservations && reserve(job, now))
                ++served.reserved;
        }
    }
    if (jobs[job].phase == Phase::pending && claim_of(job) == nullptr) failed.insert(its_signature);
}

// Room that is kept for lesser claims counts as free for it.
void Engine::State::serve_guaranteed(JobNo job, bool over, Round& served, Statement& statement, Instant now) {
    Binding binding;
    const bool had = claim_of(job) != nullptr;
    const auto start_now = [&] {
        if (over || had || !place(job, now, &binding)) return false;
        statement.bind.push_back(std::move(binding));
        return true;
    };
    if (start_now()) return;
    const std::vector<LiftedClaim> lesser = lift_lesser_claims(job);
    const bool starts = !lesser.empty() && start_now();
    if (!starts && !make_room(job, over, served, statement, now)) {
        const bool may_reserve = had || served.guaranteed < settings.guaranteed_reservations;
        if (may_reserve && !restarts(job) && reserve_guaranteed(job, now) && !had) ++served.guaranteed;
    }
    lower_lesser_claims(lesser);
}

// Others are disturbed for it, within the budgets of a cycle.
bool Engine::State::make_room(JobNo job, bool over, Round& served, Statement& statement, Instant now) {
    const JobRec& rec = jobs[job];
    // A gang that has just given up a task does not take one from others before something else changes.
    const bool may_disturb = rec.grows == nil || jobs[rec.grows].shrunk_in != generation;
    if (!may_disturb || served.disturbed >= settings.disruptions || rec.searched_in >= round) return false;
    if (searches >= searches_in_a_cycle) {
        statement.unfinished = true;
        return false;
    }
    if (!disturb(job, now, over, statement)) {
        jobs[job].searched_in = cycles;
        return false;
    }
    ++served.disturbed;
    failed.clear();
    return true;
}

// A gang that has to start again to grow: all tasks that it deserves, or half of them, or the fewest worth a restart.
void Engine::State::serve_growth(JobNo record, bool guaranteed, Round& served, Statement& statement, Instant now) {
    const JobNo gang = jobs[record].grows;
    if (jobs[gang].shrunk_in == generation || jobs[gang].evicted_in == generation) return;
    std::int32_t tasks = deserved_growth(record, guaranteed);
    if (tasks == 0) return;
    // Where the due goes further than the guarantee, the gang grows once, and not once for each of them.
    if (guaranteed && tasks < deserved_growth(record, false)) return;
    if (guaranteed) jobs[record].served_in = cycles;
    const std::int32_t fewest = jobs[gang].job.grow_by;
    for (const std::int32_t next : {tasks, std::max(tasks / 2, fewest), fewest}) {
        if (next > tasks) break;
        size_growth(gang, next);
        jobs[record].searched_in = jobs[gang].searched_in;
        serve(record, guaranteed, served, statement, now);
        if (jobs[gang].growth != record || claim_of(record) != nullptr) return;
        tasks = next - 1;
    }
    jobs[gang].searched_in = jobs[record].searched_in;
}

void Engine::State::serve_in_turn(bool guarantees, Round& served, Statement& statement, Instant now) {
    line_up(now, guarantees);
    while (const auto next = next_in_turn()) {
        const JobNo job = *next;
        if (jobs[job].phase != Phase::pending) continue;
        if (restarts(job) && claim_of(job) == nullptr) {
            serve_growth(job, guarantees, served, statement, now);
            continue;
        }
        // Jobs served before it may have used up the guarantee, or the due that lets a gang grow.
        if (guarantees ? !may_be_guaranteed(job) || !claims_guarantee(job) : jobs[job].grows != nil && !deserves(job))
            continue;
        jobs[job].served_in = cycles;
        served.waiting.push_back(job);
        serve(job, guarantees, served, statement, now);
    }
}

// Why each job that was looked at waits. What stands in the way of one job stands in that of all jobs like it.
void Engine::State::tell_waiting(const Round& served, Statement& statement, Instant now) {
    std::unordered_map<std::uint64_t, std::size_t> told;
    for (const JobNo job : served.waiting) {
        const JobRec& rec = jobs[job];
        if (rec.phase != Phase::pending || rec.grows != nil) continue;
        const bool alone = claim_of(job) != nullptr || rec.job.deadline.has_value();
        const auto [known, fresh] = told.try_emplace(signature(rec.job), statement.waiting.size());
        if (fresh || alone) {
            statement.waiting.push_back(why(job, now));
        } else {
            Waiting copy = statement.waiting[known->second];
            copy.workload = rec.job.key;
            statement.waiting.push_back(std::move(copy));
        }
        if (alone) told.erase(known);
        const std::vector<Reason>& reasons = statement.waiting.back().reasons;
        if (std::ranges::find(reasons, "wait.reboot", &Reason::code) != reasons.end() &&
            within_quota(rec.job, rec.fewest()) && claim_of(job) == nullptr)
            want_reboots(statement, job);
    }
    // Hosts of room that is kept: of claims that this cycle made, too.
    for (const RoomClaim& claim : claims)
        for (const SeatNo seat : claim.seats)
            if (const NodeNo node = fleet.seat(seat).node;
                fleet.awaits_reboot(seat) && std::ranges::find(statement.reboot, node) == statement.reboot.end())
                statement.reboot.push_back(node);
}

Statement Engine::cycle(Instant now) {
    State& state = *state_;
    Statement statement;
    state.deciding = true;
    state.age(now);
    state.clear_stale(statement, now);
    state.refresh_mix();
    state.enforce_limits(statement, now);
    state.divide_now();
    state.failed.clear();
    state.searches = state.future_searches = 0;
    state.raise_growth();
    state.settle_claims(statement, now, true);
    State::Round round;
    for (const RoomClaim& claim : state.claims) {
        round.guaranteed += claim.guaranteed && !claim.freed_for_it ? 1 : 0;
        round.reserved += claim.firm() ? 0 : 1;
    }
    state.serve_in_turn(true, round, statement, now);
    state.settle_claims(statement, now, false);
    state.serve_in_turn(false, round, statement, now);
    if (state.settings.grow) state.grow(statement, now);
    state.tell_waiting(round, statement, now);
    state.spare_jobs.insert(state.spare_jobs.end(), state.retired.begin(), state.retired.end());
    state.retired.clear();
    // Claimants that the budget left out come first in the next cycle; when none was left out, all may be searched for.
    ++state.cycles;
    if (!statement.unfinished) state.round = state.cycles;
    state.deciding = false;
    return statement;
}

// Hosts are rebooted for a waiting job only if it could start then.
void Engine::State::want_reboots(Statement& statement, JobNo job) const {
    const JobRec& rec = jobs[job];
    std::vector<NodeNo> empty;
    for (NodeNo node = 0; node < fleet.nodes(); ++node)
        if (fleet.wants_reboot(node, rec.job.shape, rec.job.tenant)) empty.push_back(node);
    if (empty.empty()) return;
    FleetIndex::Supposed supposed;
    const auto takes = [&](NodeNo node) {
        const auto left = [](const SeatRec& seat) { return seat.ending; };
        return static_cast<std::int32_t>(
            fleet.room_comes(node) ? fleet.capacity_without(supposed, node, rec.job.shape, rec.job.tenant, left)
                                   : fleet.capacity(node, rec.job.shape, rec.job.tenant));
    };
    std::vector<FleetIndex::Portion> where;
    if (rec.fewest() == 1) {
        const auto found = std::ranges::find_if(empty, [&](NodeNo node) { return takes(node) > 0; });
        if (found != empty.end()) where.push_back({*found, 1});
    } else {
        std::vector<std::vector<FleetIndex::Portion>> bins(fleet.domain_count(rec.job.within));
        for (NodeNo node = 0; node < fleet.nodes(); ++node)
            if (const std::int32_t tasks = takes(node); tasks > 0)
                bins[fleet.domain_of(node, rec.job.within)].push_back({node, tasks});
        for (std::size_t i = 0; i < bins.size() && where.empty(); ++i)
            where = fleet.arrange(rec.job, rec.fewest(), bins[i]);
    }
    for (const FleetIndex::Portion& portion : where)
        if (std::ranges::find(empty, portion.node) != empty.end() &&
            std::ranges::find(statement.reboot, portion.node) == statement.reboot.end())
            statement.reboot.push_back(portion.node);
}

}  // namespace bulkhead::sched
