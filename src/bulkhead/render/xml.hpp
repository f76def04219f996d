// A tree of elements as XML text: enough for files that others read, with every value escaped.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bulkhead::render {

struct Element {
    std::string name;
    std::vector<std::pair<std::string, std::string>> attributes;
    std::vector<Element> children;

    Element& add(std::string child) { return children.emplace_back(Element{std::move(child), {}, {}}); }
    Element& set(std::string key, std::string value) {
        attributes.emplace_back(std::move(key), std::move(value));
        return *this;
    }
    std::string_view get(std::string_view key) const;
    std::size_t count() const;  // of it and everything below
};
std::string to_xml(const Element& root);

// For text, and for attributes in either kind of quotes. What XML 1.0 cannot say at all becomes U+FFFD; line ends
// become references, which readers leave as they are.
std::string xml_escaped(std::string_view text);

}  // namespace bulkhead::render
