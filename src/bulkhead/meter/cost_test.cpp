#include "bulkhead/meter/cost.hpp"

#include <gtest/gtest.h>

namespace bulkhead::meter {
namespace {

TEST(Cost, each_amount_is_rounded_once_half_to_even) {
    struct Row {
        std::int64_t seconds, nano_per_hour;
        Wide base, surcharge;
    };
    for (const Row& row :
         {Row{12'000, 2'400'000'000, 8'000'000'000, 960'000'000}, Row{601, 3'210'000'000, 535'891'667, 64'307'000},
          Row{3600, 1'990'000'000, 1'990'000'000, 238'800'000}, Row{1, 1800, 0, 0}, Row{3, 1800, 2, 0},
          Row{86'399, 987'654'321, 23'703'429'356, 2'844'411'523}}) {
        const Span span{.ms = row.seconds * 1000, .units = Gpus::whole(1), .per_hour = {row.nano_per_hour}};
        EXPECT_EQ(base_cost(span), row.base) << row.seconds;
        EXPECT_EQ(surcharge_cost(span, 12), row.surcharge) << row.seconds;
    }
}

TEST(Cost, a_quarter_of_a_gpu_costs_a_quarter) {
    EXPECT_EQ(base_cost({.ms = 3'600'000, .units = Gpus::of_thousandths(250), .per_hour = {2'400'000'000}}),
              600'000'000);
    EXPECT_EQ(base_cost({.ms = 1, .units = Gpus::of_thousandths(1), .per_hour = {1'800'000'000}}), 0)
        << "half of a billionth, and even";
    EXPECT_EQ(base_cost({.ms = 3, .units = Gpus::of_thousandths(1), .per_hour = {1'800'000'000}}), 2)
        << "one and a half";
}

TEST(Cost, the_largest_row_there_can_be_does_not_overflow) {
    // A day of a million GPUs at a million an hour, with a surcharge of a thousand percent.
    const Span span{.ms = 86'400'000, .units = Gpus::whole(1'000'000), .per_hour = {1'000'000'000'000'000}};
    EXPECT_EQ(print_amount(base_cost(span)), "24000000000000");
    EXPECT_EQ(print_amount(surcharge_cost(span, 1000)), "240000000000000");
}

TEST(Cost, amounts_are_printed_to_the_last_digit_and_no_further) {
    struct Row {
        Wide over;
        int decimals;
        std::string_view text;
    };
    for (const Row& row : {Row{0, 9, "0"}, Row{1, 9, "0.000000001"}, Row{-1, 9, "-0.000000001"},
                           Row{8'000'000'000, 9, "8"}, Row{-2'400'000'000, 9, "-2.4"}, Row{12, 2, "0.12"},
                           Row{100, 2, "1"}, Row{7, 0, "7"}, Row{1'234'567, 3, "1234.567"}})
        EXPECT_EQ(print_decimal(row.over, row.decimals), row.text);
}

TEST(Cost, an_invoice_is_rounded_to_the_coins_of_its_currency) {
    struct Row {
        std::string_view currency;
        Wide nano;
        std::string_view payable;
    };
    for (const Row& row :
         {Row{"EUR", 8'005'000'000, "8"}, Row{"EUR", 8'015'000'000, "8.02"}, Row{"EUR", 8'005'000'001, "8.01"},
          Row{"JPY", 1'500'000'000, "2"}, Row{"JPY", 500'000'000, "0"}, Row{"KWD", 1'000'500'000, "1"},
          Row{"EUR", -8'015'000'000, "-8.02"}, Row{"EUR", -8'005'000'000, "-8"}})
        EXPECT_EQ(print_amount(rounded_to_minor(row.nano, row.currency)), row.payable) << row.currency;
}

}  // namespace
}  // namespace bulkhead::meter
