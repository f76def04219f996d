#include "bulkhead/gpu/profile_name.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "bulkhead/gpu/boards_test.hpp"

namespace bulkhead::gpu {
namespace {

TEST(ProfileName, reads_every_form_the_tools_accept) {
    struct Row {
        std::string_view text, printed, resource;
    };
    const Row rows[] = {
        {"3g.40gb", "3g.40gb", "nvidia.com/mig-3g.40gb"},
        {"1c.3g.40gb", "1c.3g.40gb", "nvidia.com/mig-1c.3g.40gb"},
        {"1c.1g.5gb", "1g.5gb", "nvidia.com/mig-1g.5gb"},
        {"1g.10gb+me", "1g.10gb+me", "nvidia.com/mig-1g.10gb.me"},
        {"1g.24gb+me.all", "1g.24gb+me.all", "nvidia.com/mig-1g.24gb.me.all"},
        {"1g.24gb-me", "1g.24gb-me", "nvidia.com/mig-1g.24gb-me"},
        {"2g.48gb+gfx", "2g.48gb+gfx", "nvidia.com/mig-2g.48gb.gfx"},
        {"1c.2g.12gb+me", "1c.2g.12gb+me", "nvidia.com/mig-1c.2g.12gb.me"},
        {"1g.10gb+me,gfx", "1g.10gb+gfx,me", "nvidia.com/mig-1g.10gb.gfx,me"},
    };
    for (const Row& row : rows) {
        const auto name = parse_profile_name(row.text);
        ASSERT_TRUE(name) << row.text;
        EXPECT_EQ(print(*name), row.printed);
        EXPECT_EQ(resource_name(*name), row.resource);
        EXPECT_EQ(parse_resource_name(row.resource), *name) << row.resource;
    }
}

TEST(ProfileName, says_which_rule_was_broken) {
    struct Row {
        std::string_view text, rule;
    };
    const Row rows[] = {
        {"", "it is empty"},
        {"3g", "two fields"},
        {"1c.2c.3g.40gb", "two fields"},
        {"3g.40", "\"gb\""},
        {"3g.gb", "\"gb\""},
        {"g.40gb", "\"g\""},
        {"0g.40gb", "from 1"},
        {"03g.40gb", "\"g\""},
        {"3g.99999gb", "9999"},
        {"-3g.40gb", "two fields"},
        {"3c.40gb", "\"g\""},
        {"1x.3g.40gb", "\"c\""},
        {"4c.3g.40gb", "no more slices"},
        {" 3g.40gb", "holds a space"},
        {"3g.40gb ", "holds a space"},
        {"3g.40gb+", "an attribute is empty"},
        {"3g.40gb+me,", "an attribute is empty"},
        {"3g.40gb+,me", "an attribute is empty"},
        {"3g.40gb+me,me", "stands twice"},
        {"3g.40gb+1me", "begins with a digit"},
        {"3g.40gb+.me", "only inside"},
        {"3g.40gb+me.", "only inside"},
        {"3g.40gb+me-gfx", "one + or one -"},
        {"3g.40gb-me+gfx", "one + or one -"},
        {"3g.40gb+m_e", "letters, digits"},
    };
    for (const Row& row : rows) {
        const auto name = parse_profile_name(row.text);
        ASSERT_FALSE(name) << row.text;
        EXPECT_EQ(name.error().code, Code::invalid);
        EXPECT_NE(name.error().what.find(row.rule), std::string::npos) << name.error().what;
        EXPECT_FALSE(name.error().remedy.empty());
    }
    EXPECT_FALSE(parse_resource_name("nvidia.com/gpu"));
}

TEST(ProfileName, printing_and_parsing_are_inverse) {
    rc::check([] {
        ProfileName name;
        name.gpu = *rc::gen::inRange(1u, 9u);
        name.compute = *rc::gen::inRange(1u, name.gpu + 1);
        name.gigabytes = *rc::gen::inRange(1u, 1000u);
        name.attributes =
            *rc::gen::unique<std::vector<std::string>>(rc::gen::element<std::string>("me", "me.all", "gfx", "X1"));
        std::ranges::sort(name.attributes);
        if (!name.attributes.empty()) name.sign = *rc::gen::element('+', '-');
        RC_ASSERT(parse_profile_name(print(name)).value() == name);
        RC_ASSERT(parse_resource_name(resource_name(name)).value() == name);
    });
}

TEST(FindProfile, knows_each_profile_by_name_resource_and_id) {
    for (const Board& b : boards())
        for (std::size_t i = 0; i < b.profiles.size(); ++i) {
            const Profile& profile = b.profiles[i];
            const ProfileChoice whole{i, profile.slices};
            EXPECT_EQ(find_profile(b, profile.name), whole);
            EXPECT_EQ(find_profile(b, resource_name(parse_profile_name(profile.name).value())), whole);
            EXPECT_EQ(print(b, whole), profile.name);
            if (!profile.id) continue;
            EXPECT_EQ(find_profile(b, "id:" + std::to_string(*profile.id)), whole);
        }
}

TEST(FindProfile, gives_one_name_the_shape_it_has_on_that_board) {
    const Board &small = board("a100-40gb"), &large = board("a100-80gb");
    EXPECT_EQ(small.profiles[find_profile(small, "1g.10gb").value().index].memory_slices, 2u);
    EXPECT_EQ(large.profiles[find_profile(large, "1g.10gb").value().index].memory_slices, 1u);
    EXPECT_EQ(print(large, find_profile(large, "id:14").value()), "2g.20gb");
    EXPECT_EQ(print(board("a30"), find_profile(board("a30"), "id:14").value()), "1g.6gb");
}

TEST(FindProfile, knows_what_an_early_driver_called_the_gb200_shapes) {
    const Board& gb200 = board("gb200-186gb");
    struct Row {
        std::string_view early, now;
    };
    for (const Row& row : {Row{"1g.24gb", "1g.23gb"}, Row{"1g.24gb+me", "1g.23gb+me"}, Row{"3g.95gb", "3g.93gb"},
                           Row{"4g.95gb", "4g.93gb"}, Row{"7g.189gb", "7g.186gb"}, Row{"1g.47gb", "1g.47gb"},
                           Row{"1c.3g.95gb", "1c.3g.93gb"}})
        EXPECT_EQ(print(gb200, find_profile(gb200, row.early).value()), row.now);
}

TEST(FindProfile, proposes_the_nearest_and_lists_what_exists) {
    struct Row {
        std::string_view board, typed, what, remedy;
    };
    const Row rows[] = {
        {"h100-80gb-sxm5", "3g.39gb", "h100-80gb-sxm5 has no profile 3g.39gb; it has 1g.10gb, 1g.10gb+me,", "3g.40gb"},
        {"h100-80gb-sxm5", "1g.18gb", "has no profile", "1g.10gb"},
        {"a30-24gb", "3g.12gb", "has no profile", "2g.12gb"},
        {"h100-80gb-sxm5", "3c.4g.40gb", "is not cut into compute instances of 3 slices",
         "bulkhead mig profiles --gpu h100-80gb-sxm5 --ci"},
        {"h100-80gb-sxm5", "id:7", "no profile id \"7\"; known are 19 (1g.10gb)",
         "bulkhead mig profiles --gpu h100-80gb-sxm5"},
        {"h100-80gb-sxm5", "id:", "no profile id", "bulkhead mig profiles --gpu h100-80gb-sxm5"},
        {"h100-80gb-sxm5", "id:19x", "no profile id", "bulkhead mig profiles --gpu h100-80gb-sxm5"},
        {"b300-269gb", "id:19", "no known profile ids", "bulkhead mig profiles --gpu b300-269gb"},
        {"b200-180gb", "id:9", "known are 19 (1g.23gb)", "bulkhead mig profiles --gpu b200-180gb"},
    };
    for (const Row& row : rows) {
        const auto found = find_profile(board(row.board), row.typed);
        ASSERT_FALSE(found) << row.typed;
        EXPECT_EQ(found.error().code, Code::not_found);
        EXPECT_NE(found.error().what.find(row.what), std::string::npos) << found.error().what;
        EXPECT_EQ(found.error().remedy, row.remedy) << row.typed;
    }
}

TEST(ComputeStarts, are_those_of_every_sourced_board) {
    for (const Board& b : boards())
        for (const ComputeProfile& ci : b.compute_profiles) {
            if (ci.starts.empty()) continue;
            const auto gi = std::ranges::find(b.profiles, ci.gpu_instance, &Profile::nvml);
            ASSERT_NE(gi, b.profiles.end());
            EXPECT_EQ(compute_starts(gi->slices, ci.slices), ci.starts)
                << b.id << ' ' << gi->name << ' ' << ci.slices << 'c';
        }
    EXPECT_TRUE(compute_starts(4, 3).empty());
    EXPECT_TRUE(compute_starts(7, 5).empty());
    EXPECT_TRUE(compute_starts(3, 4).empty());
}

}  // namespace
}  // namespace bulkhead::gpu
