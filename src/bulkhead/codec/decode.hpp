// A tree to a described struct, strictly: unknown fields, missing fields, wrong types, numbers out of range and unknown
// words are all found, each with its place and the next step. Reading goes on after each, so that one run shows all.
#pragma once

#include <array>
#include <concepts>
#include <span>
#include <string_view>
#include <vector>

#include "bulkhead/codec/compact_reader.hpp"
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

// One value from JSON text, with every error in one message.
Result<> read_strictly_into(std::string_view what, std::string_view text, const Shape& shape, void* target,
                            std::span<const std::string_view> besides, const Limits& limits);

// One value from JSON text of our own making, or of a peer, into a fresh one that lies where it is to stay; after an
// error that one means nothing. `what`: what the text is, for the error: "row 17 of lease"; or a function that says so,
// where only an error is worth the words.
template <Described T, class What>
Result<> from_json_into(T& fresh, const What& what, std::string_view text, const Limits& limits = {}) {
    static constexpr std::array<std::string_view, 2> header{"apiVersion", "kind"};
    constexpr bool is_object = requires {
        { T::kind } -> std::convertible_to<std::string_view>;
    };
    const std::span<const std::string_view> besides =
        is_object ? std::span{header} : std::span<const std::string_view>{};
    if (read_compact_into(text, shape_of<T>(), &fresh, besides, limits)) return {};
    fresh = {};
    if constexpr (std::invocable<const What&>)
        return read_strictly_into(what(), text, shape_of<T>(), &fresh, besides, limits);
    else
        return read_strictly_into(what, text, shape_of<T>(), &fresh, besides, limits);
}

template <Described T, class What>
Result<T> from_json(const What& what, std::string_view text, const Limits& limits = {}) {
    Result<T> value{std::in_place};
    if (Result<> read = from_json_into(*value, what, text, limits); !read)
        return std::unexpected(std::move(read.error()));
    return value;
}

}  // namespace bulkhead
