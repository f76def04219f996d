#include "bulkhead/render/libvirt_lease.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace bulkhead::render {

namespace {

constexpr std::int64_t page_least = std::int64_t{2} << 20;

const GpuPosition* position_of(const GpuNodeStatus& node, std::int64_t gpu) {
    const auto found = std::ranges::find(node.topology, gpu, &GpuPosition::gpu);
    return found == node.topology.end() ? nullptr : &*found;
}

std::int64_t gpus_on(const GpuNodeStatus& node) {
    std::int64_t count = 0;
    for (const NodeGpus& group : node.gpus) count += group.count;
    return count;
}

Result<> add_devices(DomainSpec& spec, const LeaseHere& here, const std::set<std::int64_t>& gpus) {
    const GpuNodeStatus& node = here.node.status;
    for (const std::int64_t gpu : gpus) {
        const GpuPosition* const position = position_of(node, gpu);
        if (position == nullptr || position->bus.empty())
            return fail(Code::unavailable,
                        fmt::format("node {} does not say where its GPU {} sits", here.node.metadata.name, gpu),
                        "`bulkhead describe node` lists status.topology; its agent may be older");
        const auto address = parse_pci_address(position->bus);
        if (!address) return std::unexpected(address.error());
        spec.devices.push_back(*address);
    }
    for (const LeasedDevice& function : here.lease.spec.functions) {
        if (function.node != here.node.metadata.name) continue;
        if (std::cmp_greater_equal(function.index, node.functions.size()))
            return fail(Code::unavailable,
                        fmt::format("node {} has no virtual function {} any more", function.node, function.index), "");
        const auto address = parse_pci_address(node.functions[static_cast<std::size_t>(function.index)].address);
        if (!address) return std::unexpected(address.error());
        spec.devices.push_back(*address);
    }
    return {};
}

// By nodes that the agent makes for this machine alone, after it has found each drive by its serial number: names that
// the kernel gives change from boot to boot.
Result<> add_drives(DomainSpec& spec, const LeaseHere& here, const std::string& folder) {
    std::size_t number = 0;
    for (const LeasedDevice& drive : here.lease.spec.drives) {
        if (drive.node != here.node.metadata.name) continue;
        if (std::cmp_greater_equal(drive.index, here.node.status.drives.size()))
            return fail(Code::unavailable, fmt::format("node {} has no drive {} any more", drive.node, drive.index),
                        "");
        const NodeDrive& found = here.node.status.drives[static_cast<std::size_t>(drive.index)];
        spec.disks.push_back({.path = fmt::format("{}/drive{}n1", folder, number++),
                              .block = true,
                              .serial = disk_serial(found.serial, 1, true)});
    }
    return {};
}

Result<> add_processors(DomainSpec& spec, const LeaseHere& here, const std::set<std::int64_t>& gpus) {
    std::set<unsigned> own, beside, nodes;
    for (const std::int64_t gpu : gpus) {
        const GpuPosition& position = *position_of(here.node.status, gpu);
        const auto mine = own_cpus(here.node.status, gpu);
        if (!mine) return std::unexpected(mine.error());
        const auto all = parse_cpu_list(position.cpus);
        if (!all) return std::unexpected(all.error());
        own.insert(mine->begin(), mine->end());
        beside.insert(all->begin(), all->end());
        if (position.numaNode) nodes.insert(static_cast<unsigned>(*position.numaNode));
    }
    // What asks for more than the part of its GPUs floats over all that are beside them.
    const std::set<unsigned>& chosen = spec.vcpus == 0 || spec.vcpus <= own.size() ? own : beside;
    spec.cpus = {chosen.begin(), chosen.end()};
    spec.nodes = {nodes.begin(), nodes.end()};
    if (spec.vcpus == 0) {
        const std::int64_t all = std::max<std::int64_t>(gpus_on(here.node.status), 1);
        const std::int64_t share = here.node.status.cpu * std::ssize(gpus) / all;
        spec.vcpus = static_cast<unsigned>(!own.empty() ? std::ssize(own) : std::clamp<std::int64_t>(share, 1, 4096));
    }
    return {};
}

// A share of seven eighths: the rest is the host's.
std::int64_t memory_of(const GpuNodeStatus& node, std::int64_t gpus) {
    const std::int64_t all = std::max<std::int64_t>(gpus_on(node), 1);
    return node.memory.bytes / 8 * 7 / all * gpus;
}

}  // namespace

Result<std::vector<unsigned>> own_cpus(const GpuNodeStatus& node, std::int64_t gpu) {
    const GpuPosition* const position = position_of(node, gpu);
    if (position == nullptr || position->cpus.empty()) return std::vector<unsigned>{};
    const auto beside = parse_cpu_list(position->cpus);
    if (!beside) return beside;
    // By slots, not by numbers: one that was exchanged has its predecessor's part, and one that is lost keeps its own.
    std::set<std::string_view> slots;
    for (const GpuPosition& other : node.topology)
        if (other.cpus == position->cpus) slots.insert(other.bus);
    const std::size_t sharers = slots.size();
    const auto before = static_cast<std::size_t>(std::distance(slots.begin(), slots.find(position->bus)));
    const std::size_t from = beside->size() * before / sharers, to = beside->size() * (before + 1) / sharers;
    return std::vector<unsigned>{beside->begin() + static_cast<std::ptrdiff_t>(from),
                                 beside->begin() + static_cast<std::ptrdiff_t>(to)};
}

namespace {

// VFIO hands over a device whole, with whatever is on it. A lease of less answers for its own part alone: nobody asked
// whether the rest was wiped, is kept or is another's.
Result<> is_of_whole_gpus(const GpuLeaseSpec& lease, const std::string& name) {
    const auto part = std::ranges::find_if(
        lease.slices, [](const LeasedSlice& slice) { return !slice.profile.empty() || slice.share < 1000; });
    if (lease.mechanism == Mechanism::whole && part == lease.slices.end()) return {};
    const std::string what = part == lease.slices.end() ? fmt::format("GPUs divided by {}", word(lease.mechanism))
                             : !part->profile.empty()   ? fmt::format("{} of GPU {}", part->profile, part->gpu)
                                                      : fmt::format("{} thousandths of GPU {}", part->share, part->gpu);
    return fail(Code::conflict, fmt::format("lease {} holds {}, and a machine would get all of it", name, what),
                "tier vm has whole GPUs: gpu.count, mechanism whole");
}

}  // namespace

Result<DomainSpec> domain_of(const LeaseHere& here, const MachinePlaces& places) {
    const GpuLeaseSpec& lease = here.lease.spec;
    const std::string& name = here.lease.metadata.name;
    if (lease.tier != Tier::vm)
        return fail(Code::conflict,
                    fmt::format("lease {} is of tier {}, which is no domain of libvirt's", name, word(lease.tier)),
                    "isolation.tier: vm asks for a machine of its own");
    if (lease.mechanism == Mechanism::vgpu || lease.mechanism == Mechanism::mig_vgpu)
        return fail(Code::conflict,
                    fmt::format("lease {} holds vGPUs, and only its node knows which virtual function each is", name),
                    "");
    if (const auto whole = is_of_whole_gpus(lease, name); !whole) return std::unexpected(whole.error());
    std::set<std::int64_t> gpus;
    std::int64_t slices_here = 0;
    for (const LeasedSlice& slice : lease.slices) {
        if (slice.node != here.node.metadata.name) continue;
        ++slices_here;
        gpus.insert(slice.gpu);
    }
    if (gpus.empty())
        return fail(Code::not_found, fmt::format("lease {} has no GPU on node {}", name, here.node.metadata.name),
                    "`bulkhead get lease -o yaml` lists where it is");

    DomainSpec spec{.name = "bulkhead-" + name,
                    .node = here.node.metadata.name,
                    .architecture = places.architecture,
                    .emulated = places.emulated};
    if (const auto added = add_devices(spec, here, gpus); !added) return std::unexpected(added.error());
    const std::int64_t tasks =
        lease.tasks.value_or(1) * slices_here / std::max<std::int64_t>(std::ssize(lease.slices), 1);
    const auto per_task = [&](std::int64_t each) { return each * std::max<std::int64_t>(tasks, 1); };
    std::string image = "default";
    std::int64_t memory = memory_of(here.node.status, std::ssize(gpus));
    if (here.workload != nullptr) {
        const GpuWorkloadSpec& work = here.workload->spec;
        if (work.cpu)
            spec.vcpus = static_cast<unsigned>(std::min<std::int64_t>(per_task(*work.cpu), 4096));
        else
            spec.vcpus = 0;
        if (work.memory) memory = per_task(work.memory->bytes);
        if (work.vm && !work.vm->image.empty()) image = work.vm->image;
    } else {
        spec.vcpus = 0;
    }
    if (const auto added = add_processors(spec, here, gpus); !added) return std::unexpected(added.error());
    // A share of all memory may be more than the nodes beside its GPUs have: only what its work names must be there.
    spec.strictly = here.workload != nullptr && here.workload->spec.memory.has_value();
    spec.huge_page_bytes = places.huge_page_bytes;
    const std::int64_t page = std::max(places.huge_page_bytes, page_least);
    spec.memory_bytes = memory / page * page;

    const std::string folder = fmt::format("{}/{}", places.machines, name);
    if (places.boots_disk) {
        spec.boot_disk = folder + "/disk";
    } else {
        spec.kernel = folder + "/kernel";
        spec.initrd = folder + "/initrd";
        spec.command_line = places.architecture == Architecture::arm64 ? "console=ttyAMA0" : "console=ttyS0";
    }
    spec.disks.push_back({.path = folder + "/seed", .read_only = true, .serial = "bulkhead-seed"});
    if (const auto added = add_drives(spec, here, fmt::format("{}/{}", places.nodes, name)); !added)
        return std::unexpected(added.error());
    spec.console = folder + "/console";
    spec.title = fmt::format("{} of {}, image {}", lease.workload, lease.tenant, image);
    return spec;
}

}  // namespace bulkhead::render
