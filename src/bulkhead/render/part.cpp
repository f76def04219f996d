#include "bulkhead/render/part.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/node/leased_port.hpp"

namespace bulkhead::render {

namespace {

void add_gpu(NodePart& part, std::int64_t gpu, bool whole) {
    const auto found = std::ranges::find(part.gpus, gpu, &PartGpu::gpu);
    if (found == part.gpus.end())
        part.gpus.push_back({gpu, whole});
    else
        found->whole = found->whole && whole;
}

}  // namespace

std::vector<std::string> nodes_of(const GpuLease& lease) {
    std::vector<std::string> nodes;
    for (const LeasedSlice& slice : lease.spec.slices)
        if (std::ranges::find(nodes, slice.node) == nodes.end()) nodes.push_back(slice.node);
    return nodes;
}

NodePart part_of(const GpuLease& lease, std::string_view node) {
    NodePart part;
    for (const LeasedSlice& slice : lease.spec.slices)
        if (slice.node == node) add_gpu(part, slice.gpu, slice.profile.empty());
    for (const LeasedDevice& function : lease.spec.functions)
        if (function.node == node) part.functions.push_back(static_cast<std::uint16_t>(function.index));
    if (lease.status)
        for (const LeasedPort& port : lease.status->ports)
            if (port.node == node) part.ports.push_back(as_told(port));
    return part;
}

NodePart part_of(const StartTenant& start) {
    NodePart part;
    for (const GpuPart& gpu : start.gpus) add_gpu(part, gpu.gpu, gpu.profile.empty());
    part.functions = start.functions;
    part.ports = start.ports;
    return part;
}

Result<std::vector<KnownFunction>> functions_of(const GpuNodeStatus& node, const NodePart& part) {
    std::vector<KnownFunction> all;
    for (const std::uint16_t index : part.functions) {
        if (index >= node.functions.size())
            return fail(
                Code::conflict,
                fmt::format("the lease has vf{}, and its node knows of {} functions", index, node.functions.size()),
                "wait until its agent has reported again");
        const NodeFunction& function = node.functions[index];
        if (function.device.empty() || function.address.empty())
            return fail(
                Code::unavailable, fmt::format("the node does not say which RDMA device vf{} is", index),
                "a function of a real NIC has one while work has it: its node names it when the work starts, and "
                "draws the file there (NCCL_TOPO_FILE). Where work does not start for this, load the NIC's RDMA "
                "driver on the node");
        const auto port = std::ranges::find(part.ports, index, &FabricPort::function);
        all.push_back({&function, port == part.ports.end() ? nullptr : &*port});
    }
    return all;
}

}  // namespace bulkhead::render
