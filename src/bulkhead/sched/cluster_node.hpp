// Machines of a cluster that a person writes by hand: one line for one node, or for many that are alike.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead::sched {

inline constexpr std::int64_t most_cluster_nodes = 100'000;
inline constexpr std::size_t most_cluster_models = 32;  // as many as packing tells apart

struct ClusterNode {
    std::string name;
    std::int64_t count = 1;
    std::int64_t gpus = 8;
    std::string model = "h100-80gb-sxm5";
    std::optional<std::int64_t> cpu;
    std::optional<ByteSize> memory;
    std::string site, zone, rack, leaf, nvlinkDomain;
    std::int64_t nics = 8;
    std::vector<ByteSize> drives;
    bool closed = false;
    std::vector<std::int64_t> wiping, quarantined;
    bool wholeFabric = false;
    std::vector<std::string> usedBy;
    bool canReboot = false;

    static constexpr void describe(auto&& field) {
        field("name", &ClusterNode::name, "Its name, unique in the cluster.",
              Rule{.required = true, .format = Format::name});
        field("count", &ClusterNode::count, "How many such nodes; more than one are called name-1, name-2, ...",
              Rule{.min = 1, .max = most_cluster_nodes});
        field("gpus", &ClusterNode::gpus, "GPUs of one node. Default: 8.", Rule{.min = 0, .max = 64});
        field("model", &ClusterNode::model, "Their model, as `bulkhead mig profiles` lists them, or any other name.",
              Rule{.format = Format::line});
        field("cpu", &ClusterNode::cpu, "CPU cores. Default: 16 for each GPU.", Rule{.min = 0, .max = 65'536});
        field("memory", &ClusterNode::memory, "Host memory. Default: 128Gi for each GPU.",
              Rule{.min = 0, .max = 1LL << 50});
        field("site", &ClusterNode::site, "The site it stands in.");
        field("zone", &ClusterNode::zone, "Zone within the site.");
        field("rack", &ClusterNode::rack, "Rack within the zone.");
        field("leaf", &ClusterNode::leaf, "The fabric switch it hangs on.");
        field("nvlinkDomain", &ClusterNode::nvlinkDomain, "The NVLink domain it is part of, where that spans nodes.");
        field("nics", &ClusterNode::nics, "Virtual functions of its NICs. Default: 8.", Rule{.min = 0, .max = 1024});
        field("drives", &ClusterNode::drives, "The sizes of its drives for tenants.", Rule{.min = 1, .max = 1LL << 50});
        field("closed", &ClusterNode::closed, "Closed to new work; what runs there stays.");
        field("wiping", &ClusterNode::wiping, "Indexes of GPUs that are being wiped: they take nobody now.",
              Rule{.min = 0, .max = 63});
        field("quarantined", &ClusterNode::quarantined, "Indexes of GPUs that are nobody's until a person acts.",
              Rule{.min = 0, .max = 63});
        field("wholeFabric", &ClusterNode::wholeFabric,
              "NVLink cannot be partitioned: the board is one tenant's, or one trust domain's.");
        field("usedBy", &ClusterNode::usedBy, "Tenants whose code ran on its kernel since it was last rebooted.",
              Rule{.format = Format::name});
        field("canReboot", &ClusterNode::canReboot, "Whether it can be rebooted to a known image, verified.");
    }
    friend bool operator==(const ClusterNode&, const ClusterNode&) = default;
};

}  // namespace bulkhead::sched
