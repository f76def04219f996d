// The engine asked about a scene, cycle after cycle, until it has nothing more to say. What it decides is taken to be
// carried out at once: evicted work leaves, rebooted nodes come back.
#pragma once

#include <vector>

#include "bulkhead/sched/scene.hpp"

namespace bulkhead::sched {

struct PlaySettings {
    // So many cycles, a minute apart; 0: until the engine is quiet, all at the scene's own moment.
    int cycles = 0;
    bool resubmit = false;  // evicted work waits again; else it is gone
};
inline constexpr int most_cycles = 1000;
inline constexpr Duration between_cycles{60'000};

template <class T>
struct InCycle {
    int cycle = 0;  // from 1
    T what;
};

struct Played {
    bool settled = false;  // the last cycle had nothing to say
    int cycles = 0;
    std::vector<InCycle<Binding>> bindings;  // `workload` is a job's key in the scene, here and below
    std::vector<InCycle<Eviction>> evictions;
    std::vector<InCycle<Move>> moves;
    std::vector<InCycle<NodeNo>> reboots;
    std::vector<Binding> running;       // all that runs at the end, in the scene's order
    std::vector<Waiting> waiting;       // likewise, with every reason
    std::vector<OverLimit> over_limit;  // by the last cycle
    struct Holds {
        Gpus held, due;
    };
    std::vector<Holds> tenants;  // with everyone below, in the scene's order
};

Played play(const Scene& scene, const PlaySettings& settings);

}  // namespace bulkhead::sched
