#include "bulkhead/shell/places.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace bulkhead::shell {
namespace {

TEST(Places, one_address_cannot_take_them_all) {
    Places places{{.all = 100, .strangers = 80, .strangers_of_one_address = 5}};
    std::vector<Places::Id> hostile;
    for (int i = 0; i < 1000; ++i) {
        const auto taken = places.take("10.0.0.66");
        ASSERT_TRUE(taken.place);
        EXPECT_EQ(taken.instead.has_value(), i >= 5) << "its own oldest goes";
        hostile.push_back(*taken.place);
    }
    EXPECT_EQ(places.strangers(), 5u);
    const auto other = places.take("10.0.0.1");
    EXPECT_TRUE(other.place);
    EXPECT_FALSE(other.instead);
}

TEST(Places, who_holds_a_token_is_not_sent_away) {
    Places places{{.all = 6, .strangers = 4, .strangers_of_one_address = 4}};
    for (int i = 0; i < 2; ++i) places.show_token(*places.take("10.0.0.1").place);
    const auto first = places.take("10.0.0.2");
    for (int i = 3; i < 6; ++i) EXPECT_FALSE(places.take("10.0.0." + std::to_string(i)).instead);
    EXPECT_EQ(places.take("10.0.0.9").instead, first.place) << "the stranger who has been here longest";
    EXPECT_EQ(places.strangers(), 4u);
}

TEST(Places, strangers_from_everywhere_leave_room_for_those_with_tokens) {
    Places places{{.all = 8, .strangers = 4, .strangers_of_one_address = 4}};
    for (int i = 0; i < 50; ++i) EXPECT_TRUE(places.take("10.1.0." + std::to_string(i)).place);
    for (int i = 0; i < 4; ++i) {
        const auto taken = places.take("10.0.0.1");
        ASSERT_TRUE(taken.place);
        places.show_token(*taken.place);
    }
    EXPECT_EQ(places.strangers(), 3u) << "one of them made room";
}

TEST(Places, who_is_being_answered_stays) {
    Places places{{.all = 2, .strangers = 2, .strangers_of_one_address = 2}};
    const auto first = *places.take("a").place, second = *places.take("a").place;
    places.answering(first, true);
    EXPECT_EQ(places.take("a").instead, second);
    const auto third = places.take("a");
    ASSERT_TRUE(third.place);
    places.answering(*third.place, true);
    EXPECT_FALSE(places.take("a").place) << "nobody can go";
    places.leave(first);
    EXPECT_TRUE(places.take("a").place);
    places.leave(second);  // long gone
    EXPECT_EQ(places.strangers(), 2u);
}

}  // namespace
}  // namespace bulkhead::shell
