// Guarantees against silicon: whether all guaranteed GPUs could be handed out at once, each on a node that may serve
// the tenant's tier at a place the tenant allows. Exact, by maximum flow; a shortfall names the tenants and the
// numbers.
#pragma once

#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/model/consistency.hpp"
#include "bulkhead/model/snapshot.hpp"

namespace bulkhead {

// Empty when every guarantee can be kept at once. The snapshot must be consistent.
std::vector<Finding> unkeepable_guarantees(const Snapshot& snapshot, Instant now);

}  // namespace bulkhead
