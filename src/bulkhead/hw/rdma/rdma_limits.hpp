// How much of an RDMA device one control group may hold: `rdma.max` of the kernel's rdma controller.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "bulkhead/hw/rdma/descriptor.hpp"

namespace bulkhead::rdma {

struct RdmaLimit {  // nothing: as many as there are
    std::optional<std::uint32_t> handles, objects;
    friend bool operator==(const RdmaLimit&, const RdmaLimit&) = default;
};

// "mlx5_2 hca_handle=2 hca_object=2000", a line for each device.
Result<std::map<std::string, RdmaLimit>> parse_rdma_limits(std::string_view text);
std::string print_rdma_limit(const std::string& device, const RdmaLimit& limit);

bool has_rdma_limits(const std::string& cgroup);
// Set and read back. A kernel without the controller is an error: `rdma` must stand in cgroup.controllers.
Result<> limit_rdma(const std::string& cgroup, const std::string& device, const RdmaLimit& limit);

}  // namespace bulkhead::rdma
