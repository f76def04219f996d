// What a lease gives to a container, in the words of the Container Device Interface: one file, one kind, one device per
// lease. Other runtimes (podman, containerd) read the file; our own containers have the same text applied to their
// configuration, so that there is one list of device nodes and not two.
// Format: CDI 0.6.0, the first whose kinds may have dots and whose devices may carry annotations.
#pragma once

#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/spec.hpp"

namespace bulkhead::container {

constexpr std::string_view cdi_kind = "bulkhead.dev/gpu";

struct LeasedDevice {
    LeaseKey lease = 0;
    std::vector<DeviceNode> nodes;
    std::vector<ReadOnlyMount> mounts;
    Environment environment;
    bool empty() const { return nodes.empty() && mounts.empty() && environment.empty(); }  // CDI has no empty devices
};

std::string cdi_file_name(LeaseKey lease);    // "bulkhead.dev-gpu_lease-7.json"
std::string cdi_device_name(LeaseKey lease);  // "bulkhead.dev/gpu=lease-7"
std::string cdi_text(const LeasedDevice& device);

// The OCI configuration with the edits of every device in that CDI text.
Result<std::string> with_cdi(std::string_view oci_config, std::string_view cdi);

}  // namespace bulkhead::container
