#include "bulkhead/codec/plain.hpp"

#include <algorithm>
#include <array>

#include "bulkhead/codec/unicode.hpp"

namespace bulkhead {

namespace {

using namespace std::string_view_literals;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "off", "Off" and "OFF", but not "oFF".
bool is_word(std::string_view text, std::string_view lower) {
    if (text.size() != lower.size() || text.empty()) return false;
    const auto up = [](char c) { return static_cast<char>(c - 'a' + 'A'); };
    const auto all = [&](std::size_t from, bool upper) {
        for (std::size_t i = from; i < text.size(); ++i)
            if (text[i] != (upper ? up(lower[i]) : lower[i])) return false;
        return true;
    };
    return all(0, false) || all(0, true) || (text[0] == up(lower[0]) && all(1, false));
}

bool only(std::string_view text, auto allowed) { return !text.empty() && std::ranges::all_of(text, allowed); }

// Decimal, hexadecimal, octal and binary; grouped by '_' and in base 60 as YAML 1.1 has them; reals with exponent.
bool is_number(std::string_view text) {
    if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
    if (text.empty()) return false;
    if (text == ".inf" || text == ".Inf" || text == ".INF") return true;
    const auto digit_or_gap = [](char c) { return is_digit(c) || c == '_'; };
    if (text.size() > 2 && text[0] == '0') {
        const std::string_view rest = text.substr(2);
        const auto hex = [](char c) {
            return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == '_';
        };
        if (text[1] == 'x' && only(rest, hex)) return true;
        if ((text[1] == 'o' || text[1] == 'b') && only(rest, digit_or_gap)) return true;
    }
    if (!is_digit(text[0]) && text[0] != '.') return false;
    if (text.find(':') != std::string_view::npos)  // 190:20:30 is a number of seconds to YAML 1.1
        return is_digit(text[0]) &&
               only(text, [](char c) { return is_digit(c) || c == ':' || c == '_' || c == '.'; }) &&
               text.find("::") == std::string_view::npos && text.back() != ':';
    std::size_t at = 0;
    while (at < text.size() && digit_or_gap(text[at])) ++at;
    bool digits = at > 0;
    if (at < text.size() && text[at] == '.') {
        const std::size_t from = ++at;
        while (at < text.size() && digit_or_gap(text[at])) ++at;
        digits = digits || at > from;
    }
    if (!digits) return false;
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        ++at;
        if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
        return only(text.substr(at), is_digit);
    }
    return at == text.size();
}

}  // namespace

PlainType plain_type(std::string_view text) {
    if (text.empty() || text == "~" || is_word(text, "null")) return PlainType::null;
    for (const std::string_view word : {"true"sv, "false"sv, "yes"sv, "no"sv, "on"sv, "off"sv, "y"sv, "n"sv})
        if (is_word(text, word)) return PlainType::truth;
    if (text == ".nan" || text == ".NaN" || text == ".NAN") return PlainType::number;
    return is_number(text) ? PlainType::number : PlainType::text;
}

bool can_stand_plain(std::string_view text) {
    if (plain_type(text) != PlainType::text || text == "<<" || text == "=") return false;
    if ("-?:,[]{}#&*!|>'\"%@` "sv.contains(text.front()) || text.back() == ' ' || text.back() == ':') return false;
    if (text.contains(": ") || text.contains(" #") || text.starts_with("...")) return false;
    while (!text.empty()) {
        const auto rune = front_rune(text);
        if (!rune || !is_visible_in_yaml(rune->value)) return false;
        text.remove_prefix(rune->bytes);
    }
    return true;
}

}  // namespace bulkhead
