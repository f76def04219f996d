#include "bulkhead/codec/unicode.hpp"

#include <gtest/gtest.h>

#include "bulkhead/codec/plain.hpp"

namespace bulkhead {
namespace {

TEST(Unicode, every_character_survives_being_written_and_read) {
    for (char32_t rune = 0; rune <= 0x10ffff; ++rune) {
        if (rune == 0xd800) rune = 0xe000;
        std::string text;
        append_utf8(text, rune);
        const auto read = front_rune(text);
        ASSERT_TRUE(read && read->value == rune && read->bytes == text.size()) << static_cast<std::uint32_t>(rune);
    }
}

TEST(Unicode, refuses_what_only_looks_like_utf8) {
    for (const char* text : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xed\xa0\x80",
                             "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xfe",
                             "\xff", "\xc3", "\xe2\x82", "\xc3(", "\xf0\x9f\x98"})
        EXPECT_EQ(first_invalid_utf8(text), 0u) << text;
    EXPECT_EQ(first_invalid_utf8("ab\xff"), 2u);
    EXPECT_EQ(first_invalid_utf8("gr\u00fc\u00df \U0001f600"), std::string_view::npos);
}

TEST(Plain, is_what_a_yaml_reader_takes_it_for) {
    struct Row {
        PlainType type;
        std::vector<const char*> texts;
    };
    const Row rows[] = {
        {PlainType::null, {"", "~", "null", "Null", "NULL"}},
        {PlainType::truth, {"true", "True", "TRUE", "false", "yes", "No", "ON", "off", "y", "N"}},
        {PlainType::number,
         {"0", "-1", "+1", "017", "0o17", "0x1F", "0b1", "1_000", "1.5", ".5", "1.", "1e3", "1E+3", "-1.5e-3", ".inf",
          "-.INF", ".nan", "190:20:30", "1:30"}},
        {PlainType::text, {"nULL",       "tRUE", "yess", "offline", "-",    "+",    ".",        "..",
                           "1.2.3",      "1e",   "e3",   "0x",      "0xg",  "10Gi", "1h30m",    "2026-11-15T09:00:00Z",
                           "2026-11-15", "a:1",  "1:",   ":1",      "1::2", "-a",   "infinity", "nan",
                           "1 2"}},
    };
    for (const Row& row : rows)
        for (const char* text : row.texts) EXPECT_EQ(plain_type(text), row.type) << text;
}

}  // namespace
}  // namespace bulkhead
