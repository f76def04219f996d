// Which device nodes of NVIDIA's driver a lease needs, and no others. A pure function of what was leased and of what
// the kernel says about its numbers. On a GPU cut by MIG the GPU's own node is shared by all who hold a part of it:
// what keeps them apart are the capability nodes, one for the GPU instance and one for the compute instance.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/device_majors.hpp"
#include "bulkhead/hw/container/mig_minors.hpp"
#include "bulkhead/hw/container/spec.hpp"

namespace bulkhead::container {

struct LeasedGpu {
    std::uint32_t minor = 0;  // of /dev/nvidia<minor>; NVML tells it, and it need not be the index
    struct Mig {
        std::uint32_t gpu_instance = 0, compute_instance = 0;
    };
    std::optional<Mig> mig;  // none: the whole GPU
};

struct NvidiaNumbers {
    DeviceMajors majors;
    MigMinors mig;  // empty where MIG is unknown to the driver
};

Result<std::vector<DeviceNode>> nvidia_nodes(std::span<const LeasedGpu> gpus, const NvidiaNumbers& numbers);

}  // namespace bulkhead::container
