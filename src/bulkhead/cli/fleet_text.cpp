#include "bulkhead/cli/fleet_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <ostream>

#include "bulkhead/cli/selftest_node.hpp"
#include "bulkhead/cli/terminal.hpp"
#include "bulkhead/gpu/amd.hpp"
#include "bulkhead/gpu/board.hpp"

namespace bulkhead::cli {

namespace {

struct Look {
    std::string_view plain, picture, paint, says;
};
constexpr std::array<Look, 4> looks{{{".", "░", green, "available"},
                                     {"#", "█", bold, "in use"},
                                     {"~", "▒", yellow, "being wiped"},
                                     {"x", "╳", red, "quarantined"}}};
const Look& look_of(CleanState state) { return looks[static_cast<std::size_t>(state)]; }

std::size_t slices_of(const std::string& model) {
    if (const auto board = gpu::find_board(model)) return (*board)->memory_slices;
    return gpu::find_amd_board(model) ? 8 : 1;
}

std::string picture(const NodeGpus& gpu, bool colour) {
    const std::size_t all = slices_of(gpu.model);
    std::string out = "[";
    for (std::size_t i = 0; i < gpu.slices.size(); ++i) {
        const auto start = static_cast<std::size_t>(gpu.slices[i].start);
        const std::size_t end =
            i + 1 < gpu.slices.size() ? static_cast<std::size_t>(gpu.slices[i + 1].start) : std::max(all, start + 1);
        const Look& look = look_of(gpu.slices[i].state);
        std::string run;
        for (std::size_t slice = start; slice < end; ++slice) run += colour ? look.picture : look.plain;
        out += painted(run, look.paint, colour);
    }
    return out + "]";
}

// "lease-81 acme/train 3g.40gb"
std::string holders(const NodeGpus& gpu, const std::map<std::string, const GpuLease*>& leases) {
    std::string out;
    std::string last;
    for (const GpuSlice& slice : gpu.slices) {
        if (slice.lease.empty() || slice.lease == last) continue;
        last = slice.lease;
        if (!out.empty()) out += "; ";
        const auto lease = leases.find(slice.lease);
        if (lease != leases.end())
            out += fmt::format("{}/{}", lease->second->spec.tenant, lease->second->spec.workload);
        else
            out += slice.lease;
        if (!slice.profile.empty()) out += " " + slice.profile;
    }
    return out;
}

// Behind who is there: what keeps others away.
std::string drain(const NodeGpus& gpu, bool colour) {
    return gpu.draining.empty() ? "" : painted("  draining: " + gpu.draining, yellow, colour);
}

bool can_reboot(const GpuNode& node) {
    return std::ranges::any_of(node.status.capabilities, [](const DetectedCapability& found) {
        return found.name == Capability::verified_reboot;
    });
}

// "numa 0: gpu0 gpu1, numa 1: gpu2 gpu3, nvlink to 3 peers"; empty where the machine does not say.
std::string neighbours(const GpuNodeStatus& status) {
    std::map<std::int64_t, std::string> nodes;
    std::size_t peers = 0;
    for (const GpuPosition& position : status.topology) {
        peers = std::max(peers, position.nvlinkPeers.size());
        if (position.numaNode) nodes[*position.numaNode] += fmt::format(" gpu{}", position.gpu);
    }
    std::string out;
    for (const auto& [node, gpus] : nodes) out += fmt::format("{}numa {}:{}", out.empty() ? "" : ", ", node, gpus);
    if (peers > 0) out += fmt::format("{}nvlink to {} peers", out.empty() ? "" : ", ", peers);
    return out;
}

void print_node(std::ostream& out, const GpuNode& node, const std::map<std::string, const GpuLease*>& leases,
                bool colour) {
    const NodePhase phase = node.status.phase.value_or(NodePhase::enrolled);
    const std::string_view paint = phase == NodePhase::ready ? green : phase == NodePhase::fenced ? red : yellow;
    out << painted(node.metadata.name, bold, colour) << "  " << node.spec.site << "  "
        << painted(word(phase), paint, colour);
    if (node.spec.unschedulable) out << painted("  drained", yellow, colour);
    if (node.status.host) {
        const NodeHost& host = *node.status.host;
        // Only a reboot to a known image cleans a host; where there is none, nothing is going on.
        const bool stays = host.state == CleanState::sanitizing && !can_reboot(node);
        const std::string says = !stays                ? std::string{look_of(host.state).says}
                                 : host.usedBy.empty() ? "as it was found"
                                                       : fmt::format("used by {}", fmt::join(host.usedBy, ", "));
        out << "  host " << painted(says, look_of(host.state).paint, colour);
    }
    out << '\n';

    if (!node.status.unfit.empty())
        out << "  " << painted("drained itself: " + node.status.unfit, red, colour)
            << fmt::format("\n    try: repair its runtime, then bulkhead undrain {}\n", node.metadata.name);
    if (const std::string near = neighbours(node.status); !near.empty())
        out << "  " << painted(near, dim, colour) << '\n';
    if (node.status.profilingRestricted == false)
        out << painted("  its driver lets every process read performance counters", yellow, colour) << '\n';
    for (const NodeFabricTest& test : node.status.fabricTests)
        out << fmt::format("  fences of {}{}: {}\n", test.nic, test.fence == FabricFence::nic ? " alone" : "",
                           painted(fence_text(test), paint_of(test.found), colour));
    // Of one that has tested some: a node that is a model has no fences to test.
    if (!node.status.fabricTests.empty())
        for (const std::string& nic : untested_nics(node.status, FabricFence::on))
            out << fmt::format("  fences of {}: {}\n", nic, painted("not tested", yellow, colour));
    std::int64_t index = 0;
    for (std::size_t i = 0; i < node.status.gpus.size();) {
        const NodeGpus& gpu = node.status.gpus[i];
        const std::string drawn = picture(gpu, colour), held = holders(gpu, leases);
        std::int64_t last = index + gpu.count - 1;
        std::size_t next = i + 1;
        // GPUs that look the same and are held by the same are one line.
        while (next < node.status.gpus.size() && node.status.gpus[next].model == gpu.model &&
               picture(node.status.gpus[next], colour) == drawn && holders(node.status.gpus[next], leases) == held &&
               node.status.gpus[next].draining == gpu.draining)
            last += node.status.gpus[next++].count;
        const std::string name = last > index ? fmt::format("gpu{}-{}", index, last) : fmt::format("gpu{}", index);
        out << fmt::format("  {:<8} {} {}{}{}{}\n", name, drawn, painted(gpu.model, dim, colour),
                           held.empty() ? "" : "  ", held, drain(gpu, colour));
        index = last + 1;
        i = next;
    }
    for (std::size_t i = 0; i < node.status.drives.size(); ++i) {
        const NodeDrive& drive = node.status.drives[i];
        const Look& look = look_of(drive.state);
        out << fmt::format("  {:<8} {} {}{}\n", fmt::format("drive{}", i), painted(look.says, look.paint, colour),
                           drive.lease, drive.why.empty() ? "" : fmt::format(" {}: {}", drive.serial, drive.why));
    }
}

}  // namespace

bool print_fleet(std::ostream& out, const Snapshot& fleet, const std::string& only, bool colour) {
    std::map<std::string, const GpuLease*> by_name;
    for (const GpuLease& lease : fleet.leases) by_name[lease.metadata.name] = &lease;
    std::array<std::int64_t, 4> slices{};
    bool any = false;
    for (const GpuNode& node : fleet.nodes) {
        if (!only.empty() && node.metadata.name != only) continue;
        any = true;
        print_node(out, node, by_name, colour);
        for (const NodeGpus& gpu : node.status.gpus)
            for (std::size_t i = 0; i < gpu.slices.size(); ++i) {
                const std::int64_t end = i + 1 < gpu.slices.size() ? gpu.slices[i + 1].start
                                                                   : static_cast<std::int64_t>(slices_of(gpu.model));
                slices[static_cast<std::size_t>(gpu.slices[i].state)] += end - gpu.slices[i].start;
            }
    }
    if (!any) return false;
    out << "memory slices:";
    for (std::size_t i = 0; i < looks.size(); ++i)
        out << fmt::format("  {} {} {}", painted(colour ? looks[i].picture : looks[i].plain, looks[i].paint, colour),
                           slices[i], looks[i].says);
    out << '\n';
    return true;
}

}  // namespace bulkhead::cli
