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

// Elastic, with a seat for each task, and no group would be halved.
bool Engine::State::can_shrink(const JobRec& rec) const {
    if (rec.job.least == 0 || rec.placed <= rec.job.least || rec.job.group > 1) return false;
    std::int32_t seats = 0;
    for (SeatNo s = rec.seats; s != nil; s = fleet.seat(s).next_of_job) ++seats;
    return seats == rec.placed;
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
    const NodeNo node = fleet.seat(seat).node;
    fleet.release(seat, !settings.wipes);
    const std::int64_t before = rec.holds();
    --rec.placed;
    rec.shrunk_in = generation;
    tenants[rec.job.tenant].ended += before - rec.holds();
    hold(job, rec.holds() - before);
    dues_stale = true;
    recount_kept(node);
}

// What goes because of lowered limits. Planned for all limits before anything is carried out: what a child gives up may
// turn out to be unnecessary once its parent's limit takes more.
struct Engine::State::LimitPlan {
    struct Item {
        JobNo job = nil;
        std::int32_t tasks = 0;  // that go
        TenantNo limited = 0;    // whose limit asked for it first
    };
    std::vector<Item> items;
    std::vector<std::int64_t> gone;  // by tenant, with everyone below

    Item* of(JobNo job) {
        const auto found = std::ranges::find(items, job, &Item::job);
        return found == items.end() ? nullptr : &*found;
    }
    // So many tasks of the job go in all.
    void set(const State& state, JobNo job, std::int32_t tasks, TenantNo limited) {
        const JobRec& rec = state.jobs[job];
        Item* item = of(job);
        const std::int32_t before = item == nullptr ? 0 : item->tasks;
        if (item == nullptr)
            items.push_back({job, tasks, limited});
        else
            item->tasks = tasks;
        const std::int64_t more = rec.job.counted(rec.placed - before) - rec.job.counted(rec.placed - tasks);
        for (const TenantNo holder : state.tenants[rec.job.tenant].line) gone[holder] += more;
    }
};

void Engine::State::bring_below(TenantNo limited, std::int64_t most, LimitPlan& plan, Instant now) const {
    const std::int64_t excess = tenants[limited].has() - plan.gone[limited] - most;
    if (excess <= 0) return;
    std::vector<Leaver> whole;
    std::vector<JobNo> elastic;
    const auto stays = [&](JobNo job) {
        const LimitPlan::Item* item = plan.of(job);
        return jobs[job].placed - (item == nullptr ? 0 : item->tasks);
    };
    for (const JobNo job : running) {
        const JobRec& rec = jobs[job];
        const std::vector<TenantNo>& line = tenants[rec.job.tenant].line;
        const std::int32_t placed = stays(job);
        if (rec.phase != Phase::running || !rec.job.preemptible || rec.holds() == 0 || placed == 0) continue;
        if (std::ranges::find(line, limited) == line.end()) continue;
        if (now - rec.started < least_run_under_limit(rec.job.tenant, limited)) continue;
        whole.push_back({job, rec.job.counted(placed), lost_by(rec, now), rec.job.key});
        if (can_shrink(rec) && placed > rec.job.least) elastic.push_back(job);
    }
    // As many spare tasks as are needed, if they are enough; else all of them, and whole jobs for the rest.
    std::ranges::sort(elastic, {}, [&](JobNo job) { return std::pair{lost_by(jobs[job], now), jobs[job].job.key}; });
    struct Spare {
        JobNo job = nil;
        std::int32_t tasks = 0;
        std::int64_t gpus = 0;
    };
    std::vector<Spare> spare;
    std::int64_t spared = 0;
    for (const JobNo job : elastic) {
        Spare each{job, 0, 0};
        const JobRec& rec = jobs[job];
        const std::int32_t placed = stays(job);
        while (spared + each.gpus < excess && placed - each.tasks > rec.job.least) {
            ++each.tasks;
            each.gpus = rec.job.counted(placed) - rec.job.counted(placed - each.tasks);
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
    }
    for (const Spare& each : spare)
        plan.set(*this, each.job, jobs[each.job].placed - stays(each.job) + each.tasks, limited);
    for (const Leaver& each : leave_whole) plan.set(*this, each.job, jobs[each.job].placed, limited);
}

// What no limit needs stays after all: whole jobs first, those that lose most before the others.
void Engine::State::spare_needless(LimitPlan& plan, Instant now) const {
    const auto may_keep = [&](JobNo job, std::int64_t more) {
        return std::ranges::all_of(tenants[jobs[job].job.tenant].line, [&](TenantNo holder) {
            const auto most = tenants[holder].most();
            return !most || tenants[holder].has() - plan.gone[holder] + more <= *most;
        });
    };
    const auto is_whole = [&](const LimitPlan::Item& item) { return item.tasks == jobs[item.job].placed; };
    std::ranges::sort(plan.items, [&](const LimitPlan::Item& a, const LimitPlan::Item& b) {
        const auto order = [&](const LimitPlan::Item& item) {
            return std::tuple{is_whole(item) ? 0 : 1, -lost_by(jobs[item.job], now), -jobs[item.job].job.key};
        };
        return order(a) < order(b);
    });
    for (LimitPlan::Item& item : plan.items) {
        const JobRec& rec = jobs[item.job];
        // As many tasks as the limits bear: of an elastic gang any number above its least, else all.
        for (std::int32_t tasks = 0; tasks < item.tasks; ++tasks) {
            const std::int32_t stay = rec.placed - tasks;
            if (tasks > 0 && (!can_shrink(rec) || stay < rec.job.least)) break;
            const std::int64_t more = rec.job.counted(stay) - rec.job.counted(rec.placed - item.tasks);
            if (!may_keep(item.job, more)) continue;
            plan.set(*this, item.job, tasks, item.limited);
            break;
        }
    }
    std::erase_if(plan.items, [](const LimitPlan::Item& item) { return item.tasks == 0; });
}

void Engine::State::carry_out(const LimitPlan& plan, Statement& statement, Instant now) {
    std::vector<std::int64_t> held(tenants.size());
    for (TenantNo tenant = 0; tenant < tenants.size(); ++tenant) held[tenant] = tenants[tenant].has();
    for (const LimitPlan::Item& item : plan.items) {
        JobRec& rec = jobs[item.job];
        const bool whole = item.tasks == rec.placed;
        Eviction eviction{.workload = rec.job.key,
                          .action = Action::limit,
                          .tasks = item.tasks,
                          .whole = whole,
                          .lost_gpu_ms = whole ? lost_by(rec, now) : 0,
                          .nodes = {},
                          .reasons = {Reason{"evict.limit",
                                             {{"held", print(Gpus{held[item.limited]})},
                                              {"limit", print(Gpus{*tenants[item.limited].most()})}}}}};
        if (whole) {
            for (SeatNo seat = rec.seats; seat != nil; seat = fleet.seat(seat).next_of_job)
                eviction.nodes.push_back(fleet.seat(seat).node);
            set_ending(item.job);
            rec.evicted_in = generation;
        }
        for (std::int32_t i = 0; !whole && i < item.tasks; ++i) {
            eviction.nodes.push_back(fleet.seat(rec.seats).node);
            give_up(item.job, rec.seats);
        }
        std::ranges::sort(eviction.nodes);
        const auto twice = std::ranges::unique(eviction.nodes);
        eviction.nodes.erase(twice.begin(), twice.end());
        statement.evict.push_back(std::move(eviction));
    }
}

// Children before their parents: what they give up counts for those above them too.
void Engine::State::enforce_limits(Statement& statement, Instant now) {
    recount_all_kept();
    const auto is_over = [&](TenantNo tenant) {
        const auto most = tenants[tenant].most();
        return most && tenants[tenant].has() > *most;
    };
    if (std::ranges::any_of(down, is_over)) {
        LimitPlan plan{.items = {}, .gone = std::vector<std::int64_t>(tenants.size())};
        for (auto number = down.rbegin(); number != down.rend(); ++number)
            if (is_over(*number)) bring_below(*number, *tenants[*number].most(), plan, now);
        spare_needless(plan, now);
        carry_out(plan, statement, now);
        dues_stale = true;
    }
    for (auto number = down.rbegin(); number != down.rend(); ++number) {
        const TenantRec& tenant = tenants[*number];
        const auto most = tenant.most();
        if (!most) continue;
        if (tenant.has() > *most)
            statement.over_limit.push_back({.tenant = *number,
                                            .held = Gpus{tenant.has()},
                                            .limit = Gpus{*most},
                                            .fixed = Gpus{tenant.pinned},
                                            .kept = Gpus{tenant.kept}});
        else if (tenant.kept > 0 && tenant.has() + tenant.kept > *most)
            give_up_kept(*number, *most, statement, now);
    }
}

}  // namespace bulkhead::sched
