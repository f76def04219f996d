// Admission of guarantees: whether all of them can be kept at the same time, each in its unit, on nodes that may serve
// the tenant's tier at a place that the tenant allows. Tenants whose work closes nodes to others need nodes of their
// own, so nodes are counted, not only GPUs. docs/decisions/0041 says what is counted and how far the answer is exact.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/model/consistency.hpp"
#include "bulkhead/model/snapshot.hpp"

namespace bulkhead {

// Empty when every guarantee can be kept at once. The snapshot must be consistent. Each finding names the tenants that
// compete, what they need, what there is, and the largest guarantees that would be accepted; where a tenant among
// `applied` competes, the finding is about that one.
std::vector<Finding> unkeepable_guarantees(const Snapshot& snapshot, Instant now,
                                           std::span<const std::string> applied = {});

}  // namespace bulkhead
