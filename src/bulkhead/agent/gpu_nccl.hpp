// What NCCL is told in a tenant's program: the variables, and the file that one of them names, drawn here because here
// it is known where devices are. The file lies in a folder of the lease's own, which the tenant sees read-only.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/spec.hpp"
#include "bulkhead/model/node.hpp"
#include "bulkhead/node/operation.hpp"

namespace bulkhead::agent {

struct NcclView {
    std::vector<std::pair<std::string, std::string>> environment;
    std::vector<container::ReadOnlyMount> mounts;
};

// Nothing for a lease without functions. The row of the GID table is for whoever has just read it, after the last
// change of addresses; without it NCCL finds the row by the tenant's subnet.
Result<NcclView> show_nccl(const std::string& folder, const GpuNodeStatus& inventory, const StartTenant& what,
                           std::optional<unsigned> gid_index);
void forget_nccl(const std::string& folder, Key lease);

}  // namespace bulkhead::agent
