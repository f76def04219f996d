// What a contract means for one task, ready to be looked for.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "bulkhead/model/workload.hpp"
#include "bulkhead/policy/contract.hpp"
#include "bulkhead/sched/work.hpp"

namespace bulkhead::sched {

// One for each model that the contract allows; the contract's own order.
std::vector<Want> wants_of(const GpuRequest& asked, const Contract& contract);

// The memory mode of an AMD partition by its name: 4 of "cpx_nps4"; 0: it names none.
std::uint8_t nps_of(std::string_view profile);

// Which tenants are excepted and which kinds of nodes may serve it are the caller's to fill in.
TaskNeed need_of(const GpuWorkloadSpec& spec, const Contract& contract);

}  // namespace bulkhead::sched
