#include "bulkhead/sched/decay.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace bulkhead::sched {
namespace {

TEST(Decay, halves_with_every_half_life) {
    const Duration week = Duration::days(7);
    struct Row {
        std::string_view says;
        std::int64_t usage;
        Duration age, half_life;
        std::int64_t left;
    };
    const Row rows[] = {
        {"nothing has passed", 1000, {}, week, 1000},
        {"one half-life", 1000, week, week, 500},
        {"three half-lives", 1000, Duration::days(21), week, 125},
        {"rounded down", 1001, week, week, 500},
        {"half a half-life: the root of a half", 1'000'000'000, Duration::hours(84), week, 707'106'781},
        {"a quarter of one", 1'000'000'000, Duration::hours(42), week, 840'896'415},
        {"one and a half", 1'000'000'000, Duration::hours(252), week, 353'553'390},
        {"long ago", 1'000'000'000'000, Duration::days(70'000), week, 0},
        {"the future has not passed", 1000, {-1}, week, 1000},
        {"without a half-life nothing is forgotten", 1000, Duration::days(400), {}, 1000},
        {"nothing used", 0, week, week, 0},
    };
    for (const Row& row : rows) EXPECT_EQ(decayed(row.usage, row.age, row.half_life), row.left) << row.says;
}

RC_GTEST_PROP(Decay, never_grows_and_is_what_the_formula_says, ()) {
    const auto usage = *rc::gen::inRange<std::int64_t>(0, 10'000'000'000'000);
    const auto half_life = *rc::gen::inRange<std::int64_t>(1, 100'000'000'000);
    const auto age = *rc::gen::inRange<std::int64_t>(0, 300'000'000'000);
    const std::int64_t left = decayed(usage, {age}, {half_life});
    RC_ASSERT(left >= 0 && left <= usage);
    RC_ASSERT(decayed(usage, {age + 1}, {half_life}) <= left);
    RC_ASSERT(decayed(usage + 1, {age}, {half_life}) >= left);
    const long double exact = static_cast<long double>(usage) *
                              std::exp2(-static_cast<long double>(age) / static_cast<long double>(half_life));
    RC_ASSERT(std::abs(static_cast<long double>(left) - exact) <= 1.001L);
}

}  // namespace
}  // namespace bulkhead::sched
