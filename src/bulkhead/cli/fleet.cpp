// `fleet`: nodes and GPUs as a picture. Each cell is one memory slice.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <ostream>

#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/objects.hpp"
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

void print_node(Context& context, const GpuNode& node, const std::map<std::string, const GpuLease*>& leases) {
    const NodePhase phase = node.status.phase.value_or(NodePhase::enrolled);
    const std::string_view paint = phase == NodePhase::ready ? green : phase == NodePhase::fenced ? red : yellow;
    context.out << painted(node.metadata.name, bold, context.colour) << "  " << node.spec.site << "  "
                << painted(word(phase), paint, context.colour);
    if (node.spec.unschedulable) context.out << painted("  drained", yellow, context.colour);
    if (node.status.host)
        context.out << "  host "
                    << painted(look_of(node.status.host->state).says, look_of(node.status.host->state).paint,
                               context.colour);
    context.out << '\n';

    std::int64_t index = 0;
    for (std::size_t i = 0; i < node.status.gpus.size();) {
        const NodeGpus& gpu = node.status.gpus[i];
        const std::string drawn = picture(gpu, context.colour), held = holders(gpu, leases);
        std::int64_t last = index + gpu.count - 1;
        std::size_t next = i + 1;
        // GPUs that look the same and are held by the same are one line.
        while (next < node.status.gpus.size() && node.status.gpus[next].model == gpu.model &&
               picture(node.status.gpus[next], context.colour) == drawn &&
               holders(node.status.gpus[next], leases) == held)
            last += node.status.gpus[next++].count;
        const std::string name = last > index ? fmt::format("gpu{}-{}", index, last) : fmt::format("gpu{}", index);
        context.out << fmt::format("  {:<8} {} {}{}{}\n", name, drawn, painted(gpu.model, dim, context.colour),
                                   held.empty() ? "" : "  ", held);
        index = last + 1;
        i = next;
    }
    for (std::size_t i = 0; i < node.status.drives.size(); ++i) {
        const NodeDrive& drive = node.status.drives[i];
        const Look& look = look_of(drive.state);
        context.out << fmt::format("  {:<8} {} {}\n", fmt::format("drive{}", i),
                                   painted(look.says, look.paint, context.colour), drive.lease);
    }
}

int fleet(const std::string& only, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    auto nodes = list_all(*client, {ObjectKind::node, {}});
    if (!nodes) return report(context, nodes.error());
    const auto leases = list_all(*client, {ObjectKind::lease, {}});
    if (!leases) return report(context, leases.error());
    std::map<std::string, const GpuLease*> by_name;
    for (const GpuLease& lease : leases->objects.leases) by_name[lease.metadata.name] = &lease;
    std::array<std::int64_t, 4> slices{};
    bool any = false;
    for (const GpuNode& node : nodes->objects.nodes) {
        if (!only.empty() && node.metadata.name != only) continue;
        any = true;
        print_node(context, node, by_name);
        for (const NodeGpus& gpu : node.status.gpus)
            for (std::size_t i = 0; i < gpu.slices.size(); ++i) {
                const std::int64_t end = i + 1 < gpu.slices.size() ? gpu.slices[i + 1].start
                                                                   : static_cast<std::int64_t>(slices_of(gpu.model));
                slices[static_cast<std::size_t>(gpu.slices[i].state)] += end - gpu.slices[i].start;
            }
    }
    if (!any) {
        context.err << (only.empty() ? "no nodes yet\n  try: bulkhead agent --help\n"
                                     : fmt::format("there is no node {}\n  try: bulkhead get nodes\n", only));
        return only.empty() ? done : could_not;
    }
    context.out << "memory slices:";
    for (std::size_t i = 0; i < looks.size(); ++i)
        context.out << fmt::format(
            "  {} {} {}", painted(context.colour ? looks[i].picture : looks[i].plain, looks[i].paint, context.colour),
            slices[i], looks[i].says);
    context.out << '\n';
    return done;
}

}  // namespace

void add_fleet(Command program, Context& context) {
    Command command =
        program.add_subcommand("fleet", "Nodes and GPUs as a picture: who holds what, and what is clean.");
    auto only = std::make_shared<std::string>();
    auto door = add_door(command);
    command.add_option("node", *only, "Only this node.").type_name("NODE");
    command.callback([only, door, &context] { context.status = fleet(*only, *door, context); });
}

}  // namespace bulkhead::cli
