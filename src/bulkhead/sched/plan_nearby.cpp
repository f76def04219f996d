// Plans for large fleets: for a single task node by node, for a gang domain by domain.
#include <algorithm>

#include "bulkhead/sched/plan_search.hpp"

namespace bulkhead::sched {

namespace {

constexpr std::size_t seats_looked_at = 2048;  // before a plan that will do is good enough
constexpr std::int64_t sets_of_a_node = 256, sets_looked_at = 2'048;
constexpr std::size_t tried_on_a_node = 10;  // jobs of one node among which every combination is tried
constexpr std::size_t most_on_a_node = 64;   // jobs (or spare tasks); sets of more are not looked at
constexpr std::size_t domains_tried = 64;    // of those in which a gang could be made room for

}  // namespace

// Something that can be taken: a whole job, or the spare tasks that an elastic gang has on one node.
struct NearbyItem {
    JobNo job = nil;
    Cost cost;
    std::int64_t key = 0, gpus = 0;
    std::vector<SeatNo> spare;  // empty: the whole job
};

namespace {

// Of those that cost the same the one with the highest key.
bool more_expensive(const NearbyItem& a, const NearbyItem& b) {
    return a.cost != b.cost ? a.cost > b.cost : a.key > b.key;
}

}  // namespace

bool Engine::State::PlanSearch::acceptable(const Plan& plan) {
    std::vector<Protection::Taken> taken;
    if (!state.stays_entitled(job, plan.where)) return false;
    if (ask.moving) return protection.owed_after({}) && within_quota_after({});
    taken.reserve(plan.victims.size() + plan.shrinks.size());
    for (const JobNo victim : plan.victims)
        taken.push_back({state.jobs[victim].job.tenant, state.jobs[victim].holds(), state.jobs[victim].holds()});
    for (const Shrink& shrink : plan.shrinks) {
        const JobRec& rec = state.jobs[shrink.job];
        const auto stays = rec.placed - static_cast<std::int32_t>(shrink.seats.size());
        taken.push_back({rec.job.tenant, rec.holds() - rec.job.counted(stays), rec.job.counted(1)});
    }
    return protection.in_order(taken, plan.kind == PlanKind::gentle) && protection.owed_after(taken) &&
           within_quota_after(taken);
}

std::int64_t Engine::State::PlanSearch::drop_unpaid(std::vector<NearbyItem>& items) const {
    std::vector<Protection::Taken> all;
    all.reserve(items.size());
    for (const NearbyItem& item : items) {
        const JobRec& rec = state.jobs[item.job];
        const std::int64_t size = item.spare.empty() ? rec.holds() : rec.job.counted(1);
        all.push_back({rec.job.tenant, size, size});
    }
    const std::size_t reach = protection.reach(all);
    std::int64_t gpus = 0;
    std::erase_if(items, [&](const NearbyItem& item) {
        const bool unpaid = protection.meets[state.jobs[item.job].job.tenant] > reach;
        if (unpaid) gpus += item.gpus;
        return unpaid;
    });
    return gpus;
}

std::optional<Plan> Engine::State::PlanSearch::nearby_single(PlanKind kind) {
    const FleetIndex& around = state.fleet;
    const bool gently = kind == PlanKind::gentle;
    const std::int64_t gpus = around.whole_gpus(job.shape);
    // Which trust domains have anything to give: most nodes need not be looked at.
    std::vector<bool> near;
    for (TenantNo tenant = 0; tenant < state.tenants.size(); ++tenant)
        if (protection.gives[tenant]) {
            const std::uint32_t domain = around.tenant_domain(tenant);
            if (domain >= near.size()) near.resize(domain + 1);
            near[domain] = true;
        }
    const auto worth_a_look = [&](NodeNo node) {
        const Company company = around.residents(node);
        switch (company.kind()) {
            case Company::Kind::nobody:
                return false;
            case Company::Kind::tenant:
                return bool{protection.gives[company.id()]};
            case Company::Kind::domain:
                return company.id() < near.size() && near[company.id()];
            case Company::Kind::strangers:
                return true;
        }
        return true;
    };
    std::optional<Plan> best;
    std::vector<NearbyItem> items;
    const auto mark = [&](const NearbyItem& item, bool is) {
        if (item.spare.empty()) state.gone[item.job] = is;
        for (const SeatNo seat : item.spare) state.spare_gone[seat] = is ? 1 : 0;
    };
    const auto plan_of = [&](NodeNo node, std::uint64_t chosen) {
        Plan plan{.victims = {}, .where = {{node, 1}}, .cost = {}, .budget_spent = false, .kind = kind};
        for (std::size_t i = items.size(); i-- > 0;) {
            if ((chosen >> i & 1u) == 0) continue;
            plan.cost += items[i].cost;
            if (items[i].spare.empty())
                plan.victims.push_back(items[i].job);
            else if (const auto known = std::ranges::find(plan.shrinks, items[i].job, &Shrink::job);
                     known != plan.shrinks.end())
                known->seats.push_back(items[i].spare.front());
            else
                plan.shrinks.push_back({items[i].job, items[i].spare});
        }
        return plan;
    };
    // Sets that are looked at: on one node, and on all of them. A set that may not be taken leads to all its
    // variations.
    std::int64_t here = 0, everywhere = sets_looked_at;
    // Keeps the most expensive where it can; what is chosen is what goes.
    const auto choose = [&](NodeNo node, auto&& self, std::size_t at, std::uint64_t chosen, const Cost& cost,
                            std::int64_t could_be_free) -> void {
        if (best && cost >= best->cost) return;
        if (--here < 0 || --everywhere < 0) {
            spent = true;
            return;
        }
        if (at == items.size()) {
            Plan plan = plan_of(node, chosen);
            if (acceptable(plan))
                best = std::move(plan);
            else
                spent = true;
            return;
        }
        const NearbyItem& item = items[at];
        mark(item, false);
        if (could_be_free - item.gpus >= gpus && room_without(node) > 0)
            self(node, self, at + 1, chosen, cost, could_be_free - item.gpus);
        mark(item, true);
        if (at + 1 > tried_on_a_node && best) return;
        Cost more = cost;
        more += item.cost;
        self(node, self, at + 1, chosen | std::uint64_t{1} << at, more, could_be_free);
    };
    // Not always from the same end: the first nodes would pay for everybody.
    const auto all = static_cast<std::uint64_t>(around.nodes());
    const std::uint64_t first = all == 0 ? 0 : static_cast<std::uint64_t>(job.key) * 0x9E3779B97F4A7C15u % all;
    std::size_t seats_seen = 0;
    bool refused = false;
    for (std::uint64_t turn = 0; turn < all; ++turn) {
        const auto node = static_cast<NodeNo>((first + turn) % all);
        if (!worth_a_look(node)) continue;
        if (best && seats_seen > seats_looked_at) {
            best->budget_spent = true;
            break;
        }
        if (everywhere <= 0) {
            refused = true;
            if (best) best->budget_spent = true;
            break;
        }
        items.clear();
        std::int64_t touched = around.room_comes(node) ? std::int64_t{1} << 20 : around.whole(node);
        for (SeatNo s = around.first_seat(node); s != nil; s = around.seat(s).next_here) {
            const SeatRec& seat = around.seat(s);
            ++seats_seen;
            if (seat.job == nil || seat.pinned || seat.ending || seat.promised || !protection.gives[seat.tenant])
                continue;
            const JobRec& rec = state.jobs[seat.job];
            // Each spare task is an item of its own, as long as the gang keeps its least.
            if (kind == PlanKind::spares) {
                if (rec.job.least == 0) continue;
                const auto taken = std::ranges::count(items, seat.job, &NearbyItem::job);
                if (taken >= spare_of(seat.job)) continue;
                items.push_back({seat.job, {0, 0, taken == 0 ? 1 : 0, 1}, rec.job.key, std::popcount(seat.gpus), {s}});
                touched += std::popcount(seat.gpus);
                continue;
            }
            if (const auto known = std::ranges::find(items, seat.job, &NearbyItem::job); known != items.end()) {
                known->gpus += std::popcount(seat.gpus);
                touched += std::popcount(seat.gpus);
                continue;
            }
            if (!may_end(seat.job, gently)) continue;
            items.push_back({seat.job, cost_of(seat.job), rec.job.key, std::popcount(seat.gpus), {}});
            touched += std::popcount(seat.gpus);
        }
        // A plan may exist that takes what pays for these from other nodes.
        if (const std::size_t before = items.size(); protection.needs_credit && !ask.moving) {
            touched -= drop_unpaid(items);
            refused = refused || items.size() < before;
        }
        if (items.empty() || touched < gpus || !usable(node)) continue;
        if (items.size() > most_on_a_node) {
            refused = crowded = true;
            continue;
        }
        std::ranges::sort(items, more_expensive);
        for (const NearbyItem& item : items) mark(item, true);
        if (room_without(node) > 0) {
            spent = false;
            here = sets_of_a_node;
            choose(node, choose, 0, 0, {}, touched);
            refused = refused || spent;
        }
        for (const NearbyItem& item : items) mark(item, false);
    }
    spent = !best && refused;
    return best;
}

// What every node of a domain could take if all that may go went, and what that would cost; then the cheapest nodes
// until there is enough; then what is not needed stays after all.
std::optional<Plan> Engine::State::PlanSearch::nearby_gang(PlanKind kind) {
    const FleetIndex& around = state.fleet;
    const bool gently = kind == PlanKind::gentle;
    struct Option {
        NodeNo node = 0;
        std::int32_t base = 0, full = 0;
        Cost cost;
        std::vector<NearbyItem> items;
    };
    const auto mark = [&](const NearbyItem& item, bool is) {
        if (item.spare.empty()) state.gone[item.job] = is;
        for (const SeatNo seat : item.spare) state.spare_gone[seat] = is ? 1 : 0;
    };
    std::vector<std::int32_t> spare_left(kind == PlanKind::spares ? state.jobs.size() : 0, -1);
    std::vector<std::vector<Option>> bins(around.domain_count(job.within));
    for (NodeNo node = 0; node < around.nodes(); ++node) {
        if (!usable(node)) continue;
        Option option{.node = node, .base = room_without(node), .full = 0, .cost = {}, .items = {}};
        for (SeatNo s = around.first_seat(node); s != nil; s = around.seat(s).next_here) {
            const SeatRec& seat = around.seat(s);
            if (seat.job == nil || seat.pinned || seat.ending || seat.promised || !protection.gives[seat.tenant])
                continue;
            const JobRec& rec = state.jobs[seat.job];
            if (kind == PlanKind::spares) {
                if (rec.job.least == 0) continue;
                std::int32_t& left = spare_left[seat.job];
                if (left < 0) left = spare_of(seat.job);
                if (left == 0) continue;
                --left;
                option.items.push_back({seat.job, {0, 0, 1, 1}, rec.job.key, std::popcount(seat.gpus), {s}});
            } else {
                if (state.gone[seat.job] || !may_end(seat.job, gently)) continue;
                option.items.push_back({seat.job, cost_of(seat.job), rec.job.key, std::popcount(seat.gpus), {}});
            }
            mark(option.items.back(), true);
            option.cost += option.items.back().cost;
        }
        option.full = option.items.empty() ? option.base : room_without(node);
        for (const NearbyItem& item : option.items) mark(item, false);
        if (option.full > 0) bins[around.domain_of(node, job.within)].push_back(std::move(option));
    }
    std::optional<Plan> best;
    std::size_t tried = 0;
    bool cut = false;
    for (std::vector<Option>& bin : bins) {
        std::int64_t most = 0;
        for (const Option& option : bin) most += option.full;
        if (most < tasks) continue;
        if (++tried > domains_tried) {
            cut = true;
            break;
        }
        std::ranges::sort(bin, [](const Option& a, const Option& b) {
            const auto price = [](const Option& option) {
                const std::int64_t of = std::max<std::int64_t>(option.full - option.base, 1);
                return std::tuple{option.cost.urgency / of, option.cost.lost / of, option.cost.jobs * 1000 / of};
            };
            const auto x = price(a), y = price(b);
            return x != y ? x < y : a.node < b.node;
        });
        std::vector<NearbyItem> chosen;
        const auto fits = [&] {
            std::vector<FleetIndex::Portion> room;
            for (const Option& option : bin)
                if (const std::int32_t takes = room_without(option.node); takes > 0)
                    room.push_back({option.node, takes});
            return around.arrange(job, tasks, room);
        };
        const auto plan_of = [&](std::vector<FleetIndex::Portion> where) {
            Plan plan{.victims = {}, .where = std::move(where), .cost = {}, .budget_spent = false, .kind = kind};
            for (const NearbyItem& item : chosen) {
                if (item.spare.empty()) {
                    plan.victims.push_back(item.job);
                } else if (const auto known = std::ranges::find(plan.shrinks, item.job, &Shrink::job);
                           known != plan.shrinks.end()) {
                    known->seats.push_back(item.spare.front());
                    --plan.cost.jobs;
                } else {
                    plan.shrinks.push_back({item.job, item.spare});
                }
                plan.cost += item.cost;
            }
            return plan;
        };
        std::int64_t sum = 0;
        for (const Option& option : bin) sum += option.base;
        std::vector<FleetIndex::Portion> where;
        for (const Option& option : bin) {
            if (sum >= tasks) where = fits();
            if (!where.empty()) break;
            if (option.full == option.base) continue;
            const std::size_t before = chosen.size();
            for (const NearbyItem& item : option.items)
                if (!item.spare.empty() || !state.gone[item.job]) {
                    mark(item, true);
                    chosen.push_back(item);
                }
            // One branch would lose too much: perhaps another has something on another node.
            std::vector<Protection::Taken> taken;
            for (const NearbyItem& item : chosen) {
                const JobRec& rec = state.jobs[item.job];
                const std::int64_t size = item.spare.empty() ? rec.holds() : rec.job.counted(1);
                taken.push_back({rec.job.tenant, size, size});
            }
            if (!protection.in_order(taken, gently)) {
                for (std::size_t i = before; i < chosen.size(); ++i) mark(chosen[i], false);
                chosen.resize(before);
                cut = true;
                continue;
            }
            sum += option.full - option.base;
        }
        if (where.empty()) where = fits();
        if (!where.empty()) {
            std::ranges::sort(chosen, more_expensive);
            for (std::size_t i = 0; i < chosen.size();) {
                mark(chosen[i], false);
                if (auto still = fits(); !still.empty()) {
                    where = std::move(still);
                    chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
                } else {
                    mark(chosen[i++], true);
                }
            }
        }
        for (const NearbyItem& item : chosen) mark(item, false);
        if (where.empty()) continue;
        Plan plan = plan_of(std::move(where));
        if (!acceptable(plan))
            cut = true;
        else if (!best || plan.cost < best->cost)
            best = std::move(plan);
    }
    if (best) best->budget_spent = cut;
    spent = !best && cut;
    return best;
}

}  // namespace bulkhead::sched
