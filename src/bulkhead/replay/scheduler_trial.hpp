// How fast the scheduler's engine decides, on one core, and what it keeps in memory.
//
// A fleet is drawn from a mix and filled; then jobs end and others come, and each decision is timed. Beside that: gangs
// of 64 nodes within a zone while some zones have room, gangs for which there is none with all reasons why, and whom a
// tenant below its due would reclaim from while nothing is free.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "bulkhead/base/result.hpp"
#include "bulkhead/replay/mix.hpp"

namespace bulkhead::replay {

struct TrialOptions {
    std::int64_t nodes = 1000;
    std::uint64_t seed = 1;
    std::int64_t decisions = 200'000;                // that are measured at most; after a tenth of them that are not
    std::int64_t cpu_ms = 5'000;                     // and no longer than this
    std::int64_t rounds = 300;                       // of each of the other questions
    std::int64_t round_ms = 60'000;                  // and no longer than this
    std::function<void(std::string_view)> progress;  // what is done now, for who watches
};

// Of CPU time: what else the machine does meanwhile is not the scheduler's.
struct TrialTimes {
    std::int64_t count = 0;
    std::int64_t yes = 0;  // placed; of reclaims: somebody would be evicted
    double p50_us = 0, p99_us = 0, max_us = 0;
};

struct TrialFigures {
    std::int64_t nodes = 0, gpus = 0, tenants = 0, shapes = 0;
    std::int64_t jobs = 0;  // that run when the fleet is full
    double full = 0;        // the part of all GPUs in use then
    double build_s = 0, fill_s = 0, cpu_s = 0;
    std::int64_t fill_decisions = 0;
    std::int64_t decisions = 0, placed = 0;
    double decisions_per_second = 0;
    std::optional<double> instructions_per_decision;     // none: this machine does not count them
    TrialTimes single, gang512, reclaim, unschedulable;  // count 0: there was no way to ask here
    std::int64_t distinct_states = 0;
    double bytes_per_node = 0, bytes_per_job = 0;
    double process_bytes_per_job = 0;  // what the process has become larger by, fleet and all
};

Result<TrialFigures> try_scheduler(const FleetMix& mix, const TrialOptions& options);

}  // namespace bulkhead::replay
