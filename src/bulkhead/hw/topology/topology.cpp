#include "bulkhead/hw/topology/topology.hpp"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace bulkhead::topology {

namespace {

hwloc_topology_t of(const std::shared_ptr<void>& loaded) { return static_cast<hwloc_topology_t>(loaded.get()); }

// NVML writes eight digits for the domain, the kernel four.
hwloc_obj_t find_device(hwloc_topology_t topology, std::string_view address) {
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    const std::string text{address};
    if (std::sscanf(text.c_str(), "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4) return nullptr;
    return hwloc_get_pcidev_by_busid(topology, domain, bus, device, function);
}

std::string address_of(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci) {
    return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", unsigned{pci.domain}, unsigned{pci.bus}, unsigned{pci.dev},
                       unsigned{pci.func});
}

// A bridge between two PCI buses: a port, or a switch. The host's own bridge has no address on any bus.
bool is_pci_bridge(const hwloc_obj* object) {
    return object->type == HWLOC_OBJ_BRIDGE && object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

std::string list_of(hwloc_const_bitmap_t set) {
    std::array<char, 1024> text{};
    const int length = hwloc_bitmap_list_snprintf(text.data(), text.size(), set);
    return length > 0 && static_cast<std::size_t>(length) < text.size() ? std::string{text.data()} : std::string{};
}

// The part of the machine that a device hangs on. On a machine of several NUMA nodes one that hangs on all of them
// hangs on none that is known.
hwloc_obj_t home_of(hwloc_topology_t topology, hwloc_obj_t device) {
    const hwloc_obj_t home = hwloc_get_non_io_ancestor_obj(topology, device);
    return home != nullptr && home->nodeset != nullptr && hwloc_bitmap_weight(home->nodeset) == 1 ? home : nullptr;
}

hwloc_obj_t socket_of(hwloc_obj_t object) {
    while (object != nullptr && object->type != HWLOC_OBJ_PACKAGE) object = object->parent;
    return object;
}

}  // namespace

Result<Machine> Machine::open(const std::string& xml_file) {
    const auto cannot = [&](std::string_view doing) {
        return fail(Code::unavailable,
                    fmt::format("hwloc cannot {} {}: {}", doing, xml_file.empty() ? "this machine" : xml_file,
                                std::strerror(errno)),
                    "`lstopo` shows what hwloc sees");
    };
    hwloc_topology_t made = nullptr;
    if (hwloc_topology_init(&made) != 0) return cannot("begin to look at");
    Machine machine;
    machine.loaded_ = {made, [](void* held) { hwloc_topology_destroy(static_cast<hwloc_topology_t>(held)); }};
    // Bridges with nothing of interest below are no use; all that lead to a device are.
    if (hwloc_topology_set_type_filter(made, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
        hwloc_topology_set_type_filter(made, HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0)
        return cannot("keep the PCI devices of");
    if (!xml_file.empty() && hwloc_topology_set_xml(made, xml_file.c_str()) != 0) return cannot("read");
    if (hwloc_topology_load(made) != 0) return cannot("look at");
    return machine;
}

std::optional<Position> Machine::position(std::string_view address) const {
    const hwloc_obj_t device = find_device(of(loaded_), address);
    if (device == nullptr) return std::nullopt;
    Position found{.bus = address_of(device->attr->pcidev)};
    if (const hwloc_obj_t home = home_of(of(loaded_), device)) {
        found.numa = hwloc_bitmap_first(home->nodeset);
        found.cpus = list_of(home->cpuset);
    }
    for (const hwloc_obj* above = device->parent; above != nullptr; above = above->parent)
        if (is_pci_bridge(above)) found.bridges.push_back(address_of(above->attr->bridge.upstream.pci));
    std::ranges::reverse(found.bridges);
    return found;
}

std::optional<Meeting> Machine::meeting(std::string_view one, std::string_view other) const {
    const hwloc_obj_t first = find_device(of(loaded_), one), second = find_device(of(loaded_), other);
    if (first == nullptr || second == nullptr) return std::nullopt;
    // A port has one link: what meets below one meets in a switch.
    for (const hwloc_obj* above = first->parent; above != nullptr; above = above->parent) {
        if (!is_pci_bridge(above)) continue;
        for (const hwloc_obj* there = second->parent; there != nullptr; there = there->parent)
            if (there == above) return Meeting::bridge;
    }
    const hwloc_obj_t home = home_of(of(loaded_), first), next = home_of(of(loaded_), second);
    if (home == nullptr || next == nullptr) return std::nullopt;
    if (hwloc_bitmap_isequal(home->nodeset, next->nodeset) != 0) return Meeting::numa;
    const hwloc_obj_t socket = socket_of(home);
    return socket != nullptr && socket == socket_of(next) ? Meeting::socket : Meeting::machine;
}

}  // namespace bulkhead::topology
