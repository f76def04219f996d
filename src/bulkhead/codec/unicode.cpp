#include "bulkhead/codec/unicode.hpp"

#include <cstdint>
#include <cstring>

namespace bulkhead {

std::optional<Rune> front_rune(std::string_view text) {
    if (text.empty()) return std::nullopt;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return Rune{lead, 1};
    std::size_t bytes = 0;
    char32_t value = 0, least = 0;
    if ((lead & 0xe0) == 0xc0)
        bytes = 2, value = lead & 0x1fu, least = 0x80;
    else if ((lead & 0xf0) == 0xe0)
        bytes = 3, value = lead & 0x0fu, least = 0x800;
    else if ((lead & 0xf8) == 0xf0)
        bytes = 4, value = lead & 0x07u, least = 0x10000;
    else
        return std::nullopt;
    if (text.size() < bytes) return std::nullopt;
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return std::nullopt;
        value = (value << 6) | (byte(i) & 0x3fu);
    }
    if (value < least || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return std::nullopt;
    return Rune{value, bytes};
}

std::size_t first_invalid_utf8(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
        // Nearly all text is ASCII: eight bytes without an upper bit are eight characters.
        std::uint64_t eight = 0;
        if (text.size() - at >= sizeof eight) {
            std::memcpy(&eight, text.data() + at, sizeof eight);
            if ((eight & 0x8080'8080'8080'8080) == 0) {
                at += sizeof eight;
                continue;
            }
        }
        const auto rune = front_rune(text.substr(at));
        if (!rune) return at;
        at += rune->bytes;
    }
    return std::string_view::npos;
}

void append_utf8(std::string& out, char32_t rune) {
    const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((rune >> shift) & 0x3f)); };
    if (rune < 0x80) {
        out += static_cast<char>(rune);
    } else if (rune < 0x800) {
        out += static_cast<char>(0xc0 | (rune >> 6));
        tail(0);
    } else if (rune < 0x10000) {
        out += static_cast<char>(0xe0 | (rune >> 12));
        tail(6), tail(0);
    } else {
        out += static_cast<char>(0xf0 | (rune >> 18));
        tail(12), tail(6), tail(0);
    }
}

bool is_visible_in_yaml(char32_t rune) {
    if (rune < 0x20 || rune == 0x7f) return false;
    if (rune < 0x7f) return true;
    if (rune < 0xa0) return false;                       // C1 controls, and NEL among them
    if (rune == 0x2028 || rune == 0x2029) return false;  // line and paragraph separator
    return rune != 0xfeff && rune != 0xfffe && rune != 0xffff;
}

}  // namespace bulkhead
