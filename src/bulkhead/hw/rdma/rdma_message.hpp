// What is asked of RDMA netlink, and what it tells: which devices there are, whose namespace they are in, what of them
// is in use. Bytes only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "bulkhead/hw/rdma/netlink_message.hpp"

namespace bulkhead::rdma {

enum class NamespaceMode : std::uint8_t { exclusive, shared };

Request ask_rdma_mode();
Request set_rdma_mode(NamespaceMode mode);
Request ask_rdma_devices();
Request move_rdma_device(std::uint32_t index, int space);
Request ask_rdma_resources(std::uint32_t index);
Request add_soft_roce(std::string_view device, std::string_view netdev);
Request remove_soft_roce(std::uint32_t index);

struct RdmaDevice {
    std::uint32_t index = 0;
    std::string name;
    friend bool operator==(const RdmaDevice&, const RdmaDevice&) = default;
};
Result<NamespaceMode> read_rdma_mode(View answer);
Result<RdmaDevice> read_rdma_device(View answer);
Result<std::map<std::string, std::uint64_t>> read_rdma_resources(View answer);  // "qp" -> 3

}  // namespace bulkhead::rdma
