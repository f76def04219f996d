// A moment that the engine can be asked about: tenants, nodes, what runs where, and what waits. Drawn from the short
// document that a person writes, or from the objects of a whole fleet.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/model/snapshot.hpp"
#include "bulkhead/policy/contract.hpp"
#include "bulkhead/sched/cluster_file.hpp"
#include "bulkhead/sched/engine.hpp"

namespace bulkhead::sched {

struct SceneJob {
    std::string name;
    TaskNeed need;
    Job job;                     // its key is its place in the list, from 1; its shape is the engine's to number
    std::vector<TaskSeat> runs;  // where each task sits already; none: it waits
    Instant started;
    std::optional<Reason> held_back;  // it is not offered to the engine, for this reason
};

struct Scene {
    Instant now;
    EngineSettings settings;
    std::vector<TenantFacts> tenants;
    std::vector<Node> nodes;  // without what the jobs hold
    std::vector<SceneJob> jobs;
    std::vector<Refusal> refused;  // by policy
};

// Jobs that run are seated in the order of the file, each task where it fits first; one that does not fit is a misfit.
std::expected<Scene, std::vector<Misfit>> scene_of(const Cluster& cluster);

// Policy is asked for contracts. Leases are running jobs; those that are ending, or whose work policy would no longer
// accept, sit where they are and are nobody's to move. The snapshot must be consistent.
Scene scene_of(const Snapshot& snapshot, Instant now);

}  // namespace bulkhead::sched
