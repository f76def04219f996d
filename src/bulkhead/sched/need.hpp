// What a contract means for one task, ready to be looked for.
#pragma once

#include <vector>

#include "bulkhead/model/workload.hpp"
#include "bulkhead/policy/contract.hpp"
#include "bulkhead/sched/work.hpp"

namespace bulkhead::sched {

// One for each model that the contract allows; the contract's own order.
std::vector<Want> wants_of(const GpuRequest& asked, const Contract& contract);

// Which tenants are excepted and which kinds of nodes may serve it are the caller's to fill in.
TaskNeed need_of(const GpuWorkloadSpec& spec, const Contract& contract);

}  // namespace bulkhead::sched
