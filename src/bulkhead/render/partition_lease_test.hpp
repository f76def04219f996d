// A lease on InfiniBand as partitions are planned from it: its tenant, the key, and a port for each GUID.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/model/lease.hpp"

namespace bulkhead::render {

inline GpuLease lease_of(const std::string& tenant, std::int64_t key, const std::vector<std::string>& guids) {
    GpuLease lease;
    lease.metadata.name = "lease-" + tenant;
    lease.spec.tenant = tenant;
    lease.status.emplace();
    for (const std::string& guid : guids) {
        LeasedPort port{.node = "n0", .address = "10.128.16.5/20"};
        port.portGuid = guid;
        port.partitionKey = key;
        lease.status->ports.push_back(port);
    }
    return lease;
}

}  // namespace bulkhead::render
