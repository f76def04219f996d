#include "bulkhead/auth/jose_json.hpp"

#include <fmt/core.h>

#include <charconv>

namespace bulkhead::auth {

namespace {

std::unexpected<Error> other_type(std::string_view name, std::string_view due) {
    return fail(Code::invalid, fmt::format("\"{}\" is not {}", name, due));
}

// Null counts as absent: providers write it for what they do not know.
const Node* member_of(const Node& object, std::string_view name) {
    const Node* found = object.find(name);
    return found == nullptr || found->type == Node::Type::null ? nullptr : found;
}

bool is_text(const Node& node) { return node.type == Node::Type::scalar && node.quoted; }

}  // namespace

Result<Document> read_json_object(std::string_view what, std::string_view text, JsonLimits most) {
    // The first byte decides: no byte order mark, no blank, and nothing that would be read as YAML.
    if (!text.starts_with('{')) return fail(Code::invalid, fmt::format("{} is not a JSON object", what));
    ReadText read = read_documents(
        what, text,
        {.bytes = most.bytes, .documents = 1, .depth = 16, .nodes = most.nodes, .scalar_bytes = most.bytes});
    if (!read.errors.empty()) return fail(Code::invalid, fmt::format("{}: {}", what, read.errors.front().what));
    if (read.documents.size() != 1 || read.documents.front().root == nullptr ||
        read.documents.front().root->type != Node::Type::map)
        return fail(Code::invalid, fmt::format("{} is not a JSON object", what));
    return std::move(read.documents.front());
}

Result<std::optional<std::string>> text_member(const Node& object, std::string_view name) {
    const Node* found = member_of(object, name);
    if (found == nullptr) return std::nullopt;
    if (!is_text(*found)) return other_type(name, "a text");
    return found->text;
}

Result<std::optional<std::int64_t>> whole_number_member(const Node& object, std::string_view name) {
    const Node* found = member_of(object, name);
    if (found == nullptr) return std::nullopt;
    const std::string& text = found->text;
    std::int64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = read.ec == std::errc{} && read.ptr == text.data() + text.size();
    if (found->type != Node::Type::scalar || found->quoted || !whole) return other_type(name, "a whole number");
    return number;
}

Result<std::optional<std::vector<std::string>>> texts_member(const Node& object, std::string_view name, bool lone) {
    const Node* found = member_of(object, name);
    if (found == nullptr) return std::nullopt;
    if (lone && is_text(*found)) return std::vector{found->text};
    if (found->type != Node::Type::list) return other_type(name, "a list of texts");
    std::vector<std::string> out;
    for (const Node* item : found->items) {
        if (!is_text(*item)) return other_type(name, "a list of texts");
        out.push_back(item->text);
    }
    return out;
}

Result<const Node*> object_member(const Node& object, std::string_view name) {
    const Node* found = member_of(object, name);
    if (found != nullptr && found->type != Node::Type::map) return other_type(name, "an object");
    return found;
}

Result<std::string> required_text(const Node& object, std::string_view name) {
    auto found = text_member(object, name);
    if (!found) return std::unexpected(std::move(found.error()));
    if (!*found || (*found)->empty()) return fail(Code::invalid, fmt::format("\"{}\" is missing", name));
    return **std::move(found);
}

}  // namespace bulkhead::auth
