// Where the GPUs of a modelled node sit: two sockets, two GPUs below each PCIe switch, as HGX boards are built. Made of
// the specification alone, so that it is the same after every restart.
#pragma once

#include <vector>

#include "bulkhead/model/node.hpp"

namespace bulkhead {

struct NodeModelSpec;

std::vector<GpuPosition> model_positions(const NodeModelSpec& spec);

}  // namespace bulkhead
