#include "bulkhead/render/libvirt_xml.hpp"

#include <fmt/format.h>

#include "bulkhead/render/xml.hpp"

namespace bulkhead::render {

void XmlWriter::begin(std::string_view element, const XmlAttributes& attributes) {
    out_.append(opened_.size() * 2, ' ');
    out_ += fmt::format("<{}", element);
    for (const auto& [name, value] : attributes) out_ += fmt::format(" {}='{}'", name, xml_escaped(value));
}

void XmlWriter::open(std::string_view element, const XmlAttributes& attributes) {
    begin(element, attributes);
    out_ += ">\n";
    opened_.emplace_back(element);
}

void XmlWriter::close() {
    const std::string element = std::move(opened_.back());
    opened_.pop_back();
    out_.append(opened_.size() * 2, ' ');
    out_ += fmt::format("</{}>\n", element);
}

void XmlWriter::leaf(std::string_view element, const XmlAttributes& attributes) {
    begin(element, attributes);
    out_ += "/>\n";
}

void XmlWriter::text(std::string_view element, std::string_view content, const XmlAttributes& attributes) {
    begin(element, attributes);
    out_ += fmt::format(">{}</{}>\n", xml_escaped(content), element);
}

std::string XmlWriter::finish() {
    while (!opened_.empty()) close();
    return std::move(out_);
}

}  // namespace bulkhead::render
