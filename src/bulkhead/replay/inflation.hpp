// The inflation experiment (FGD, USENIX ATC'23): tasks of a trace arrive in random order, then more drawn from the same
// trace, until 130 % of the fleet's GPUs have been asked for. Nobody leaves; what fits nowhere is dropped. How much of
// the fleet is in use when so much has arrived says how well a policy packs.
#pragma once

#include <array>
#include <functional>
#include <string_view>

#include "bulkhead/replay/openb.hpp"

namespace bulkhead::replay {

enum class PackingPolicy : std::uint8_t { random, bestfit, dotprod, packing, fgd, bulkhead };
constexpr auto words(PackingPolicy) {
    return std::to_array<std::string_view>({"random", "bestfit", "dotprod", "packing", "fgd", "bulkhead"});
}

inline constexpr std::array<int, 6> arrived_percent{90, 95, 100, 110, 120, 130};

struct InflationRun {
    // Where so much never arrived, because the next task would have been too much: what there was in the end.
    std::array<double, arrived_percent.size()> allocated_percent{};
    std::int64_t tasks = 0, dropped = 0;
};

// The same seed gives every policy the same arrivals. Refused: what would take more memory or time than it is worth,
// and a fleet too small for any task.
Result<InflationRun> run_inflation(const OpenbFleet& fleet, const OpenbTasks& trace, PackingPolicy policy,
                                   std::uint64_t seed);

}  // namespace bulkhead::replay
