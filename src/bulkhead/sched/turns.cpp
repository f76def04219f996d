// What a tenant may hold, what it is due, and whose turn it is.
#include <algorithm>
#include <tuple>

#include "bulkhead/sched/decay.hpp"
#include "bulkhead/sched/division.hpp"
#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

namespace {

struct Place {
    std::int64_t urgency = 0;
    Instant submitted;
    JobNo job = 0;
};

std::int64_t capped(Wide usage) { return static_cast<std::int64_t>(std::min(usage, Wide{1} << 62)); }

}  // namespace

void Engine::State::set_tenants(std::vector<TenantFacts> facts) {
    std::vector<TenantRec> before = std::move(tenants);
    tenants.clear();
    tenants.resize(std::max(before.size(), facts.size()));
    std::vector<Parent> parents(tenants.size());
    std::vector<std::uint32_t> domains(tenants.size());
    for (std::size_t i = 0; i < tenants.size(); ++i) {
        TenantRec& tenant = tenants[i];
        if (i < before.size()) {
            tenant.own = before[i].own;
            tenant.waiting = before[i].waiting;
            tenant.own_coming = before[i].own_coming;
            tenant.pinned = 0;
            tenant.own_pinned = before[i].own_pinned;
            tenant.usage = before[i].usage;
            tenant.ended = before[i].ended;
        }
        if (i < facts.size()) {
            if (i >= before.size())
                tenant.usage =
                    capped(static_cast<Wide>(facts[i].usage) * gpu_unit * 1000 + static_cast<Wide>(facts[i].usage_ms));
            tenant.facts = std::move(facts[i]);
        } else {
            tenant.facts = std::move(before[i].facts);
        }
        parents[i] = tenant.facts.parent;
        domains[i] = tenant.facts.domain;
    }
    const Forest forest = forest_of(std::span<const Parent>{parents});
    roots.assign(forest.roots.begin(), forest.roots.end());
    down.assign(forest.down.begin(), forest.down.end());
    for (const TenantNo number : down) {
        TenantRec& tenant = tenants[number];
        tenant.children.assign(forest.children[number].begin(), forest.children[number].end());
        tenant.line = {number};
        if (tenant.facts.parent) {
            const std::vector<TenantNo>& above = tenants[*tenant.facts.parent].line;
            tenant.line.insert(tenant.line.end(), above.begin(), above.end());
        }
        tenant.guarantee = tenant.facts.guarantee.units;
        for (const TenantNo holder : tenant.line) {
            tenants[holder].held += tenant.own;
            tenants[holder].coming.add(tenant.own_coming);
        }
    }
    for (auto number = down.rbegin(); number != down.rend(); ++number) {
        std::int64_t below = 0;
        for (const TenantNo child : tenants[*number].children) below += tenants[child].guarantee;
        tenants[*number].guarantee = std::max(tenants[*number].guarantee, below);
    }
    for (const JobNo job : running)
        if (!jobs[job].job.preemptible)
            for (const TenantNo holder : tenants[jobs[job].job.tenant].line)
                tenants[holder].pinned += jobs[job].holds();
    recount_all_kept();
    fleet.set_domains(std::move(domains));
    entitlements_stale = true;
    fixed_nodes.known = false;
    dues_stale = true;
    count_owed();
}

// A guarantee is out of that of the nearest above it that has one.
void Engine::State::count_owed() {
    owed = 0;
    for (TenantRec& tenant : tenants)
        tenant.owed = tenant.facts.hard ? std::max<std::int64_t>(tenant.facts.guarantee.units - tenant.held, 0) : 0;
    for (auto number = down.rbegin(); number != down.rend(); ++number) {
        const TenantRec& tenant = tenants[*number];
        if (tenant.owed == 0) continue;
        for (std::size_t i = 1; i < tenant.line.size(); ++i)
            if (TenantRec& above = tenants[tenant.line[i]]; above.facts.hard) {
                above.owed = std::max<std::int64_t>(above.owed - tenant.owed, 0);
                break;
            }
    }
    for (const TenantRec& tenant : tenants) owed += tenant.owed;
}

bool Engine::State::within_quota(const Job& job, std::int64_t tasks, std::int64_t freed) const {
    const std::int64_t asked = job.counted(tasks), keeps = would_keep(job, tasks, false);
    std::int64_t own = 0;
    bool in_own = false;  // it has to go where its tenants keep capacity already
    for (const TenantNo number : tenants[job.tenant].line) {
        const TenantRec& tenant = tenants[number];
        if (tenant.would_exceed(asked + keeps)) {
            if (tenant.would_exceed(asked - tenant.kept)) return false;
            in_own = true;
        }
        if (!job.preemptible && tenant.pinned + tenant.coming.freed_pinned + asked > tenant.guarantee) return false;
        own += tenant.owed;
    }
    if (in_own && room_in_own(job, static_cast<std::int32_t>(tasks)).empty()) return false;
    // What hard partitions are owed is never lent: whoever takes beyond its own leaves that much.
    const std::int64_t others = owed - own, beyond = asked - std::min(asked, own);
    return others <= 0 || beyond <= 0 || fleet.free_units() + freed - spoken_for() - beyond >= others;
}

std::int64_t Engine::State::spoken_for() const {
    std::int64_t sum = 0;
    for (const RoomClaim& claim : claims) {
        if (!claim.firm() || claim.seats.empty()) continue;
        std::int64_t its_own = 0;
        for (const TenantNo holder : tenants[jobs[claim.job].job.tenant].line) its_own += tenants[holder].owed;
        sum += std::max<std::int64_t>(least_of(claim.job) - its_own, 0);
    }
    if (sum == 0) return 0;
    for (const TenantNo root : roots) sum -= tenants[root].coming.leaving;
    return std::max<std::int64_t>(sum, 0);
}

std::optional<Reason> Engine::State::over_quota(const Job& job, std::int64_t tasks) const {
    if (within_quota(job, tasks)) return std::nullopt;
    if (auto keeps = keeps_over_limit(job, tasks, would_keep(job, tasks, false))) return keeps;
    const std::int64_t asked = job.counted(tasks);
    for (const TenantNo number : tenants[job.tenant].line) {
        const TenantRec& tenant = tenants[number];
        if (tenant.would_exceed(asked))
            return Reason{number == job.tenant ? "wait.quota" : "wait.parent-quota",
                          {{"asked", print(Gpus{asked})},
                           {"held", print(Gpus{tenant.counts()})},
                           {"limit", print(Gpus{*tenant.most()})}}};
        const std::int64_t pinned = tenant.pinned + tenant.coming.freed_pinned;
        if (!job.preemptible && pinned + asked > tenant.guarantee)
            return Reason{"wait.pinned",
                          {{"asked", print(Gpus{asked})},
                           {"held", print(Gpus{pinned})},
                           {"guarantee", print(Gpus{tenant.guarantee})}}};
    }
    return Reason{"wait.reserved", {{"asked", print(Gpus{asked})}}};
}

void Engine::State::divide_now() {
    if (!dues_stale) return;
    dues_stale = false;
    std::vector<Queue> queues;
    queues.reserve(tenants.size());
    for (const TenantRec& tenant : tenants) {
        const TenantFacts& facts = tenant.facts;
        std::optional<Gpus> limit;
        if (const auto most = tenant.most()) limit = Gpus{*most};
        queues.push_back({facts.name, facts.parent, facts.guarantee, limit, facts.weight, facts.over_quota_priority,
                          Gpus{tenant.own + tenant.waiting}, facts.seniority, facts.hard});
    }
    // What hard partitions are guaranteed and nobody there asks for is lent to nobody: it is not there to be divided.
    std::vector<std::int64_t> asked(tenants.size());
    for (const TenantRec& tenant : tenants)
        for (const TenantNo holder : tenant.line) asked[holder] += tenant.own + tenant.waiting;
    std::int64_t idle = 0;
    for (TenantNo number = 0; number < tenants.size(); ++number) {
        const TenantRec& tenant = tenants[number];
        const bool inner = std::any_of(tenant.line.begin() + 1, tenant.line.end(),
                                       [&](TenantNo holder) { return tenants[holder].facts.hard; });
        if (tenant.facts.hard && !inner)
            idle += std::max<std::int64_t>(tenant.facts.guarantee.units - asked[number], 0);
    }
    // What is leased beyond a limit that was lowered is not there either, until it is given up.
    std::vector<std::int64_t> beyond(tenants.size());
    for (auto number = down.rbegin(); number != down.rend(); ++number) {
        const TenantRec& tenant = tenants[*number];
        if (const auto most = tenant.most()) beyond[*number] = std::max(beyond[*number], tenant.has() - *most);
        (tenant.facts.parent ? beyond[*tenant.facts.parent] : idle) += beyond[*number];
    }
    const Gpus total{std::max<std::int64_t>(fleet.total_units() - idle, 0)};
    Division division = divide(queues, total);
    // Where only whole GPUs are asked for, parts of them are of no use to anyone.
    if (fractional == 0 && !is_whole(division)) {
        rank_for_rest(queues, division);
        division = divide(queues, total, Grain::whole);
    }
    for (std::size_t i = 0; i < tenants.size(); ++i) {
        tenants[i].due = division.queues[i].share.units;
        tenants[i].own_due = division.queues[i].own.units;
    }
}

// Work that ended since the last cycle counts up to this one: the engine is not told the moment.
void Engine::State::age(Instant now) {
    if (!aged) aged = now;
    if (const Duration passed = now - *aged; passed.ms > 0) {
        for (TenantRec& tenant : tenants)
            tenant.usage = capped(Wide{static_cast<std::uint64_t>(decayed(tenant.usage, passed, settings.half_life))} +
                                  static_cast<Wide>(tenant.own + tenant.ended) * static_cast<Wide>(passed.ms));
        aged = now;
    }
    for (TenantRec& tenant : tenants) tenant.ended = 0;
    // Fair Tree counts up to most_usage: all in units as fine as that allows.
    std::int64_t largest = 0;
    for (const TenantRec& tenant : tenants) largest = std::max(largest, tenant.usage);
    const std::int64_t coarse = largest / most_usage + 1;
    // Levels for the walk: an inner tenant's own work is a user of its own below it.
    std::vector<Association> associations;
    std::vector<std::size_t> place(tenants.size()), own_place(tenants.size());
    for (const TenantNo number : down) {
        const TenantRec& tenant = tenants[number];
        const std::int64_t usage = tenant.usage / coarse;
        const Parent above = tenant.facts.parent ? Parent{place[*tenant.facts.parent]} : Parent{};
        place[number] = associations.size();
        associations.push_back({above, tenant.facts.shares, tenant.children.empty() ? usage : 0});
        own_place[number] = place[number];
        if (tenant.children.empty()) continue;
        own_place[number] = associations.size();
        associations.push_back({place[number], 1, usage});
    }
    const FairTree tree = fair_tree(associations);
    for (TenantNo number = 0; number < tenants.size(); ++number) {
        tenants[number].level = tree.standings[place[number]].level;
        tenants[number].own_level = tree.standings[own_place[number]].level;
    }
}

// A deadline lifts priority towards the tenant's grant as the time in which the work could still wait runs out: from
// its own priority when that is as long as the work itself, to the whole grant when it is none. Work that can no longer
// make it is not lifted.
std::int64_t Engine::State::urgency(const Job& job, Instant now) const {
    if (!job.deadline || !job.duration || job.duration->ms <= 0) return job.priority;
    const std::int64_t slack = job.deadline->ms - now.ms - job.duration->ms, window = job.duration->ms;
    const std::int64_t grant = tenants[job.tenant].facts.grant;
    if (slack < 0 || slack >= window || grant <= job.priority) return job.priority;
    return job.priority + static_cast<std::int64_t>(static_cast<Wide>(grant - job.priority) *
                                                    static_cast<Wide>(window - slack) / static_cast<Wide>(window));
}

// Of two jobs of equal priority that came at the same moment the larger one. Only between jobs that are alike in all
// that matters for room does their number decide, so that the order of arrival does not change what tenants get.
bool Engine::State::goes_before(JobNo a, JobNo b) const {
    const Job &x = jobs[a].job, &y = jobs[b].job;
    const auto size = [](const Job& job) {
        const std::int64_t least = job.counted(job.least > 0 ? job.least : job.tasks);
        return std::tuple{-least, -job.counted(job.tasks), -job.tasks, job.least};
    };
    if (size(x) != size(y)) return size(x) < size(y);
    const auto kind = [&](const Job& job) {
        return std::tuple{job.preemptible,
                          job.within,
                          job.prefer,
                          job.group,
                          job.group_within,
                          job.duration.value_or(Duration{}).ms,
                          job.checkpoint.value_or(Duration{}).ms};
    };
    if (kind(x) != kind(y)) return kind(x) < kind(y);
    if (x.shape != y.shape) {
        const std::uint64_t one = fleet.shape(x.shape).content, other = fleet.shape(y.shape).content;
        if (one != other) return one < other;
    }
    return x.key < y.key;
}

void Engine::State::line_up(Instant now, bool guarantees) {
    for (TenantRec& tenant : tenants) {
        tenant.queue.clear();
        tenant.next = 0;
        tenant.untried = 0;
    }
    for (const JobNo job : pending) {
        const JobRec& rec = jobs[job];
        if (rec.job.held_back) continue;
        if (guarantees ? !may_be_guaranteed(job) : rec.served_in == cycles) continue;
        tenants[rec.job.tenant].queue.push_back(job);
    }
    for (TenantRec& tenant : tenants) {
        if (tenant.queue.empty()) continue;
        std::vector<Place> order;
        order.reserve(tenant.queue.size());
        for (const JobNo job : tenant.queue)
            order.push_back({-urgency(jobs[job].job, now), jobs[job].job.submitted, job});
        std::ranges::sort(order, [&](const Place& a, const Place& b) {
            if (a.urgency != b.urgency) return a.urgency < b.urgency;
            return a.submitted != b.submitted ? a.submitted < b.submitted : goes_before(a.job, b.job);
        });
        for (std::size_t i = 0; i < order.size(); ++i) tenant.queue[i] = order[i].job;
        for (const TenantNo holder : tenant.line) tenants[holder].untried += std::ssize(tenant.queue);
    }
}

std::optional<JobNo> Engine::State::next_in_turn() {
    // One of several that stand side by side: a tenant with everyone below it, or the own work of the one above.
    struct Side {
        TenantNo tenant = 0;
        bool own = false;
        std::int64_t held = 0, due = 0;
        const Fraction* level = nullptr;
    };
    const auto before = [&](const Side& a, const Side& b) {
        if ((a.held < a.due) != (b.held < b.due)) return a.held < a.due;
        if (const auto order = compare(*a.level, *b.level); order != 0) return order > 0;
        const Wide left = static_cast<Wide>(a.held) * static_cast<Wide>(b.due);
        const Wide right = static_cast<Wide>(b.held) * static_cast<Wide>(a.due);
        if (left != right) return left < right;
        if (a.own != b.own) return a.own;
        const TenantFacts &x = tenants[a.tenant].facts, &y = tenants[b.tenant].facts;
        if (x.seniority != y.seniority) return x.seniority < y.seniority;
        return x.name != y.name ? x.name < y.name : a.tenant < b.tenant;
    };
    const std::vector<TenantNo>* among = &roots;
    std::optional<Side> above;
    while (true) {
        std::optional<Side> best;
        const auto consider = [&](const Side& side) {
            if (!best || before(side, *best)) best = side;
        };
        for (const TenantNo number : *among) {
            const TenantRec& tenant = tenants[number];
            // Below its guarantee a tenant is short, also where capacity is too small for all guarantees: then the turn
            // goes by use, and no tenant waits behind another for ever.
            if (tenant.untried > 0)
                consider({number, false, tenant.will_hold(), std::max(tenant.due, tenant.guarantee), &tenant.level});
        }
        if (above) {
            const TenantRec& tenant = tenants[above->tenant];
            if (tenant.next < tenant.queue.size())
                consider({above->tenant, true, tenant.own_will_hold(), tenant.own_due, &tenant.own_level});
        }
        if (!best) return std::nullopt;
        TenantRec& tenant = tenants[best->tenant];
        if (best->own || tenant.children.empty()) {
            const JobNo job = tenant.queue[tenant.next++];
            for (const TenantNo holder : tenant.line) --tenants[holder].untried;
            return job;
        }
        among = &tenant.children;
        above = best;
    }
}

bool Engine::State::fits_due(JobNo number) const {
    const std::int64_t asked = least_of(number);
    return std::ranges::all_of(tenants[jobs[number].job.tenant].line,
                               [&](TenantNo holder) { return asked <= tenants[holder].due; });
}

bool Engine::State::deserves(JobNo number) const {
    const JobRec& job = jobs[number];
    const std::int64_t asked = least_of(number);
    const TenantRec& tenant = tenants[job.job.tenant];
    if (!tenant.children.empty() && tenant.own_will_hold() + asked > tenant.own_due) return false;
    return std::ranges::all_of(
        tenant.line, [&](TenantNo holder) { return tenants[holder].will_hold() + asked <= tenants[holder].due; });
}

}  // namespace bulkhead::sched
