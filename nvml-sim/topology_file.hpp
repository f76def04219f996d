// topology.xml: the simulated node's machine, for hwloc: sockets of 16 cores, and below each its GPUs, two to a switch.
// Whoever looks at the machine through hwloc sees this one with HWLOC_XMLFILE set to it.
#pragma once

#include <string>

#include "bulkhead/node/driver_spec.hpp"

namespace bulkhead::nvml_sim {

inline constexpr std::uint32_t cores_per_socket = 16;

std::string print_topology(const driver::Spec& spec);

}  // namespace bulkhead::nvml_sim
