#include "bulkhead/codec/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "bulkhead/codec/json_writer.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

// The tree on one line: scalars as they are, text in quotes.
std::string shown(const Node& node) {
    std::string out;
    switch (node.type) {
        case Node::Type::null:
            return "null";
        case Node::Type::scalar:
            return node.quoted ? json_quoted(node.text) : node.text;
        case Node::Type::list:
            for (const Node* item : node.items) out += (out.empty() ? "" : " ") + shown(*item);
            return "[" + out + "]";
        case Node::Type::map:
            for (const Node::Member& member : node.members)
                out += (out.empty() ? "" : " ") + member.key + "=" + shown(*member.value);
            return "{" + out + "}";
    }
    return out;
}

std::string shown(const ReadText& read) {
    std::string out;
    for (const Document& document : read.documents) out += (out.empty() ? "" : " | ") + shown(*document.root);
    for (const Diagnostic& error : read.errors) out += print(error);
    return out;
}

std::string repeated(std::string_view piece, std::size_t times) {
    std::string out;
    for (std::size_t i = 0; i < times; ++i) out += piece;
    return out;
}

TEST(Document, reads_yaml_and_json_into_the_same_tree) {
    struct Row {
        std::string_view says, text, tree;
    };
    const Row rows[] = {
        {"block style", "a: 1\nb:\n  - x\n  - y: z\n", "{a=1 b=[x {y=z}]}"},
        {"flow style", "a: {b: [1, 'x', \"y\"]}", "{a={b=[1 \"x\" \"y\"]}}"},
        {"JSON", R"({"a": {"b": [1, "x", true, null, -2.5e3]}})", "{a={b=[1 \"x\" true null -2.5e3]}}"},
        {"a JSON list", "[]", "[]"},
        {"empty values are null", "a:\nb: ~\nc: null\nd: ''", "{a=null b=null c=null d=\"\"}"},
        {"block scalars are text", "a: |\n  1\nb: >-\n  x\n  y\n", "{a=\"1\\n\" b=\"x y\"}"},
        {"several documents, the empty ones left out", "---\na: 1\n---\n# none\n---\n...\n---\nb: 2\n...\n",
         "{a=1} | {b=2}"},
        {"a document on the line of its marker", "--- a\n--- {b: c}\n", "a | {b=c}"},
        {"three dashes within text are text", "a: x---y\nb: |\n  ---\n", "{a=x---y b=\"---\\n\"}"},
        {"anchors and aliases", "a: &x [1, 2]\nb: *x\nc: &y z\nd: *y", "{a=[1 2] b=[1 2] c=z d=z}"},
        {"an anchor belongs to its document and may be set again", "a: &x 1\nb: *x\nc: &x 2\nd: *x",
         "{a=1 b=1 c=2 d=2}"},
        {"core tags", "a: !!str 1\nb: !!int 2\nc: !!map {d: !!seq []}\ne: ! 3\nf: !!null ~\ng: !!bool true",
         "{a=\"1\" b=2 c={d=[]} e=\"3\" f=null g=true}"},
        {"an explicit key", "? a\n: b\n", "{a=b}"},
        {"a quoted merge key is a key", "\"<<\": b\n", "{<<=b}"},
        {"Windows line ends", "a: 1\r\nb: 2\r\n", "{a=1 b=2}"},
        {"a byte order mark in front",
         "\xef\xbb\xbf"
         "a: 1",
         "{a=1}"},
        {"and before JSON", "\xef\xbb\xbf {\"a\": 1}", "{a=1}"},
        {"the YAML version may be said", "%YAML 1.2\n---\na: 1\n", "{a=1}"},
        {"escapes", R"({"a": "\u00e9\ud83d\ude00\n\/"})", "{a=\"\u00e9\U0001f600\\n/\"}"},
        {"escapes in YAML", R"(a: "\x41\u00e9\U0001F600\t")", "{a=\"A\u00e9\U0001f600\\t\"}"},
        {"nothing at all", "", ""},
        {"only comments", "# a\n\n# b\n", ""},
    };
    for (const Row& row : rows) EXPECT_EQ(shown(read_documents("f", row.text)), row.tree) << row.says;
}

TEST(Document, knows_where_everything_stands) {
    const ReadText read = read_documents("f", "# c\na: 1\nbb:\n  - x\n  - c: y\nd:\n---\ne: [f,\n  g]\n");
    ASSERT_EQ(read.documents.size(), 2u);
    const Node& first = *read.documents[0].root;
    EXPECT_EQ(first.members[0].at, (Place{2, 1}));
    EXPECT_EQ(first.members[0].value->at, (Place{2, 4}));
    EXPECT_EQ(first.find("bb")->items[1]->members[0].at, (Place{5, 5}));
    EXPECT_EQ(first.find("d")->at, (Place{6, 1})) << "a value that is not there stands at its key";
    EXPECT_EQ(read.documents[1].root->find("e")->items[1]->at, (Place{9, 3}));
    const ReadText json = read_documents("f", "{\n  \"a\": [1,\n 2]}");
    EXPECT_EQ(json.documents[0].root->members[0].at, (Place{2, 3}));
    EXPECT_EQ(json.documents[0].root->find("a")->items[1]->at, (Place{3, 2}));
}

TEST(Document, refuses_by_name_what_people_trip_over) {
    struct Row {
        std::string_view says, text, error;
    };
    const Row rows[] = {
        {"a key twice", "a: 1\nb: 2\na: 3", "f:3:1: \"a\" is given twice, first in line 1"},
        {"a key twice in JSON", R"({"a": 1, "a": 2})", "f:1:10: \"a\" is given twice"},
        {"a merge key", "a: &x {b: 1}\nc:\n  <<: *x", "f:3:3: the merge key << is not read"},
        {"a list as key", "? [a]\n: b", "f:1:3: a list or map cannot be a key"},
        {"a map as key", "{a: b}: c", "f:1:2: \"a\" where a key in double quotes"},
        {"an alias as key", "a: &x b\n*x : c", "an alias cannot be a key"},
        {"no key at all", ": b", "a key without text"},
        {"null as key", "~: b", "a key without text"},
        {"a foreign tag", "a: !secret x", "f:1:4: the tag !secret is not read here"},
        {"a tag that says otherwise", "a: !!int x", "the tag tag:yaml.org,2002:int is not read here"},
        {"binary", "a: !!binary eA==", "the tag tag:yaml.org,2002:binary"},
        {"a tagged map", "a: !!set {x}", "the tag tag:yaml.org,2002:set"},
        {"an unknown alias", "a: *x", "this is not YAML: the referenced anchor is not defined"},
        {"an alias of itself", "a: &x [*x]", "an alias inside the very value"},
        {"an alias across documents", "--- &x a\n--- *x\n", "the referenced anchor is not defined"},
        {"two roots", "--- [a]\n[b]", "f:2:1: unexpected text after the end"},
        {"a comma alone", ",", "f:1:1: unexpected text after the end"},
        {"tabs for indentation", "a:\n\tb: c", "f:2:"},
        {"an open bracket", "a: [b\n", "this is not YAML"},
        {"an open quote", "a: \"b", "this is not YAML"},
        {"an open quote before the last line end, which yaml-cpp closes by itself", "a: \"b\n",
         "f:1:1: a quote is opened"},
        {"also with blank lines after it", "a: 'b\n\n", "a quote is opened and not closed"},
        {"a directive", "%TAG ! x\n---\na", "f:1:1: YAML directives are not read"},
        {"a control character", "a: \x01", "f:1:4: the invisible character U+0001"},
        {"the byte that yaml-cpp takes for the end", "a: b\x04 c: d", "U+0004"},
        {"a carriage return alone", "a: b\rc: d", "U+000D"},
        {"a byte order mark inside", "a: \xef\xbb\xbf", "U+FEFF"},
        {"a line separator", "a: b\u2028c", "U+2028"},
        {"bytes that are not UTF-8", "a: b\nc: \xff", "f:2:4: this byte is not UTF-8"},
        {"overlong bytes", "a: \xc0\xaf", "not UTF-8"},
        {"half a pair in bytes", "a: \xed\xa0\x80", "not UTF-8"},
        {"escapes that yaml-cpp turns into broken bytes", "a: \"\\N\"", "the escapes \\N and \\_ are not read"},
    };
    for (const Row& row : rows) {
        const ReadText read = read_documents("f", row.text);
        EXPECT_THAT(shown(read), HasSubstr(std::string{row.error})) << row.says;
        EXPECT_FALSE(read.errors.empty()) << row.says;
    }
}

TEST(Document, reads_on_after_what_it_refuses) {
    const ReadText read = read_documents("f", "a: 1\na: 2\n? [b]\n: c\nd: !x e\n");
    EXPECT_EQ(read.errors.size(), 3u) << shown(read);
    ASSERT_EQ(read.documents.size(), 1u);
    EXPECT_FALSE(read.documents[0].sound);
    EXPECT_EQ(shown(*read.documents[0].root), "{a=1 d=e}") << "the first of a repeated key stays";
}

TEST(Json, is_taken_literally) {
    for (const char* text : {"{",
                             "[",
                             "[1,]",
                             "[,1]",
                             "{\"a\":1,}",
                             "{a: 1}",
                             "{'a': 1}",
                             "[1 2]",
                             "[01]",
                             "[+1]",
                             "[.5]",
                             "[1.]",
                             "[1e]",
                             "[-]",
                             "[tru]",
                             "[nul]",
                             "[NaN]",
                             "[\"a]",
                             "[\"\\x41\"]",
                             "[\"\\u12\"]",
                             "[\"\\ud800\"]",
                             "[\"\\ud800\\u0041\"]",
                             "[\"\\udc00\"]",
                             "[\"a\nb\"]",
                             "[\"\t\"]",
                             "[1] x",
                             "{} {}",
                             "[1] // c",
                             "{\"a\"}",
                             "{\"a\":}",
                             "{1: 2}",
                             "[\"\\",
                             "[\"\\u",
                             "[1,\n---\n2]",
                             "[]\n---\n[]"})
        EXPECT_FALSE(read_documents("f", text).errors.empty()) << text;
    EXPECT_THAT(shown(read_documents("f", "{\"a\": 1,\n \"b\" 2}")), HasSubstr("f:2:6: \"2\" where ':' should come"));
    EXPECT_THAT(shown(read_documents("f", "{\"a\": ")), HasSubstr("f:1:7: the text ends where a value should come"));
}

TEST(Limits, hold_to_the_byte_and_the_node) {
    Limits limits;
    limits.depth = 3, limits.nodes = 10, limits.scalar_bytes = 5, limits.documents = 2, limits.bytes = 100;
    struct Row {
        std::string_view says, text, error;
    };
    const std::string long_text(101, 'a');
    const Row rows[] = {
        {"as deep as allowed", "[[[1]]]", ""},
        {"one deeper", "[[[[1]]]]", "f:1:4: lists and maps nested more than 3 deep"},
        {"one deeper in YAML", "- - - - 1", "nested more than 3 deep"},
        {"an alias at the limit", "a: &x [1]\nb: [*x]", ""},
        {"an alias that goes deeper", "a: &x [[1]]\nb: [*x]",
         "with this alias, lists and maps are nested more than 3 deep"},
        {"as many as allowed", "[1,2,3,4,5,6,7,8,9]", ""},
        {"one more", "[1,2,3,4,5,6,7,8,9,0]", "f:1:20: more than 10 values"},
        {"aliases count in full", "a: &x [1,2,3]\nb: *x\nc: *x", "more than 10 values"},
        {"all documents together", "--- [1,2,3,4]\n--- [1,2,3,4,5]", "more than 10 values"},
        {"a text as long as allowed", "a: bcdef", ""},
        {"one byte longer", "a: bcdefg", "f:1:4: a text of 6 bytes; at most 5 are read"},
        {"keys too", "abcdef: 1", "a text of 6 bytes"},
        {"two documents", "--- a\n--- b", ""},
        {"three", "--- a\n--- b\n--- c", "f:3:1: more than 2 documents"},
        {"more text than allowed", long_text, "f: 101 bytes of text; at most 100 are read"},
    };
    for (const Row& row : rows) {
        const ReadText read = read_documents("f", row.text, limits);
        EXPECT_EQ(read.errors.empty(), row.error.empty()) << row.says << ": " << shown(read);
        EXPECT_THAT(shown(read), HasSubstr(std::string{row.error})) << row.says;
    }
}

TEST(Limits, a_bomb_of_aliases_is_refused_in_words) {
    std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 10; ++i) {
        const std::string before = "*a" + std::to_string(i - 1);
        bomb +=
            "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + repeated(", " + before, 9) + "]\n";
    }
    const ReadText read = read_documents("f", bomb);
    ASSERT_EQ(read.errors.size(), 1u);
    EXPECT_THAT(print(read.errors[0]), HasSubstr("more than 200000 values, counting every alias as all it stands for"));
}

TEST(Limits, aliases_count_by_what_they_hold_and_not_only_by_how_many_they_are) {
    // 64 KiB written once, and 100 000 times a few bytes: gigabytes for whoever copies what the tree says.
    const std::string text = "a: &a \"" + std::string(60 << 10, 'x') + "\"\nb: [" + repeated("*a, ", 100'000) + "*a]\n";
    const ReadText read = read_documents("f", text);
    ASSERT_EQ(read.errors.size(), 1u);
    EXPECT_THAT(print(read.errors[0]), HasSubstr("f:2:")) << "where it became too much";
    EXPECT_THAT(print(read.errors[0]), HasSubstr("aliases stand for more than 4194304 bytes of text"));

    Limits limits;
    limits.bytes = 60;
    struct Row {
        std::string_view says, text;
        bool good;
    };
    const Row rows[] = {
        {"as much as allowed", "a: &a abcdefghijklmnopqrst\nb: [*a,*a,*a]", true},
        {"one more", "a: &a abcdefghijklmnopqrst\nb: [*a,*a,*a,*a]", false},
        {"keys count", "a: &a {abcdefghijklmnopqrst: 1}\nb: [*a,*a,*a]", false},
        {"what aliases stand for counts in full", "a: &a abcdefghijkl\nb: &b [*a,*a]\nc: [*b,*b]", false},
        {"all documents together", "--- [&a abcdefgh,*a,*a,*a,*a]\n--- [&a abcdefgh,*a,*a,*a,*a]", false},
    };
    for (const Row& row : rows) {
        limits.bytes = std::max<std::size_t>(60, row.text.size());
        EXPECT_EQ(read_documents("f", row.text, limits).errors.empty(), row.good) << row.says;
    }
}

// Shapes that cost a careless reader a stack, gigabytes or hours. Generous time, because test machines are slow.
TEST(Limits, hostile_texts_are_read_or_refused_in_seconds) {
    constexpr std::size_t size = 96 << 10;
    const std::string_view pieces[] = {"[",    "{",    "- ",    "? ",      ": ",    "!a ",         "&a ",   "*a ",
                                       "\"\"", "a: [", "---\n", "--- a\n", "...\n", "a: b\n",      "- a\n", "[]",
                                       "a,",   " ",    "\n",    "#\n",     "\"",    "%YAML 1.2\n", "a: |\n"};
    for (const std::string_view prefix : {"", "a: [", "a: \""})
        for (const std::string_view piece : pieces) {
            const std::string text = std::string{prefix} + repeated(piece, size / piece.size());
            const std::clock_t begin = std::clock();  // this process's own time, however busy the machine is
            read_documents("f", text);
            EXPECT_LT(std::clock() - begin, 60 * CLOCKS_PER_SEC) << prefix << piece << "...";
        }
}

}  // namespace
}  // namespace bulkhead
