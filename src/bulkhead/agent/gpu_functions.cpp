// Virtual functions of NICs, as operations on a node with GPUs.
#include <fmt/format.h>

#include "bulkhead/agent/function_record.hpp"
#include "bulkhead/agent/gpu_hardware.hpp"

namespace bulkhead::agent {

namespace {

// Of one lease, on each of its RDMA devices: plenty for a job, and not all that the NIC has. The kernel counts a queue
// pair, a memory region and the like as an object each.
constexpr std::uint32_t rdma_handles_max = 1'024, rdma_objects_max = 262'144;

OperationResult not_done(const Error& error) {
    return {.why = error.remedy.empty() ? error.what : error.what + "; " + error.remedy};
}

}  // namespace

OperationResult GpuHardware::carry(const AttachFunction& what) {
    if (!functions_) return not_done(functions_.error());
    if (functions() == nullptr) return none_here("virtual function");
    if (auto attached = functions()->attach(what.lease, what.tenant, what.port); !attached)
        return not_done(attached.error());
    return {.ok = true};
}

OperationResult GpuHardware::carry(const DetachFunction& what) {
    if (!functions_) {  // what was attached by an earlier agent is not gone because this one cannot look
        if (has_function_record(run_folder_, what.function)) return not_done(functions_.error());
        return {.ok = true};
    }
    if (functions() == nullptr) return {.ok = true};
    if (auto detached = functions()->detach(what.function); !detached) return not_done(detached.error());
    return {.ok = true};
}

Result<std::optional<unsigned>> GpuHardware::name_functions(Key lease, GpuNodeStatus& inventory) const {
    if (functions() == nullptr) return std::nullopt;
    const auto ports = functions()->ports_of(lease);
    if (!ports) return std::unexpected(ports.error());
    std::optional<unsigned> row;
    bool alike = !ports->empty();
    for (const AttachedPort& port : *ports) {
        if (port.function >= inventory.functions.size()) continue;
        inventory.functions[port.function].device = port.rdma;
        inventory.functions[port.function].netdev = port.link;
        alike = alike && port.gid_index && (!row || *row == *port.gid_index);
        row = port.gid_index;
    }
    return alike ? row : std::nullopt;
}

// The namespace with its links, and the file of exactly its own RDMA devices.
Result<> GpuHardware::give_functions(const StartTenant& what, container::TenantSpec& spec) const {
    if (what.functions.empty()) return {};
    if (!functions_) return std::unexpected(functions_.error());
    if (functions() == nullptr)
        return fail(Code::not_found, "this agent has no virtual function to give", "see --tenant-nic");
    const auto ports = functions()->ports_of(what.lease);
    if (!ports) return std::unexpected(ports.error());
    if (ports->size() != what.functions.size())
        return fail(Code::conflict,
                    fmt::format("lease {} has {} functions attached and is to be started with {}", what.lease,
                                ports->size(), what.functions.size()),
                    "see the agent's log for the one that was not attached");
    spec.network = container::Network::prepared;
    spec.network_space = functions()->space_of(what.lease);
    for (const AttachedPort& port : *ports) {
        if (!port.verbs) continue;
        spec.devices.push_back({port.verbs->path, 'c', port.verbs->major, port.verbs->minor});
        spec.limits.rdma.push_back({port.rdma, rdma_handles_max, rdma_objects_max});
    }
    return {};
}

}  // namespace bulkhead::agent
