// One simulated fleet: the real core over the real store on a disk that fails, the real executor on model nodes, and a
// network, clocks and callers that misbehave. One thread, one seed: the same seed is the same run, to the last byte.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "sim/checkers.hpp"
#include "sim/spec.hpp"

namespace bulkhead::sim {

struct RunResult {
    std::uint64_t seed = 0;
    std::uint64_t events = 0;
    std::int64_t simulated_ms = 0;
    std::map<std::string, std::uint64_t> faults, probes;
    std::vector<Violation> violations;
};

// `trace`: print every log entry and operation that mentions it.
RunResult run(const Spec& spec, std::uint64_t seed, const std::string& trace = {});

}  // namespace bulkhead::sim
