// What is replayed: tenants, a fleet, and jobs that come at known moments and take a known time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bulkhead/replay/gang_trace.hpp"
#include "bulkhead/sched/work.hpp"

namespace bulkhead::replay {

struct ScenarioJob {
    sched::Job work;         // without key and shape; its deadline is as it was asked for
    std::uint32_t need = 0;  // of one task
    Duration duration;       // the truth

    std::int64_t units() const { return work.gpus.units * work.tasks; }
    // A deadline that could be met were the job to start at once.
    bool deadline_is_feasible() const { return work.deadline && work.submitted + duration <= *work.deadline; }
};

struct Scenario {
    std::vector<sched::TenantFacts> tenants;
    std::vector<sched::Node> nodes;
    std::vector<sched::TaskNeed> needs;
    std::vector<ScenarioJob> jobs;     // in the order of arrival
    std::shared_ptr<const void> keep;  // what nodes and needs point into

    std::int64_t units() const;  // Gpus::units, of GPUs that are not lost
};

// Equal nodes, and tenants that weigh the same, trust each other and take turns at submitting.
struct TraceFleet {
    std::int64_t gpus = 64, node_gpus = 8;  // a last node has what is left over
    std::uint32_t tenants = 1;
    Duration checkpoint{1'800'000};
};

// A job of more GPUs than a node has is a gang of whole nodes. Refused: a job that the fleet could never take.
Result<Scenario> scenario_of(const GangTrace& trace, const TraceFleet& fleet);

}  // namespace bulkhead::replay
