#include "bulkhead/hw/nvme/discover.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>
#include <tuple>

#include "bulkhead/hw/nvme/in_use.hpp"
#include "bulkhead/hw/nvme/sysfs.hpp"

namespace bulkhead::nvme {

namespace {

// Red Hat (QEMU's controller), VMware, VirtualBox: software. Amazon, Google, Microsoft: something of their own.
constexpr auto emulators = std::to_array<std::uint16_t>({0x1B36, 0x15AD, 0x80EE});
constexpr auto clouds = std::to_array<std::uint16_t>({0x1D0F, 0x1AE0, 0x1414});

bool all_digits(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "nvme0n1", or for one of several paths "nvme0c3n1", whose head is nvme0n1. Empty: no namespace.
std::string head_of(std::string_view name) {
    if (!name.starts_with("nvme")) return {};
    const std::size_t n = name.rfind('n');
    if (n < 5 || !all_digits(name.substr(n + 1))) return {};
    const std::string_view middle = name.substr(4, n - 4);
    const std::size_t c = middle.find('c');
    const std::string_view subsystem = middle.substr(0, c);
    if (!all_digits(subsystem) || (c != std::string_view::npos && !all_digits(middle.substr(c + 1)))) return {};
    return "nvme" + std::string{subsystem} + std::string{name.substr(n)};
}

std::optional<BlockDevice> device_in(const std::string& folder, const std::string& name) {
    const auto number = parse_device_number(first_line_of(folder + "/dev"));
    if (!number) return std::nullopt;
    return BlockDevice{name, number->major, number->minor};
}

std::optional<NamespaceBlock> block_of(const Tree& tree, const std::string& controller, const std::string& name) {
    const std::string head = head_of(name), folder = tree.sys + "/block/" + head;
    const auto nsid = parse_number(first_line_of(controller + "/" + name + "/nsid"));
    const auto seen = parse_number(first_line_of(folder + "/nsid"));
    auto device = device_in(folder, head);
    // The path and its head must speak of the same namespace.
    if (!nsid || !seen || *nsid != *seen || *nsid == 0 || *nsid > 0xFFFF'FFFD || !device) return std::nullopt;
    NamespaceBlock block{.nsid = static_cast<std::uint32_t>(*nsid),
                         .device = *std::move(device),
                         .partitions = {},
                         .bytes = parse_number(first_line_of(folder + "/size")).value_or(0) * 512,
                         .wwid = first_line_of(folder + "/wwid")};
    for (const std::string& part : names_in(folder))
        if (part.starts_with(head + "p") && parse_number(first_line_of(folder + "/" + part + "/partition")))
            if (auto found = device_in(folder + "/" + part, part)) block.partitions.push_back(*std::move(found));
    return block;
}

Drive drive_of(const Tree& tree, const std::string& name) {
    const std::string folder = tree.sys + "/class/nvme/" + name;
    Drive drive{.serial = first_line_of(folder + "/serial"),
                .model = first_line_of(folder + "/model"),
                .firmware = first_line_of(folder + "/firmware_rev"),
                .controller = name,
                .address = first_line_of(folder + "/address"),
                .state = first_line_of(folder + "/state"),
                .transport = first_line_of(folder + "/transport"),
                .vendor = static_cast<std::uint16_t>(
                    parse_number(first_line_of(folder + "/device/vendor"), 16).value_or(0) & 0xFFFFU),
                .namespaces = {},
                .is_system = false};
    for (const std::string& inside : names_in(folder))
        if (!head_of(inside).empty())
            if (auto block = block_of(tree, folder, inside)) drive.namespaces.push_back(*std::move(block));
    std::ranges::sort(drive.namespaces, {}, &NamespaceBlock::nsid);
    return drive;
}

}  // namespace

std::uint64_t Drive::bytes() const {
    std::uint64_t sum = 0;
    for (const NamespaceBlock& one : namespaces) sum += one.bytes;
    return sum;
}

Grade Drive::grade() const {
    if (std::ranges::find(emulators, vendor) != emulators.end() || model == "QEMU NVMe Ctrl") return Grade::emulated;
    if (transport != "pcie" || vendor == 0 || std::ranges::find(clouds, vendor) != clouds.end()) return Grade::assumed;
    return Grade::silicon;
}

Result<Found> discover(const Tree& tree) {
    Found found;
    std::set<std::string> bound;
    const std::set<std::string> system = system_disks(tree);
    for (const std::string& name : names_in(tree.sys + "/class/nvme")) {
        if (!name.starts_with("nvme") || !all_digits(std::string_view{name}.substr(4))) continue;
        Drive drive = drive_of(tree, name);
        drive.is_system = std::ranges::any_of(
            drive.namespaces, [&](const NamespaceBlock& one) { return system.contains(one.device.name); });
        bound.insert(drive.address);
        if (!drive.serial.empty()) found.drives.push_back(std::move(drive));
    }
    std::ranges::sort(found.drives, {}, [](const Drive& one) { return std::tie(one.serial, one.address); });
    for (const std::string& address : names_in(tree.sys + "/bus/pci/devices")) {
        const std::string folder = tree.sys + "/bus/pci/devices/" + address;
        if (!first_line_of(folder + "/class").starts_with("0x0108") || bound.contains(address)) continue;
        found.without.push_back({address, link_name(folder + "/driver")});
    }
    return found;
}

}  // namespace bulkhead::nvme
