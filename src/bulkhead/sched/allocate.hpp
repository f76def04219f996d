// The plain allocate action: each pending gang, in the order given, goes whole onto nodes where nobody objects, or
// stays and says why. The full engine will answer the same question with the same types.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/base/reason.hpp"
#include "bulkhead/model/workload.hpp"
#include "bulkhead/policy/contract.hpp"
#include "bulkhead/sched/fleet.hpp"
#include "bulkhead/sched/statement.hpp"

namespace bulkhead::sched {

struct Request {
    std::int64_t workload = 0;
    TenantNo tenant = 0;
    const GpuWorkloadSpec* spec = nullptr;
    const Contract* contract = nullptr;     // accepted; names the nodes that can serve it
    std::vector<std::uint32_t> candidates;  // the same nodes, by index into the fleet
};

// One limit on what a tenant and all below it may hold, in thousandths of GPUs.
struct Holding {
    std::optional<std::int64_t> limit;
    std::int64_t held = 0;
    std::int64_t owed = 0;  // guaranteed, never lent, not yet held, and not part of what someone below is owed
};

// Nodes are changed as gangs are placed, so that the next sees them taken; the caller throws the copy away or keeps it.
Statement allocate(std::vector<Node>& nodes, const Relations& relations, std::vector<Holding>& holdings,
                   std::span<const Request> requests);

}  // namespace bulkhead::sched
