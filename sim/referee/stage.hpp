// A scene played by the real engine until it settles: evicted work leaves or waits again, hosts reboot at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/sched/engine.hpp"
#include "sim/referee/law.hpp"
#include "sim/referee/scene.hpp"

namespace bulkhead::referee {

inline constexpr int most_cycles = 1000;

struct Outcome {
    bool settled = false;
    int cycles = 0;
    bool budget_spent = false;
    unsigned rebooted = 0;        // one bit for each node
    unsigned rebooted_first = 0;  // of these, nodes that were rebooted before any work was moved or ended
    std::vector<sched::Eviction> evicted;
    JobSet moved = 0;                       // jobs that the engine moved
    std::vector<std::vector<Place>> seats;  // by job, at the end; empty: it does not run
    Dues dues;                              // as of the first cycle
    std::vector<std::int64_t> leased;       // by tenant, of its own work and its children's, in the engine's units
    std::vector<std::string> events;        // what the engine said, for people
};

struct Playing {
    bool wait_again = false;  // evicted work waits again; else it is gone
    // In which order waiting jobs are submitted and numbered; empty: as they stand.
    std::span<const std::size_t> order{};
    bool grow = false;  // elastic gangs take what they may
    bool tell = false;  // fill `events`
};
Outcome play(const Scene& scene, const Playing& how = {});

}  // namespace bulkhead::referee
