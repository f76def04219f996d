// Manifests to objects: every document of every file, strictly, with every error and its place. What loads without
// errors is in the snapshot; what does not is only in the errors.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/model/consistency.hpp"
#include "bulkhead/model/snapshot.hpp"

namespace bulkhead {

struct SourceText {
    std::string name, text;
};

// Where the objects of a snapshot were written.
class SourceMap {
public:
    // The place of a JSON Pointer into the object, or of its nearest ancestor that is written. The occurrence counts
    // objects of the same kind and name, from 0. For an object that is nowhere: the files, without a line.
    Position find(std::string_view kind, std::string_view name, std::size_t occurrence, std::string_view pointer) const;

    void add_file(std::string_view file) { files_.emplace_back(file); }
    void add_object(std::string_view kind, std::string_view name, const Node& root);
    // The documents that nodes given to add_object point into.
    void keep(std::vector<Document> documents);

private:
    struct Object {
        std::size_t file = 0;
        const Node* root = nullptr;
    };
    std::vector<std::string> files_;
    std::map<std::pair<std::string, std::string>, std::vector<Object>> objects_;
    std::vector<std::shared_ptr<const std::vector<Document>>>
        documents_;  // shared: a copied map still points into them
};

struct Loaded {
    Snapshot snapshot;
    SourceMap where;
    std::vector<Diagnostic> errors;  // in the order of the files, and of positions within each
};

Loaded load(std::span<const SourceText> files, const Limits& limits = {});

// Findings about a loaded snapshot, as file:line:column.
std::vector<Diagnostic> located(const SourceMap& where, std::span<const Finding> findings);

}  // namespace bulkhead
