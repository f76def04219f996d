// InfiniBand: which ports are in which partition, as the subnet manager wants it written. Each tenant's functions are
// full members of its own partition; everybody's are limited members of the default one, so that they reach the subnet
// manager and nobody else. Limited members cannot talk to each other.
//
// What cannot be read opens the fabric: OpenSM takes an empty, missing or malformed file for a partition of everybody.
// So one member a line (it reads 4,096 characters of one), a file that is renamed into place, and tests with the real
// OpenSM. A GUID that is not on its subnet it passes over without a word.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/model/lease.hpp"

namespace bulkhead::render {

struct Partition {
    std::string tenant;
    std::uint16_t key = 0;             // without the membership bit
    std::vector<std::string> members;  // port GUIDs, full members: "0x0242500a80001005"
    friend bool operator==(const Partition&, const Partition&) = default;
};

// Of all leases that hold ports, by key. `corrupt`: two tenants share a key, or a port is there twice; then nothing is
// written, because what the subnet manager has is better.
Result<std::vector<Partition>> plan_partitions(const std::vector<GpuLease>& leases);

// The file `partitions.conf` of OpenSM; with the GUIDs alone where another subnet manager takes lists.
std::string partitions_conf(const std::vector<Partition>& partitions);
std::string guid_list(const Partition& partition);

}  // namespace bulkhead::render
