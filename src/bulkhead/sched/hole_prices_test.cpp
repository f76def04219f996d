#include "bulkhead/sched/hole_prices.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>

namespace bulkhead::sched {
namespace {

TEST(HolePrices, halves_are_worth_half_and_less_is_worth_nothing) {
    const HolePrices prices{{{500, 10}}};
    EXPECT_EQ(prices.value(0), 0);
    EXPECT_EQ(prices.value(499), 0);
    EXPECT_EQ(prices.value(500), 500);
    EXPECT_EQ(prices.value(999), 500);
    EXPECT_EQ(prices.value(1000), 1000);
}

TEST(HolePrices, what_nobody_can_use_beside_it_is_paid_by_who_takes_the_rest) {
    // 810 leaves 190, which 160 could take; but there are far more of the large, so most holes stay: 190 is worth
    // nothing.
    const HolePrices many{{{810, 1000}, {160, 10}}};
    EXPECT_EQ(many.value(810), 1000);
    EXPECT_EQ(many.value(190), 0);
    // Where the small are the many, six of them fill a GPU, and the large must give up as much as they take.
    const HolePrices few{{{810, 10}, {160, 1000}}};
    EXPECT_EQ(few.value(160), 167);
    EXPECT_EQ(few.value(190), 167);
}

TEST(HolePrices, nobody_asks_nothing_is_worth_anything) {
    EXPECT_EQ(HolePrices{}.value(1000), 0);
    EXPECT_EQ((HolePrices{{{1000, 5}, {0, 5}, {300, 0}}}).value(999), 0);
}

// Feasible: no way to fill a GPU is worth more than one. Good: all that is asked for is worth no more than the GPUs
// that any packing of it takes, and no less than its volume.
RC_GTEST_PROP(HolePrices, are_the_dual_of_a_packing, ()) {
    std::vector<HolePrices::Size> sizes;
    const int count = *rc::gen::inRange(1, 8);
    for (int i = 0; i < count; ++i) {
        const std::int32_t share = *rc::gen::inRange(1, 20) * 50;
        if (std::ranges::find(sizes, share, &HolePrices::Size::share) == sizes.end())
            sizes.push_back({share, *rc::gen::inRange<std::int64_t>(1, 40)});
    }
    const HolePrices prices{sizes};
    std::vector<std::int32_t> items;
    std::int64_t volume = 0;
    for (const auto& [share, number] : sizes) {
        items.insert(items.end(), static_cast<std::size_t>(number), share);
        volume += share * number;
    }
    for (std::int32_t free = 1; free <= 1000; ++free) {
        RC_ASSERT(prices.value(free) >= prices.value(free - 1));
        for (const auto& [share, number] : sizes)  // what is put in leaves a hole that was priced as well
            if (share <= free) RC_ASSERT(prices.value(free) >= prices.value(free - share));
    }
    // First-fit decreasing: a packing that exists.
    std::ranges::sort(items, std::greater{});
    std::vector<std::int32_t> bins;
    for (const std::int32_t item : items) {
        auto bin = std::ranges::find_if(bins, [&](std::int32_t left) { return left >= item; });
        if (bin == bins.end()) bin = bins.insert(bins.end(), 1000);
        *bin -= item;
    }
    std::int64_t worth = 0;
    for (const std::int32_t item : items) worth += prices.value(item);
    const auto rounding = static_cast<std::int64_t>(items.size());
    RC_ASSERT(worth + rounding >= volume);
    // A price of a hole may be more than that of the one item in it, where two smaller are worth more; so only where
    // each item is the best use of its size does the bound from above hold.
    if (sizes.size() == 1) RC_ASSERT(worth <= static_cast<std::int64_t>(bins.size()) * 1000 + rounding);
}

}  // namespace
}  // namespace bulkhead::sched
