#include "bulkhead/gpu/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bulkhead/gpu/boards_test.hpp"
#include "bulkhead/gpu/instance_list.hpp"
#include "bulkhead/gpu/why.hpp"

namespace bulkhead::gpu {
namespace {

LayoutVerdict check(std::string_view gpu, std::string_view list) {
    const Board& b = board(gpu);
    std::vector<Count> counts;
    const std::vector<ListItem> items = parse_list(list).value();
    for (const ListItem& item : items) counts.push_back({find_profile(b, item.profile).value(), item.count});
    return check_layout(Geometry{b}, counts);
}

std::string why(const LayoutVerdict& verdict) {
    std::string all;
    for (const Reason& reason : verdict.reasons) all += explain(reason) + "\n";
    return all;
}

std::vector<std::string> printed(const Board& b, const std::vector<Multiset>& sets) {
    std::vector<std::string> names;
    for (const Multiset& set : sets) names.push_back(print(b, set));
    return names;
}

TEST(MaximalSets, of_an_a30_are_four) {
    const Board& a30 = board("a30-24gb");
    EXPECT_EQ(printed(a30, maximal_sets(a30, Include::plain)),
              (std::vector<std::string>{"4g.24gb", "2 x 2g.12gb", "2g.12gb + 2 x 1g.6gb", "4 x 1g.6gb"}));
}

TEST(MaximalSets, of_seven_slices_without_double_memory_are_the_twelve_of_the_guide) {
    for (const Board& b : boards()) {
        if (b.slices != 7) continue;
        const auto sets = maximal_sets(b, Include::plain);
        const std::set<Multiset> twelve{{0, 0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 1, 1, 0}, {1, 0, 0, 1, 0, 1, 0},
                                        {3, 0, 0, 0, 0, 1, 0}, {0, 0, 0, 0, 2, 0, 0}, {0, 0, 0, 2, 1, 0, 0},
                                        {2, 0, 0, 1, 1, 0, 0}, {4, 0, 0, 0, 1, 0, 0}, {1, 0, 0, 3, 0, 0, 0},
                                        {3, 0, 0, 2, 0, 0, 0}, {5, 0, 0, 1, 0, 0, 0}, {7, 0, 0, 0, 0, 0, 0}};
        EXPECT_EQ(sets.size(), 12u);
        EXPECT_EQ(std::set<Multiset>(sets.begin(), sets.end()), twelve) << b.id;
    }
}

TEST(MaximalSets, admit_nothing_more_and_every_part_of_them_is_valid) {
    for (const Board& b : boards()) {
        const Geometry geometry{b};
        for (const Include include : {Include::double_memory, Include::all}) {
            const auto sets = maximal_sets(b, include);
            EXPECT_FALSE(sets.empty());
            for (const Multiset& set : sets) {
                SCOPED_TRACE(std::string{b.id} + ": " + print(b, set));
                EXPECT_TRUE(objections_to_set(geometry, set).empty());
                unsigned compute = 0;
                for (std::size_t p = 0; p < set.size(); ++p) {
                    compute += set[p] * b.profiles[p].slices;
                    Multiset changed = set;
                    ++changed[p];
                    if (include == Include::all || b.profiles[p].plain()) {
                        EXPECT_FALSE(objections_to_set(geometry, changed).empty()) << "one more " << b.profiles[p].name;
                    }
                    if (set[p] == 0) continue;
                    changed[p] = static_cast<std::uint8_t>(set[p] - 1);
                    EXPECT_TRUE(objections_to_set(geometry, changed).empty()) << "one less " << b.profiles[p].name;
                }
                EXPECT_LE(compute, b.slices) << "memory slices alone already bound the compute slices";
            }
        }
    }
}

TEST(CheckLayout, finds_places_for_every_valid_set) {
    struct Row {
        std::string_view says, gpu, set;
    };
    const Row rows[] = {
        {"one of anything", "h100-80gb-sxm5", "1g.10gb"},
        {"4g at 0, 2g at 4, 1g at 6", "h100-80gb-sxm5", "4g.40gb,2g.20gb,1g.10gb"},
        {"the 3g must be at 4", "h100-80gb-sxm5", "3g.40gb,2x2g.20gb"},
        {"NVIDIA's failing order is no failure here", "a100-40gb", "2x1g.5gb,2g.10gb,3g.20gb"},
        {"D x4", "h100-80gb-sxm5", "4x1g.20gb"},
        {"D x3 + 2g", "h100-80gb-sxm5", "3x1g.20gb,2g.20gb"},
        {"D + 2g x3", "h100-80gb-sxm5", "1g.20gb,3x2g.20gb"},
        {"D x2 + 4g", "h100-80gb-sxm5", "2x1g.20gb,4g.40gb"},
        {"D x2 + 3g", "h100-80gb-sxm5", "2x1g.20gb,3g.40gb"},
        {"1g x6 + D", "h100-80gb-sxm5", "6x1g.10gb,1g.20gb"},
        {"one +me takes an ordinary place", "h100-80gb-sxm5", "6x1g.10gb,1g.10gb+me"},
        {"three 1c share one 3g", "h100-80gb-sxm5", "3x1c.3g.40gb,4x1g.10gb"},
        {"+me.all beside -me", "rtx-pro-6000", "2g.48gb+me.all,2x1g.24gb-me"},
        {"+me beside +gfx", "rtx-pro-6000", "1g.24gb+me,1g.24gb,2g.48gb+gfx"},
    };
    for (const Row& row : rows) {
        const LayoutVerdict verdict = check(row.gpu, row.set);
        EXPECT_TRUE(verdict.valid) << row.says << ": " << why(verdict);
        unsigned taken = 0;
        for (const Seat& seat : verdict.seats) {
            const Profile& profile = board(row.gpu).profiles[seat.profile];
            EXPECT_TRUE(profile.starts.contains(seat.start)) << row.says;
            EXPECT_EQ(taken & profile.at(seat.start).mask(), 0u) << row.says;
            taken |= profile.at(seat.start).mask();
        }
    }
}

TEST(CheckLayout, says_exactly_why_not) {
    struct Row {
        std::string_view says, gpu, set, why;
    };
    const Row rows[] = {
        {"4g + 4g", "h100-80gb-sxm5", "2x4g.40gb", "at most 1 of 4g.40gb may exist on one GPU, not 2"},
        {"4g + 2g + 2g", "h100-80gb-sxm5", "4g.40gb,2x2g.20gb",
         "4g.40gb + 2 x 2g.20gb need 8 of 8 memory slices but have no places without overlap: 2g.20gb is 2 wide and "
         "starts at 0,2,4; 4g.40gb is 4 wide and starts at 0"},
        {"3g + 3g + 1g", "h100-80gb-sxm5", "2x3g.40gb,1g.10gb",
         "2 x 3g.40gb + 1g.10gb need 9 memory slices; the GPU has 8"},
        {"7g + anything", "h100-80gb-sxm5", "7g.80gb,1g.10gb", "need 9 memory slices; the GPU has 8"},
        {"1g x8", "h100-80gb-sxm5", "8x1g.10gb", "at most 7 of 1g.10gb may exist on one GPU, not 8"},
        {"two +me", "h100-80gb-sxm5", "2x1g.10gb+me", "at most 1 of 1g.10gb+me may exist on one GPU, not 2"},
        {"2g x4", "h100-80gb-sxm5", "4x2g.20gb", "at most 3 of 2g.20gb may exist"},
        {"D x4 + 1g", "h100-80gb-sxm5", "4x1g.20gb,1g.10gb", "need 9 memory slices; the GPU has 8"},
        {"1g x7 + D", "h100-80gb-sxm5", "7x1g.10gb,1g.20gb", "need 9 memory slices"},
        {"2g x3 + 1g x2: only one slice without a 2g has a start", "h100-80gb-sxm5", "3x2g.20gb,2x1g.10gb",
         "need 8 of 8 memory slices but have no places without overlap"},
        {"both +me of an A30", "a30-24gb", "1g.6gb+me,2g.12gb+me",
         "1g.6gb+me and 2g.12gb+me each own the GPU's only optical-flow engine"},
        {"+me.all beside plain", "rtx-pro-6000", "1g.24gb+me.all,1g.24gb",
         "1g.24gb+me.all owns every media engine, so only -me profiles may sit beside it; 1g.24gb has engines"},
        {"both +me.all", "rtx-pro-6000", "1g.24gb+me.all,2g.48gb+me.all", "owns every media engine"},
        {"+me.all beside +me", "rtx-pro-6000", "2g.48gb+me.all,1g.24gb+me", "owns every media engine"},
        {"a count beyond reason", "h100-80gb-sxm5", "999x1g.10gb", "not 99 or more"},
        {"too many compute instances need too many 3g", "h100-80gb-sxm5", "7x1c.3g.40gb",
         "at most 2 of 3g.40gb may exist on one GPU, not 3"},
        {"two 2c do not share a 3g", "h100-80gb-sxm5", "3x2c.3g.40gb", "at most 2 of 3g.40gb may exist"},
    };
    for (const Row& row : rows) {
        const LayoutVerdict verdict = check(row.gpu, row.set);
        EXPECT_FALSE(verdict.valid) << row.says;
        EXPECT_NE(why(verdict).find(row.why), std::string::npos) << row.says << ": " << why(verdict);
        EXPECT_TRUE(verdict.seats.empty());
    }
}

TEST(CheckLayout, hears_every_rule_that_objects) {
    const std::string all = why(check("h100-80gb-sxm5", "2x1g.10gb+me,2x4g.40gb"));
    EXPECT_NE(all.find("at most 1 of 1g.10gb+me"), std::string::npos);
    EXPECT_NE(all.find("at most 1 of 4g.40gb"), std::string::npos);
    EXPECT_NE(all.find("need 10 memory slices"), std::string::npos);
}

TEST(CheckLayout, notes_the_driver_a_layout_needs) {
    struct Row {
        std::string_view gpu, set, note;
    };
    const Row rows[] = {
        {"a100-40gb", "4g.20gb,3g.20gb", "4g.20gb beside 3g.20gb needs driver R510 or newer"},
        {"a100-40gb", "1g.10gb", "1g.10gb needs driver R525 or newer"},
        {"a30-24gb", "2g.12gb+me", "2g.12gb+me needs driver R525 or newer"},
    };
    for (const Row& row : rows) {
        const LayoutVerdict verdict = check(row.gpu, row.set);
        EXPECT_TRUE(verdict.valid);
        ASSERT_EQ(verdict.notes.size(), 1u) << row.set;
        EXPECT_EQ(explain(verdict.notes[0]), row.note);
    }
    EXPECT_TRUE(check("a100-40gb", "3g.20gb,3g.20gb").notes.empty());
}

TEST(Cut, places_a_three_so_that_two_twos_fit) {
    const auto places = arrange_cut(7, Cut::whole(3).plus(2).plus(2));
    ASSERT_TRUE(places);
    EXPECT_EQ(*places, (std::vector<Placement>{{4, 3}, {0, 2}, {2, 2}}));
    EXPECT_FALSE(arrange_cut(3, Cut::whole(2).plus(2)));
    EXPECT_TRUE(arrange_cut(3, Cut::whole(2).plus(1)));
    EXPECT_FALSE(arrange_cut(4, Cut::whole(3)));
    EXPECT_TRUE(Cut::whole(1).plus(1).covers(Cut::whole(1)));
    EXPECT_FALSE(Cut::whole(1).covers(Cut::whole(1).plus(1)));
}

TEST(Cut, uses_the_wide_profile_where_hopper_needs_it) {
    const auto of = [](std::string_view gpu, std::string_view name) {
        const Board& b = board(gpu);
        const ProfileChoice choice = find_profile(b, name).value();
        return compute_profile(b, b.profiles[choice.index], choice.compute);
    };
    EXPECT_EQ(of("h100-80gb-sxm5", "1g.20gb"), CiEnum::slice_1_rev1) << "the double-memory 1g has CI profile 7";
    EXPECT_EQ(of("a100-80gb", "1g.20gb"), CiEnum::slice_1);
    EXPECT_EQ(of("h100-80gb-sxm5", "1c.2g.20gb"), CiEnum::slice_1) << "not the wide one, of which there is one";
    EXPECT_EQ(of("a100-80gb", "7g.80gb"), CiEnum::slice_7) << "not 7_SLICE_NVL, which fails to be created";
    EXPECT_EQ(of("b200-180gb", "1g.23gb"), std::nullopt) << "no source says";
}

}  // namespace
}  // namespace bulkhead::gpu
