// A limit, or the guarantee of a hard partition, that was lowered below what the tenant leases: preemptible work of the
// tenant and of all below it is evicted until they are within the limit again. Tenants below the limited one keep what
// they are guaranteed as long as other work can go. Of the work that may go, spare tasks of elastic gangs go first,
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
    std::vector<std::size_t> levels;  // of its tenant, below the limited one (GuaranteesBelow)
};

// What the tenants below a limited one hold beyond their guarantees. A level is a tenant with everyone below it, or the
// own work of a tenant that has children.
class GuaranteesBelow {
public:
    explicit GuaranteesBelow(std::size_t levels) : beyond_(levels), taken_(levels) {}
    void set(std::size_t level, std::int64_t beyond) { beyond_[level] = std::max<std::int64_t>(beyond, 0); }
    void take(const std::vector<std::size_t>& levels, std::int64_t gpus) {
        for (const std::size_t level : levels) taken_[level] += gpus;
    }
    // By how much taking this as well would reach into guarantees, over all levels.
    std::int64_t broken_by(const std::vector<std::size_t>& levels, std::int64_t gpus) const {
        std::int64_t sum = 0;
        for (const std::size_t level : levels)
            sum += broken(taken_[level] + gpus, level) - broken(taken_[level], level);
        return sum;
    }
    // None of these levels has come down to its guarantee yet.
    bool gives(const std::vector<std::size_t>& levels) const {
        return std::ranges::all_of(levels, [&](std::size_t level) { return taken_[level] < beyond_[level]; });
    }

private:
    std::int64_t broken(std::int64_t taken, std::size_t level) const {
        return std::max<std::int64_t>(taken - beyond_[level], 0);
    }
    std::vector<std::int64_t> beyond_, taken_;
};

// Of jobs that hold at least so much together: those that break the least of guarantees, and then lose least. Empty:
// all together do not hold so much.
std::vector<Leaver> cheapest(std::vector<Leaver> all, std::int64_t excess, const GuaranteesBelow& guarantees) {
    std::int64_t sum = 0;
    for (const Leaver& each : all) sum += each.holds;
    if (sum < excess) return {};
    if (all.size() <= sets_tried_of) {
        std::ranges::sort(all, {}, &Leaver::key);
        struct Price {
            std::int64_t broken = 0, lost = 0, holds = 0;
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
            if (price.holds < excess) continue;
            GuaranteesBelow after = guarantees;
            for (std::size_t i = 0; i < all.size(); ++i)
                if ((set >> i & 1u) != 0) {
                    price.broken += after.broken_by(all[i].levels, all[i].holds);
                    after.take(all[i].levels, all[i].holds);
                }
            if (lowest && !(price < *lowest)) continue;
            lowest = price;
            best = set;
        }
        std::vector<Leaver> out;
        for (std::size_t i = 0; i < all.size(); ++i)
            if ((best >> i & 1u) != 0) out.push_back(all[i]);
        return out;
    }
    // Jobs that break no guarantee first, then those of tenants beyond their guarantee, then the others; each time the
    // least loss for each GPU first. In the end the dearest that is not needed stays after all.
    std::ranges::sort(all, [](const Leaver& a, const Leaver& b) {
        const Wide left = static_cast<Wide>(a.lost) * static_cast<Wide>(b.holds);
        const Wide right = static_cast<Wide>(b.lost) * static_cast<Wide>(a.holds);
        return left != right ? left < right : a.key < b.key;
    });
    std::vector<Leaver> out;
    std::vector<bool> goes(all.size());
    std::int64_t taken = 0;
    GuaranteesBelow after = guarantees;
    for (int pass = 0; pass < 3; ++pass)
        for (std::size_t i = 0; i < all.size() && taken < excess; ++i) {
            const Leaver& each = all[i];
            if (goes[i] || (pass == 0 && after.broken_by(each.levels, each.holds) > 0)) continue;
            if (pass == 1 && !after.gives(each.levels)) continue;
            goes[i] = true;
            after.take(each.levels, each.holds);
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

// All that may go for one limit, and the choice among it.
struct Yielding {
    struct Elastic {
        JobNo job = nil;
        const Job* its = nullptr;
        std::int32_t placed = 0;
        std::int64_t lost = 0;
        std::vector<std::size_t> levels;
        std::int32_t tasks = 0;  // that go
        std::int64_t gpus = 0;
    };
    GuaranteesBelow guarantees;
    std::int64_t excess = 0;
    std::vector<Leaver> whole;
    std::vector<Elastic> elastic;
    std::vector<Leaver> go;  // chosen to end as a whole
    std::int64_t taken = 0;

    // As many spare tasks as are needed; `gently`: that leave every guarantee whole.
    void take_spares(bool gently) {
        for (Elastic& each : elastic) {
            const std::int32_t group = std::max(each.its->group, 1);  // no group is halved
            while (taken < excess && each.placed - each.tasks - group >= each.its->least) {
                const std::int64_t gpus =
                    each.its->counted(each.placed) - each.its->counted(each.placed - each.tasks - group);
                if (gently && guarantees.broken_by(each.levels, gpus - each.gpus) > 0) break;
                guarantees.take(each.levels, gpus - each.gpus);
                taken += gpus - each.gpus;
                each.tasks += group;
                each.gpus = gpus;
            }
        }
    }
    bool goes(JobNo job) const { return std::ranges::find(go, job, &Leaver::job) != go.end(); }
    // Jobs that have not been chosen, with what they hold beside the spare tasks that go.
    std::vector<Leaver> rest() const {
        std::vector<Leaver> out = whole;
        std::erase_if(out, [&](const Leaver& each) { return goes(each.job); });
        for (Leaver& each : out)
            if (const auto its = std::ranges::find(elastic, each.job, &Elastic::job); its != elastic.end())
                each.holds -= its->gpus;
        return out;
    }
    std::int64_t broken_by(const std::vector<Leaver>& leavers) const {
        GuaranteesBelow after = guarantees;
        std::int64_t sum = 0;
        for (const Leaver& each : leavers) {
            sum += after.broken_by(each.levels, each.holds);
            after.take(each.levels, each.holds);
        }
        return sum;
    }
    void choose() {
        std::ranges::sort(elastic, {}, [](const Elastic& each) { return std::pair{each.lost, each.its->key}; });
        take_spares(true);
        if (taken >= excess) return;
        std::vector<Leaver> cheap = cheapest(rest(), excess - taken, guarantees);
        if (!cheap.empty() && broken_by(cheap) == 0)
            go = std::move(cheap);
        else
            break_guarantees();
    }
    // All jobs that break no guarantee, then the other spare tasks, then whole jobs for what is left. Jobs that are not
    // needed beside the later ones are spared afterwards.
    void break_guarantees() {
        std::vector<Leaver> left = rest();
        std::ranges::sort(left, {}, [](const Leaver& each) { return std::pair{each.lost, each.key}; });
        for (const Leaver& each : left) {
            if (guarantees.broken_by(each.levels, each.holds) > 0) continue;
            guarantees.take(each.levels, each.holds);
            taken += each.holds;
            go.push_back(each);
        }
        std::erase_if(elastic, [&](const Elastic& each) { return goes(each.job); });
        take_spares(false);
        if (taken >= excess) return;
        left = rest();
        std::vector<Leaver> more = cheapest(left, excess - taken, guarantees);
        if (more.empty()) more = left;  // not enough, but all that may go
        go.insert(go.end(), more.begin(), more.end());
    }
};

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

bool Engine::State::has_a_seat_for_each(const JobRec& rec) const {
    std::int32_t seats = 0;
    for (SeatNo s = rec.seats; s != nil; s = fleet.seat(s).next_of_job) ++seats;
    return seats == rec.placed;
}

// Elastic, with a seat for each task.
bool Engine::State::can_spare(const JobRec& rec) const {
    const std::int32_t group = std::max(rec.job.group, 1);
    if (rec.job.least == 0 || rec.placed - group < rec.job.least || !has_a_seat_for_each(rec)) return false;
    return group == 1 || std::ssize(spare_seats(rec, rec.placed)) == rec.placed;
}

bool Engine::State::can_shrink(const JobRec& rec) const { return rec.job.group <= 1 && can_spare(rec); }

// The seats of so many tasks that go: the newest, and of a gang in groups only whole groups, each in one domain. Fewer:
// the seats do not form whole groups.
std::vector<SeatNo> Engine::State::spare_seats(const JobRec& rec, std::int32_t tasks) const {
    std::vector<SeatNo> out;
    const auto group = static_cast<std::size_t>(std::max(rec.job.group, 1));
    std::vector<std::pair<std::uint32_t, std::vector<SeatNo>>> domains;
    for (SeatNo seat = rec.seats; seat != nil; seat = fleet.seat(seat).next_of_job) {
        const std::uint32_t domain = group == 1 ? 0 : fleet.domain_of(fleet.seat(seat).node, rec.job.group_within);
        auto of = std::ranges::find(domains, domain, &std::pair<std::uint32_t, std::vector<SeatNo>>::first);
        if (of == domains.end()) of = domains.insert(domains.end(), {domain, {}});
        of->second.push_back(seat);
    }
    for (const auto& [domain, seats] : domains)
        for (std::size_t first = 0; first + group <= seats.size() && std::cmp_less(out.size(), tasks); first += group)
            out.insert(out.end(), seats.begin() + static_cast<std::ptrdiff_t>(first),
                       seats.begin() + static_cast<std::ptrdiff_t>(first + group));
    return out;
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
    std::vector<std::int64_t> gone;      // by tenant, with everyone below
    std::vector<std::int64_t> own_gone;  // of its own work

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
        own_gone[rec.job.tenant] += more;
    }
};

// The levels between a tenant and the limited one.
std::vector<std::size_t> Engine::State::levels_below(TenantNo tenant, TenantNo limited) const {
    std::vector<std::size_t> out;
    if (!tenants[tenant].children.empty()) out.push_back(tenants.size() + tenant);
    for (const TenantNo holder : tenants[tenant].line) {
        if (holder == limited) break;
        out.push_back(holder);
    }
    return out;
}

bool Engine::State::is_guaranteed_below(TenantNo tenant, TenantNo limited) const {
    return std::ranges::any_of(levels_below(tenant, limited), [&](std::size_t level) {
        if (level >= tenants.size()) return tenants[tenant].own_has() <= own_guarantee(tenant);
        return tenants[level].has() <= tenants[level].guarantee;
    });
}

void Engine::State::bring_below(TenantNo limited, std::int64_t most, LimitPlan& plan, Instant now) const {
    const std::int64_t excess = tenants[limited].has() - plan.gone[limited] - most;
    if (excess <= 0) return;
    Yielding yielding{.guarantees = GuaranteesBelow{2 * tenants.size()}, .excess = excess};
    for (TenantNo tenant = 0; tenant < tenants.size(); ++tenant) {
        const TenantRec& rec = tenants[tenant];
        yielding.guarantees.set(tenant, rec.has() - plan.gone[tenant] - rec.guarantee);
        yielding.guarantees.set(tenants.size() + tenant, rec.own_has() - plan.own_gone[tenant] - own_guarantee(tenant));
    }
    for (const JobNo job : running) {
        const JobRec& rec = jobs[job];
        const std::vector<TenantNo>& line = tenants[rec.job.tenant].line;
        const LimitPlan::Item* item = plan.of(job);
        const std::int32_t placed = rec.placed - (item == nullptr ? 0 : item->tasks);
        if (rec.phase != Phase::running || !rec.job.preemptible || rec.holds() == 0 || placed == 0) continue;
        if (std::ranges::find(line, limited) == line.end()) continue;
        if (now - rec.started < least_run_under_limit(rec.job.tenant, limited)) continue;
        const std::int64_t lost = lost_by(rec, now);
        const std::vector<std::size_t> levels = levels_below(rec.job.tenant, limited);
        yielding.whole.push_back({job, rec.job.counted(placed), lost, rec.job.key, levels});
        if (can_spare(rec) && placed > rec.job.least) yielding.elastic.push_back({job, &rec.job, placed, lost, levels});
    }
    yielding.choose();
    for (const Yielding::Elastic& each : yielding.elastic)
        if (each.tasks > 0) plan.set(*this, each.job, jobs[each.job].placed - each.placed + each.tasks, limited);
    for (const Leaver& each : yielding.go) plan.set(*this, each.job, jobs[each.job].placed, limited);
}

// What no limit needs stays after all: work of tenants that the plan takes below their guarantee first, then whole
// jobs, those that lose most before the others.
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
    const auto is_owed = [&](TenantNo tenant) {
        if (!tenants[tenant].children.empty() &&
            tenants[tenant].own_has() - plan.own_gone[tenant] < own_guarantee(tenant))
            return true;
        return std::ranges::any_of(tenants[tenant].line, [&](TenantNo holder) {
            return tenants[holder].has() - plan.gone[holder] < tenants[holder].guarantee;
        });
    };
    const auto keep = [&](LimitPlan::Item& item) {
        const JobRec& rec = jobs[item.job];
        // As many tasks as the limits bear: of an elastic gang any number (of groups) above its least, else all.
        for (std::int32_t tasks = 0; tasks < item.tasks; ++tasks) {
            const std::int32_t stay = rec.placed - tasks;
            if (tasks > 0 && (!can_spare(rec) || stay < rec.job.least)) break;
            if (tasks % std::max(rec.job.group, 1) != 0) continue;
            const std::int64_t more = rec.job.counted(stay) - rec.job.counted(rec.placed - item.tasks);
            if (!may_keep(item.job, more)) continue;
            plan.set(*this, item.job, tasks, item.limited);
            break;
        }
    };
    for (LimitPlan::Item& item : plan.items)
        if (is_owed(jobs[item.job].job.tenant)) keep(item);
    for (LimitPlan::Item& item : plan.items) keep(item);
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
        if (!whole)
            for (const SeatNo seat : spare_seats(rec, item.tasks)) {
                eviction.nodes.push_back(fleet.seat(seat).node);
                give_up(item.job, seat);
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
        LimitPlan plan{.items = {},
                       .gone = std::vector<std::int64_t>(tenants.size()),
                       .own_gone = std::vector<std::int64_t>(tenants.size())};
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
