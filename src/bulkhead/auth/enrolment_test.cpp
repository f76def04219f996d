#include "bulkhead/auth/enrolment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bulkhead::auth {
namespace {

TEST(Enrolment, what_one_side_writes_the_other_reads) {
    EnrolmentRequest request{"node-17", "bh1_0", "-----BEGIN\n\n", "a+/=", {.site = "fra", .rack = "r4"}};
    const auto read = read_enrolment_request(print(request));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(*read, request);
    const EnrolmentAnswer answer{"cert\n", "ca\n", "control.example:7444"};
    EXPECT_EQ(*read_enrolment_answer(print(answer)), answer);
}

TEST(Enrolment, anything_else_is_refused_with_its_place) {
    for (const char* text : {"", "null", "[]", "{}", "name: node-17\n", "{\"name\": 1}", "{} {}",
                             R"({"certificate":"c","ca":"c","agents":"a","also":1})", "{\"certificate\":"})
        EXPECT_FALSE(read_enrolment_answer(text)) << text;
    EXPECT_THAT(read_enrolment_answer(R"({"certificate":"c","ca":"c","agents":"a","also":1})").error().what,
                testing::HasSubstr("also"));
    EXPECT_FALSE(read_enrolment_request(std::string(enrolment_bytes_max + 1, ' ')));
    EXPECT_FALSE(read_enrolment_answer("{\"certificate\":\"" + std::string(enrolment_bytes_max, 'x') + "\"}"));
}

}  // namespace
}  // namespace bulkhead::auth
