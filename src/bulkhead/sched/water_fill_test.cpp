// The claims of water_fill.hpp, first as a table, then against a search that shares no code with it.
#include "bulkhead/sched/water_fill.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace bulkhead::sched {
namespace {

using Amounts = std::vector<std::int64_t>;

TEST(WaterFill, divides_by_weight_within_bounds) {
    struct Row {
        std::string_view says;
        std::int64_t amount;
        std::vector<Claim> claims;
        Amounts given;
    };
    const Row rows[] = {
        {"nobody asks", 10, {}, {}},
        {"one claim takes all", 10, {{1, 20}}, {10}},
        {"one claim takes no more than its bound", 10, {{1, 4}}, {4}},
        {"equal weights, equal parts", 10, {{1, 20}, {1, 20}}, {5, 5}},
        {"in proportion to weight", 12, {{2, 20}, {1, 20}}, {8, 4}},
        {"what a bounded claim cannot take is divided again", 12, {{1, 2}, {1, 20}, {1, 20}}, {2, 5, 5}},
        {"and again", 12, {{1, 1}, {1, 3}, {1, 20}}, {1, 3, 8}},
        {"again by weight", 30, {{1, 3}, {1, 99}, {2, 99}}, {3, 9, 18}},
        {"a bound of one part exactly", 12, {{1, 4}, {1, 20}, {1, 20}}, {4, 4, 4}},
        {"weight 0 takes nothing, even where something is left", 10, {{0, 20}, {1, 4}}, {0, 4}},
        {"nothing to give", 0, {{1, 20}}, {0}},
        {"floors, then a unit to the largest remainder", 10, {{1, 99, 0}, {2, 99, 1}, {4, 99, 2}}, {1, 3, 6}},
        {"equal remainders: to the older", 10, {{1, 99, 2}, {1, 99, 0}, {1, 99, 1}}, {3, 4, 3}},
        {"equally old: by name", 11, {{1, 99, 0, "c"}, {1, 99, 0, "b"}, {1, 99, 0, "a"}}, {3, 4, 4}},
        {"large numbers stay exact",
         999'999'999'999,
         {{1'000'000, 1'000'000'000'000}, {999'999, 1'000'000'000'000}},
         {500'000'250'000, 499'999'749'999}},
    };
    for (const Row& row : rows) EXPECT_EQ(water_fill(row.amount, row.claims), row.given) << row.says;
}

struct Case {
    std::int64_t amount = 0;
    std::vector<Claim> claims;
};

const std::string_view names[] = {"a", "b", "c", "d", "e", "f"};

Case any_case() {
    Case out{.amount = *rc::gen::inRange<std::int64_t>(0, 60)};
    const auto count = *rc::gen::inRange<std::size_t>(0, std::size(names) + 1);
    for (std::size_t i = 0; i < count; ++i)
        out.claims.push_back({*rc::gen::inRange<std::int64_t>(0, 5), *rc::gen::inRange<std::int64_t>(0, 25),
                              *rc::gen::inRange<std::int64_t>(0, 3), names[i]});
    return out;
}

std::int64_t sum(const Amounts& amounts) { return std::accumulate(amounts.begin(), amounts.end(), std::int64_t{0}); }

// The water level as a fraction over `scale`, a multiple of every possible sum of weights, found by raising it step by
// step: at a level of L/scale a claim holds min(most, weight * L / scale).
Amounts by_search(const Case& of) {
    constexpr std::int64_t scale = 5'354'228'880;  // least common multiple of 1 to 24
    const auto held = [&](const Claim& claim, std::int64_t level) {
        return std::min(claim.most * scale, claim.weight * level);
    };
    const auto all_held = [&](std::int64_t level) {
        std::int64_t all = 0;
        for (const Claim& claim : of.claims) all += held(claim, level);
        return all;
    };
    std::int64_t low = 0, high = 100 * scale;  // the highest level at which no more is held than there is
    while (low < high) {
        const std::int64_t middle = (low + high + 1) / 2;
        if (all_held(middle) <= of.amount * scale)
            low = middle;
        else
            high = middle - 1;
    }
    Amounts out;
    std::vector<std::pair<std::tuple<std::int64_t, std::int64_t, std::string_view>, std::size_t>> order;
    for (std::size_t i = 0; i < of.claims.size(); ++i) {
        const std::int64_t exact = held(of.claims[i], low);
        out.push_back(exact / scale);
        if (exact % scale != 0) order.push_back({{-(exact % scale), of.claims[i].seniority, of.claims[i].name}, i});
    }
    std::ranges::sort(order);
    for (std::int64_t left = all_held(low) / scale - sum(out), next = 0; left > 0; --left, ++next)
        ++out[order[static_cast<std::size_t>(next)].second];
    return out;
}

RC_GTEST_PROP(WaterFill, is_what_a_rising_level_gives, ()) {
    const Case any = any_case();
    RC_ASSERT(water_fill(any.amount, any.claims) == by_search(any));
}

RC_GTEST_PROP(WaterFill, hands_out_all_it_can_and_keeps_bounds, ()) {
    const Case any = any_case();
    const Amounts given = water_fill(any.amount, any.claims);
    std::int64_t room = 0;
    for (std::size_t i = 0; i < given.size(); ++i) {
        RC_ASSERT(given[i] >= 0 && given[i] <= any.claims[i].most);
        if (any.claims[i].weight == 0) RC_ASSERT(given[i] == 0);
        if (any.claims[i].weight > 0) room += any.claims[i].most;
    }
    RC_ASSERT(sum(given) == std::min(any.amount, room));
}

RC_GTEST_PROP(WaterFill, does_not_ask_in_which_order_claims_come, ()) {
    const Case any = any_case();
    const Amounts given = water_fill(any.amount, any.claims);
    std::vector<std::size_t> order(any.claims.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
    std::vector<Claim> shuffled;
    for (const std::size_t i : order) shuffled.push_back(any.claims[i]);
    const Amounts again = water_fill(any.amount, shuffled);
    for (std::size_t i = 0; i < order.size(); ++i) RC_ASSERT(again[i] == given[order[i]]);
}

}  // namespace
}  // namespace bulkhead::sched
