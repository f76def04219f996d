// A domain is written as it is read, from above to below: elements that are closed in the order they were opened, and
// text that cannot become markup whatever is in it (xml.hpp).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bulkhead::render {

using XmlAttributes = std::vector<std::pair<std::string_view, std::string>>;

class XmlWriter {
public:
    void open(std::string_view element, const XmlAttributes& attributes = {});
    void close();
    void leaf(std::string_view element, const XmlAttributes& attributes);  // without content
    void text(std::string_view element, std::string_view content, const XmlAttributes& attributes = {});
    std::string finish();  // closes what is open

private:
    void begin(std::string_view element, const XmlAttributes& attributes);
    std::string out_;
    std::vector<std::string> opened_;
};

}  // namespace bulkhead::render
