#include "bulkhead/hw/container/nvidia_nodes.hpp"

#include <fmt/core.h>

#include <initializer_list>
#include <set>
#include <string_view>

namespace bulkhead::container {

namespace {

constexpr std::uint32_t control_minor = 255;

// Drivers have changed the name they register under; the first that is there counts.
Result<std::uint32_t> major_of(const DeviceMajors& majors, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names)
        if (const auto at = majors.characters.find(std::string{name}); at != majors.characters.end()) return at->second;
    return fail(Code::unavailable, fmt::format("/proc/devices has no entry {}", *(names.end() - 1)),
                "load the module: nvidia-modprobe -c 0 -u, then ask again");
}

Result<DeviceNode> capability_node(const NvidiaNumbers& numbers, const MigInstance& instance) {
    const auto major = major_of(numbers.majors, {"nvidia-caps"});
    if (!major) return std::unexpected(major.error());
    const auto minor = numbers.mig.access.find(instance);
    if (minor == numbers.mig.access.end())
        return fail(Code::not_found,
                    fmt::format("mig-minors has no node for gpu{}/gi{}{}", instance.gpu, instance.gpu_instance,
                                instance.compute_instance ? fmt::format("/ci{}", *instance.compute_instance) : ""),
                    "the instance must be made before it is handed to a tenant");
    return DeviceNode{fmt::format("/dev/nvidia-caps/nvidia-cap{}", minor->second), 'c', *major, minor->second};
}

}  // namespace

Result<std::vector<DeviceNode>> nvidia_nodes(std::span<const LeasedGpu> gpus, const NvidiaNumbers& numbers) {
    if (gpus.empty()) return std::vector<DeviceNode>{};
    const auto gpu_major = major_of(numbers.majors, {"nvidia-frontend", "nvidia"});
    const auto memory_major = major_of(numbers.majors, {"nvidia-uvm"});
    if (!gpu_major) return std::unexpected(gpu_major.error());
    if (!memory_major) return std::unexpected(memory_major.error());
    // Not nvidia-uvm-tools, a debugger's; not nvidia-modeset, a display's; not the config and monitor capabilities.
    std::set<DeviceNode> nodes{{"/dev/nvidiactl", 'c', *gpu_major, control_minor},
                               {"/dev/nvidia-uvm", 'c', *memory_major, 0}};
    for (const LeasedGpu& gpu : gpus) {
        if (gpu.minor >= control_minor)
            return fail(Code::invalid, fmt::format("a GPU with the minor number {}; they end at 254", gpu.minor),
                        "ask NVML again");
        nodes.insert({fmt::format("/dev/nvidia{}", gpu.minor), 'c', *gpu_major, gpu.minor});
        if (!gpu.mig) continue;
        for (const MigInstance& instance : {MigInstance{gpu.minor, gpu.mig->gpu_instance, std::nullopt},
                                            MigInstance{gpu.minor, gpu.mig->gpu_instance, gpu.mig->compute_instance}}) {
            auto node = capability_node(numbers, instance);
            if (!node) return std::unexpected(node.error());
            nodes.insert(std::move(*node));
        }
    }
    return std::vector(nodes.begin(), nodes.end());
}

}  // namespace bulkhead::container
