// The search inside a plan: which idle instances to give up so that all demands find a place. Numbers only and no
// memory allocated: a full GPU must be planned in microseconds, because a scheduler asks this of every node.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "bulkhead/gpu/arrangement.hpp"

namespace bulkhead::gpu {

struct Idle {
    std::uint8_t profile{}, start{};
};

struct Reshape {
    static constexpr std::uint8_t created_anew = 0xFF;

    std::uint8_t destroyed{};  // one bit for each idle instance
    unsigned slices_destroyed{}, created{};
    std::array<std::uint8_t, instances_max> reuses{};  // per demand: the idle instance handed over, or created_anew
    std::array<std::uint8_t, instances_max> starts{};  // per demand: where it then is
    Occupancy after;
    Value value;
};

// Demands sorted for arranging. `fixed` is what must stay; an idle instance that overlaps it has to go.
std::optional<Reshape> cheapest_reshape(const Geometry& geometry, Occupancy fixed, std::span<const Idle> idle,
                                        std::span<const Demand> demands);

}  // namespace bulkhead::gpu
