#include "bulkhead/render/nccl_environment.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace bulkhead::render {

namespace {

// Who the tenant is: the same wherever its devices are.
void add_identity(std::vector<std::string>& out, const FabricPort& port) {
    if (port.port_guid.empty()) {
        // The row of the tenant's own address, wherever in the table it comes to lie.
        out.emplace_back("NCCL_IB_ADDR_FAMILY=AF_INET");
        out.push_back("NCCL_IB_ADDR_RANGE=" + port.subnet);
        out.emplace_back("NCCL_IB_ROCE_VERSION_NUM=2");
    }
    if (port.dscp != 0) out.push_back(fmt::format("NCCL_IB_TC={}", port.dscp << 2));
}

// Else NCCL takes functions of one NIC for one device, at an address that is not the tenant's.
constexpr std::string_view functions_stay_apart = "NCCL_IB_MERGE_VFS=0";

}  // namespace

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
        out.emplace_back(functions_stay_apart);
        if (!interfaces.empty()) set("NCCL_SOCKET_IFNAME", fmt::format("={}", fmt::join(interfaces, ",")));
    }
    if (port != nullptr) add_identity(out, *port);
    if (port != nullptr && port->port_guid.empty() && facts.gid_index)
        set("NCCL_IB_GID_INDEX", std::to_string(*facts.gid_index));
    std::ranges::sort(out);
    return out;
}

std::vector<std::string> nccl_guest_environment(const NodePart& part) {
    std::vector<std::string> out;
    if (part.functions.empty()) return out;
    out.emplace_back(functions_stay_apart);
    if (!part.ports.empty()) add_identity(out, part.ports.back());
    std::ranges::sort(out);
    return out;
}

}  // namespace bulkhead::render
