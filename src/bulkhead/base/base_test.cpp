#include <gtest/gtest.h>

#include <array>

#include "bulkhead/base/nearest.hpp"
#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/reason.hpp"

namespace bulkhead {
namespace {

TEST(Quantity, reads_what_people_write_and_prints_the_shortest_form) {
    struct Row {
        std::string_view text, printed;
    };
    for (const Row& row :
         {Row{"8", "8"}, Row{"0.5", "0.5"}, Row{"0.125", "0.125"}, Row{"1.50", "1.5"}, Row{"0", "0"}, Row{"1/7", "1/7"},
          Row{"2/14", "1/7"}, Row{"8/7", "8/7"}, Row{"7/7", "1"}, Row{"1/8", "0.125"}, Row{"1/3", "1/3"},
          Row{"0/7", "0"}, Row{"1/21000", "1/21000"}, Row{"42/14", "3"}})
        EXPECT_EQ(print(parse_gpus(row.text).value()), row.printed) << row.text;
    for (const Row& row : {Row{"2.40", "2.4"}, Row{"0", "0"}, Row{"-8", "-8"}, Row{"-0.000000001", "-0.000000001"},
                           Row{"9223372036.854775807", "9223372036.854775807"}})
        EXPECT_EQ(print(parse_money(row.text).value()), row.printed) << row.text;
    for (const Row& row : {Row{"10Gi", "10Gi"}, Row{"1024Mi", "1Gi"}, Row{"80G", "80G"}, Row{"1.5Gi", "1536Mi"},
                           Row{"2Ti", "2Ti"}, Row{"0", "0"}, Row{"1000", "1k"}, Row{"17", "17"}})
        EXPECT_EQ(print(parse_byte_size(row.text).value()), row.printed) << row.text;
    for (const Row& row : {Row{"2h", "2h"}, Row{"90m", "1h30m"}, Row{"1h30m", "1h30m"}, Row{"500ms", "500ms"},
                           Row{"7d", "7d"}, Row{"0s", "0s"}, Row{"61s", "1m1s"}})
        EXPECT_EQ(print(parse_duration(row.text).value()), row.printed) << row.text;
    for (const Row& row : {Row{"2026-11-15T09:00:00Z", "2026-11-15T09:00:00Z"},
                           Row{"2024-02-29T23:59:59.250Z", "2024-02-29T23:59:59.250Z"}})
        EXPECT_EQ(print(parse_instant(row.text).value()), row.printed) << row.text;
}

TEST(Quantity, every_count_of_gpu_units_reads_back_as_it_prints) {
    for (std::int64_t units = 0; units <= 3 * gpu_unit; ++units)
        ASSERT_EQ(parse_gpus(print(Gpus{units})).value().units, units) << print(Gpus{units});
}

TEST(Quantity, sevenths_eighths_thirds_and_thousandths_of_a_gpu_are_exact) {
    EXPECT_EQ(parse_gpus("1/7")->units * 7, gpu_unit);
    EXPECT_EQ(parse_gpus("0.125")->units * 8, gpu_unit);
    EXPECT_EQ(parse_gpus("1/3")->units * 3, gpu_unit);
    EXPECT_EQ(parse_gpus("0.001")->units * 1000, gpu_unit);
    EXPECT_LT(parse_gpus("1/7").value(), parse_gpus("0.143").value());
}

TEST(Quantity, prints_gpus_as_decimals_for_readers_without_fractions) {
    EXPECT_EQ(print_decimal(Gpus::of_thousandths(2'500)), "2.5");
    EXPECT_EQ(print_decimal(Gpus{gpu_unit / 7}), "0.142857143");
    EXPECT_EQ(print_decimal(Gpus{gpu_unit * 8 / 3}), "2.666666667");
    EXPECT_EQ(print_decimal(Gpus{1}), "0.000047619");
}

TEST(Quantity, refuses_what_it_cannot_hold_exactly) {
    for (const char* text : {"",      "x",     "-1",      "0.0001",
                             "1e3",   ".5",    "1.",      "9223372036854775807",
                             "1 ",    "1/11",  "1/42000", "1/0",
                             "1/",    "/7",    "-1/7",    "1/-7",
                             "0.5/7", "1 1/7", "1/7/1",   "9223372036854775807/7"})
        EXPECT_FALSE(parse_gpus(text)) << text;
    for (const char* text :
         {"", "-", "--1", "+1", "1e3", "1,000", "2.4000000001", ".5", "1.", "$2", "9223372037", "1 "})
        EXPECT_FALSE(parse_money(text)) << text;
    for (const char* text : {"", "Gi", "10gi", "10GB", "0.3", "9999999Pi", "-1Gi", "1 Gi"})
        EXPECT_FALSE(parse_byte_size(text)) << text;
    for (const char* text : {"", "2", "h", "30m1h", "1h1h", "1.5h", "2 h", "99999999999999d"})
        EXPECT_FALSE(parse_duration(text)) << text;
    for (const char* text : {"", "2026-11-15", "2026-02-30T00:00:00Z", "2026-11-15T24:00:00Z", "2026-11-15T09:00:00",
                             "2026-11-15T09:00:00+01:00", "2026-11-15T09:00:00.1Z", "2026-13-01T00:00:00Z"})
        EXPECT_FALSE(parse_instant(text)) << text;
}

TEST(Nearest, proposes_what_was_probably_meant_and_nothing_otherwise) {
    constexpr std::array<std::string_view, 4> known{"mechanism", "tier", "neighbours", "nvlink"};
    struct Row {
        std::string_view typed, meant;
    };
    for (const Row& row : {Row{"mechansim", "mechanism"}, Row{"teir", "tier"}, Row{"Tier", "tier"},
                           Row{"nvlnk", "nvlink"}, Row{"frobnicate", ""}, Row{"", ""}})
        EXPECT_EQ(nearest(row.typed, known), row.meant) << row.typed;
}

TEST(Reason, withholds_from_a_tenant_what_is_the_operators) {
    const Argument arguments[] = {{"rule", std::string{"one kernel"}},
                                  {"other", std::string{"globex"}, Audience::fleet_operator}};
    const Argument more[] = {{"count", 3}};
    constexpr std::string_view text = "{rule}: {other} is there {count} times";
    EXPECT_EQ(fill(text, arguments, Audience::fleet_operator, more), "one kernel: globex is there 3 times");
    EXPECT_EQ(fill(text, arguments, Audience::tenant, more), "one kernel: (withheld) is there 3 times");
}

TEST(Reason, words_follow_their_number) {
    constexpr std::string_view text = "{count} {count:node is|nodes are} closed";
    const auto says = [&](Argument count) { return fill(text, {&count, 1}, Audience::tenant); };
    EXPECT_EQ(says({"count", 1}), "1 node is closed");
    EXPECT_EQ(says({"count", 0}), "0 nodes are closed");
    EXPECT_EQ(says({"count", std::string{"1"}}), "1 node is closed");
    EXPECT_EQ(says({"count", std::string{"1.5"}}), "1.5 nodes are closed");
    EXPECT_EQ(says({"count", 1, Audience::fleet_operator}), "(withheld) nodes are closed");
}

}  // namespace
}  // namespace bulkhead
