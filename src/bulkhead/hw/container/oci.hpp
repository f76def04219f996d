// A tenant of the container tier as an OCI runtime configuration: what crun or runc is asked to do. Text out of values;
// what depends on this host (which libraries it has, where the bundle lies) is handed in.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/hw/container/cdi.hpp"
#include "bulkhead/hw/container/spec.hpp"

namespace bulkhead::container {

struct OciPlace {
    std::string root;                      // the root file system's path; read-only in any case
    std::string cgroup;                    // "/bulkhead/lease-7/tenant"
    std::int64_t open_files_max = 65'536;  // no more than the runtime itself may have
    std::vector<ReadOnlyMount> shared;  // of the host: its programs and a little of its /etc, where no image was given
};

// Without the lease's devices and mounts: those come by CDI.
std::string oci_config(const TenantSpec& spec, const OciPlace& place);

// A further process of a container with that configuration: like its first one, but for its words and these variables.
Result<std::string> process_beside(std::string_view config, const std::vector<std::string>& words,
                                   const Environment& more);

LeasedDevice leased_device(const TenantSpec& spec);

}  // namespace bulkhead::container
