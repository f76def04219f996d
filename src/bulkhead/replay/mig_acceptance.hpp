// How many requests for MIG instances a fleet can serve under steady load: requests arrive one by one, drawn by
// weights, are served at once or refused, and leave again; nothing is moved. The scheduler of the control plane, which
// learns the weights from the requests, beside first-fit, and beside a fleet that is packed anew for every request: the
// most that can be had without choosing whom to serve.
#pragma once

#include <cstdint>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/gpu/geometry.hpp"

namespace bulkhead::replay {

struct MigFleet {
    const gpu::Board* board = nullptr;
    std::int64_t gpus = 100, node_gpus = 8;
    gpu::Weights weights;            // of the board's profiles; not all 0
    std::int64_t load = 100;         // memory slices in use if nobody were refused, in percent of all
    std::int64_t requests = 20'000;  // that count, after as many as fill the fleet
};

// Of requests, or of the memory slices they ask for.
struct MigCount {
    std::int64_t asked = 0;
    std::int64_t first_fit = 0, bulkhead = 0, packed_anew = 0;  // served
};
struct MigFigures {
    MigCount requests, slices;
};

// The same seed gives everybody the same requests, each with the same time to stay.
Result<MigFigures> run_mig_acceptance(const MigFleet& fleet, std::uint64_t seed);

}  // namespace bulkhead::replay
