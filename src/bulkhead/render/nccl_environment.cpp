#include "bulkhead/render/nccl_environment.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace bulkhead::render {

Result<std::vector<std::string>> nccl_environment(const GpuNodeStatus& node, const NodePart& part,
                                                  const NcclFacts& facts) {
    const auto functions = functions_of(node, part);
    if (!functions) return std::unexpected(functions.error());
    std::vector<std::string> out;
    const auto set = [&](std::string_view name, const std::string& value) {
        out.push_back(fmt::format("{}={}", name, value));
    };
    if (!facts.topology_file.empty()) set("NCCL_TOPO_FILE", facts.topology_file);
    std::vector<std::string> devices, interfaces;
    const FabricPort* port = nullptr;
    for (const KnownFunction& known : *functions) {
        devices.push_back(known.function->device + ":1");
        if (!known.function->netdev.empty()) interfaces.push_back(known.function->netdev);
        if (known.port != nullptr) port = known.port;
    }
    if (!devices.empty()) {
        // The second '=' is NCCL's: exactly these. Without it mlx5_1 is the beginning of mlx5_10 too.
        set("NCCL_IB_HCA", fmt::format("={}", fmt::join(devices, ",")));
        // Else NCCL takes functions of one NIC for one device, at an address that is not the tenant's.
        set("NCCL_IB_MERGE_VFS", "0");
        if (!interfaces.empty()) set("NCCL_SOCKET_IFNAME", fmt::format("={}", fmt::join(interfaces, ",")));
    }
    if (port != nullptr && port->port_guid.empty()) {
        // The row of the tenant's own address, wherever in the table it comes to lie.
        set("NCCL_IB_ADDR_FAMILY", "AF_INET");
        set("NCCL_IB_ADDR_RANGE", port->subnet);
        set("NCCL_IB_ROCE_VERSION_NUM", "2");
        if (facts.gid_index) set("NCCL_IB_GID_INDEX", std::to_string(*facts.gid_index));
    }
    if (port != nullptr && port->dscp != 0) set("NCCL_IB_TC", std::to_string(port->dscp << 2));
    std::ranges::sort(out);
    return out;
}

}  // namespace bulkhead::render
