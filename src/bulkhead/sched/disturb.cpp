// Making room for a job whose turn it is: the plan that plan_search.hpp finds is carried out. Spare tasks go at once,
// jobs move at once, whole jobs are asked to leave, and the room is kept for the claimant.
#include <algorithm>
#include <limits>

#include "bulkhead/sched/plan_search.hpp"

namespace bulkhead::sched {

using Phase = JobRec::Phase;

namespace {

constexpr int targets_tried = 3;  // nodes for which a consolidation is tried out

bool same_places(const Binding& a, const Binding& b) {
    return std::ranges::equal(a.tasks, b.tasks, [](const TaskSeat& x, const TaskSeat& y) {
        return x.node == y.node && x.gpus == y.gpus &&
               std::ranges::equal(x.seats, y.seats,
                                  [](const Seat& s, const Seat& t) { return s.start == t.start && s.size == t.size; });
    });
}

}  // namespace

void Engine::State::shrink(JobNo claimant, const Shrink& shrink, Statement& statement) {
    JobRec& rec = jobs[shrink.job];
    const Job& job = jobs[claimant].job;
    Eviction eviction{.workload = rec.job.key,
                      .action = rec.job.tenant == job.tenant ? Action::preempt : Action::reclaim,
                      .claimant = job.key,
                      .tasks = std::ssize(shrink.seats),
                      .whole = false};
    eviction.reasons.push_back(
        {"evict.surplus", {{"tasks", std::int64_t{rec.placed}}, {"least", std::int64_t{rec.job.least}}}});
    for (const SeatNo seat : shrink.seats) {
        eviction.nodes.push_back(fleet.seat(seat).node);
        give_up(shrink.job, seat);
    }
    std::ranges::sort(eviction.nodes);
    const auto duplicates = std::ranges::unique(eviction.nodes);
    eviction.nodes.erase(duplicates.begin(), duplicates.end());
    statement.evict.push_back(std::move(eviction));
}

void Engine::State::lift_job(JobNo job, bool clean) {
    for (SeatNo seat = jobs[job].seats; seat != nil;) {
        const SeatNo next = fleet.seat(seat).next_of_job;
        fleet.release(seat, clean);
        seat = next;
    }
    jobs[job].seats = nil;
    jobs[job].placed = 0;
}

void Engine::State::say_moved(JobNo job, JobNo claimant, const Binding& from, Binding to, Instant now,
                              Statement& statement) {
    if (same_places(from, to)) return;
    jobs[job].moved_in = generation;
    jobs[job].moved_at = cycles;
    jobs[job].started = now;  // it begins again from its last checkpoint
    Move move{.workload = jobs[job].job.key, .claimant = jobs[claimant].job.key, .from = {}, .to = {}};
    for (const TaskSeat& task : from.tasks) {
        move.from.push_back(task.node);
        // What it leaves must be wiped first.
        if (settings.wipes)
            for (std::size_t i = 0; i < task.gpus.size(); ++i)
                fleet.soil(task.node, task.gpus[i], gpu::Placement{task.seats[i].start, task.seats[i].size}.mask());
    }
    move.to = std::move(to.tasks);
    statement.move.push_back(std::move(move));
}

// The jobs that a plan moves go where it says: the trial has shown that they fit.
void Engine::State::relocate(JobNo claimant, const Plan& plan, Instant now, Statement& statement) {
    std::vector<Binding> before;
    before.reserve(plan.moves.size());
    for (const Relocation& moved : plan.moves) before.push_back(described(moved.job));
    for (const Relocation& moved : plan.moves) lift_job(moved.job, !settings.wipes);
    for (const Relocation& moved : plan.moves)
        for (const TaskSeat& task : moved.to) seat(moved.job, fleet.take_exactly(task, jobs[moved.job].job, moved.job));
    for (std::size_t i = 0; i < plan.moves.size(); ++i)
        say_moved(plan.moves[i].job, claimant, before[i], described(plan.moves[i].job), now, statement);
}

void Engine::State::carry_out(JobNo number, const Plan& plan, Law law, Instant now, Statement& statement) {
    const Job& job = jobs[number].job;
    gone.assign(jobs.size(), false);
    for (const JobNo victim : plan.victims) gone[victim] = true;
    if (!plan.moves.empty()) relocate(number, plan, now, statement);
    for (const Shrink& each : plan.shrinks) shrink(number, each, statement);
    if (plan.victims.empty() && plan.shrinks.empty() && !plan.moves.empty()) {
        Binding binding;
        if (place(number, now, &binding))
            statement.bind.push_back(std::move(binding));
        else
            keep_room(number, plan.where, now, true);
        return;
    }
    keep_room(number, plan.where, now, true);
    for (const JobNo victim : plan.victims) {
        JobRec& rec = jobs[victim];
        const Action action = law == Law::priority ? Action::preempt : Action::reclaim;
        Eviction eviction{.workload = rec.job.key, .action = action, .claimant = job.key};
        eviction.tasks = rec.placed;
        eviction.lost_gpu_ms = lost_by(rec, now);
        const TenantRec& tenant = tenants[rec.job.tenant];
        switch (law) {
            case Law::guarantee:
                eviction.reasons.push_back({"evict.guarantee",
                                            {{"held", print(counted_gpus(tenant.held))},
                                             {"guarantee", print(counted_gpus(tenant.guarantee))}}});
                break;
            case Law::share:
                eviction.reasons.push_back(
                    {"evict.reclaim",
                     {{"held", print(counted_gpus(tenant.held))}, {"due", print(counted_gpus(tenant.due))}}});
                break;
            case Law::priority:
                eviction.reasons.push_back(
                    {"evict.preempt", {{"own", rec.job.priority}, {"priority", urgency(job, now)}}});
                break;
        }
        if (plan.budget_spent) eviction.reasons.push_back({"evict.budget", {}});
        for (SeatNo seat = rec.seats; seat != nil; seat = fleet.seat(seat).next_of_job)
            eviction.nodes.push_back(fleet.seat(seat).node);
        std::ranges::sort(eviction.nodes);
        const auto duplicates = std::ranges::unique(eviction.nodes);
        eviction.nodes.erase(duplicates.begin(), duplicates.end());
        set_ending(victim);
        rec.evicted_in = generation;
        statement.evict.push_back(std::move(eviction));
    }
}

// Moves in fleets that are too large to try every combination: all on one node (or on the nodes of one domain) that
// may move, out; the claimant in; the others in again elsewhere, or all as it was.
bool Engine::State::consolidate(JobNo number, Instant now, std::int64_t most_lost, Statement& statement) {
    const JobRec& rec = jobs[number];
    if (settings.moves == 0 || fleet.free_units() < rec.job.counted(rec.fewest())) return false;
    std::vector<NodeNo> avoid;
    for (int attempt = 0; attempt < targets_tried; ++attempt) {
        const Law law = is_guarantee_claim(number) ? Law::guarantee : Law::share;
        auto plan = find_plan(number, law, now, {.inside = {}, .avoid = avoid, .moving = true});
        if (!plan || std::ssize(plan->victims) > settings.moves || plan->cost.lost > most_lost) return false;
        struct Moved {
            JobNo job = nil;
            Binding from, to;
        };
        std::vector<Moved> moved;
        for (const JobNo victim : plan->victims) {
            moved.push_back({victim, described(victim), {}});
            lift_job(victim, true);
        }
        // Kept for the claimant, not taken: part of it may be of those who are on their way out.
        std::vector<SeatNo> held;
        const auto left = [](const SeatRec& seat) { return seat.ending; };
        for (const FleetIndex::Portion& portion : plan->where) fleet.promise(portion, rec.job, number, left, held);
        bool all = true;
        for (Moved& each : moved) {
            const auto where = find_room(each.job, static_cast<std::int32_t>(std::ssize(each.from.tasks)));
            if (where.empty()) {
                all = false;
                break;
            }
            for (const FleetIndex::Portion& portion : where)
                for (std::int32_t i = 0; i < portion.tasks; ++i)
                    seat(each.job, fleet.take(portion.node, jobs[each.job].job, each.job));
            each.to = described(each.job);
        }
        for (const SeatNo seat : held) fleet.release(seat, true);
        if (!all) {
            for (const Moved& each : moved) lift_job(each.job, true);
            for (const Moved& each : moved)
                for (const TaskSeat& task : each.from.tasks)
                    seat(each.job, fleet.take_exactly(task, jobs[each.job].job, each.job));
            for (const FleetIndex::Portion& portion : plan->where) avoid.push_back(portion.node);
            continue;
        }
        for (Moved& each : moved) say_moved(each.job, number, each.from, std::move(each.to), now, statement);
        Binding binding;
        gone.assign(jobs.size(), false);
        if (place(number, now, &binding))
            statement.bind.push_back(std::move(binding));
        else
            keep_room(number, plan->where, now, true);
        return true;
    }
    return false;
}

bool Engine::State::disturb(JobNo number, Instant now, bool over, Statement& statement) {
    if (jobs[number].tried_in == generation) return false;
    const Job& job = jobs[number].job;
    // Room that was only kept for it does not stand in its own way.
    std::vector<SeatRec> lifted;
    const bool waits_already = claim_of(number) != nullptr;
    if (waits_already) {
        lifted = lift(*claim_of(number));
        expect(*claim_of(number), false);
    }
    const auto done = [&](bool helped) {
        if (!waits_already) return helped;
        if (helped) {
            const auto before = std::ranges::find(claims, number, &RoomClaim::job);
            claims.erase(before);  // the first is the older one; what was kept then is kept anew, or used
        } else {
            lower(*claim_of(number), lifted);
            expect(*claim_of(number), true);
        }
        return helped;
    };
    // In a large fleet only those can help against a limit who count against it too.
    std::optional<TenantNo> inside;
    if (over && !lists_candidates()) inside = limited_by(job, jobs[number].fewest());
    const std::vector<NodeNo> outside = out_of_reach(number);
    const bool grows = jobs[number].grows != nil;  // it may reclaim what its tenant is owed, and disturbs no others
    for (const Law law : {Law::guarantee, Law::share, Law::priority}) {
        if (grows && law == Law::priority) break;
        auto plan = find_plan(number, law, now, {.inside = inside, .avoid = outside});
        const bool looks_for_moves = law != Law::priority && !over && !grows && !lists_candidates() && deserves(number);
        if (looks_for_moves && (!plan || plan->kind >= PlanKind::spares) &&
            consolidate(number, now, plan ? plan->cost.lost : std::numeric_limits<std::int64_t>::max(), statement))
            return done(true);
        // A gang that runs already does not take another tenant below its guarantee or its due.
        if (!plan || (plan->kind == PlanKind::harsh && restarts(number))) continue;
        carry_out(number, *plan, law, now, statement);
        return done(true);
    }
    return done(false);
}

}  // namespace bulkhead::sched
