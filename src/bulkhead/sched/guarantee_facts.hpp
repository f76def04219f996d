// Where a tenant's guarantee is kept, and in what unit, for the engine.
#pragma once

#include "bulkhead/model/snapshot.hpp"
#include "bulkhead/sched/work.hpp"

namespace bulkhead::sched {

void tell_guarantee(const Tenant& tenant, const Snapshot& snapshot, TenantFacts& facts);

}  // namespace bulkhead::sched
