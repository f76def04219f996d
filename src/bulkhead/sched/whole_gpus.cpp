// Dues in whole GPUs, for tenants whose work asks for nothing else. Exact shares end in parts of GPUs; the GPUs that
// these parts add up to are given out one by one, by the largest part. This file says who comes first where parts are
// equal.
#include <algorithm>
#include <bitset>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

namespace {

constexpr std::size_t most_counted = 1024;  // GPUs of one tenant, up to which sums of its jobs are looked at

}  // namespace

bool Engine::State::is_whole(const Division& division) {
    return std::ranges::all_of(division.queues, [](const QueueShare& queue) {
        return queue.share.units % gpu_unit == 0 && queue.own.units % gpu_unit == 0;
    });
}

// For each tenant without children whose exact share ends in a part: how many more GPUs its jobs could use if that part
// became a whole one. A tenant with one job of two GPUs uses nothing of a share of one, and both of a share of two.
std::vector<std::int64_t> Engine::State::use_of_one_more(const Division& exact) const {
    std::vector<std::int64_t> out(tenants.size());
    std::vector<std::bitset<most_counted>> sums(tenants.size());
    const auto counts = [&](TenantNo tenant) {
        const std::int64_t share = exact.queues[tenant].share.units;
        return tenants[tenant].children.empty() && share % gpu_unit != 0 &&
               share / gpu_unit + 1 < static_cast<std::int64_t>(most_counted);
    };
    const auto add = [&](const JobRec& rec) {
        if (rec.grows != nil || !counts(rec.job.tenant)) return;
        std::bitset<most_counted>& all = sums[rec.job.tenant];
        all.set(0);
        const std::bitset<most_counted> without = all;
        for (std::int64_t tasks = rec.fewest(); tasks <= rec.job.tasks; ++tasks) {
            const std::int64_t gpus = rec.job.counted(tasks) / gpu_unit;
            if (gpus >= static_cast<std::int64_t>(most_counted)) break;
            all |= without << static_cast<std::size_t>(gpus);
        }
    };
    for (const JobNo job : running) add(jobs[job]);
    for (const JobNo job : pending) add(jobs[job]);
    for (TenantNo tenant = 0; tenant < tenants.size(); ++tenant) {
        if (!counts(tenant)) continue;
        const auto used = [&](std::size_t share) {
            while (share > 0 && !sums[tenant].test(share)) --share;
            return static_cast<std::int64_t>(share);
        };
        const auto floor = static_cast<std::size_t>(exact.queues[tenant].share.units / gpu_unit);
        out[tenant] = used(floor + 1) - used(floor);
    }
    return out;
}

// Of equal parts first the tenant that can use most of one more GPU; then the one that holds most beyond its exact
// share, so that nothing changes hands for the sake of rounding; then in the order of turns.
void Engine::State::rank_for_rest(std::vector<Queue>& queues, const Division& exact) const {
    const std::vector<std::int64_t> use = use_of_one_more(exact);
    const auto surplus = [&](TenantNo number) {
        const TenantRec& tenant = tenants[number];  // a mere reservation is no reason to get more
        return tenant.has() + tenant.coming.freed - exact.queues[number].share.units;
    };
    std::vector<TenantNo> order(tenants.size());
    for (TenantNo number = 0; number < order.size(); ++number) order[number] = number;
    std::ranges::sort(order, [&](TenantNo a, TenantNo b) {
        if (use[a] != use[b]) return use[a] > use[b];
        if (surplus(a) != surplus(b)) return surplus(a) > surplus(b);
        if (const auto levels = compare(tenants[a].level, tenants[b].level); levels != 0) return levels > 0;
        const TenantFacts &x = tenants[a].facts, &y = tenants[b].facts;
        if (x.seniority != y.seniority) return x.seniority < y.seniority;
        return x.name != y.name ? x.name < y.name : a < b;
    });
    for (std::size_t i = 0; i < order.size(); ++i) queues[order[i]].seniority = static_cast<std::int64_t>(i);
}

}  // namespace bulkhead::sched
