// Which NVMe drives this machine has, as sysfs shows them. A drive is known by its serial number and a namespace by its
// id: names are given out anew at every boot, and nvme0n1 need be neither of the first drive nor of namespace 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::nvme {

struct Tree {  // where the kernel shows itself; another folder in tests
    std::string sys = "/sys", proc = "/proc", dev = "/dev";
};

struct BlockDevice {
    std::string name;  // nvme0n1, nvme0n1p2; with several paths, that of the head
    std::uint32_t major = 0, minor = 0;
    friend auto operator<=>(const BlockDevice&, const BlockDevice&) = default;
};

struct NamespaceBlock {
    std::uint32_t nsid = 0;
    BlockDevice device;
    std::vector<BlockDevice> partitions;
    std::uint64_t bytes = 0;
    std::string wwid;
    friend bool operator==(const NamespaceBlock&, const NamespaceBlock&) = default;
};

struct Drive {
    std::string serial, model, firmware;
    std::string controller;  // nvme0: the name of its admin node, now
    std::string address;     // 0000:03:00.0
    std::string state;       // live
    std::string transport;   // pcie, tcp, ...
    std::uint16_t vendor = 0;
    std::vector<NamespaceBlock> namespaces;  // that have a block device, by id
    bool is_system = false;                  // the machine itself runs from it
    std::uint64_t bytes() const;
    // `silicon` for a controller at this machine's bus whose maker makes drives. Emulators' own are `emulated`, by
    // their maker's number or their name. What is behind a network, or behind a cloud's controller, nobody here can
    // tell: `assumed`. A machine that is virtual itself may lie about all of it.
    Grade grade() const;
    friend bool operator==(const Drive&, const Drive&) = default;
};

struct AbsentDriver {  // an NVMe controller at the bus that the kernel's driver does not have
    std::string address;
    std::string driver;  // vfio-pci; empty: none
    friend bool operator==(const AbsentDriver&, const AbsentDriver&) = default;
};

struct Found {
    std::vector<Drive> drives;  // by serial number, then by address
    std::vector<AbsentDriver> without;
};
Result<Found> discover(const Tree& tree);

}  // namespace bulkhead::nvme
