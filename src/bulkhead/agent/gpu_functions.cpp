// Virtual functions of NICs, as operations on a node with GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

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

std::optional<Error> GpuHardware::why_no_functions() const {
    const std::scoped_lock lock{functions_mutex_};
    return functions_ ? std::nullopt : std::optional{functions_.error()};
}

Functions* GpuHardware::functions() const {
    const std::scoped_lock lock{functions_mutex_};
    return functions_ ? functions_->get() : nullptr;
}

// Another program's lock ends with it, and a NIC may come with its driver. Exclusive mode that the kernel refused it
// refuses again, for we live in a namespace of our own by now; then a restart helps, and the log says so each time that
// the reason is another.
void GpuHardware::reach_functions() {
    const auto before = why_no_functions();
    if (!before) return;
    auto opened = Functions::open(settings_.functions);
    News news;
    if (opened) {
        news.stock_changed = true;
        news.faults = take_back_tests(**opened);
        news.notes.push_back(fmt::format("virtual functions for tenants can be had now: {} of {}",
                                         (*opened)->inventory().size(), fmt::join(settings_.nics, ", ")));
    } else if (opened.error().what != before->what) {
        news.notes.push_back(
            fmt::format("still no virtual functions for tenants: {}; {}", opened.error().what, opened.error().remedy));
    }
    {
        const std::scoped_lock lock{functions_mutex_};
        functions_ = std::move(opened);
    }
    const std::scoped_lock lock{mutex_};
    std::ranges::move(news.notes, std::back_inserter(news_.notes));
    std::ranges::move(news.faults, std::back_inserter(news_.faults));
    news_.stock_changed = news_.stock_changed || news.stock_changed;
}

OperationResult GpuHardware::carry(const AttachFunction& what) {
    if (const auto why = why_no_functions()) return not_done(*why);
    if (functions() == nullptr) return none_here("virtual function");
    // Its tenant would be on the wire of every test, and every test's forgeries would reach its tenant.
    if (settings_.test_fabric && (what.port.vlan == settings_.test_vlan || what.port.vlan == settings_.test_vlan + 1))
        return {.why = fmt::format("VLAN {} is one of the two in which this node attacks its own fences; take it out "
                                   "of the fleet's fabric, or give the agent another --selftest-vlan",
                                   what.port.vlan)};
    if (auto attached = functions()->attach(what.lease, what.tenant, what.port); !attached)
        return not_done(attached.error());
    return {.ok = true};
}

OperationResult GpuHardware::carry(const DetachFunction& what) {
    if (const auto why = why_no_functions()) {  // what an earlier agent attached is not gone because nobody can look
        if (has_function_record(run_folder_, what.function)) return not_done(*why);
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
    if (auto why = why_no_functions()) return std::unexpected(*std::move(why));
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
