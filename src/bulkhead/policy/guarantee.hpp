// A guarantee in GPUs, whatever unit it was given in: the one place where quota arithmetic gets that number from. And
// the entitlement: the footprint that admission reserved for it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/model/consistency.hpp"
#include "bulkhead/model/guarantee_unit.hpp"
#include "bulkhead/model/snapshot.hpp"

namespace bulkhead {

// GPUs that one unit of the tenant's guarantee counts as. A node: the number that the unit names, else the GPUs of the
// smallest node where the tenant may run. A MIG profile: its exact part of a GPU by compute slices, the largest among
// the boards where the tenant may run. Depends on what is installed, not on what is free, closed or verified now, so
// that a promise does not change from hour to hour. Zero for `node` in a fleet without nodes.
Gpus gpus_each(const Tenant& tenant, const Snapshot& snapshot);

// Its guarantee in GPUs. The snapshot must be consistent.
Gpus guaranteed_gpus(const Tenant& tenant, const Snapshot& snapshot);

// By name, in GPUs: what a tenant's own work is guaranteed, beyond what its children are.
std::map<std::string_view, Gpus> own_guarantees(const Snapshot& snapshot);

// By name. Guarantees of one trust domain together, rounded up to the smallest set of nodes that is enough, because
// their work closes nodes to others; each tenant's part is as large as what its own work is guaranteed, and a parent
// has the parts of everything below it. Without a guarantee: zero.
std::map<std::string, Gpus, std::less<>> entitlements(const Snapshot& snapshot);

// Guarantees in other units than GPUs against limits, parents and known boards; what model/ cannot know.
std::vector<Finding> misfit_guarantees(const Snapshot& snapshot);

// Tenants with the same text trust each other: the trust domain, or the tenant alone.
std::string trust_group(const Tenant& tenant);

}  // namespace bulkhead
