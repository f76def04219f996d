// Physical and virtual functions as sysfs shows them, and which driver has them. The tree's root is handed in, so that
// a tree of files stands for a NIC nobody here has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/hw/rdma/descriptor.hpp"

namespace bulkhead::rdma {

struct VirtualFunction {
    std::uint32_t number = 0;  // as its physical one counts
    std::string address;       // "0000:3b:00.2"
    std::string driver;        // empty: none
    std::string iommu_group;   // empty: none
    friend bool operator==(const VirtualFunction&, const VirtualFunction&) = default;
};

struct PhysicalFunction {
    std::string address, driver;
    std::string vendor, device, subsystem_vendor, subsystem_device;  // "0x8086"
    std::uint32_t functions_max = 0;
    std::vector<VirtualFunction> functions;  // by number
    // QEMU's 82576 is sold by nobody: its subsystem is Red Hat's, or QEMU's own under Intel's number.
    bool is_emulated() const;
};

struct NetDevice {
    std::string name;
    int index = 0;
};

// "0000:3b:00.0": it becomes part of a path.
bool is_pci_address(std::string_view text);

class PciTree {
public:
    explicit PciTree(std::string root = "/sys") : root_{std::move(root)} {}

    Result<PhysicalFunction> physical(const std::string& address) const;
    // Of the namespace that the tree was mounted in; nothing: it has none, or it is elsewhere.
    Result<std::optional<NetDevice>> net_device(const std::string& address) const;
    std::vector<std::string> rdma_devices(const std::string& address) const;
    std::string driver(const std::string& address) const;
    std::optional<std::int64_t> numa_node(const std::string& address) const;  // nothing: the machine does not say
    std::vector<std::string> bridges(const std::string& address) const;       // above it, from the root down
    std::int64_t speed_mbps(const std::string& link) const;                   // 0: unknown
    bool has(const std::string& address) const;

    // None are there, and so many are made, with no driver on any: addresses come first. Any other number is an error:
    // changing it would take all of them away from whoever has them.
    Result<> make_functions(const std::string& physical, std::uint32_t count) const;

    // The driver that goes with a physical one's: "igbvf" of "igb".
    static std::string driver_of_functions(const std::string& physical_driver);
    Result<> bind(const std::string& address, const std::string& driver) const;  // bound already is fine
    Result<> unbind(const std::string& address) const;                           // likewise; and no driver is preferred
    // As after power-on. False: the function cannot.
    Result<bool> reset(const std::string& address) const;

    const std::string& root() const { return root_; }

private:
    std::string device(const std::string& address) const { return root_ + "/bus/pci/devices/" + address; }
    Result<std::uint32_t> number(const std::string& path) const;
    std::string root_;
};

}  // namespace bulkhead::rdma
