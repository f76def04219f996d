// Random small scenes. A seed always draws the same scene, on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "bulkhead/base/enum_set.hpp"
#include "bulkhead/base/rng.hpp"
#include "sim/referee/scene.hpp"

namespace bulkhead::referee {

// What makes scenes differ. A scene uses about half of those that are allowed.
enum class Dimension : std::uint8_t {
    trust,     // tenants that distrust each other
    tree,      // departments with members, and work of their own
    gangs,     // several tasks that start together
    elastic,   // gangs with spare tasks
    shares,    // parts of GPUs
    vm,        // work on a kernel of its own, which bears strangers
    hosts,     // kernels that other tenants used before
    limits,    // tenants with a limit
    hard,      // hard partitions
    times,     // minimum run times
    cores,     // machines with few cores
    topology,  // gangs inside one leaf or node
    pinned,    // running work that is not preemptible
    scatter,   // more guarantees, and less work on each node
};
inline constexpr std::size_t dimension_count = 14;
constexpr auto words(Dimension) {
    return std::to_array<std::string_view>({"trust", "tree", "gangs", "elastic", "shares", "vm", "hosts", "limits",
                                            "hard", "times", "cores", "topology", "pinned", "scatter"});
}
using Dimensions = EnumSet<Dimension>;
Dimensions all_dimensions();

// One claimant, or several that arrive together.
Scene draw(std::uint64_t seed, Dimensions allowed, int claimants = 1);
// Nothing waits, and one elastic gang (the first that runs with fewer tasks than it asks for) may grow.
Scene draw_growth(std::uint64_t seed, Dimensions allowed);
// Nothing waits, and the limits of some tenants were lowered below what they lease.
Scene draw_lowered_limits(std::uint64_t seed, Dimensions allowed);

}  // namespace bulkhead::referee
