// `render libvirt`: a lease's machine as the domain its node starts, from objects that whoever asks may read.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <set>

#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/objects.hpp"
#include "bulkhead/cli/render.hpp"
#include "bulkhead/render/libvirt_lease.hpp"

namespace bulkhead::cli {

namespace {

struct LibvirtOptions {
    std::string lease, node, architecture = "amd64", boot = "kernel";
    std::int64_t huge_page_kib = 2048;
    bool emulated = false;
};

template <class Object>
Result<Object> read_one(Client& client, const std::string& target) {
    const auto reply = client.get(target);
    if (!reply) return std::unexpected(reply.error());
    auto object = read_object(reply->body);
    if (!object) return std::unexpected(object.error());
    if (auto* found = std::get_if<Object>(&*object)) return std::move(*found);
    return fail(Code::corrupt, "the server answered with an object of another kind", "");
}

Result<std::string> domain_text(Client& client, const LibvirtOptions& options, const GpuLease& lease,
                                const std::string& name) {
    const auto node = read_one<GpuNode>(client, target_of("nodes", name));
    if (!node) return std::unexpected(node.error());
    // It may be gone, and its lease not yet: then cores and memory go by the GPUs.
    const auto work =
        read_one<GpuWorkload>(client, target_of("workloads", lease.spec.tenant + "/" + lease.spec.workload));
    const auto spec = render::domain_of(
        {lease, *node, work ? &*work : nullptr},
        {.boots_disk = options.boot == "disk",
         .huge_page_bytes = options.huge_page_kib << 10,
         .architecture = options.architecture == "arm64" ? render::Architecture::arm64 : render::Architecture::amd64,
         .emulated = options.emulated});
    if (!spec) return std::unexpected(spec.error());
    return render::libvirt_domain(*spec);
}

int render_libvirt(const LibvirtOptions& options, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto lease = read_one<GpuLease>(*client, target_of("leases", options.lease));
    if (!lease) return report(context, lease.error());
    std::set<std::string> nodes;
    for (const LeasedSlice& slice : lease->spec.slices) nodes.insert(slice.node);
    if (options.node.empty() && nodes.size() > 1)
        return report(context,
                      Error{Code::invalid,
                            fmt::format("lease {} is on {} nodes, and a domain is on one", options.lease, nodes.size()),
                            fmt::format("--node {}", *nodes.begin())});
    const std::string node = !options.node.empty() ? options.node : nodes.empty() ? "" : *nodes.begin();
    if (!nodes.contains(node))
        return report(context,
                      Error{Code::not_found, fmt::format("lease {} has nothing on node {}", options.lease, node),
                            "`bulkhead get lease NAME -o yaml` lists where it is"});
    const auto xml = domain_text(*client, options, *lease, node);
    if (!xml && xml.error().code == Code::conflict) {
        complain(context, refused, xml.error());
        return refused;
    }
    if (!xml) return report(context, xml.error());
    context.out << *xml;
    return done;
}

}  // namespace

void add_render_libvirt(Command render, Context& context) {
    Command command = render.add_subcommand("libvirt", "A lease's machine as a libvirt domain.");
    command.description(
        "A lease of tier vm, on one of its nodes, as the libvirt domain that its node starts: CPUs beside its GPUs, "
        "memory\n"
        "in huge pages, its devices whole, and no door to anything else. Whoever may read the lease and the node can "
        "ask.");
    command.footer(
        "Examples:\n"
        "  bulkhead render libvirt lease-0123456789ab --node node-01 | virt-xml-validate - domain\n\n"
        "Exit status:\n"
        "  0  printed\n"
        "  1  there is no such lease or node, for this caller\n"
        "  3  the lease is no machine (another tier, or vGPUs), or the caller may not read nodes");
    auto options = std::make_shared<LibvirtOptions>();
    auto door = add_door(command);
    command.add_option("LEASE", options->lease, "The lease.").required().type_name("");
    command.add_option("--node", options->node, "On which of its nodes.").type_name("NODE");
    command.add_option("--arch", options->architecture, "The node's: amd64 or arm64. Default: amd64.")
        .one_of({"amd64", "arm64"})
        .type_name("ARCH");
    command.add_option("--boot", options->boot, "What its image is: kernel (and initrd) or disk. Default: kernel.")
        .one_of({"kernel", "disk"})
        .type_name("WHAT");
    command.add_option("--huge-pages", options->huge_page_kib, "Their size, in KiB; 0: ordinary pages. Default: 2048.")
        .within(0, 16 << 20)
        .type_name("KIB");
    command.add_flag("--emulated", options->emulated, "For a host without KVM.");
    command.callback([options, door, &context] { context.status = render_libvirt(*options, *door, context); });
}

}  // namespace bulkhead::cli
