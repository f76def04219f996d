// What holds of every division, whatever the tree.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "bulkhead/sched/division.hpp"

namespace bulkhead::sched {
namespace {

std::int64_t below(std::int64_t end) { return *rc::gen::inRange<std::int64_t>(0, end); }

// Numbers small enough to collide, odd so that rounding has work to do: all in thousandths, or down to the unit.
struct Amounts {
    bool thousandths = below(2) == 0;
    Gpus below_gpus(std::int64_t gpus) const {
        return thousandths ? Gpus::of_thousandths(below(gpus * 1000)) : Gpus{below(gpus * gpu_unit)};
    }
};
std::vector<Queue> any_tree(bool flat, Amounts amounts = {}) {
    std::vector<Queue> out(static_cast<std::size_t>(below(9)));
    for (std::size_t i = 0; i < out.size(); ++i) {
        Queue& queue = out[i];
        queue.name = "q" + std::to_string(i);
        if (!flat && i > 0 && below(3) > 0)
            queue.parent = static_cast<std::size_t>(below(static_cast<std::int64_t>(i)));
        if (below(2) == 0) queue.guarantee = amounts.below_gpus(9);
        if (below(3) == 0) queue.limit = amounts.below_gpus(12);
        queue.weight = below(4);
        queue.over_quota_priority = below(3);
        if (below(4) > 0) queue.request = amounts.below_gpus(20);
        queue.seniority = below(3);
        queue.hard = below(4) == 0;
    }
    return out;
}
Gpus any_total() { return Amounts{}.below_gpus(30); }
Grain any_grain() { return below(2) == 0 ? Grain::whole : Grain::fine; }

RC_GTEST_PROP(Division, hands_everything_on_and_keeps_every_bound, ()) {
    const std::vector<Queue> tree = any_tree(false);
    const Gpus total = any_total();
    const Grain grain = any_grain();
    const std::int64_t unit = grain == Grain::whole ? gpu_unit : 1;
    const Division division = divide(tree, total, grain);
    std::vector<std::int64_t> handed_on(tree.size());
    std::int64_t of_roots = 0;
    for (std::size_t i = 0; i < tree.size(); ++i) {
        const QueueShare& due = division.queues[i];
        RC_ASSERT(due.share.units % unit == 0 && due.share >= due.own && due.own >= Gpus{});
        RC_ASSERT(due.own.units < tree[i].request.units + unit);
        if (tree[i].limit) RC_ASSERT(due.share <= *tree[i].limit);
        if (tree[i].weight == 0) RC_ASSERT(due.share.units < tree[i].guarantee.units + unit);
        handed_on[i] += due.own.units;
        (tree[i].parent ? handed_on[*tree[i].parent] : of_roots) += due.share.units;
    }
    for (std::size_t i = 0; i < tree.size(); ++i) RC_ASSERT(handed_on[i] == division.queues[i].share.units);
    RC_ASSERT(division.unallocated.units == total.units - of_roots);
    RC_ASSERT(division.unallocated >= Gpus{});
}

RC_GTEST_PROP(Division, leaves_nothing_that_a_root_may_take, ()) {
    const std::vector<Queue> flat = any_tree(true);
    const Division division = divide(flat, any_total());
    if (division.unallocated == Gpus{}) return;
    for (std::size_t i = 0; i < flat.size(); ++i) {
        Gpus most = std::min(flat[i].request, flat[i].limit.value_or(flat[i].request));
        if (flat[i].weight == 0) most = std::min(most, flat[i].guarantee);
        RC_ASSERT(division.queues[i].share == most);
    }
}

RC_GTEST_PROP(Division, keeps_every_guarantee_that_fits, ()) {
    const std::vector<Queue> flat = any_tree(true);
    const Gpus total = any_total();
    const auto owed = [](const Queue& each) {
        return std::min({each.request, each.guarantee, each.limit.value_or(each.request)});
    };
    std::int64_t all = 0;
    for (const Queue& each : flat) all += owed(each).units;
    const Division division = divide(flat, total);
    for (std::size_t i = 0; i < flat.size(); ++i) {
        const Gpus share = division.queues[i].share, due = owed(flat[i]);
        RC_ASSERT((all <= total.units ? share >= due : share <= due));
    }
}

RC_GTEST_PROP(Division, honours_guarantees_that_do_not_all_fit_whole_and_in_order, ()) {
    const std::vector<Queue> flat = any_tree(true);
    const Gpus total = any_total();
    const auto owed = [](const Queue& each) {
        return std::min({each.request, each.guarantee, each.limit.value_or(each.request)});
    };
    const auto before = [](const Queue& a, const Queue& b) {
        return std::tuple{!a.hard, -a.over_quota_priority, a.seniority, a.name} <
               std::tuple{!b.hard, -b.over_quota_priority, b.seniority, b.name};
    };
    std::int64_t all = 0;
    for (const Queue& each : flat) all += owed(each).units;
    if (all <= total.units) return;
    const Division division = divide(flat, total);
    RC_ASSERT(division.unallocated == Gpus{});
    for (std::size_t i = 0; i < flat.size(); ++i)
        for (std::size_t j = 0; j < flat.size(); ++j)
            if (before(flat[i], flat[j]) && division.queues[i].share < owed(flat[i]))
                RC_ASSERT(division.queues[j].share == Gpus{});
}

RC_GTEST_PROP(Division, lends_nothing_past_a_higher_priority_that_still_asks, ()) {
    const std::vector<Queue> flat = any_tree(true);
    const Division division = divide(flat, any_total());
    for (std::size_t i = 0; i < flat.size(); ++i)
        for (std::size_t j = 0; j < flat.size(); ++j) {
            if (flat[i].over_quota_priority <= flat[j].over_quota_priority || flat[i].weight == 0) continue;
            const bool still_asks =
                division.queues[i].share < std::min(flat[i].request, flat[i].limit.value_or(flat[i].request));
            if (still_asks) RC_ASSERT(division.queues[j].share <= flat[j].guarantee);
        }
}

RC_GTEST_PROP(Division, more_of_anything_never_costs_more_than_a_unit_of_rounding, ()) {
    std::vector<Queue> flat = any_tree(true);
    if (flat.empty()) return;
    Gpus total = any_total();
    const Grain grain = any_grain();
    const std::int64_t unit = grain == Grain::whole ? gpu_unit : 2 * gpu_unit / 1000;
    const auto at = static_cast<std::size_t>(below(static_cast<std::int64_t>(flat.size())));
    const std::int64_t before = divide(flat, total, grain).queues[at].share.units;
    const std::int64_t more = 1 + below(5 * gpu_unit);
    switch (below(4)) {
        case 0:
            flat[at].request.units += more;
            break;
        case 1:
            flat[at].guarantee.units += more;
            break;
        case 2:
            flat[at].weight += 1 + below(3);
            break;
        default:
            total.units += more;
            break;
    }
    RC_ASSERT(divide(flat, total, grain).queues[at].share.units >= before - unit);
}

RC_GTEST_PROP(Division, does_not_ask_in_which_order_queues_come, ()) {
    const std::vector<Queue> tree = any_tree(false);
    const Gpus total = any_total();
    const Grain grain = any_grain();
    std::vector<std::size_t> order(tree.size()), now_at(tree.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
    std::vector<Queue> shuffled;
    for (const std::size_t i : order) {
        now_at[i] = shuffled.size();
        shuffled.push_back(tree[i]);
    }
    for (Queue& queue : shuffled)
        if (queue.parent) queue.parent = now_at[*queue.parent];
    const Division division = divide(tree, total, grain), again = divide(shuffled, total, grain);
    for (std::size_t i = 0; i < tree.size(); ++i) RC_ASSERT(again.queues[now_at[i]] == division.queues[i]);
}

// Whole GPUs and parts differ by less than one GPU, where all numbers are whole.
RC_GTEST_PROP(Division, whole_gpus_add_up_to_what_parts_do, ()) {
    std::vector<Queue> flat = any_tree(true);
    const auto rounded = [](Gpus amount) { return Gpus::whole(amount.units / gpu_unit); };
    for (Queue& queue : flat) {
        queue.guarantee = rounded(queue.guarantee);
        queue.request = rounded(queue.request);
        if (queue.limit) queue.limit = rounded(*queue.limit);
    }
    const Gpus total = rounded(any_total());
    const Division exact = divide(flat, total), whole = divide(flat, total, Grain::whole);
    RC_ASSERT(whole.unallocated == exact.unallocated);
    for (std::size_t i = 0; i < flat.size(); ++i) {
        const std::int64_t apart = whole.queues[i].share.units - exact.queues[i].share.units;
        RC_ASSERT(apart > -gpu_unit && apart < gpu_unit);
    }
}

}  // namespace
}  // namespace bulkhead::sched
