// Text as a tree with positions, before anyone asks what it means: YAML streams and JSON become the same nodes.
// The text comes from outside, so everything has a limit, and what people trip over (a key twice, a merge key, a
// foreign tag) is refused by name instead of guessed.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/codec/diagnostic.hpp"

namespace bulkhead {

struct Place {
    int line = 0, column = 0;  // from 1; columns count bytes
    friend auto operator<=>(const Place&, const Place&) = default;
};

struct Node {
    enum class Type : std::uint8_t { null, scalar, list, map };
    struct Member {
        std::string key;
        Place at;  // of the key
        const Node* value = nullptr;
    };

    Type type = Type::null;
    Place at;
    std::string text;     // of a scalar
    bool quoted = false;  // it is text whatever it looks like: in quotes, a block scalar, a JSON string
    std::vector<const Node*> items;
    std::vector<Member> members;  // in the order of the text, every key once

    const Node* find(std::string_view key) const {
        for (const Member& member : members)
            if (member.key == key) return member.value;
        return nullptr;
    }
};

struct Document {
    Document() = default;
    Document(Document&&) noexcept =
        default;  // moved, its nodes stay where they are; a copy would point into the original
    Document& operator=(Document&&) noexcept = default;

    std::deque<Node> nodes;  // an alias is the same node again
    const Node* root = nullptr;
    bool sound = true;  // false: it was read as far as possible, and its errors are reported
};

struct Limits {
    std::size_t bytes = 4 << 20;
    std::size_t documents = 20'000;
    std::size_t depth = 64;
    std::size_t nodes = 200'000;  // an alias counts as all it stands for
    std::size_t scalar_bytes = 64 << 10;
};

// For what we wrote ourselves, out of things that had passed narrower limits.
inline constexpr Limits own_text{.bytes = 64 << 20, .nodes = 4'000'000, .scalar_bytes = 8 << 20};

struct ReadText {
    std::vector<Document> documents;  // empty ones are left out
    std::vector<Diagnostic> errors;
};

// JSON when the first byte that is not blank is { or [; YAML otherwise.
ReadText read_documents(std::string_view file, std::string_view text, const Limits& limits = {});

}  // namespace bulkhead
