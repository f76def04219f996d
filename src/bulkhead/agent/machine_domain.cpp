#include "bulkhead/agent/machine_domain.hpp"

#include <fmt/format.h>

#include "bulkhead/render/libvirt_lease.hpp"
#include "bulkhead/render/nccl_environment.hpp"

namespace bulkhead::agent {

namespace {

#if defined(__aarch64__)
constexpr auto architecture_here = render::Architecture::arm64;
#else
constexpr auto architecture_here = render::Architecture::amd64;
#endif

constexpr std::string_view image_variable = "BULKHEAD_IMAGE=";

std::string serial_in_guest(const LentNamespace& one) { return render::disk_serial(one.serial, one.nsid, one.only); }

}  // namespace

std::string guest_drives(const std::vector<LentNamespace>& drives) {
    std::string paths;
    for (const LentNamespace& one : drives)
        paths += fmt::format("{}/dev/disk/by-id/virtio-{}", paths.empty() ? "" : ",", serial_in_guest(one));
    return paths;
}

std::vector<std::string> guest_fabric(const StartTenant& what) {
    const render::NodePart part = render::part_of(what);
    std::vector<std::string> all = render::nccl_guest_environment(part);
    std::string ports;
    for (const FabricPort& port : part.ports)
        ports += fmt::format("{}{}={}", ports.empty() ? "" : ",", port.port_guid.empty() ? port.mac : port.port_guid,
                             port.address);
    if (!ports.empty()) all.push_back("BULKHEAD_PORTS=" + ports);
    return all;
}

std::string machine_name(Key lease) { return fmt::format("{}{:x}", machine_prefix, lease); }

std::string kernel_address(const std::string& bus_id) {
    const auto address = render::parse_pci_address(bus_id);
    return address ? render::print(*address) : bus_id;
}

std::string image_of(const Program& program) {
    for (const std::string& variable : program.environment)
        if (variable.starts_with(image_variable)) return variable.substr(image_variable.size());
    return "default";
}

Result<render::DomainSpec> machine_domain(const StartTenant& what, const GpuNodeStatus& node,
                                          const MachineParts& parts) {
    GpuNode here;
    here.metadata.name = "this node";
    here.status = node;
    GpuLease lease;
    lease.metadata.name = machine_name(what.lease);
    lease.spec = {.tenant = what.tenant, .mechanism = what.mechanism, .tier = what.tier, .tasks = 1};
    for (const GpuPart& part : what.gpus)
        lease.spec.slices.push_back({.node = here.metadata.name,
                                     .gpu = part.gpu,
                                     .profile = part.profile,
                                     .start = part.start,
                                     .share = part.share});
    for (const std::uint16_t function : what.functions) lease.spec.functions.push_back({here.metadata.name, function});
    GpuWorkload work;
    if (what.program.cpu_thousandths > 0) work.spec.cpu = (what.program.cpu_thousandths + 999) / 1000;
    if (what.program.memory_bytes > 0) work.spec.memory = ByteSize{what.program.memory_bytes};

    auto spec = render::domain_of({lease, here, &work}, {.boots_disk = !parts.image.disk.empty(),
                                                         .huge_page_bytes = parts.huge_page_bytes,
                                                         .architecture = architecture_here,
                                                         .emulated = parts.emulated});
    if (!spec) return spec;
    spec->name = machine_name(what.lease);
    spec->title = fmt::format("of {}, image {}", what.tenant, parts.image.name);
    spec->console = parts.folder.console();
    spec->user = parts.user;
    spec->disks = {{.path = parts.folder.seed(), .read_only = true, .serial = std::string{vm::seed_serial}}};
    for (const LentNamespace& one : parts.drives)
        spec->disks.push_back({.path = parts.nodes + "/" + one.name(), .block = true, .serial = serial_in_guest(one)});
    if (!parts.image.disk.empty()) {
        spec->boot_disk = parts.folder.disk();
    } else {
        spec->kernel = parts.folder.kernel();
        spec->initrd = parts.image.initrd.empty() ? "" : parts.folder.initrd();
        spec->command_line += " quiet panic=-1";
        // Software that has to wait for its turn loses ticks, which a kernel takes for a broken board.
        if (parts.emulated && architecture_here == render::Architecture::amd64) spec->command_line += " no_timer_check";
        if (!parts.image.command_line.empty()) spec->command_line += " " + parts.image.command_line;
    }
    return spec;
}

}  // namespace bulkhead::agent
