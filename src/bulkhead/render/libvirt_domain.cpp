#include "bulkhead/render/libvirt_domain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/render/libvirt_xml.hpp"

namespace bulkhead::render {

namespace {

constexpr std::int64_t kibi = 1024, mebi = 1024 * kibi;
constexpr std::int64_t memory_least = 64 * mebi;
constexpr std::size_t vcpus_without_remapping = 255;  // interrupts beyond need the guest's own IOMMU

bool is_path(std::string_view text) {
    return text.starts_with('/') && text.find('\0') == std::string_view::npos &&
           text.find('\n') == std::string_view::npos;
}

bool is_name(std::string_view text) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
               c == '.';
    };
    return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, plain);
}

std::vector<std::string> faults_of(const DomainSpec& spec) {
    std::vector<std::string> faults;
    const auto unless = [&](bool holds, std::string fault) {
        if (!holds) faults.push_back(std::move(fault));
    };
    unless(is_name(spec.name), fmt::format("\"{}\" is no name for a domain", spec.name));
    unless(spec.vcpus >= 1 && spec.vcpus <= 4096, fmt::format("{} vCPUs", spec.vcpus));
    unless(spec.memory_bytes >= memory_least,
           fmt::format("{} bytes of memory, and nothing boots in less than {}", spec.memory_bytes, memory_least));
    unless(spec.memory_bytes % mebi == 0, fmt::format("{} bytes of memory are no whole MiB", spec.memory_bytes));
    unless(spec.huge_page_bytes == 0 ||
               (spec.huge_page_bytes >= 64 * kibi && spec.memory_bytes % spec.huge_page_bytes == 0),
           fmt::format("{} bytes of memory are no whole pages of {}", spec.memory_bytes, spec.huge_page_bytes));
    unless(spec.kernel.empty() != spec.boot_disk.empty(),
           "it boots from a kernel that is handed in, or from a disk: one of the two");
    unless(spec.kernel.empty() || is_path(spec.kernel), "its kernel has no absolute path");
    unless(spec.initrd.empty() || (is_path(spec.initrd) && !spec.kernel.empty()),
           "its initrd has no absolute path, or no kernel");
    unless(spec.boot_disk.empty() || is_path(spec.boot_disk), "its boot disk has no absolute path");
    unless(std::ranges::none_of(spec.title, [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
           "its title is no line");
    unless(is_path(spec.console), "its console goes to no absolute path");
    unless(is_path(spec.partition), "its partition of resources is no absolute path");
    std::set<std::string> paths{spec.boot_disk}, serials;
    for (const DomainDisk& disk : spec.disks) {
        unless(is_path(disk.path), "a disk has no absolute path");
        unless(paths.insert(disk.path).second, fmt::format("disk {} is given twice", disk.path));
        unless(disk.serial.empty() || is_name(disk.serial), fmt::format("\"{}\" is no serial number", disk.serial));
        unless(disk.serial.empty() || serials.insert(disk.serial).second,
               fmt::format("two disks have the serial number {}, and a guest could not tell them apart", disk.serial));
    }
    unless(spec.disks.size() <= 24, fmt::format("{} disks, and there are letters for 24", spec.disks.size()));
    std::set<PciAddress> devices;
    for (const PciAddress& device : spec.devices)
        unless(devices.insert(device).second, fmt::format("device {} is given twice", print(device)));
    unless(std::ranges::all_of(spec.command_line, [](char c) { return c >= 0x20 && c < 0x7F; }),
           "its kernel's command line holds what is no printable ASCII");
    return faults;
}

void write_memory(XmlWriter& xml, const DomainSpec& spec) {
    const std::string amount = std::to_string(spec.memory_bytes / kibi);
    xml.text("memory", amount, {{"unit", "KiB"}});
    xml.text("currentMemory", amount, {{"unit", "KiB"}});
    if (spec.huge_page_bytes == 0 && spec.emulated) return;
    // Of its own, not merged with anybody's, and never on a swap device where it would outlive the lease.
    xml.open("memoryBacking");
    if (spec.huge_page_bytes > 0) {
        xml.open("hugepages");
        xml.leaf("page", {{"size", std::to_string(spec.huge_page_bytes / kibi)}, {"unit", "KiB"}});
        xml.close();
    }
    xml.open("nosharepages");
    xml.close();
    xml.open("locked");
    xml.close();
    xml.close();
}

void write_processors(XmlWriter& xml, const DomainSpec& spec) {
    XmlAttributes how{{"placement", "static"}};
    const std::string all = print_cpu_list(spec.cpus);
    if (!spec.cpus.empty()) how.emplace_back("cpuset", all);
    xml.text("vcpu", std::to_string(spec.vcpus), how);
    if (!spec.cpus.empty()) {
        xml.open("cputune");
        for (unsigned vcpu = 0; vcpu < spec.vcpus; ++vcpu)
            xml.leaf("vcpupin", {{"vcpu", std::to_string(vcpu)},
                                 {"cpuset", spec.vcpus <= spec.cpus.size() ? std::to_string(spec.cpus[vcpu]) : all}});
        xml.leaf("emulatorpin", {{"cpuset", all}});
        xml.close();
    }
    if (!spec.nodes.empty()) {
        xml.open("numatune");
        // A preference is for one node; of several, each gives its part for as long as it has some.
        const char* const mode = spec.strictly ? "strict" : spec.nodes.size() == 1 ? "preferred" : "interleave";
        xml.leaf("memory", {{"mode", mode}, {"nodeset", print_cpu_list(spec.nodes)}});
        xml.close();
    }
    xml.open("resource");
    xml.text("partition", spec.partition);
    xml.close();
}

bool has_guest_iommu(const DomainSpec& spec) {
    return spec.architecture == Architecture::amd64 && !spec.emulated &&
           (!spec.devices.empty() || spec.vcpus > vcpus_without_remapping);
}

void write_boot(XmlWriter& xml, const DomainSpec& spec) {
    const bool arm = spec.architecture == Architecture::arm64, firmware = arm && spec.kernel.empty();
    xml.open("os", firmware ? XmlAttributes{{"firmware", "efi"}} : XmlAttributes{});
    xml.text("type", "hvm", {{"arch", arm ? "aarch64" : "x86_64"}, {"machine", arm ? "virt" : "q35"}});
    if (!spec.kernel.empty()) {
        xml.text("kernel", spec.kernel);
        if (!spec.initrd.empty()) xml.text("initrd", spec.initrd);
        if (!spec.command_line.empty()) xml.text("cmdline", spec.command_line);
    } else {
        xml.leaf("boot", {{"dev", "hd"}});
    }
    xml.close();
    xml.open("features");
    if (!arm || firmware) xml.leaf("acpi", {});  // on arm64 that takes UEFI, and a kernel that is handed in has none
    if (!arm) xml.leaf("apic", {});
    if (arm) xml.leaf("gic", {{"version", "3"}});
    if (has_guest_iommu(spec)) xml.leaf("ioapic", {{"driver", "qemu"}});
    if (!spec.emulated) xml.leaf("pmu", {{"state", "off"}});  // counters see what neighbours do
    if (!arm) xml.leaf("vmport", {{"state", "off"}});
    xml.close();
    if (!spec.emulated) {
        xml.leaf("cpu", {{"mode", "host-passthrough"}, {"check", "none"}, {"migratable", "off"}});
    } else if (arm) {
        xml.open("cpu", {{"mode", "custom"}, {"match", "exact"}, {"check", "none"}});
        xml.text("model", "cortex-a57", {{"fallback", "forbid"}});
        xml.close();
    } else {
        xml.leaf("cpu", {{"mode", "maximum"}, {"check", "none"}});
    }
    xml.leaf("clock", {{"offset", "utc"}});
    // It ends when it powers off, however it does that: the agent decides what comes after.
    for (const std::string_view when : {"on_poweroff", "on_reboot", "on_crash"}) xml.text(when, "destroy");
}

void write_disk(XmlWriter& xml, const DomainDisk& disk, std::size_t number, bool direct) {
    xml.open("disk", {{"type", disk.block ? "block" : "file"}, {"device", "disk"}});
    // Past the host's page cache: what a tenant writes must not stay there.
    XmlAttributes how{
        {"name", "qemu"}, {"type", "raw"}, {"cache", direct ? "none" : "writeback"}, {"discard", "unmap"}};
    if (disk.block) how.emplace_back("io", "native");
    xml.leaf("driver", how);
    xml.leaf("source", {{disk.block ? "dev" : "file", disk.path}});
    xml.leaf("target", {{"dev", fmt::format("vd{}", static_cast<char>('a' + number))}, {"bus", "virtio"}});
    if (disk.read_only) xml.leaf("readonly", {});
    if (!disk.serial.empty()) xml.text("serial", disk.serial);
    xml.close();
}

void write_devices(XmlWriter& xml, const DomainSpec& spec) {
    xml.open("devices");
    std::size_t disks = 0;
    if (!spec.boot_disk.empty()) write_disk(xml, {.path = spec.boot_disk}, disks++, spec.direct_files);
    for (const DomainDisk& disk : spec.disks) write_disk(xml, disk, disks++, disk.block || spec.direct_files);
    xml.leaf("controller", {{"type", "usb"}, {"model", "none"}});
    xml.open("serial", {{"type", "file"}});
    xml.leaf("source", {{"path", spec.console}, {"append", "on"}});
    xml.leaf("target", {{"port", "0"}});
    xml.close();
    for (const PciAddress& device : spec.devices) {
        // Bound by the agent, and taken back by it: libvirt would hand a device to the host's driver behind our back.
        xml.open("hostdev", {{"mode", "subsystem"}, {"type", "pci"}, {"managed", "no"}});
        xml.leaf("driver", {{"name", "vfio"}});
        xml.open("source");
        xml.leaf("address", {{"domain", fmt::format("0x{:04x}", device.domain)},
                             {"bus", fmt::format("0x{:02x}", device.bus)},
                             {"slot", fmt::format("0x{:02x}", device.slot)},
                             {"function", fmt::format("0x{:x}", device.function)}});
        xml.close();
        xml.close();
    }
    for (const std::string& uuid : spec.mediated) {
        xml.open("hostdev", {{"mode", "subsystem"}, {"type", "mdev"}, {"managed", "no"}, {"model", "vfio-pci"}});
        xml.open("source");
        xml.leaf("address", {{"uuid", uuid}});
        xml.close();
        xml.close();
    }
    xml.leaf("memballoon", {{"model", "none"}});
    xml.open("rng", {{"model", "virtio"}});
    xml.text("backend", "/dev/urandom", {{"model", "random"}});
    xml.close();
    if (has_guest_iommu(spec)) {
        xml.open("iommu", {{"model", "intel"}});
        xml.leaf("driver", {{"intremap", "on"}, {"caching_mode", "on"}});
        xml.close();
    }
    xml.close();
}

}  // namespace

std::string disk_serial(std::string_view drive, std::uint32_t nsid, bool only) {
    constexpr std::size_t most = 20;
    std::string serial{drive};
    for (char& c : serial)
        if (!is_name({&c, 1})) c = '-';
    const std::string which = only ? "" : fmt::format("-n{}", nsid);
    if (serial.size() + which.size() > most) serial = serial.substr(serial.size() + which.size() - most);
    return serial + which;
}

// A UUID that anybody can compute again, marked as made of a name (RFC 9562, version 8: by a rule of one's own).
std::string domain_uuid(std::string_view node, std::string_view name) {
    Hash hash = sha256({"bulkhead domain\n", node, "\n", name});
    hash[6] = static_cast<std::uint8_t>((hash[6] & 0x0F) | 0x80);
    hash[8] = static_cast<std::uint8_t>((hash[8] & 0x3F) | 0x80);
    const std::string hex = to_hex(bytes_of(hash)).substr(0, 32);
    return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4), hex.substr(16, 4),
                       hex.substr(20));
}

Result<std::string> libvirt_domain(const DomainSpec& spec) {
    if (const auto faults = faults_of(spec); !faults.empty())
        return fail(Code::invalid, fmt::format("no domain can be made of {}: {}", spec.name, fmt::join(faults, "; ")),
                    "");
    XmlWriter xml;
    xml.open("domain", {{"type", spec.emulated ? "qemu" : "kvm"}});
    xml.text("name", spec.name);
    xml.text("uuid", domain_uuid(spec.node, spec.name));
    if (!spec.title.empty()) xml.text("title", spec.title);
    write_memory(xml, spec);
    write_processors(xml, spec);
    write_boot(xml, spec);
    write_devices(xml, spec);
    if (spec.user != 0) {
        xml.open("seclabel", {{"type", "static"}, {"model", "dac"}, {"relabel", "yes"}});
        xml.text("label", fmt::format("+{0}:+{0}", spec.user));
        xml.close();
    }
    return xml.finish();
}

}  // namespace bulkhead::render
