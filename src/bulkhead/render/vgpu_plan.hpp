// A MIG-backed vGPU: a GPU instance made into a device of its own for one machine, so that machines of tenants who
// accept it can share a GPU. What has to be written where, in order; or every reason why this host cannot.
//
// Two frameworks do it, and the host shows which it has: mediated devices (older kernels and GPUs), or virtual
// functions with the driver's own files (newer ones). Nothing is guessed from a version: a framework that is not seen
// is not there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/model/node.hpp"
#include "bulkhead/model/policy.hpp"
#include "bulkhead/render/libvirt_domain.hpp"
#include "bulkhead/render/vgpu_types.hpp"

namespace bulkhead::render {

// A virtual function of the GPU's, as sysfs shows it.
struct VgpuFunction {
    PciAddress address;
    // Newer hosts: nvidia/creatable_vgpu_types and nvidia/current_vgpu_type (0: free).
    std::optional<std::vector<VgpuType>> creatable;
    std::int64_t current = 0;
    // Older hosts: mdev_supported_types whose available_instances is not 0.
    std::optional<std::vector<VgpuType>> mediated;
};

struct VgpuHost {
    const GpuNode& node;  // its versions and capabilities
    std::string kernel;   // as uname says it, for the words of a refusal
    std::string gpu_model;
    bool mig_is_on = false;
    std::vector<std::string> instances;  // profiles that are cut now and carry no vGPU yet
    std::vector<VgpuFunction> functions;
};

enum class VgpuFramework : std::uint8_t { mediated, functions };

struct SysfsWrite {
    std::string path, text;
    friend bool operator==(const SysfsWrite&, const SysfsWrite&) = default;
};

struct VgpuPlan {
    VgpuFramework framework{};
    VgpuType type;
    std::vector<SysfsWrite> make, take_apart;
    std::optional<PciAddress> device;  // for the domain: one of the two
    std::string mediated;              // a UUID
};

struct VgpuWish {
    std::string profile;  // 3g.40gb
    std::string machine;  // whose it will be: a mediated device's UUID is made of it
};

// `conflict`, with every objection, where this host cannot run it.
Result<VgpuPlan> plan_vgpu(const VgpuHost& host, const VgpuWish& wish, const FleetPolicySpec& policy, Instant now);

// Into a domain.
void add_vgpu(DomainSpec& spec, const VgpuPlan& plan);

}  // namespace bulkhead::render
