// The topology file NCCL reads (NCCL_TOPO_FILE, XML version 1): exactly the GPUs and functions of one node's part of a
// lease, and what lies between them. It is advice to a cooperative process, not a fence: whatever it names is already
// all that the tenant can see.
//
// What is left out NCCL fills in where it runs (a device's own link, its CPU's vendor); what it never fills in, because
// the tenant's view has no such device, is written: class, speed and width of the switches.
#pragma once

#include <string>

#include "bulkhead/render/part.hpp"

namespace bulkhead::render {

// Beyond these NCCL refuses the file, or reads beyond what it has room for.
inline constexpr std::size_t nccl_nodes_max = 256, nccl_attributes_max = 16, nccl_text_max = 255,
                             nccl_children_max = 640;

// What the files are called, and where the tenant's program finds the first.
inline constexpr std::string_view nccl_topology_name = "nccl-topology.xml", nccl_environment_name = "nccl.env",
                                  nccl_topology_path = "/opt/bulkhead/nccl-topology.xml";

// `unavailable`: the node does not say where its GPUs are.
Result<std::string> nccl_topology(const GpuNodeStatus& node, const NodePart& part);

}  // namespace bulkhead::render
