#include "bulkhead/gpu/layout_values.hpp"

#include <gtest/gtest.h>

#include "bulkhead/gpu/instance_list.hpp"
#include "bulkhead/gpu/profile_name.hpp"

namespace bulkhead::gpu {
namespace {

const Board& h100() { return **find_board("h100-80gb-sxm5"); }

Demand40 demand_for(std::string_view weights) {
    const Weights read = *read_weights(h100(), weights);
    std::vector<std::int64_t> asked;
    for (const std::uint32_t weight : read) asked.push_back(weight * 1000);
    return demand_of(h100(), asked);
}

TEST(LayoutValues, before_the_first_request_every_plain_profile_is_alike) {
    const Demand40 demand = demand_of(h100(), std::vector<std::int64_t>(h100().profiles.size(), 0));
    for (std::size_t p = 0; p < demand.size(); ++p) EXPECT_EQ(demand[p], h100().profiles[p].plain() ? 7 : 0);
}

TEST(LayoutValues, demand_is_in_fortieths_of_all_requests) {
    const Demand40 demand = demand_for("1g.10gb=1,7g.80gb=3");
    EXPECT_EQ(demand[find_profile(h100(), "1g.10gb")->index], 10);
    EXPECT_EQ(demand[find_profile(h100(), "7g.80gb")->index], 30);
    EXPECT_EQ(demand[find_profile(h100(), "3g.40gb")->index], 0);
}

TEST(LayoutValues, the_empty_gpu_is_worth_most_and_an_instance_never_adds_value) {
    for (const std::string_view weights : {"1g.10gb=1,2g.20gb=1,3g.40gb=1,4g.40gb=1,7g.80gb=1", "1g.10gb=1,7g.80gb=1",
                                           "1g.10gb=1,2g.20gb=2,3g.40gb=4,7g.80gb=8"}) {
        const LayoutValues values{h100(), demand_for(weights)};
        EXPECT_EQ(values.value(0, 0), 1'000'000) << weights;
        for (const Profile& profile : h100().profiles)
            for (const unsigned start : profile.starts)
                EXPECT_LT(values.value(profile.at(start).mask(), static_cast<std::uint8_t>(1u << start)), 1'000'000)
                    << weights << " " << profile.name << " at " << start;
    }
}

TEST(LayoutValues, two_instances_that_must_both_end_are_worth_less_than_one_on_the_same_slices) {
    const LayoutValues values{h100(), demand_for("1g.10gb=1,2g.20gb=1,3g.40gb=1,4g.40gb=1,7g.80gb=1")};
    EXPECT_LT(values.value(0b11, 0b11), values.value(0b11, 0b01));
}

// A 1g takes a slice beside another 1g, where the place of no 4g is lost.
TEST(LayoutValues, a_small_instance_keeps_the_places_of_large_ones) {
    const LayoutValues values{h100(), demand_for("1g.10gb=1,4g.40gb=1")};
    EXPECT_GT(values.value(0b01100000, 0b01100000), values.value(0b01000001, 0b01000001));
}

TEST(LayoutValues, slices_without_an_instance_count_like_the_best_layout_that_takes_them) {
    const LayoutValues values{h100(), demand_for("1g.10gb=1,2g.20gb=1,3g.40gb=1,4g.40gb=1,7g.80gb=1")};
    std::int64_t best = 0;
    for (unsigned begins = 1; begins < 256; ++begins)
        best = std::max(best, values.value(0b11000000, static_cast<std::uint8_t>(begins & 0b11000000)));
    EXPECT_EQ(values.value(0b10000000, 0), best) << "slice 7 alone is no instance: only one of two slices takes it";
}

TEST(LayoutValues, every_board_has_its_layouts_valued) {
    for (const Board& board : boards()) {
        const LayoutValues values{board, demand_of(board, std::vector<std::int64_t>(board.profiles.size(), 0))};
        EXPECT_GT(values.layouts(), 1u) << board.id;
        EXPECT_EQ(values.value(0, 0), 1'000'000) << board.id;
    }
}

}  // namespace
}  // namespace bulkhead::gpu
