// Jobs of a mix as a scenario: the mix says what is asked, a seed says when and for how long.
//
// Durations are spread evenly over the powers of two from a minute to a day and a half. Arrivals are as of a Poisson
// process: so many moments, each anywhere in a span so long that the jobs together ask for `full` of the fleet.
#pragma once

#include "bulkhead/replay/mix_fleet.hpp"
#include "bulkhead/replay/scenario.hpp"

namespace bulkhead::replay {

struct MixRun {
    std::int64_t nodes = 100, jobs = 1000;
    std::uint64_t seed = 1;
};

// A job that could not run even on the empty fleet is drawn again. Refused: a fleet on which hardly any can.
Result<Scenario> scenario_of(const FleetMix& mix, const MixRun& run);

}  // namespace bulkhead::replay
