// Writes the terms of an accepted request: what is isolated, what stays open, how it is given back.
#pragma once

#include "bulkhead/policy/contract.hpp"
#include "bulkhead/policy/verdict.hpp"

namespace bulkhead {

// The verdict must be an acceptance.
Contract write_contract(const GpuWorkload& workload, const Asker& asker, const FleetView& fleet, const Verdict& verdict,
                        Audience reader, Written written);

}  // namespace bulkhead
