#include "bulkhead/render/xml.hpp"

#include <fmt/format.h>

namespace bulkhead::render {

namespace {

// How many bytes the UTF-8 character at the front has; 0: it is none that XML may hold.
std::size_t character_bytes(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
    const std::size_t bytes = first >= 0xC2 && first <= 0xDF   ? 2
                              : first >= 0xE0 && first <= 0xEF ? 3
                              : first >= 0xF0 && first <= 0xF4 ? 4
                                                               : 0;
    if (bytes == 0 || text.size() < bytes) return 0;
    char32_t value = first & (0xFFU >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return 0;
        value = value << 6 | (byte(i) & 0x3F);
    }
    constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = value >= 0xD800 && value <= 0xDFFF, beyond = value > 0x10FFFF;
    const bool no_character = value == 0xFFFE || value == 0xFFFF;
    return value < least[bytes] || surrogate || beyond || no_character ? 0 : bytes;
}

void append_element(std::string& out, const Element& element, unsigned depth) {
    out.append(std::size_t{2} * depth, ' ');
    out += '<' + element.name;
    for (const auto& [key, value] : element.attributes) {
        out += fmt::format(" {}=\"{}\"", key, xml_escaped(value));
    }
    if (element.children.empty()) {
        out += "/>\n";
        return;
    }
    out += ">\n";
    for (const Element& child : element.children) append_element(out, child, depth + 1);
    out.append(std::size_t{2} * depth, ' ');
    out += "</" + element.name + ">\n";
}

}  // namespace

std::string xml_escaped(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t bytes = character_bytes(text);
        if (bytes == 0) {
            out += "\xEF\xBF\xBD";
            text.remove_prefix(1);
            continue;
        }
        switch (bytes == 1 ? text.front() : 'x') {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '\'':
                out += "&apos;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\t':
            case '\n':
            case '\r':
                out += fmt::format("&#{};", static_cast<int>(text.front()));
                break;
            default:
                out += text.substr(0, bytes);
        }
        text.remove_prefix(bytes);
    }
    return out;
}

std::string_view Element::get(std::string_view key) const {
    for (const auto& [name_, value] : attributes)
        if (name_ == key) return value;
    return {};
}

std::size_t Element::count() const {
    std::size_t sum = 1;
    for (const Element& child : children) sum += child.count();
    return sum;
}

std::string to_xml(const Element& root) {
    std::string out;
    append_element(out, root, 0);
    return out;
}

}  // namespace bulkhead::render
