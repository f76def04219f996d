// UTF-8, taken strictly: no surrogates, no overlong forms, nothing beyond U+10FFFF.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

struct Rune {
    char32_t value = 0;
    std::size_t bytes = 0;
};

// The character at the front of the text, or nothing if that is not UTF-8.
std::optional<Rune> front_rune(std::string_view text);
// Where the text stops being UTF-8, or npos.
std::size_t first_invalid_utf8(std::string_view text);
void append_utf8(std::string& out, char32_t rune);
// Whether YAML allows the character to stand for itself. Byte order marks and the line breaks that only some readers
// know are left out on purpose: they are invisible, and they can be escaped.
bool is_visible_in_yaml(char32_t rune);

}  // namespace bulkhead
