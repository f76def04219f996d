// Whether the driver keeps a GPU's performance counters from whoever is not root: without that, one tenant profiles
// another on a GPU they share, whatever is hidden of NVML. A switch of the kernel module, which NVML does not tell.
#pragma once

#include <optional>
#include <string>

namespace bulkhead::nvml {

// Nothing: the driver does not say.
std::optional<bool> profiling_is_restricted(const std::string& parameters = "/proc/driver/nvidia/params");

}  // namespace bulkhead::nvml
