#include "bulkhead/shell/etag.hpp"

#include <gtest/gtest.h>

namespace bulkhead::shell {
namespace {

TEST(ETag, one_version_is_read_from_an_if_match) {
    EXPECT_EQ(*version_in(""), "");
    EXPECT_EQ(*version_in("*"), "");
    EXPECT_EQ(*version_in(tag_of("7")), "7");
    for (const char* bad : {"7", "\"7", "7\"", "\"", "W/\"7\"", "\"7\", \"8\""}) EXPECT_FALSE(version_in(bad)) << bad;
}

TEST(ETag, an_if_none_match_may_be_weak_or_a_list) {
    for (const char* yes : {"\"7\"", "W/\"7\"", "*", "\"1\", \"7\"", "\"1\",W/\"7\" , \"9\"", "\"a,b\", \"7\""})
        EXPECT_TRUE(names_version(yes, "7")) << yes;
    for (const char* no : {"", "7", "\"77\"", "\"1\", \"2\"", "\"7", "W/"}) EXPECT_FALSE(names_version(no, "7")) << no;
}

}  // namespace
}  // namespace bulkhead::shell
