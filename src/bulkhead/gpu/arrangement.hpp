// Where several new instances go together: the arrangement that leaves the highest value, found by trying them all.
// A GPU holds at most seven instances, so all is few; no memory is allocated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "bulkhead/gpu/geometry.hpp"

namespace bulkhead::gpu {

// One GPU instance to be placed, at one of these starts.
struct Demand {
    std::uint8_t profile{};  // index into Board::profiles
    Starts starts;
    friend bool operator==(const Demand&, const Demand&) = default;
};

inline constexpr std::size_t instances_max = 8;  // memory slices on any board: more instances never fit

struct Arrangement {
    std::array<std::uint8_t, instances_max> starts{};  // of each demand, in their order
    Occupancy after;
    Value value;
};

// Large before small and fixed before free, so that dead ends show early and equal demands stand together.
void sort_for_arranging(const Board& board, std::span<Demand> demands);

// Demands must be sorted as above. Nothing when they do not all fit. Of equal values, the one with the lowest starts.
std::optional<Arrangement> arrange(const Geometry& geometry, Occupancy now, std::span<const Demand> demands);

}  // namespace bulkhead::gpu
