// Nodes and GPUs as a picture. Each cell is one memory slice.
#pragma once

#include <iosfwd>
#include <string>

#include "bulkhead/model/snapshot.hpp"

namespace bulkhead::cli {

// The nodes of it, or only this one; who holds what by its leases. False: there is no such node, and nothing is said.
bool print_fleet(std::ostream& out, const Snapshot& fleet, const std::string& only, bool colour);

}  // namespace bulkhead::cli
