// The variables that tell NCCL which of a tenant's devices to use, and as whom. They select; what isolates is that
// nothing else is there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/render/part.hpp"

namespace bulkhead::render {

struct NcclFacts {
    std::string topology_file;          // as the tenant's program sees it; empty: none is there
    std::optional<unsigned> gid_index;  // the same on every device, as its node has just read it; rows move
};

// NAME=value, sorted. Nothing where the part has no function: then NCCL is the tenant's own business.
Result<std::vector<std::string>> nccl_environment(const GpuNodeStatus& node, const NodePart& part,
                                                  const NcclFacts& facts);

// For a guest with a kernel of its own: what goes by the tenant's address alone. What its devices are called there, and
// where on its bus they are, its kernel decides.
std::vector<std::string> nccl_guest_environment(const NodePart& part);

}  // namespace bulkhead::render
