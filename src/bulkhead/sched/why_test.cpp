#include <gtest/gtest.h>

#include <string>

#include "bulkhead/base/reason.hpp"
#include "bulkhead/sched/statement.hpp"

namespace bulkhead::sched {
namespace {

// A number or a word in the place of each name, and the words that follow that number.
std::string filled_with(std::string_view text, const std::string& value) {
    std::vector<Argument> arguments;
    for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1))
        arguments.push_back({text.substr(at + 1, text.find_first_of(":}", at) - at - 1), value});
    return fill(text, arguments, Audience::fleet_operator);
}

TEST(Why, a_sentence_leads_back_to_its_code_whoever_it_was_written_for) {
    ASSERT_GT(reason_codes().size(), 25u);
    for (const std::string_view code : reason_codes())
        for (const char* value : {"7", "1", "0.5", "(withheld)", "rack"})
            for (const Audience reader : {Audience::fleet_operator, Audience::tenant})
                EXPECT_EQ(code_of(filled_with(words_of(code, reader), value)), code) << value;
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

TEST(Why, sentences_of_earlier_releases_keep_their_codes) {
    struct Row {
        const char* words;
        std::string_view code;
    };
    const Row rows[] = {
        {"3 nodes have work on them that it may not sit beside", "wait.neighbours"},
        {"nodes that could serve it have work on them that it may not sit beside", "wait.neighbours"},
        {"of those, 2 nodes have GPUs that are being wiped, or that nobody vouches for", "wait.wiping"},
        {"GPUs are being wiped, or nobody vouches for them", "wait.wiping"},
        {"room that there is is kept for work whose turn came before", "wait.held-for-others"},
        {"too few GPUs, or slices, are free and clean", "wait.gpus"},
        {"room for 1 tasks is being freed for it", "wait.freeing"},
        {"there is room for it, but its turn has not come", "wait.order"},
        {"what is free is reserved for guarantees; 8 GPUs would eat into them", "wait.reserved"},
    };
    for (const Row& row : rows) EXPECT_EQ(code_of(row.words), row.code) << row.words;
}

TEST(Why, every_way_to_wait_has_a_cause_of_its_own) {
    for (const std::string_view code : reason_codes())
        EXPECT_EQ(cause_of(code) == "other", code.starts_with("evict.")) << code;
    EXPECT_EQ(cause_of("wait.nothing-we-know"), "other");
}

}  // namespace
}  // namespace bulkhead::sched
