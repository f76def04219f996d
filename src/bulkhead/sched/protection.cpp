// Whose work is protected, seen from a claimant, and how much the others may be made to give.
#include <algorithm>
#include <limits>

#include "bulkhead/sched/plan_search.hpp"

namespace bulkhead::sched {

namespace {

constexpr std::int64_t without_bound = std::numeric_limits<std::int64_t>::max() / 4;

}  // namespace

Engine::State::Protection::Protection(const State& of, JobNo job, Law by, const PlanAsk& ask)
    : state{of}, law{by}, claimant{of.jobs[job].job.tenant}, asked{of.least_of(job)}, moving{ask.moving} {
    const std::size_t count = state.tenants.size();
    const std::vector<TenantNo>& mine = state.tenants[claimant].line;
    const auto step_of = [&](TenantNo tenant) {
        return static_cast<std::uint32_t>(std::ranges::find(mine, tenant) - mine.begin());
    };
    const auto target = [&](const TenantRec& tenant) { return law == Law::guarantee ? tenant.guarantee : tenant.due; };
    for (const TenantNo holder : mine)
        slack.push_back(target(state.tenants[holder]) - state.tenants[holder].will_hold() - asked);
    needs_credit = std::ranges::any_of(slack, [](std::int64_t left) { return left < 0; });
    const TenantRec& its = state.tenants[claimant];
    own_slack = (law == Law::guarantee ? state.own_guarantee(claimant) : its.own_due) - its.own_will_hold() - asked;
    claims = asked > 0;

    excess.assign(2 * count, without_bound);
    most.assign(2 * count, without_bound);
    meets.assign(count, 0);
    gives.assign(count, false);
    within.assign(count, false);
    if (law == Law::priority) {
        gives[claimant] = true;
        return;
    }
    for (TenantNo number = 0; number < count; ++number) {
        const TenantRec& tenant = state.tenants[number];
        const std::int64_t own_floor = state.own_guarantee(number);
        excess[number] = tenant.has() - tenant.guarantee;
        excess[count + number] = tenant.own_has() - own_floor;
        if (law == Law::share) {
            // The last one that goes may take a level below its due, never below its guarantee.
            most[number] = excess[number];
            most[count + number] = excess[count + number];
            excess[number] = std::min(excess[number], tenant.has() - tenant.due);
            if (tenant.facts.hard) excess[number] = 0;  // it would take back what it gives
            excess[count + number] = std::min(excess[count + number], tenant.own_has() - tenant.own_due);
        }
        std::uint32_t meet = static_cast<std::uint32_t>(mine.size());
        for (const TenantNo holder : tenant.line)
            if (const std::uint32_t step = step_of(holder); step < mine.size()) {
                meet = step;
                break;
            }
        meets[number] = meet;
    }
    for (TenantNo number = 0; number < count; ++number) {
        const TenantRec& tenant = state.tenants[number];
        if (number == claimant || tenant.own == 0) continue;
        bool above = true;
        each_level(number, [&](Level level) {
            above = above && excess[level] > 0;
            const std::int64_t holds = level < count ? state.tenants[level].has() : tenant.own_has();
            const std::int64_t guaranteed =
                level < count ? state.tenants[level].guarantee : state.own_guarantee(number);
            if (holds <= guaranteed) within[number] = true;
        });
        if (ask.inside && std::ranges::find(tenant.line, *ask.inside) == tenant.line.end()) continue;
        gives[number] = (moving ? !within[number] : above) && claims;
    }
    if (moving) gives[claimant] = claims;
    if (moving || !needs_credit) return;
    std::vector<Taken> all;
    for (TenantNo number = 0; number < count; ++number)
        if (gives[number]) all.push_back({number, state.tenants[number].own_has(), 0});
    const std::size_t furthest = reach(all);
    for (TenantNo number = 0; number < count; ++number)
        if (meets[number] > furthest) gives[number] = false;
}

std::size_t Engine::State::Protection::reach(std::span<const Taken> at_most) const {
    for (std::size_t step = 0; step < slack.size(); ++step) {
        std::int64_t left = slack[step];
        for (const Taken& each : at_most)
            if (meets[each.tenant] <= step) left += each.gpus;
        if (left < 0) return step;
    }
    return slack.size();
}

std::int64_t Engine::State::Protection::takeable(TenantNo tenant, bool gently) const {
    if (!gives[tenant]) return 0;
    if (law == Law::priority || moving) return without_bound;
    std::int64_t out = without_bound;
    each_level(tenant, [&](Level level) { out = std::min(out, gently ? excess[level] : most[level]); });
    return out;
}

bool Engine::State::Protection::in_order(std::span<const Taken> taken, bool gently) const {
    if (law == Law::priority || moving) return true;
    struct Loss {
        Level level = 0;
        std::int64_t sum = 0, largest = 0;
    };
    std::vector<Loss> losses;
    for (const Taken& each : taken)
        each_level(each.tenant, [&](Level level) {
            auto known = std::ranges::find(losses, level, &Loss::level);
            if (known == losses.end()) known = losses.insert(losses.end(), Loss{level, 0, 0});
            known->sum += each.gpus;
            known->largest = std::max(known->largest, each.largest);
        });
    return std::ranges::all_of(losses, [&](const Loss& loss) {
        if (loss.sum > most[loss.level]) return false;
        return gently ? loss.sum <= excess[loss.level] : loss.sum - loss.largest < excess[loss.level];
    });
}

bool Engine::State::Protection::owed_after(std::span<const Taken> taken) const {
    if (law == Law::priority) return true;
    if (!claims) return false;
    // The own work of a tenant with children stays within its own part, from wherever the room comes.
    if (has_own_level(claimant) && own_slack < 0) return false;
    std::size_t highest = taken.empty() ? slack.size() : 0;
    for (const Taken& each : taken) highest = std::max<std::size_t>(highest, meets[each.tenant]);
    for (std::size_t step = 0; step < highest; ++step) {
        std::int64_t given = 0;
        for (const Taken& each : taken)
            if (meets[each.tenant] <= step) given += each.gpus;
        if (slack[step] + given < 0) return false;
    }
    return true;
}

bool Engine::State::Protection::may_claim() const {
    if (law == Law::priority) return true;
    if (!claims) return false;
    return slack.empty() || slack.front() >= 0 || !state.tenants[claimant].children.empty();
}

bool Engine::State::is_guarantee_claim(JobNo job) const {
    const std::int64_t asked = least_of(job);
    if (asked <= 0) return false;
    const TenantRec& its = tenants[jobs[job].job.tenant];
    if (!its.children.empty() && its.own_will_hold() + asked > own_guarantee(jobs[job].job.tenant)) return false;
    return std::ranges::all_of(
        its.line, [&](TenantNo holder) { return tenants[holder].will_hold() + asked <= tenants[holder].guarantee; });
}

// The minimum run time is read one step below where the two branches meet, on the victim's side.
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

std::optional<TenantNo> Engine::State::limited_by(const Job& job, std::int64_t tasks) const {
    const std::int64_t asked = job.counted(tasks) + would_keep(job, tasks, false);
    for (const TenantNo number : tenants[job.tenant].line)
        if (tenants[number].would_exceed(asked)) return number;
    return std::nullopt;
}

}  // namespace bulkhead::sched
