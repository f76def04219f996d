#include "bulkhead/model/describe.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "bulkhead/model/snapshot.hpp"

namespace bulkhead {
namespace {

TEST(Format, takes_names_and_nothing_like_them) {
    struct Row {
        Format format;
        std::string text;
        bool valid;
    };
    const Row rows[] = {
        {Format::name, "a", true},
        {Format::name, "gpu-node-17", true},
        {Format::name, "0", true},
        {Format::name, std::string(63, 'a'), true},
        {Format::name, std::string(64, 'a'), false},
        {Format::name, "", false},
        {Format::name, "Acme", false},
        {Format::name, "-a", false},
        {Format::name, "a-", false},
        {Format::name, "a.b", false},
        {Format::name, "a_b", false},
        {Format::name, "a\n", false},
        {Format::dotted, "a.b-c.d", true},
        {Format::dotted, "a", true},
        {Format::dotted, "", false},
        {Format::dotted, "a..b", false},
        {Format::dotted, ".a", false},
        {Format::dotted, "a.", false},
        {Format::line, "Ada, of vision", true},
        {Format::line, "", false},
        {Format::line, "two\nlines", false},
        {Format::line, "\x7f", false},
        {Format::any, "", true},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(is_valid(row.format, row.text), row.valid) << row.text;
        if (row.format == Format::any) continue;
        const std::regex regex{std::string{pattern(row.format)}};
        EXPECT_EQ(std::regex_match(row.text, regex), row.valid) << "the schema's pattern agrees: " << row.text;
    }
    EXPECT_FALSE(is_valid(Format::dotted, std::string(127, 'a') + "." + std::string(127, 'b'))) << "254 together";
}

TEST(Words, every_value_has_one_and_comes_back_from_it) {
    for (const Mechanism each : every<Mechanism>()) EXPECT_EQ(from_word<Mechanism>(word(each)), each);
    for (const Capability each : every<Capability>()) EXPECT_EQ(from_word<Capability>(word(each)), each);
    EXPECT_EQ(from_word<Tier>("VM"), std::nullopt) << "words are exact";
    EXPECT_EQ(from_word<Tier>(""), std::nullopt);
}

struct Visitor {
    std::vector<std::string> problems;
    std::string inside;

    template <class T>
    void walk() {
        T::describe([&]<class M>(std::string_view name, M T::*, std::string_view about, Rule rule = {}) {
            const std::string path = inside + "." + std::string{name};
            if (about.empty() || about.back() != '.') problems.push_back(path + " is not explained in a sentence");
            if (rule.min > rule.max) problems.push_back(path + " allows no number");
        });
    }
};

TEST(Description, every_field_is_explained_in_a_sentence) {
    Visitor visitor;
    for_each_kind([&]<class T>() {
        visitor.inside = T::kind;
        visitor.walk<T>();
        visitor.walk<decltype(T::spec)>();
    });
    visitor.walk<GpuRequest>();
    visitor.walk<GpuNodeStatus>();
    visitor.walk<TierException>();
    visitor.walk<Advisory>();
    EXPECT_EQ(visitor.problems, std::vector<std::string>{});
}

}  // namespace
}  // namespace bulkhead
