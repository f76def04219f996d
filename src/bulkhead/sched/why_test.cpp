#include <gtest/gtest.h>

#include <string>

#include "bulkhead/base/reason.hpp"
#include "bulkhead/sched/statement.hpp"

namespace bulkhead::sched {
namespace {

// A number or a word in the place of each name.
std::string filled_with(std::string text, const std::string& value) {
    for (std::size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at + value.size()))
        text.replace(at, text.find('}', at) - at + 1, value);
    return text;
}

TEST(Why, a_sentence_leads_back_to_its_code_whoever_it_was_written_for) {
    ASSERT_GT(reason_codes().size(), 25u);
    for (const std::string_view code : reason_codes())
        for (const char* value : {"7", "0.5", "(withheld)", "rack"})
            for (const Audience reader : {Audience::fleet_operator, Audience::tenant})
                EXPECT_EQ(code_of(filled_with(std::string{words_of(code, reader)}, value)), code) << value;
}

TEST(Why, a_tenant_is_told_no_count_of_what_others_leave) {
    for (const std::string_view code : reason_codes())
        for (const char* theirs : {"{count}", "{nodes}", "{most}", "{all}"})
            EXPECT_EQ(words_of(code, Audience::tenant).find(theirs), std::string_view::npos) << code;
}

TEST(Why, what_is_no_sentence_of_ours_has_no_code) {
    for (const char* words : {"", "7", "nodes", "its tenant is frozen solid", "node n0 has been silent for 1m",
                              "{count} nodes", "it asks for 1 GPUs; its tenant holds"})
        EXPECT_EQ(code_of(words), "") << words;
}

TEST(Why, every_way_to_wait_has_a_cause_of_its_own) {
    for (const std::string_view code : reason_codes())
        EXPECT_EQ(cause_of(code) == "other", code.starts_with("evict.")) << code;
    EXPECT_EQ(cause_of("wait.nothing-we-know"), "other");
}

}  // namespace
}  // namespace bulkhead::sched
