// Builds one document's tree from the events of a reader, JSON's or YAML's, and keeps the limits while it grows.
// What ends a document, a limit or a syntax error, is thrown as Unreadable and caught where the document was begun.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bulkhead/codec/document.hpp"

namespace bulkhead {

struct Unreadable {
    Place at;
    std::string what;
    std::string remedy;
    bool ends_file = false;  // the limit is the file's, so that going on would only repeat it
};

// What all the documents of one text may still take. Text that is written out costs what it is long; an alias costs a
// few bytes to write, and whoever copies the tree pays for all it stands for.
struct Allowance {
    explicit Allowance(const Limits& limits) : nodes{limits.nodes}, alias_bytes{limits.bytes} {}
    std::size_t nodes, alias_bytes;
};

class TreeBuilder {
public:
    TreeBuilder(std::string_view file, const Limits& limits, Allowance& left, Document& document,
                std::vector<Diagnostic>& errors)
        : file_{file}, limits_{limits}, left_{left}, document_{document}, errors_{errors} {}

    using Anchor = std::size_t;  // 0: none

    void null(Place at, Anchor anchor = 0);
    void scalar(Place at, std::string text, bool quoted, Anchor anchor = 0);
    void begin_list(Place at, Anchor anchor = 0) { begin(Node::Type::list, at, anchor); }
    void begin_map(Place at, Anchor anchor = 0) { begin(Node::Type::map, at, anchor); }
    void end();  // of the innermost list or map
    void alias(Place at, Anchor anchor);
    void complain(Place at, std::string what, std::string remedy);

    // Whether the next event is a map's value, and where its key stands: a value that is not written is reported there.
    const Place* place_of_key() const;
    const Place* place_of_list() const;

private:
    struct Frame {
        Node* node = nullptr;
        Anchor anchor = 0;
        std::size_t size = 1, height = 1, bytes = 0;  // with every alias expanded
        bool is_key = false;                          // a list or map where a key should be: read on, but to no avail
        bool has_key = false, key_counts = false;
        std::string key{};
        Place key_at{};
    };
    struct Anchored {
        const Node* node = nullptr;
        std::size_t size = 1, height = 0, bytes = 0;  // of keys and scalars
    };

    bool at_key() const {
        return !open_.empty() && open_.back().node->type == Node::Type::map && !open_.back().has_key;
    }
    void take_key(Place at, std::string text, bool counts);
    void begin(Node::Type type, Place at, Anchor anchor);
    Node& add(Node::Type type, Place at);
    void spend(std::size_t nodes, Place at);
    void attach(const Anchored& value);
    void drop_repeated_keys(Node& map);

    std::string_view file_;
    const Limits& limits_;
    Allowance& left_;
    Document& document_;
    std::vector<Diagnostic>& errors_;
    std::vector<Frame> open_;
    std::map<Anchor, Anchored> anchored_;
};

// The two readers, each of one document's worth of text that is known to be UTF-8.
struct Chunk {
    std::string_view text;
    int first_line = 1, first_column = 1;
};
void read_yaml(const Chunk& chunk, TreeBuilder& builder);
void read_json(const Chunk& chunk, TreeBuilder& builder);

}  // namespace bulkhead
