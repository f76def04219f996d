#include "bulkhead/render/xml.hpp"

namespace bulkhead::render {

namespace {

void append_escaped(std::string& out, std::string_view text) {
    for (const char c : text) switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                // XML has no way to write most control characters, and nothing here needs one.
                out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        }
}

void append_element(std::string& out, const Element& element, unsigned depth) {
    out.append(std::size_t{2} * depth, ' ');
    out += '<' + element.name;
    for (const auto& [key, value] : element.attributes) {
        out += ' ' + key + "=\"";
        append_escaped(out, value);
        out += '"';
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
