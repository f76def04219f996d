// XML as somebody else reads it: a strict reader of its own, so that what is written is not judged by who wrote it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bulkhead::render {

struct Read {
    std::string name;
    std::vector<std::pair<std::string, std::string>> attributes;
    std::vector<Read> children;
    std::string at(std::string_view key) const {
        for (const auto& [name_, value] : attributes)
            if (name_ == key) return value;
        return "(none)";
    }
};

class XmlReader {
public:
    explicit XmlReader(std::string_view text) : left_(text) {}
    // The one root element, and nothing after it but a line's end.
    std::optional<Read> whole() {
        auto root = element();
        space();
        return left_.empty() ? root : std::nullopt;
    }

private:
    bool take(std::string_view text) {
        if (!left_.starts_with(text)) return false;
        left_.remove_prefix(text.size());
        return true;
    }
    void space() {
        while (!left_.empty() && (left_.front() == ' ' || left_.front() == '\n')) left_.remove_prefix(1);
    }
    std::string word() {
        std::string out;
        while (!left_.empty() && ((left_.front() >= 'a' && left_.front() <= 'z') || left_.front() == '_')) {
            out += left_.front();
            left_.remove_prefix(1);
        }
        return out;
    }
    std::optional<std::string> quoted() {
        if (!take("=\"")) return std::nullopt;
        const std::size_t end = left_.find('"');
        if (end == std::string_view::npos) return std::nullopt;
        const std::string value{left_.substr(0, end)};
        left_.remove_prefix(end + 1);
        if (value.find_first_of("<&\n") != std::string::npos) return std::nullopt;
        return value;
    }
    std::optional<Read> element() {
        space();
        if (!take("<")) return std::nullopt;
        Read out{word(), {}, {}};
        if (out.name.empty()) return std::nullopt;
        while (take(" ")) {
            const std::string key = word();
            const auto value = quoted();
            if (key.empty() || !value || out.at(key) != "(none)") return std::nullopt;
            out.attributes.emplace_back(key, *value);
        }
        if (take("/>")) return out;
        if (!take(">")) return std::nullopt;
        for (space(); !left_.starts_with("</"); space()) {
            auto child = element();
            if (!child) return std::nullopt;
            out.children.push_back(std::move(*child));
        }
        if (!take("</" + out.name + ">")) return std::nullopt;
        return out;
    }
    std::string_view left_;
};

inline std::optional<Read> read_xml(std::string_view text) { return XmlReader{text}.whole(); }

inline void walk(const Read& element, auto&& visit) {
    visit(element);
    for (const Read& child : element.children) walk(child, visit);
}

}  // namespace bulkhead::render
