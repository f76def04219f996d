// How a struct describes itself, once. A described struct has
//
//     static constexpr void describe(auto&& field) {
//         field("tenant", &GpuWorkloadSpec::tenant, "Who owns the work.", Rule{.required = true, .format =
//         Format::name});
//         ...
//     }
//
// and whoever reads, prints or explains it passes a visitor. Nothing here can say more than a Kubernetes structural
// schema can, so that the same description becomes a custom resource later.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace bulkhead {

enum class Format : std::uint8_t {
    any,
    name,    // a DNS label: lower-case letters, digits and '-', at most 63, beginning and ending with a letter or digit
    dotted,  // DNS labels joined by dots, at most 253 together
    line,    // text without control characters, not empty
};

struct Rule {
    bool required = false;
    bool shown = false;                                           // in YAML also when it has its first value
    Format format = Format::any;                                  // of a string, or of each string in a list
    std::int64_t min = std::numeric_limits<std::int64_t>::min();  // of a number or quantity, in its base unit
    std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

// Every enum of the model has its words in one array, in the order of its values; found by argument-dependent lookup.
template <class E>
concept Worded = std::is_enum_v<E> && requires(E e) {
    { words(e).size() } -> std::convertible_to<std::size_t>;
};

template <Worded E>
constexpr std::string_view word(E value) {
    return words(value)[static_cast<std::size_t>(value)];
}

template <Worded E>
constexpr std::optional<E> from_word(std::string_view text) {
    constexpr auto all = words(E{});
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i] == text) return static_cast<E>(i);
    return std::nullopt;
}

// All values of an enum, to walk over.
template <Worded E>
constexpr auto every() {
    std::array<E, words(E{}).size()> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<E>(i);
    return all;
}

struct AnyVisitor {
    constexpr void operator()(auto&&...) const {}
};
template <class T>
concept Described = requires { T::describe(AnyVisitor{}); };

bool is_valid(Format format, std::string_view text);
std::string_view pattern(Format format);      // as a regular expression, for schemas
std::string_view explanation(Format format);  // for people

}  // namespace bulkhead
