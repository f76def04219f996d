// What is in the way of a waiting job, with names and words for one reader. An operator reads nodes, workloads and
// tenants. A tenant reads the same obstacles without names, counts and sizes, except of its own work.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/reason.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/sched/blocking.hpp"

namespace bulkhead::sched {

struct NodeInTheWay {
    std::string node;
    Obstacle obstacle = Obstacle::none;
    std::string says;

    static constexpr void describe(auto&& field) {
        field("node", &NodeInTheWay::node, "The node; not shown to tenants.");
        field("obstacle", &NodeInTheWay::obstacle, "Why it takes no task of the workload now.", Rule{.required = true});
        field("says", &NodeInTheWay::says, "The same in words.", Rule{.required = true});
    }
    friend bool operator==(const NodeInTheWay&, const NodeInTheWay&) = default;
};

struct WorkInTheWay {
    std::string workload, tenant;
    std::vector<std::string> nodes;
    std::optional<Gpus> gpus;
    Stays stays = Stays::evictable;
    std::optional<Instant> until, ends;
    std::string says;

    static constexpr void describe(auto&& field) {
        field("workload", &WorkInTheWay::workload, "The workload; shown to operators and to its own tenant.");
        field("tenant", &WorkInTheWay::tenant, "Its tenant; likewise.");
        field("nodes", &WorkInTheWay::nodes, "Where it is in the way; likewise.");
        field("gpus", &WorkInTheWay::gpus, "The GPUs that it leases, on all nodes; likewise.");
        field("stays", &WorkInTheWay::stays, "Why it is not evicted now.", Rule{.required = true});
        field("until", &WorkInTheWay::until, "When its minimum run time is over; likewise.");
        field("ends", &WorkInTheWay::ends, "When it ends by its declared run time; likewise.");
        field("says", &WorkInTheWay::says, "The same in words.", Rule{.required = true});
    }
    friend bool operator==(const WorkInTheWay&, const WorkInTheWay&) = default;
};

struct InTheWay {
    std::vector<NodeInTheWay> nodes;
    std::vector<WorkInTheWay> mustEnd;
    std::vector<std::string> reservedFor;
    std::optional<Instant> expectedStart;
    StartBasis expectedFrom = StartBasis::unknown;
    std::string expectedSays;

    static constexpr void describe(auto&& field) {
        field("nodes", &InTheWay::nodes, "Nodes in the way, the best candidates first, at most 8.");
        field("mustEnd", &InTheWay::mustEnd,
              "The work whose end would let the workload start with the least GPU time lost, at most 16.");
        field("reservedFor", &InTheWay::reservedFor,
              "Tenants for whose guarantees free GPUs are reserved; not shown to tenants.");
        field("expectedStart", &InTheWay::expectedStart, "An estimate of when it starts; absent: none is known.");
        field("expectedFrom", &InTheWay::expectedFrom, "How that is known.", Rule{.required = true});
        field("expectedSays", &InTheWay::expectedSays, "The same in words; empty: nothing is in the way.");
    }
    friend bool operator==(const InTheWay&, const InTheWay&) = default;
};

struct BlockingNames {
    std::function<std::string(std::uint32_t)> node;
    std::function<std::string(std::int64_t)> workload;  // empty: it is gone
    std::function<std::string(TenantNo)> tenant;
    std::function<bool(TenantNo)> is_own;  // whether a tenant who asks may read of this tenant's work
};

InTheWay in_the_way(const Blocking& blocking, const BlockingNames& names, Audience reader);

}  // namespace bulkhead::sched
