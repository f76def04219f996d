// A limit, or the guarantee of a hard partition, that was lowered below what the tenant leases: preemptible work of the
// tenant and of all below it is evicted until they are within the limit again. Spare tasks of elastic gangs go first,
// then the work that loses least; minimum run times are kept. Work that may not be preempted stays, and is reported.
#include <algorithm>
#include <bit>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

using Phase = JobRec::Phase;

namespace {

constexpr std::size_t sets_tried_of = 12;  // jobs of which every set is tried; of more, a good set is enough

struct Leaver {
    JobNo job = nil;
    std::int64_t holds = 0, lost = 0, key = 0;
};

// The jobs that lose least together and hold at least so much; empty: all together do not.
std::vector<Leaver> cheapest(std::vector<Leaver> all, std::int64_t excess) {
    std::int64_t sum = 0;
    for (const Leaver& each : all) sum += each.holds;
    if (sum < excess) return {};
    if (all.size() <= sets_tried_of) {
        std::ranges::sort(all, {}, &Leaver::key);
        struct Price {
            std::int64_t lost = 0, holds = 0;
            int jobs = 0;
            auto operator<=>(const Price&) const = default;
        };
        unsigned best = (1u << all.size()) - 1;
        std::optional<Price> lowest;
        for (unsigned set = 1; set < 1u << all.size(); ++set) {
            Price price{.jobs = std::popcount(set)};
            for (std::size_t i = 0; i < all.size(); ++i)
                if ((set >> i & 1u) != 0) {
                    price.lost += all[i].lost;
                    price.holds += all[i].holds;
                }
            if (price.holds < excess || (lowest && !(price < *lowest))) continue;
            lowest = price;
            best = set;
        }
        std::vector<Leaver> out;
        for (std::size_t i = 0; i < all.size(); ++i)
            if ((best >> i & 1u) != 0) out.push_back(all[i]);
        return out;
    }
    // The least loss for each GPU first; then the dearest that is not needed stays after all.
    std::ranges::sort(all, [](const Leaver& a, const Leaver& b) {
        const Wide left = static_cast<Wide>(a.lost) * static_cast<Wide>(b.holds);
        const Wide right = static_cast<Wide>(b.lost) * static_cast<Wide>(a.holds);
        return left != right ? left < right : a.key < b.key;
    });
    std::vector<Leaver> out;
    std::int64_t taken = 0;
    for (const Leaver& each : all) {
        if (taken >= excess) break;
        out.push_back(each);
        taken += each.holds;
    }
    for (std::size_t i = out.size(); i-- > 0;)
        if (taken - out[i].holds >= excess) {
            taken -= out[i].holds;
            out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
        }
    return out;
}

}  // namespace

// The limited tenant's own work: its time before preemption. Work below it: the time before reclaim that is read one
// step below the limited tenant.
Duration Engine::State::least_run_under_limit(TenantNo victim, TenantNo limited) const {
    const std::vector<TenantNo>& line = tenants[victim].line;
    auto at = std::ranges::find(line, limited);
    if (at == line.begin()) {
        for (; at != line.end(); ++at)
            if (const auto own = tenants[*at].facts.preempt_after) return *own;
        return settings.preempt_after;
    }
    for (--at; at != line.end(); ++at)
        if (const auto own = tenants[*at].facts.reclaim_after) return *own;
    return settings.reclaim_after;
}

void Engine::State::give_up(JobNo job, SeatNo seat) {
    JobRec& rec = jobs[job];
    if (rec.seats == seat) {
        rec.seats = fleet.seat(seat).next_of_job;
    } else {
        SeatNo before = rec.seats;
        while (fleet.seat(before).next_of_job != seat) before = fleet.seat(before).next_of_job;
        fleet.seat(before).next_of_job = fleet.seat(seat).next_of_job;
    }
    fleet.release(seat, !settings.wipes);
    const std::int64_t before = rec.holds();
    --rec.placed;
    rec.shrunk_in = generation;
    tenants[rec.job.tenant].ended += before - rec.holds();
    hold(job, rec.holds() - before);
    dues_stale = true;
}

void Engine::State::bring_below(TenantNo limited, std::int64_t most, Statement& statement, Instant now) {
    const std::int64_t held = tenants[limited].has();
    std::int64_t excess = held - most;
    std::vector<Leaver> whole;
    std::vector<JobNo> elastic;
    for (const JobNo job : running) {
        const JobRec& rec = jobs[job];
        const std::vector<TenantNo>& line = tenants[rec.job.tenant].line;
        if (rec.phase != Phase::running || !rec.job.preemptible || rec.holds() == 0) continue;
        if (std::ranges::find(line, limited) == line.end()) continue;
        if (now - rec.started < least_run_under_limit(rec.job.tenant, limited)) continue;
        whole.push_back({job, rec.holds(), lost_by(rec, now), rec.job.key});
        if (rec.job.least > 0 && rec.job.group <= 1 && rec.placed > rec.job.least) elastic.push_back(job);
    }
    const auto reason = [&] {
        return Reason{"evict.limit", {{"held", print(Gpus{held})}, {"limit", print(Gpus{most})}}};
    };
    // As many spare tasks as are needed, if they are enough; else all of them, and whole jobs for the rest.
    std::ranges::sort(elastic, {}, [&](JobNo job) { return std::pair{lost_by(jobs[job], now), jobs[job].job.key}; });
    struct Spare {
        JobNo job = nil;
        std::int64_t tasks = 0, gpus = 0;
    };
    std::vector<Spare> spare;
    std::int64_t spared = 0;
    for (const JobNo job : elastic) {
        Spare each{job, 0, 0};
        const JobRec& rec = jobs[job];
        while (spared + each.gpus < excess && rec.placed - each.tasks > rec.job.least) {
            ++each.tasks;
            each.gpus = rec.holds() - rec.job.counted(rec.placed - each.tasks);
        }
        spared += each.gpus;
        if (each.tasks > 0) spare.push_back(each);
    }
    std::vector<Leaver> leave_whole;
    if (spared < excess) {
        for (Leaver& each : whole)
            if (const auto its = std::ranges::find(spare, each.job, &Spare::job); its != spare.end())
                each.holds -= its->gpus;
        leave_whole = cheapest(whole, excess - spared);
        if (leave_whole.empty()) leave_whole = whole;  // not enough, but all that may go
        std::int64_t taken = 0;
        for (const Leaver& each : leave_whole) taken += each.holds;
        // Whole jobs take their spare tasks along, and may make others' unnecessary.
        std::erase_if(spare, [&](const Spare& each) {
            if (std::ranges::find(leave_whole, each.job, &Leaver::job) != leave_whole.end()) return true;
            if (taken + spared - each.gpus < excess) return false;
            spared -= each.gpus;
            return true;
        });
    }
    for (const Spare& each : spare) {
        Eviction eviction{.workload = jobs[each.job].job.key,
                          .action = Action::limit,
                          .tasks = each.tasks,
                          .whole = false,
                          .nodes = {},
                          .reasons = {reason()}};
        for (std::int64_t i = 0; i < each.tasks; ++i) {
            eviction.nodes.push_back(fleet.seat(jobs[each.job].seats).node);
            give_up(each.job, jobs[each.job].seats);
        }
        statement.evict.push_back(std::move(eviction));
    }
    for (const Leaver& each : leave_whole) {
        JobRec& rec = jobs[each.job];
        Eviction eviction{.workload = rec.job.key,
                          .action = Action::limit,
                          .tasks = rec.placed,
                          .lost_gpu_ms = each.lost,
                          .nodes = {},
                          .reasons = {reason()}};
        for (SeatNo seat = rec.seats; seat != nil; seat = fleet.seat(seat).next_of_job)
            eviction.nodes.push_back(fleet.seat(seat).node);
        set_ending(each.job);
        rec.evicted_in = generation;
        statement.evict.push_back(std::move(eviction));
    }
    for (std::size_t i = statement.evict.size() - spare.size() - leave_whole.size(); i < statement.evict.size(); ++i) {
        std::vector<NodeNo>& nodes = statement.evict[i].nodes;
        std::ranges::sort(nodes);
        const auto twice = std::ranges::unique(nodes);
        nodes.erase(twice.begin(), twice.end());
    }
    excess = tenants[limited].has() - most;
    if (excess > 0)
        statement.over_limit.push_back({.tenant = limited,
                                        .held = Gpus{tenants[limited].has()},
                                        .limit = Gpus{most},
                                        .fixed = Gpus{tenants[limited].pinned}});
    dues_stale = true;
}

// Children before their parents: what they give up counts for those above them too.
void Engine::State::enforce_limits(Statement& statement, Instant now) {
    for (auto number = down.rbegin(); number != down.rend(); ++number)
        if (const auto most = tenants[*number].most(); most && tenants[*number].has() > *most)
            bring_below(*number, *most, statement, now);
}

}  // namespace bulkhead::sched
