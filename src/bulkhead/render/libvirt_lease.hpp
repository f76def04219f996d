// A lease's machine on one of its nodes, from the objects that describe both: which devices, which CPUs beside them,
// how much memory. Made of what the node said of itself and of nothing else, so that whoever may read the lease and the
// node writes the same domain as the node does, up to names that only the node chooses.
#pragma once

#include <string>

#include "bulkhead/model/lease.hpp"
#include "bulkhead/model/node.hpp"
#include "bulkhead/model/workload.hpp"
#include "bulkhead/render/libvirt_domain.hpp"

namespace bulkhead::render {

// Where things lie on the node, as its agent has them.
struct MachinePlaces {
    std::string machines =
        "/run/bulkhead/machines";         // LEASE/kernel, LEASE/initrd or LEASE/disk; LEASE/seed, LEASE/console
    std::string nodes = "/dev/bulkhead";  // LEASE/drive0n1: namespaces of its drives
    bool boots_disk = false;              // the image is a disk
    std::int64_t huge_page_bytes = std::int64_t{2} << 20;
    Architecture architecture = Architecture::amd64;
    bool emulated = false;
};

struct LeaseHere {
    const GpuLease& lease;
    const GpuNode& node;
    const GpuWorkload* workload = nullptr;  // nothing: cores and memory by the share of the node's GPUs
};

// `not_found`: the lease has nothing on that node. `conflict`: it is of another tier, or holds less than whole GPUs,
// which is all that VFIO gives. `unavailable`: the node does not say where a device of it sits. A drive is taken to
// have one namespace: only its node knows of more.
Result<DomainSpec> domain_of(const LeaseHere& here, const MachinePlaces& places);

// The CPUs of one GPU: of those beside it, its part, where other GPUs are beside the same. Two leases on different GPUs
// have no CPU in common.
Result<std::vector<unsigned>> own_cpus(const GpuNodeStatus& node, std::int64_t gpu);

}  // namespace bulkhead::render
