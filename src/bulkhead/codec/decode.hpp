// A tree to a described struct, strictly: unknown fields, missing fields, wrong types, numbers out of range and unknown
// words are all found, each with its place and the next step. Reading goes on after each, so that one run shows all.
#pragma once

#include <array>
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

// One value from JSON text of our own making, or of a peer: every error, in one message.
Result<> from_json_into(std::string_view what, std::string_view text, const Shape& shape, void* target,
                        std::span<const std::string_view> besides, const Limits& limits);

// `what`: what the text is, for the error: "row 17 of lease".
template <Described T>
Result<T> from_json(std::string_view what, std::string_view text, const Limits& limits = {}) {
    static constexpr std::array<std::string_view, 2> header{"apiVersion", "kind"};
    constexpr bool is_object = requires {
        { T::kind } -> std::convertible_to<std::string_view>;
    };
    T value;
    const Result<> read = from_json_into(what, text, shape_of<T>(), &value,
                                         is_object ? std::span{header} : std::span<const std::string_view>{}, limits);
    if (!read) return std::unexpected(read.error());
    return value;
}

}  // namespace bulkhead
