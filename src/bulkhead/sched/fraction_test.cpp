#include "bulkhead/sched/fraction.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <numeric>

namespace bulkhead::sched {
namespace {

TEST(Fraction, compares_by_value) {
    const Wide huge = ~Wide{0};
    EXPECT_EQ((Fraction{1, 2}), (Fraction{2, 4}));
    EXPECT_LT((Fraction{1, 3}), (Fraction{1, 2}));
    EXPECT_LT((Fraction{huge - 1, huge}), (Fraction{1, 1}));
    EXPECT_LT((Fraction{huge - 2, huge - 1}), (Fraction{huge - 1, huge})) << "they differ by one part in 2^256";
    EXPECT_LT((Fraction{huge, 1}), Fraction::infinity());
    EXPECT_EQ(Fraction::infinity(), Fraction::infinity());
    EXPECT_LT(Fraction{}, (Fraction{1, huge}));
}

TEST(Fraction, prints_rounded_decimals) {
    struct Row {
        Fraction value;
        int decimals;
        std::string_view text;
    };
    const Row rows[] = {
        {{}, 6, "0.000000"},
        {{1, 3}, 6, "0.333333"},
        {{2, 3}, 6, "0.666667"},
        {{1, 1}, 6, "1.000000"},
        {{7, 2}, 6, "3.500000"},
        {{1, 2'000'000}, 6, "0.000001"},
        {{1, 2'000'001}, 6, "0.000000"},
        {{9'999'999, 1'000'000}, 5, "10.00000"},
        {{999'999'999, 1'000'000'000}, 6, "1.000000"},
        {{25, 2}, 0, "13"},
        {{1'468'763'590, 1'000'000}, 6, "1468.763590"},
        {Fraction::infinity(), 6, "inf"},
    };
    for (const Row& row : rows) EXPECT_EQ(print(row.value, row.decimals), row.text);
}

RC_GTEST_PROP(Fraction, agrees_with_arithmetic_that_fits, (std::uint32_t a, std::uint32_t b, std::uint32_t c)) {
    const std::uint64_t x = a, y = std::uint64_t{b} + 1, z = c, one_more = y + 1;
    RC_ASSERT((Fraction{x, y} < Fraction{z, one_more}) == (x * one_more < z * y));
    RC_ASSERT((Fraction{x, y} == Fraction{x * 12345, y * 12345}));
}

}  // namespace
}  // namespace bulkhead::sched
