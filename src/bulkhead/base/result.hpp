// What the world can cause is a Result; what only a bug can cause is an invariant, checked in release builds too.
#pragma once

#include <cstdint>
#include <expected>
#include <source_location>
#include <string>
#include <string_view>

namespace bulkhead {

// What kind of failure it is; each door has one way to say each.
enum class Code : std::uint8_t { invalid, not_found, conflict, denied, exhausted, unavailable, timeout, corrupt };

// Written for someone awake at 3 a.m.: the object, the rule, the numbers; then the next step.
struct Error {
    Code code{};
    std::string what;
    std::string remedy;
    friend bool operator==(const Error&, const Error&) = default;
};

template <class T = void>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Code code, std::string what, std::string remedy = {}) {
    return std::unexpected(Error{code, std::move(what), std::move(remedy)});
}

// A stopped control plane is safer than a wrong one: running workloads outlive it.
[[noreturn]] void stop_for_bug(std::string_view claim, std::source_location where);

constexpr void invariant(bool holds, std::string_view claim,
                         std::source_location where = std::source_location::current()) {
    if (!holds) [[unlikely]]
        stop_for_bug(claim, where);
}

}  // namespace bulkhead
