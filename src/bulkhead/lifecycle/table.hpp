// A state machine is one table that people, tests and the diagrams all read. What a table promises about itself is a
// static_assert beside it, so that the compiler keeps the promise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead::lifecycle {

template <Worded S, Worded E>
struct Edge {
    S from;
    E on;
    S to;
};

// The state after an event; nothing when the table has no such edge.
template <class Edges, Worded S, Worded E>
constexpr std::optional<S> next(const Edges& edges, S from, E on) {
    for (const auto& edge : edges)
        if (edge.from == from && edge.on == on) return edge.to;
    return std::nullopt;
}

// No state has two ways to go on one event.
template <class Edges>
constexpr bool deterministic(const Edges& edges) {
    for (std::size_t i = 0; i < edges.size(); ++i)
        for (std::size_t j = i + 1; j < edges.size(); ++j)
            if (edges[i].from == edges[j].from && edges[i].on == edges[j].on) return false;
    return true;
}

// Every way into a state starts in one of those.
template <class Edges, class S, class... From>
constexpr bool only_reached_from(const Edges& edges, S state, From... from) {
    return std::ranges::all_of(edges,
                               [&](const auto& edge) { return edge.to != state || ((edge.from == from) || ...); });
}

// Every way into a state is by one of those events.
template <class Edges, class S, class... On>
constexpr bool only_entered_on(const Edges& edges, S state, On... on) {
    return std::ranges::all_of(edges, [&](const auto& edge) { return edge.to != state || ((edge.on == on) || ...); });
}

// From every state there is a way to that one, however many steps it takes: nothing is lost for ever.
template <class Edges, Worded S>
constexpr bool always_recoverable(const Edges& edges, S goal) {
    constexpr auto all = every<S>();
    std::array<bool, all.size()> reaches{};
    reaches[static_cast<std::size_t>(goal)] = true;
    for (std::size_t round = 0; round < all.size(); ++round)
        for (const auto& edge : edges)
            if (reaches[static_cast<std::size_t>(edge.to)]) reaches[static_cast<std::size_t>(edge.from)] = true;
    return std::ranges::all_of(reaches, [](bool yes) { return yes; });
}

// The table as a Mermaid diagram, for the docs.
template <class Edges>
std::string diagram(const Edges& edges) {
    std::string text = "stateDiagram-v2\n";
    for (const auto& edge : edges) {
        text += "    ";
        text += word(edge.from);
        text += " --> ";
        text += word(edge.to);
        text += ": ";
        text += word(edge.on);
        text += '\n';
    }
    return text;
}

}  // namespace bulkhead::lifecycle
