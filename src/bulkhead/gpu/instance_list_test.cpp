#include "bulkhead/gpu/instance_list.hpp"

#include <gtest/gtest.h>

#include "bulkhead/gpu/boards_test.hpp"

namespace bulkhead::gpu {
namespace {

TEST(List, reads_counts_places_and_every_kind_of_name) {
    struct Row {
        std::string_view text;
        std::vector<ListItem> items;
    };
    const Row rows[] = {
        {"3g.40gb@4", {{1, "3g.40gb", 4}}},
        {"2x1g.10gb,3g.40gb", {{2, "1g.10gb", {}}, {1, "3g.40gb", {}}}},
        {"1g.10gb+me,gfx,1g.10gb@0", {{1, "1g.10gb+me,gfx", {}}, {1, "1g.10gb", 0}}},
        {"id:19@6,nvidia.com/mig-1g.10gb.me@5", {{1, "id:19", 6}, {1, "nvidia.com/mig-1g.10gb.me", 5}}},
        {"3x1c.3g.40gb@4", {{3, "1c.3g.40gb", 4}}},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(parse_list(row.text).value(), row.items) << row.text;
        EXPECT_EQ(print(parse_list(row.text).value()), row.text);
    }
}

TEST(List, refuses_what_it_cannot_read) {
    struct Row {
        std::string_view text, what;
    };
    for (const Row& row :
         {Row{"", "names no profile"}, Row{"0x1g.10gb", "from 1 to 999"}, Row{"1000x1g.10gb", "from 1 to 999"},
          Row{"1g.10gb@", "after @"}, Row{"1g.10gb@x", "after @"}, Row{"1g.10gb@-1", "after @"},
          Row{"@4", "names no profile"}, Row{"1g.10gb,,1g.10gb", "names no profile"}, Row{"2x", "names no profile"},
          Row{"1g.10gb,", "names no profile"}, Row{"1x2x1g.10gb", "is not a MIG profile name"},
          Row{"1xgb", "is not a MIG profile name"}, Row{"id:", "after id:"}, Row{"id:1x", "after id:"},
          Row{"nvidia.com/gpu", "does not begin with"}}) {
        const auto list = parse_list(row.text);
        ASSERT_FALSE(list) << row.text;
        EXPECT_NE(list.error().what.find(row.what), std::string::npos) << list.error().what;
        EXPECT_FALSE(list.error().remedy.empty());
    }
}

TEST(Existing, is_a_state_the_board_can_be_in) {
    struct Row {
        std::string_view says, gpu, in_use, idle, what;
    };
    const Row rows[] = {
        {"a place is needed", "h100-80gb-sxm5", "1g.10gb", "", "the place is needed"},
        {"and must exist", "h100-80gb-sxm5", "3g.40gb@2", "",
         "3g.40gb cannot start at slice 2 of h100-80gb-sxm5: it starts only at 0, 4"},
        {"nothing overlaps", "h100-80gb-sxm5", "3g.40gb@0", "1g.10gb@3", "3g.40gb@0 and 1g.10gb@3 overlap"},
        {"not even twice the same", "h100-80gb-sxm5", "1g.10gb@0,1g.10gb@0", "", "overlap"},
        {"one GPU instance to a place", "h100-80gb-sxm5", "2x1g.10gb@0", "", "only one GPU instance"},
        {"two +me cannot coexist", "h100-80gb-sxm5", "1g.10gb+me@0", "1g.10gb+me@1", "media engines"},
        {"nor +me.all and plain", "rtx-pro-6000", "1g.24gb@0", "1g.24gb+me.all@1", "media engines"},
        {"a 3g holds three 1c", "h100-80gb-sxm5", "4x1c.3g.40gb@0", "", "that many compute instances"},
        {"a whole 3g is not also divided", "h100-80gb-sxm5", "3g.40gb@0", "1c.3g.40gb@0",
         "that many compute instances"},
        {"an unknown name", "h100-80gb-sxm5", "3g.41gb@0", "", "has no profile 3g.41gb"},
    };
    for (const Row& row : rows) {
        const auto existing = read_existing(board(row.gpu), row.in_use, row.idle);
        ASSERT_FALSE(existing) << row.says;
        EXPECT_NE(existing.error().what.find(row.what), std::string::npos) << row.says << ": " << existing.error().what;
    }
    EXPECT_TRUE(read_existing(board("h100-80gb-sxm5"), "", "").value().empty());
}

TEST(Existing, gathers_compute_instances_into_their_gpu_instance) {
    const auto existing = read_existing(board("h100-80gb-sxm5"), "1c.3g.40gb@4", "2x1c.3g.40gb@4").value();
    ASSERT_EQ(existing.size(), 1u);
    EXPECT_TRUE(existing[0].in_use);
    EXPECT_EQ(existing[0].compute, Cut::whole(1).plus(1).plus(1));
    EXPECT_EQ(existing[0].compute_idle, Cut::whole(1).plus(1));
}

TEST(Wanted, is_bounded_and_keeps_its_places) {
    const Board& b = board("h100-80gb-sxm5");
    EXPECT_EQ(read_wanted(b, "2x1g.10gb,3g.40gb@4").value().size(), 3u);
    EXPECT_EQ(read_wanted(b, "2x1g.10gb,3g.40gb@4").value()[2].start, 4u);
    EXPECT_FALSE(read_wanted(b, "3g.40gb@1"));
    EXPECT_FALSE(read_wanted(b, "100x1g.10gb"));
    EXPECT_FALSE(read_wanted(b, ""));
}

TEST(Weights, are_zero_for_what_is_not_expected) {
    const Board& b = board("h100-80gb-sxm5");
    EXPECT_EQ(read_weights(b, "1g.10gb=5,3g.40gb=1").value(), (Weights{5, 0, 0, 0, 1, 0, 0}));
    for (const char* text : {"", "1g.10gb", "1g.10gb=", "1g.10gb=x", "1g.10gb=0", "1g.11gb=1", "1g.10gb=1000001", "=1"})
        EXPECT_FALSE(read_weights(b, text)) << text;
}

}  // namespace
}  // namespace bulkhead::gpu
