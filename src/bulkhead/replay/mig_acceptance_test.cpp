#include "bulkhead/replay/mig_acceptance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/gpu/instance_list.hpp"

namespace bulkhead::replay {
namespace {

MigFleet fleet_of(std::string_view expect, std::int64_t load) {
    const gpu::Board* board = *gpu::find_board("h100-80gb-sxm5");
    MigFleet fleet{.board = board, .gpus = 40};
    fleet.weights = expect.empty() ? gpu::even_weights(*board) : *gpu::read_weights(*board, expect);
    fleet.load = load;
    fleet.requests = 4000;
    return fleet;
}

// Only whole GPUs: nothing can be put badly, and all serve alike.
TEST(MigAcceptance, where_nothing_can_be_put_badly_all_serve_the_same) {
    const MigCount of = run_mig_acceptance(fleet_of("7g.80gb=1", 120), 1)->requests;
    EXPECT_EQ(of.asked, 4000);
    EXPECT_EQ(of.first_fit, of.packed_anew);
    EXPECT_EQ(of.bulkhead, of.packed_anew);
    EXPECT_LT(of.first_fit, of.asked);
    EXPECT_GT(of.first_fit, of.asked / 2);
}

TEST(MigAcceptance, a_light_load_is_served_by_everybody) {
    const MigCount of = run_mig_acceptance(fleet_of("", 30), 1)->requests;
    EXPECT_EQ(of.first_fit, of.asked);
    EXPECT_EQ(of.bulkhead, of.asked);
    EXPECT_EQ(of.packed_anew, of.asked);
}

// The figure of docs/promises.md, on a smaller fleet: of what first-fit leaves on the table, we take more than half.
TEST(MigAcceptance, the_scheduler_serves_more_than_half_of_what_first_fit_misses) {
    for (const std::string_view expect : {"", "1g.10gb=1,2g.20gb=1,3g.40gb=1,4g.40gb=1,7g.80gb=1"})
        for (const std::int64_t load : {90, 100}) {
            MigCount of;
            for (std::uint64_t seed = 42; seed < 46; ++seed) {
                const MigCount run = run_mig_acceptance(fleet_of(expect, load), seed)->requests;
                of.first_fit += run.first_fit;
                of.bulkhead += run.bulkhead;
                of.packed_anew += run.packed_anew;
            }
            EXPECT_GT(of.packed_anew, of.first_fit);
            EXPECT_GT(2 * (of.bulkhead - of.first_fit), of.packed_anew - of.first_fit) << expect << " at " << load;
        }
}

TEST(MigAcceptance, the_same_seed_gives_the_same_figures_and_another_others) {
    const auto once = run_mig_acceptance(fleet_of("", 100), 7)->slices;
    const auto again = run_mig_acceptance(fleet_of("", 100), 7)->slices;
    EXPECT_EQ(once.asked, again.asked);
    EXPECT_EQ(once.bulkhead, again.bulkhead);
    EXPECT_NE(once.asked, run_mig_acceptance(fleet_of("", 100), 8)->slices.asked);
}

TEST(MigAcceptance, what_is_no_fleet_is_refused) {
    MigFleet none = fleet_of("", 100);
    none.gpus = 0;
    EXPECT_THAT(run_mig_acceptance(none, 1).error().what, testing::HasSubstr("0 GPUs, 8 to a node, are no fleet"));
    EXPECT_FALSE(run_mig_acceptance(fleet_of("", 0), 1));
}

}  // namespace
}  // namespace bulkhead::replay
