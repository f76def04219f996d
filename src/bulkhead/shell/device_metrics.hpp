// Counters of devices by the names and labels that NVIDIA's exporter (dcgm-exporter) made usual, so that dashboards and
// rules made for it read ours. Units are DCGM's: MiB, W, mJ, MHz.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bulkhead/model/lease.hpp"
#include "bulkhead/shell/exposition.hpp"
#include "bulkhead/shell/telemetry_board.hpp"

namespace bulkhead::shell {

// GPUs that one answer tells of at most: a larger fleet asks for some of its nodes at a time (?nodes=).
inline constexpr std::size_t gpus_told_max = 4'096;

// For operators: every counter of every GPU and instance.
void tell_devices(Exposition& out, const std::map<std::string, Sampled>& samples);

// For one tenant: what policy/telemetry.hpp lets its leases see, called by the lease and the number of the GPU in it.
// Neither node nor UUID is named, and nothing that was measured before the lease was active is told.
void tell_own_devices(Exposition& out, const std::map<std::string, Sampled>& samples,
                      const std::vector<std::shared_ptr<const GpuLease>>& leases);

}  // namespace bulkhead::shell
