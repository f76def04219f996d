// Where the model's GPUs and NICs sit: a board of the usual kind, with two sockets, below each two PCIe switches, and
// below each switch two GPUs and a NIC for each of them. Nothing works differently for it; files that are rendered for
// tenants are about it.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/node/model.hpp"

namespace bulkhead {

std::vector<GpuPosition> model_positions(const NodeModelSpec& spec);
NodeFunction model_function(const NodeModelSpec& spec, unsigned function);
std::string model_function_address(const NodeModelSpec& spec, unsigned function);

}  // namespace bulkhead
