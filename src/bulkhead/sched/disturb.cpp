// Making room for a job whose turn it is, the least disturbing way first: move others, take what elastic gangs have
// beyond their minimum, reclaim, preempt. Who goes is found in victims.cpp.
#include <algorithm>

#include "bulkhead/sched/engine_state.hpp"

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

// Elastic gangs give what they have beyond their minimum before any gang ends.
bool Engine::State::shrink(JobNo number, Instant now, Statement& statement) {
    const Job& job = jobs[number].job;
    if (jobs[number].fewest() != 1) return false;
    mark_takeable(job, Action::reclaim, true);
    const std::int64_t gpus = fleet.whole_gpus(job.shape);
    std::optional<std::pair<NodeNo, std::vector<SeatNo>>> best;
    FleetIndex::Supposed supposed;
    std::vector<SeatNo> here;
    for (NodeNo node = 0; node < fleet.nodes(); ++node) {
        if (fleet.first_seat(node) == nil || !fleet.able(node, job.shape)) continue;
        here.clear();
        std::int64_t touched = fleet.whole(node);
        for (SeatNo s = fleet.first_seat(node); s != nil; s = fleet.seat(s).next_here) {
            const SeatRec& seat = fleet.seat(s);
            if (seat.job == nil || seat.pinned || seat.ending || seat.promised) continue;
            const JobRec& rec = jobs[seat.job];
            const bool own = seat.tenant == job.tenant && urgency(rec.job, now) < urgency(job, now);
            if ((takeable[seat.tenant] == 0 && !own) || rec.phase != Phase::running || rec.job.least == 0) continue;
            if (rec.evicted_in == generation || rec.started_in == cycles) continue;
            const Action action = own ? Action::preempt : Action::reclaim;
            if (now - rec.started < least_run(seat.tenant, job.tenant, action)) continue;
            std::int64_t chosen = 0;
            for (const SeatNo other : here) chosen += fleet.seat(other).job == seat.job ? 1 : 0;
            if (rec.placed - chosen <= rec.job.least) continue;
            if (!own && rec.job.counted(chosen + 1) > takeable[seat.tenant]) continue;
            here.push_back(s);
            touched += std::popcount(seat.gpus);
        }
        if (here.empty() || touched < gpus) continue;
        const auto fits = [&] {
            fleet.suppose(supposed, node, [&](const SeatRec& seat) {
                return std::ranges::any_of(here, [&](SeatNo s) { return s != nil && &fleet.seat(s) == &seat; });
            });
            return fleet.capacity(supposed.view, node, job.shape, job.tenant) > 0;
        };
        if (!fits()) continue;
        for (SeatNo& s : here) {
            const SeatNo kept = s;
            s = nil;
            if (!fits()) s = kept;
        }
        std::erase(here, nil);
        if (!best || here.size() < best->second.size()) best = {node, here};
        if (best->second.size() == 1) break;
    }
    if (!best) return false;
    for (const SeatNo seat : best->second) {
        const JobNo victim = fleet.seat(seat).job;
        JobRec& rec = jobs[victim];
        Eviction eviction{.workload = rec.job.key,
                          .action = rec.job.tenant == job.tenant ? Action::preempt : Action::reclaim,
                          .claimant = job.key,
                          .tasks = 1,
                          .whole = false};
        eviction.nodes.push_back(best->first);
        eviction.reasons.push_back(
            {"evict.surplus", {{"tasks", std::int64_t{rec.placed}}, {"least", std::int64_t{rec.job.least}}}});
        statement.evict.push_back(std::move(eviction));
        give_up(victim, seat);
    }
    const FleetIndex::Portion where{best->first, 1};
    gone.assign(jobs.size(), false);
    keep_room(number, {&where, 1}, now, true);
    return true;
}

bool Engine::State::consolidate(JobNo number, Instant now, Statement& statement) {
    const JobRec& rec = jobs[number];
    if (settings.moves == 0 || fleet.free_units() < rec.job.counted(rec.fewest())) return false;
    std::vector<NodeNo> avoid;
    for (int attempt = 0; attempt < targets_tried; ++attempt) {
        auto plan = find_victims(number, Action::consolidate, now, false, avoid);
        if (!plan || std::ssize(plan->victims) > settings.moves) return false;
        // Try it: everybody out, the claimant in, everybody in again somewhere else; or all as it was.
        struct Moved {
            JobNo job = nil;
            Binding from, to;
        };
        std::vector<Moved> moved;
        for (const JobNo victim : plan->victims) {
            moved.push_back({victim, described(victim), {}});
            for (SeatNo seat = jobs[victim].seats; seat != nil;) {
                const SeatNo next = fleet.seat(seat).next_of_job;
                fleet.release(seat, true);
                seat = next;
            }
            jobs[victim].seats = nil;
            jobs[victim].placed = 0;
        }
        // Kept for it, not taken: part of it may be of those who are on their way out.
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
            for (Moved& each : moved) {
                for (SeatNo seat = jobs[each.job].seats; seat != nil;) {
                    const SeatNo next = fleet.seat(seat).next_of_job;
                    fleet.release(seat, true);
                    seat = next;
                }
                jobs[each.job].seats = nil;
                jobs[each.job].placed = 0;
            }
            for (const Moved& each : moved)
                for (const TaskSeat& task : each.from.tasks)
                    seat(each.job, fleet.take_exactly(task, jobs[each.job].job, each.job));
            for (const FleetIndex::Portion& portion : plan->where) avoid.push_back(portion.node);
            continue;
        }
        for (Moved& each : moved) {
            if (same_places(each.from, each.to)) continue;
            jobs[each.job].evicted_in = generation;
            jobs[each.job].started = now;  // it begins again from its last checkpoint
            Move move{.workload = jobs[each.job].job.key, .claimant = rec.job.key, .from = {}, .to = {}};
            for (const TaskSeat& task : each.from.tasks) {
                move.from.push_back(task.node);
                // What it leaves must be wiped first.
                if (settings.wipes)
                    for (std::size_t i = 0; i < task.gpus.size(); ++i)
                        fleet.soil(task.node, task.gpus[i],
                                   gpu::Placement{task.seats[i].start, task.seats[i].size}.mask());
            }
            move.to = std::move(each.to.tasks);
            statement.move.push_back(std::move(move));
        }
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
    const bool grows = jobs[number].grows != nil;  // it may reclaim what its tenant is owed, and disturbs no others
    if (!over && !grows && deserves(number) && consolidate(number, now, statement)) return done(true);
    if (!over && shrink(number, now, statement)) return done(true);
    struct Way {
        Action action;
        bool gently;
    };
    // A quarrel within a limit is settled within it: only those can help who count against it too.
    std::optional<TenantNo> inside;
    if (over) inside = limited_by(job, jobs[number].fewest());
    for (const auto [action, gently] :
         {Way{Action::reclaim, true}, Way{Action::reclaim, false}, Way{Action::preempt, false}}) {
        if (over && action != Action::preempt && inside == job.tenant) continue;
        if (grows && action == Action::preempt) continue;
        const auto plan = find_victims(number, action, now, gently, {}, inside);
        if (!plan) continue;
        if (over) {  // once they have given up what they hold
            std::int64_t freed = 0;
            for (const JobNo victim : plan->victims) {
                freed += jobs[victim].holds();
                hold(victim, -jobs[victim].holds());
            }
            const bool enough = within_quota(job, jobs[number].fewest(), freed);
            for (const JobNo victim : plan->victims) hold(victim, jobs[victim].holds());
            if (!enough || plan->victims.empty()) continue;
        }
        gone.assign(jobs.size(), false);
        for (const JobNo victim : plan->victims) gone[victim] = true;
        keep_room(number, plan->where, now, true);
        for (const JobNo victim : plan->victims) {
            JobRec& rec = jobs[victim];
            Eviction eviction{.workload = rec.job.key, .action = action, .claimant = job.key};
            eviction.tasks = rec.placed;
            eviction.lost_gpu_ms = lost_by(rec, now);
            if (action == Action::reclaim)
                eviction.reasons.push_back({"evict.reclaim",
                                            {{"held", print(Gpus{tenants[rec.job.tenant].held})},
                                             {"due", print(Gpus{tenants[rec.job.tenant].due})}}});
            else
                eviction.reasons.push_back(
                    {"evict.preempt", {{"own", rec.job.priority}, {"priority", urgency(job, now)}}});
            if (plan->budget_spent) eviction.reasons.push_back({"evict.budget", {}});
            for (SeatNo seat = rec.seats; seat != nil; seat = fleet.seat(seat).next_of_job)
                eviction.nodes.push_back(fleet.seat(seat).node);
            std::ranges::sort(eviction.nodes);
            const auto duplicates = std::ranges::unique(eviction.nodes);
            eviction.nodes.erase(duplicates.begin(), duplicates.end());
            set_ending(victim);
            rec.evicted_in = generation;
            statement.evict.push_back(std::move(eviction));
        }
        return done(true);
    }
    return done(false);
}

}  // namespace bulkhead::sched
