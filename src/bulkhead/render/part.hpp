// One node's part of a lease, as files about it want it: which GPUs in which order, which functions, who those are on
// the fabric. Made from the lease that the control plane shows, or from the order that a node got; the files are the
// same.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/model/lease.hpp"
#include "bulkhead/model/node.hpp"
#include "bulkhead/node/operation.hpp"

namespace bulkhead::render {

struct PartGpu {
    std::int64_t gpu = 0;
    bool whole = true;  // else a slice of it, which reaches no NVLink
    friend bool operator==(const PartGpu&, const PartGpu&) = default;
};

struct NodePart {
    std::vector<PartGpu> gpus;  // each once, as the tenant counts them
    std::vector<std::uint16_t> functions;
    std::vector<FabricPort> ports;  // of those functions that are somebody on the fabric
    friend bool operator==(const NodePart&, const NodePart&) = default;
};

std::vector<std::string> nodes_of(const GpuLease& lease);  // each once, by rank
NodePart part_of(const GpuLease& lease, std::string_view node);
NodePart part_of(const StartTenant& start);

// The part's functions, each with what its node knows of it and who it is. Fails where the node has no such function,
// or does not know its RDMA device: a file that names half of what is leased is worse than none.
struct KnownFunction {
    const NodeFunction* function = nullptr;
    const FabricPort* port = nullptr;  // null: nobody in particular
};
Result<std::vector<KnownFunction>> functions_of(const GpuNodeStatus& node, const NodePart& part);

}  // namespace bulkhead::render
