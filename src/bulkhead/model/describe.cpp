#include "bulkhead/model/describe.hpp"

#include <algorithm>

namespace bulkhead {

namespace {

constexpr bool is_label_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

bool is_label(std::string_view text) {
    return !text.empty() && text.size() <= 63 && std::ranges::all_of(text, is_label_char) && text.front() != '-' &&
           text.back() != '-';
}

bool is_dotted(std::string_view text) {
    if (text.size() > 253) return false;
    while (true) {
        const std::size_t dot = text.find('.');
        if (!is_label(text.substr(0, dot))) return false;
        if (dot == std::string_view::npos) return true;
        text.remove_prefix(dot + 1);
    }
}

bool is_line(std::string_view text) {
    return !text.empty() && std::ranges::none_of(text, [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 || byte == 0x7f;
    });
}

}  // namespace

bool is_valid(Format format, std::string_view text) {
    switch (format) {
        case Format::any:
            return true;
        case Format::name:
            return is_label(text);
        case Format::dotted:
            return is_dotted(text);
        case Format::line:
            return is_line(text);
    }
    return false;
}

std::string_view pattern(Format format) {
    switch (format) {
        case Format::any:
            return "";
        case Format::name:
            return "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$";
        case Format::dotted:
            return "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$";
        case Format::line:
            return "^[^\\x00-\\x1f\\x7f]+$";
    }
    return "";
}

std::string_view explanation(Format format) {
    switch (format) {
        case Format::any:
            return "any text";
        case Format::name:
            return "1 to 63 lower-case letters, digits or '-', beginning and ending with a letter or digit";
        case Format::dotted:
            return "labels of lower-case letters, digits or '-' (1 to 63 each, beginning and ending with a letter or "
                   "digit), joined by dots, at most 253 characters";
        case Format::line:
            return "one line of text, not empty";
    }
    return "";
}

}  // namespace bulkhead
