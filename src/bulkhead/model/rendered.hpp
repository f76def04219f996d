// What a server answers to whoever wants a lease as files that other programs read.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/model/describe.hpp"

namespace bulkhead {

struct RenderedFile {
    std::string node, name, text;

    static constexpr void describe(auto&& field) {
        field("node", &RenderedFile::node, "The node whose part it is about.", Rule{.required = true});
        field("name", &RenderedFile::name, "What it is called.", Rule{.required = true});
        field("text", &RenderedFile::text, "All of it.", Rule{.required = true});
    }
    friend bool operator==(const RenderedFile&, const RenderedFile&) = default;
};

struct RenderedFiles {
    std::vector<RenderedFile> files;

    static constexpr void describe(auto&& field) {
        field("files", &RenderedFiles::files, "By node, in the order of ranks.");
    }
    friend bool operator==(const RenderedFiles&, const RenderedFiles&) = default;
};

}  // namespace bulkhead
