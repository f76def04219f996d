// Whom to disturb so that a job can start: as few as help, those who lose least, nobody if it would not help.
//
// Reclaim compares the claimant's branch of the tree with the victim's, where the two meet. The claimant stays within
// what its branch is due; the victim's branch, and everything in it down to the victim's tenant, is above its own due.
// First those are looked for who leave their branch at its due or above; only where there are none may the last one
// take it below, as a gang that cannot be halved does. A claimant beyond its guarantee takes nobody below theirs.
// So roles cannot swap: who was a victim finds nobody above due to claim from. And nobody is disturbed twice between
// two inputs from outside, whatever the arithmetic says.
#include <algorithm>
#include <limits>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

using Phase = JobRec::Phase;

namespace {

constexpr std::int64_t everything = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t seats_looked_at = 2048;  // before a single victim that will do is good enough
constexpr std::size_t pairs_tried = 12;        // victims on one node among which every pair is tried
constexpr std::size_t domains_tried = 64;      // of those in which a gang could be made room for

}  // namespace

std::int64_t Engine::State::lost_by(const JobRec& job, Instant now) const {
    std::int64_t since = std::max<std::int64_t>(now.ms - job.started.ms, 0);
    if (job.job.checkpoint && job.job.checkpoint->ms > 0) since %= job.job.checkpoint->ms;
    // Bounded, so that the sum over many never overflows: it is longer than anything runs.
    const Wide lost = static_cast<Wide>(job.holds()) * static_cast<Wide>(since) / gpu_unit;
    return static_cast<std::int64_t>(std::min(lost, Wide{1} << 50));
}

// Minimum run time is read one step below where the two branches meet, on the victim's side.
Duration Engine::State::least_run(TenantNo victim, TenantNo claimant, Action action) const {
    const std::vector<TenantNo>&theirs = tenants[victim].line, &mine = tenants[claimant].line;
    const auto value = [&](TenantNo tenant) {
        const TenantFacts& facts = tenants[tenant].facts;
        return action == Action::preempt ? facts.preempt_after : facts.reclaim_after;
    };
    std::size_t step = 0;
    while (step + 1 < theirs.size() && std::ranges::find(mine, theirs[step + 1]) == mine.end()) ++step;
    for (std::size_t i = step; i < theirs.size(); ++i)
        if (const auto own = value(theirs[i])) return *own;
    return action == Action::preempt ? settings.preempt_after : settings.reclaim_after;
}

// For each tenant how much this claimant may take from it, in Gpus::units.
std::optional<TenantNo> Engine::State::limited_by(const Job& job, std::int64_t tasks) const {
    const std::int64_t asked = job.counted(tasks);
    for (const TenantNo number : tenants[job.tenant].line)
        if (tenants[number].would_exceed(asked)) return number;
    return std::nullopt;
}

void Engine::State::mark_takeable(const Job& job, Action action, bool gently, std::optional<TenantNo> inside) {
    takeable.assign(tenants.size(), 0);
    if (action == Action::preempt) {
        takeable[job.tenant] = everything;
        return;
    }
    if (action == Action::consolidate) {
        std::ranges::fill(takeable, everything);
        return;
    }
    const std::int64_t asked = job.counted(job.least > 0 ? job.least : job.tasks);
    if (asked == 0) return;  // nobody is due cores alone
    const std::vector<TenantNo>& mine = tenants[job.tenant].line;
    // A branch: a tenant with everyone below, or one tenant's own work beside its children.
    struct Branch {
        std::int64_t held = 0, due = 0, guarantee = 0;
    };
    const auto whole = [&](TenantNo tenant) {
        return Branch{tenants[tenant].has(), tenants[tenant].due, tenants[tenant].guarantee};
    };
    const auto own = [&](TenantNo tenant) {
        std::int64_t below = 0;
        for (const TenantNo child : tenants[tenant].children) below += tenants[child].guarantee;
        return Branch{tenants[tenant].own_has(), tenants[tenant].own_due,
                      std::max<std::int64_t>(tenants[tenant].guarantee - below, 0)};
    };
    // How far up the claimant's line everything stays within its due.
    const bool own_fits = tenants[job.tenant].children.empty() ||
                          tenants[job.tenant].own_will_hold() + asked <= tenants[job.tenant].own_due;
    std::size_t fits = 0;
    while (own_fits && fits < mine.size() && tenants[mine[fits]].will_hold() + asked <= tenants[mine[fits]].due) ++fits;
    for (TenantNo victim = 0; victim < tenants.size(); ++victim) {
        if (victim == job.tenant || tenants[victim].own == 0 || !own_fits) continue;
        const std::vector<TenantNo>& theirs = tenants[victim].line;
        if (inside && std::ranges::find(theirs, *inside) == theirs.end()) continue;
        // Where the lines meet: theirs[up] is the first that is mine too; mine[mine_up] is the same.
        std::size_t up = 0;
        while (up < theirs.size() && std::ranges::find(mine, theirs[up]) == mine.end()) ++up;
        std::size_t mine_up = mine.size();
        if (up < theirs.size()) mine_up = static_cast<std::size_t>(std::ranges::find(mine, theirs[up]) - mine.begin());
        if (fits < mine_up) continue;
        // A hard partition takes back whatever it gives up, so that nobody gains by it.
        if (std::any_of(theirs.begin(), theirs.begin() + static_cast<std::ptrdiff_t>(up),
                        [&](TenantNo holder) { return tenants[holder].facts.hard; }))
            continue;
        const std::int64_t claimant_will_hold =
            mine_up == 0 ? tenants[job.tenant].own_will_hold() : tenants[mine[mine_up - 1]].will_hold();
        const std::int64_t claimant_guarantee =
            mine_up == 0 ? own(job.tenant).guarantee : tenants[mine[mine_up - 1]].guarantee;
        const Branch branch = up == 0 ? own(victim) : whole(theirs[up - 1]);
        bool above = branch.held > branch.due;
        for (std::size_t i = 0; above && i + 1 < up; ++i) above = tenants[theirs[i]].has() > tenants[theirs[i]].due;
        if (above && up > 0 && !tenants[victim].children.empty())
            above = tenants[victim].own_has() > tenants[victim].own_due;
        if (!above) continue;
        std::int64_t keeps = gently ? branch.due : 0;
        if (claimant_will_hold + asked > claimant_guarantee) keeps = std::max(keeps, branch.guarantee);
        takeable[victim] = std::max<std::int64_t>(branch.held - keeps, 0);
    }
}

// Of each branch no more than it may lose, and above its due until the last one goes.
bool Engine::State::takeable_together(const Job& claimant, std::span<const JobNo> victims) const {
    if (victims.size() < 2) return true;
    const std::vector<TenantNo>& mine = tenants[claimant.tenant].line;
    struct Loss {
        TenantNo branch = 0;
        std::int64_t sum = 0, most = 0, allowed = 0;
    };
    std::vector<Loss> losses;
    for (const JobNo victim : victims) {
        const TenantNo tenant = jobs[victim].job.tenant;
        const std::vector<TenantNo>& theirs = tenants[tenant].line;
        // Every level of the victim's side counts its own losses.
        for (std::size_t i = 0; i < theirs.size(); ++i) {
            if (std::ranges::find(mine, theirs[i]) != mine.end()) break;
            auto known = std::ranges::find(losses, theirs[i], &Loss::branch);
            if (known == losses.end()) known = losses.insert(losses.end(), Loss{theirs[i], 0, 0, everything});
            known->sum += jobs[victim].holds();
            known->most = std::max(known->most, jobs[victim].holds());
            known->allowed = std::min(known->allowed, takeable[tenant]);
        }
    }
    return std::ranges::all_of(losses, [&](const Loss& loss) {
        const TenantRec& branch = tenants[loss.branch];
        return loss.sum <= loss.allowed && branch.has() - (loss.sum - loss.most) > branch.due;
    });
}

std::optional<Plan> Engine::State::find_victims(JobNo number, Action action, Instant now, bool gently,
                                                std::span<const NodeNo> avoid, std::optional<TenantNo> inside) {
    const Job& job = jobs[number].job;
    const std::int32_t tasks = jobs[number].fewest();
    const std::int64_t urgency_of_claimant = urgency(job, now);
    mark_takeable(job, action, gently, inside);
    if (std::ranges::none_of(takeable, [](std::int64_t amount) { return amount > 0; })) return std::nullopt;
    ++searches;
    std::vector<std::int64_t> least(tenants.size(), -1);
    const auto may_go = [&](JobNo victim) {
        const JobRec& rec = jobs[victim];
        if (rec.phase != Phase::running || rec.holds() > takeable[rec.job.tenant]) return false;
        if (rec.evicted_in == generation || rec.started_in == cycles || victim == number) return false;
        if (action == Action::preempt && urgency(rec.job, now) >= urgency_of_claimant) return false;
        std::int64_t& runs = least[rec.job.tenant];
        if (runs < 0) runs = least_run(rec.job.tenant, job.tenant, action).ms;
        return now.ms - rec.started.ms >= runs;
    };
    const auto may_seat = [&](const SeatRec& seat) {
        return seat.job != nil && !seat.pinned && !seat.ending && !seat.promised && takeable[seat.tenant] > 0;
    };
    const auto cost_of = [&](JobNo victim) {
        return Cost{action == Action::preempt ? urgency(jobs[victim].job, now) : 0, lost_by(jobs[victim], now)};
    };
    gone.assign(jobs.size(), false);
    FleetIndex::Supposed supposed;
    // Who is on the way out already is as good as gone; what that frees is mostly somebody's, but not always all of it.
    const auto left = [&](const SeatRec& seat) { return seat.ending || (seat.job != nil && gone[seat.job]); };
    const auto room_without = [&](NodeNo node) {
        fleet.suppose(supposed, node, left);
        return static_cast<std::int32_t>(fleet.capacity(supposed.view, node, job.shape, job.tenant));
    };
    const auto usable = [&](NodeNo node) {
        return fleet.able(node, job.shape) && std::ranges::find(avoid, node) == avoid.end();
    };
    std::optional<Plan> best;
    const auto better = [&](std::size_t count, const Cost& cost) {
        return !best || std::pair{count, cost} < std::pair{best->victims.size(), best->cost};
    };
    const std::int64_t gpus = fleet.whole_gpus(job.shape);

    if (tasks == 1) {
        std::vector<std::pair<Cost, JobNo>> here;  // what each would lose
        // Which domains have anybody to take from: most nodes need not be looked at.
        std::vector<bool> near;
        for (TenantNo tenant = 0; tenant < tenants.size(); ++tenant)
            if (takeable[tenant] > 0) {
                const std::uint32_t domain = fleet.tenant_domain(tenant);
                if (domain >= near.size()) near.resize(domain + 1);
                near[domain] = true;
            }
        const auto worth_a_look = [&](NodeNo node) {
            const Company company = fleet.residents(node);
            switch (company.kind()) {
                case Company::Kind::nobody:
                    return false;
                case Company::Kind::tenant:
                    return takeable[company.id()] > 0;
                case Company::Kind::domain:
                    return company.id() < near.size() && near[company.id()];
                case Company::Kind::strangers:
                    return true;
            }
            return true;
        };
        // Not always from the same end: the first nodes would pay for everybody.
        const auto all = static_cast<std::uint64_t>(fleet.nodes());
        const std::uint64_t first = all == 0 ? 0 : static_cast<std::uint64_t>(job.key) * 0x9E3779B97F4A7C15u % all;
        std::size_t looked = 0;
        for (std::uint64_t step = 0; step < all; ++step) {
            const auto node = static_cast<NodeNo>((first + step) % all);
            if (!worth_a_look(node)) continue;
            if (best && best->victims.size() <= 1 && looked > seats_looked_at) {
                best->budget_spent = true;
                break;
            }
            here.clear();
            bool checked = false;
            std::int64_t touched = fleet.whole(node);
            if (fleet.any_ending(node) && usable(node) && room_without(node) > 0)
                return Plan{{}, {{node, 1}}, {}, false};
            for (SeatNo s = fleet.first_seat(node); s != nil; s = fleet.seat(s).next_here) {
                const SeatRec& seat = fleet.seat(s);
                ++looked;
                if (!may_seat(seat) || !may_go(seat.job)) continue;
                touched += std::popcount(seat.gpus);
                const Cost cost = cost_of(seat.job);
                here.emplace_back(cost, seat.job);
                // Alone?
                std::int64_t its = 0;
                for (SeatNo other = s; other != nil; other = fleet.seat(other).next_here)
                    if (fleet.seat(other).job == seat.job) its += std::popcount(fleet.seat(other).gpus);
                if (!better(1, cost) || fleet.whole(node) + its < gpus) continue;
                if (!checked && !usable(node)) break;
                checked = true;
                gone[seat.job] = true;
                if (room_without(node) > 0) best = Plan{{seat.job}, {{node, 1}}, cost, false};
                gone[seat.job] = false;
            }
            if (here.size() < 2 || touched < gpus || (best && best->victims.size() == 1)) continue;
            if (!checked && !usable(node)) continue;
            std::ranges::sort(here);
            const auto duplicates = std::ranges::unique(here);
            here.erase(duplicates.begin(), duplicates.end());
            for (const auto& [cost, victim] : here) gone[victim] = true;
            if (room_without(node) > 0) {
                // Leave out whoever is not needed, the most expensive first.
                for (std::size_t i = here.size(); i-- > 0;) {
                    gone[here[i].second] = false;
                    if (room_without(node) == 0) gone[here[i].second] = true;
                }
                Plan plan{{}, {{node, 1}}, {}, false};
                for (const auto& [cost, victim] : here)
                    if (gone[victim]) {
                        plan.victims.push_back(victim);
                        plan.cost += cost;
                    }
                const auto clear = [&] {
                    for (const auto& [cost, victim] : here) gone[victim] = false;
                };
                if (plan.victims.size() > 2 && here.size() <= pairs_tried) {
                    clear();
                    bool found = false;
                    for (std::size_t a = 0; a < here.size() && !found; ++a)
                        for (std::size_t b = a + 1; b < here.size() && !found; ++b) {
                            gone[here[a].second] = gone[here[b].second] = true;
                            if (room_without(node) > 0) {
                                plan.victims = {here[a].second, here[b].second};
                                plan.cost = here[a].first;
                                plan.cost += here[b].first;
                                found = true;
                            }
                            gone[here[a].second] = gone[here[b].second] = false;
                        }
                }
                if (better(plan.victims.size(), plan.cost) &&
                    (action != Action::reclaim || takeable_together(job, plan.victims)))
                    best = std::move(plan);
            }
            for (const auto& [cost, victim] : here) gone[victim] = false;
        }
        return best;
    }

    // A gang: domain by domain. What every node could take if all that may go went, and what that would cost.
    struct Option {
        NodeNo node = 0;
        std::int32_t base = 0, full = 0;
        Cost cost;
        std::vector<JobNo> victims;
    };
    std::vector<std::vector<Option>> bins(fleet.domain_count(job.within));
    for (NodeNo node = 0; node < fleet.nodes(); ++node) {
        if (!usable(node)) continue;
        Option option{.node = node, .base = room_without(node), .full = 0, .cost = {}, .victims = {}};
        for (SeatNo s = fleet.first_seat(node); s != nil; s = fleet.seat(s).next_here) {
            const SeatRec& seat = fleet.seat(s);
            if (!may_seat(seat) || !may_go(seat.job) || gone[seat.job]) continue;
            gone[seat.job] = true;
            option.cost += cost_of(seat.job);
            option.victims.push_back(seat.job);
        }
        option.full = option.victims.empty() ? option.base : room_without(node);
        for (const JobNo victim : option.victims) gone[victim] = false;
        if (option.full > 0) bins[fleet.domain_of(node, job.within)].push_back(std::move(option));
    }
    std::size_t tried = 0;
    bool spent = false;
    for (std::vector<Option>& bin : bins) {
        std::int64_t most = 0;
        for (const Option& option : bin) most += option.full;
        if (most < tasks) continue;
        if (++tried > domains_tried) {
            spent = true;
            break;
        }
        // The cheapest nodes until there is enough; then whoever is not needed is left out again.
        std::ranges::sort(bin, [](const Option& a, const Option& b) {
            const auto cost = [](const Option& option, std::int64_t gained) {
                const std::int64_t of = std::max<std::int64_t>(gained, 1);
                return std::tuple{std::ssize(option.victims) * 1000 / of, option.cost.urgency / of,
                                  option.cost.lost / of};
            };
            const auto x = cost(a, a.full - a.base), y = cost(b, b.full - b.base);
            return x != y ? x < y : a.node < b.node;
        });
        std::vector<JobNo> victims;
        const auto fits = [&] {
            std::vector<FleetIndex::Portion> room;
            for (const Option& option : bin)
                if (const std::int32_t takes = room_without(option.node); takes > 0)
                    room.push_back({option.node, takes});
            return fleet.arrange(job, tasks, room);
        };
        std::int64_t sum = 0;
        for (const Option& option : bin) sum += option.base;
        std::vector<FleetIndex::Portion> where;
        for (const Option& option : bin) {
            if (sum >= tasks) where = fits();
            if (!where.empty()) break;
            if (option.full == option.base) continue;
            const std::size_t before = victims.size();
            for (const JobNo victim : option.victims)
                if (!gone[victim]) {
                    gone[victim] = true;
                    victims.push_back(victim);
                }
            if (action == Action::reclaim && !takeable_together(job, victims)) {
                // One branch would lose too much: perhaps another has something on another node.
                for (std::size_t i = before; i < victims.size(); ++i) gone[victims[i]] = false;
                victims.resize(before);
                continue;
            }
            sum += option.full - option.base;
        }
        if (where.empty()) where = fits();
        if (!where.empty()) {
            std::ranges::sort(victims, std::greater<>{}, cost_of);
            for (JobNo& victim : victims) {
                gone[victim] = false;
                if (auto still = fits(); !still.empty()) {
                    where = std::move(still);
                    victim = nil;
                } else {
                    gone[victim] = true;
                }
            }
        }
        for (const JobNo victim : victims)
            if (victim != nil) gone[victim] = false;
        std::erase(victims, nil);
        Cost cost;
        for (const JobNo victim : victims) cost += cost_of(victim);
        if (!where.empty() && better(victims.size(), cost) &&
            (action != Action::reclaim || takeable_together(job, victims)))
            best = Plan{std::move(victims), std::move(where), cost, false};
    }
    if (best) best->budget_spent = spent;
    return best;
}

}  // namespace bulkhead::sched
