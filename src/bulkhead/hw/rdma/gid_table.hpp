// RDMA devices as sysfs shows them: ports, what they are called by others (GIDs), which partitions they are in, and the
// file a program opens. An RDMA port's identity is a row of a table that the kernel fills from the addresses of its
// netdev; rows move when addresses come and go, so an index is looked up after the last change and never remembered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/hw/rdma/addresses.hpp"
#include "bulkhead/hw/rdma/descriptor.hpp"

namespace bulkhead::rdma {

enum class RoceVersion : std::uint8_t { infiniband_or_v1, v2 };

struct GidRow {
    std::uint32_t index = 0;
    Gid gid;
    RoceVersion version{};
    std::string device;  // the netdev it comes from; empty on InfiniBand
    friend bool operator==(const GidRow&, const GidRow&) = default;
};

struct RdmaPort {
    std::uint32_t number = 0;
    bool is_infiniband = false;
    bool is_active = false;
    std::vector<GidRow> gids;          // rows that hold something
    std::vector<std::uint16_t> pkeys;  // those that are set
};

struct VerbsNode {
    std::string path;  // "/dev/infiniband/uverbs3"
    std::uint32_t major = 0, minor = 0;
    friend bool operator==(const VerbsNode&, const VerbsNode&) = default;
};

class RdmaTree {
public:
    explicit RdmaTree(std::string root = "/sys") : root_{std::move(root)} {}
    std::vector<std::string> devices() const;  // of the namespace that the tree was mounted in
    Result<std::vector<RdmaPort>> ports(const std::string& device) const;
    // The file with which exactly this device is used.
    Result<VerbsNode> verbs(const std::string& device) const;
    // Soft-RoCE devices sit on a netdev and on no PCI function.
    std::string netdev_of(const std::string& device) const;

private:
    std::string root_;
};

// The row to name: RoCE v2, of exactly this address. Nothing: it is not there (yet).
std::optional<std::uint32_t> row_of(const RdmaPort& port, const Gid& gid);

// Parsers of what stands in those files.
std::optional<bool> parse_active(std::string_view state);          // "4: ACTIVE"
std::optional<std::uint16_t> parse_pkey(std::string_view text);    // "0xffff"
std::optional<RoceVersion> parse_gid_type(std::string_view text);  // "RoCE v2"

}  // namespace bulkhead::rdma
