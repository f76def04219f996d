// A tree to a described struct, strictly: unknown fields, missing fields, wrong types, numbers out of range and unknown
// words are all found, each with its place and the next step. Reading goes on after each, so that one run shows all.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/shape.hpp"

namespace bulkhead {

// `besides`: keys of the outermost map that the caller reads itself.
bool decode_into(const Node& node, std::string_view file, const Shape& shape, void* target,
                 std::span<const std::string_view> besides, std::vector<Diagnostic>& errors);

// True when nothing was wrong; only then is the target complete.
template <Described T>
bool decode(const Node& node, std::string_view file, T& target, std::vector<Diagnostic>& errors,
            std::span<const std::string_view> besides = {}) {
    return decode_into(node, file, shape_of<T>(), &target, besides, errors);
}

}  // namespace bulkhead
