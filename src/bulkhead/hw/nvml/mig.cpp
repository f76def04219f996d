// The MIG half of Nvml: modes, profiles, instances.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bulkhead/hw/nvml/library.hpp"
#include "bulkhead/hw/nvml/nvml.hpp"

namespace bulkhead::nvml {

namespace {

constexpr std::uint32_t profiles_asked = 32;  // more than any driver has: the list ends where the driver says so

Result<> lacks_mig() { return fail(Code::invalid, "this NVML has no MIG calls", "use a driver of R450 or later"); }

// The newest form the driver speaks: v3 and v2 name the profile, v1 does not.
Return profile_info(const Library& library, Device device, std::uint32_t profile, Profile& into) {
    if (library.nvmlDeviceGetGpuInstanceProfileInfoV != nullptr) {
        GpuInstanceProfileInfoV2 v2{};
        v2.version = gpu_profile_info_v2;
        const Return code = library.nvmlDeviceGetGpuInstanceProfileInfoV(device, profile, &v2);
        if (code == Return::success) {
            into = {.id = v2.id,
                    .name = v2.name.data(),
                    .slices = v2.slice_count,
                    .instances_max = v2.instance_count,
                    .multiprocessors = v2.multiprocessor_count,
                    .memory_mib = v2.memory_mib};
            if (into.name.starts_with("MIG ")) into.name.erase(0, 4);
            return code;
        }
        if (code != Return::argument_version_mismatch && code != Return::function_not_found) return code;
    }
    GpuInstanceProfileInfo v1{};
    const Return code = library.nvmlDeviceGetGpuInstanceProfileInfo(device, profile, &v1);
    if (code == Return::success)
        into = {.id = v1.id,
                .slices = v1.slice_count,
                .instances_max = v1.instance_count,
                .multiprocessors = v1.multiprocessor_count,
                .memory_mib = v1.memory_mib};
    return code;
}

}  // namespace

Result<> Nvml::set_mig(const std::string& uuid, bool on) const {
    if (library_->nvmlDeviceSetMigMode == nullptr) return lacks_mig();
    const auto device = find(uuid);
    if (!device) return std::unexpected(device.error());
    Return activation{};
    const std::string doing = fmt::format("turn MIG {} on {}", on ? "on" : "off", uuid);
    const auto set = library_->check(
        library_->nvmlDeviceSetMigMode(*device, on ? MigMode::enabled : MigMode::disabled, &activation), doing);
    if (!set) return set;
    return library_->check(activation, doing);
}

Result<std::vector<Profile>> Nvml::profiles(const std::string& uuid) const {
    if (library_->nvmlDeviceGetGpuInstanceProfileInfo == nullptr ||
        library_->nvmlDeviceGetGpuInstancePossiblePlacements_v2 == nullptr)
        return std::unexpected(lacks_mig().error());
    const auto device = find(uuid);
    if (!device) return std::unexpected(device.error());
    std::vector<Profile> found;
    for (std::uint32_t number = 0; number < profiles_asked; ++number) {
        Profile profile;
        const Return code = profile_info(*library_, *device, number, profile);
        if (code == Return::invalid_argument) break;
        if (code == Return::not_supported) continue;
        if (const auto told = library_->check(code, "list the profiles of " + uuid); !told)
            return std::unexpected(told.error());
        std::array<InstancePlacement, 64> places{};
        auto count = static_cast<std::uint32_t>(places.size());
        if (const auto told = library_->check(
                library_->nvmlDeviceGetGpuInstancePossiblePlacements_v2(*device, profile.id, places.data(), &count),
                "list the places of a profile of " + uuid);
            !told)
            return std::unexpected(told.error());
        for (std::uint32_t i = 0; i < std::min<std::uint32_t>(count, places.size()); ++i)
            profile.places.push_back({places[i].start, places[i].size});
        std::ranges::sort(profile.places);
        found.push_back(std::move(profile));
    }
    return found;
}

Result<Instance> Nvml::describe(Device device, GpuInstance handle) const {
    GpuInstanceInfo info{};
    if (const auto told = library_->check(library_->nvmlGpuInstanceGetInfo(handle, &info), "describe an instance");
        !told)
        return std::unexpected(told.error());
    Instance instance{.id = info.id, .profile = info.profile_id, .place = {info.placement.start, info.placement.size}};
    std::uint32_t devices = 0;
    if (library_->nvmlDeviceGetMaxMigDeviceCount(device, &devices) != Return::success) return instance;
    for (std::uint32_t index = 0; index < devices; ++index) {
        Device mig{};
        std::uint32_t gpu_instance = 0, compute_instance = 0;
        if (library_->nvmlDeviceGetMigDeviceHandleByIndex(device, index, &mig) != Return::success) continue;  // empty
        if (library_->nvmlDeviceGetGpuInstanceId(mig, &gpu_instance) != Return::success || gpu_instance != info.id)
            continue;
        if (library_->nvmlDeviceGetComputeInstanceId(mig, &compute_instance) != Return::success) continue;
        instance.compute_instances.push_back(compute_instance);
        std::array<char, 128> text{};
        if (instance.uuid.empty() && library_->nvmlDeviceGetUUID(mig, text.data(), text.size() - 1) == Return::success)
            instance.uuid = text.data();
    }
    return instance;
}

Result<std::vector<Instance>> Nvml::instances(const std::string& uuid) const {
    if (library_->nvmlDeviceGetGpuInstances == nullptr || library_->nvmlGpuInstanceGetInfo == nullptr ||
        library_->nvmlDeviceGetMaxMigDeviceCount == nullptr ||
        library_->nvmlDeviceGetMigDeviceHandleByIndex == nullptr || library_->nvmlDeviceGetGpuInstanceId == nullptr ||
        library_->nvmlDeviceGetComputeInstanceId == nullptr)
        return std::unexpected(lacks_mig().error());
    const auto known = profiles(uuid);
    if (!known) return std::unexpected(known.error());
    const auto device = find(uuid);
    if (!device) return std::unexpected(device.error());
    std::vector<Instance> found;
    for (const Profile& profile : *known) {
        std::array<GpuInstance, 64> handles{};
        auto count = static_cast<std::uint32_t>(handles.size());
        const Return code = library_->nvmlDeviceGetGpuInstances(*device, profile.id, handles.data(), &count);
        if (code == Return::not_supported) continue;  // MIG is off
        if (const auto told = library_->check(code, "list the instances of " + uuid); !told)
            return std::unexpected(told.error());
        for (std::uint32_t i = 0; i < std::min<std::uint32_t>(count, handles.size()); ++i) {
            auto instance = describe(*device, handles[i]);
            if (!instance) return std::unexpected(instance.error());
            found.push_back(*std::move(instance));
        }
    }
    std::ranges::sort(found, {}, [](const Instance& instance) { return instance.place; });
    return found;
}

// The compute profile that covers the instance: of those of which one fits, the one with the most multiprocessors. Not
// simply the one with as many slices: a double-memory 1g wants profile 7, not 0.
Result<unsigned> Nvml::whole_compute_profile(GpuInstance instance) const {
    std::optional<ComputeInstanceProfileInfo> best;
    for (std::uint32_t number = 0; number < compute_instance_profiles; ++number) {
        ComputeInstanceProfileInfo info{};
        const Return code =
            library_->nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, number, engine_profile_shared, &info);
        if (code == Return::not_supported || code == Return::invalid_argument) continue;
        if (const auto told = library_->check(code, "list compute profiles"); !told)
            return std::unexpected(told.error());
        std::uint32_t room = 1;
        if (library_->nvmlGpuInstanceGetComputeInstanceRemainingCapacity != nullptr &&
            library_->nvmlGpuInstanceGetComputeInstanceRemainingCapacity(instance, info.id, &room) == Return::success &&
            room == 0)
            continue;  // 7_SLICE_NVL is listed and can never be made
        if (!best || info.multiprocessor_count > best->multiprocessor_count) best = info;
    }
    if (!best)
        return fail(Code::exhausted, "no compute instance fits into the GPU instance", "destroy it, and make it again");
    return best->id;
}

Result<Instance> Nvml::create_instance(const std::string& uuid, unsigned profile, gpu::Placement place) const {
    if (library_->nvmlDeviceCreateGpuInstanceWithPlacement == nullptr || library_->nvmlGpuInstanceDestroy == nullptr ||
        library_->nvmlGpuInstanceGetComputeInstanceProfileInfo == nullptr ||
        library_->nvmlGpuInstanceCreateComputeInstance == nullptr || library_->nvmlGpuInstanceGetInfo == nullptr)
        return std::unexpected(lacks_mig().error());
    const auto device = find(uuid);
    if (!device) return std::unexpected(device.error());
    const InstancePlacement where{place.start, place.size};
    GpuInstance handle{};
    if (const auto made = library_->check(
            library_->nvmlDeviceCreateGpuInstanceWithPlacement(*device, profile, &where, &handle),
            fmt::format("make an instance of profile {} at {}:{} on {}", profile, place.start, place.size, uuid));
        !made)
        return std::unexpected(made.error());
    const auto compute = whole_compute_profile(handle);
    ComputeInstance inside{};
    const auto filled = !compute
                            ? Result<>{std::unexpected(compute.error())}
                            : library_->check(library_->nvmlGpuInstanceCreateComputeInstance(handle, *compute, &inside),
                                              "make its compute instance");
    if (!filled) {
        library_->nvmlGpuInstanceDestroy(handle);
        return std::unexpected(filled.error());
    }
    return describe(*device, handle);
}

Result<> Nvml::destroy_instance(const std::string& uuid, unsigned id) const {
    if (library_->nvmlDeviceGetGpuInstanceById == nullptr || library_->nvmlGpuInstanceGetComputeInstances == nullptr ||
        library_->nvmlComputeInstanceDestroy == nullptr || library_->nvmlGpuInstanceDestroy == nullptr)
        return lacks_mig();
    const auto device = find(uuid);
    if (!device) return std::unexpected(device.error());
    GpuInstance handle{};
    const std::string doing = fmt::format("destroy instance {} of {}", id, uuid);
    const Return code = library_->nvmlDeviceGetGpuInstanceById(*device, id, &handle);
    if (code == Return::not_found) return {};  // gone already
    if (const auto found = library_->check(code, doing); !found) return found;
    for (std::uint32_t number = 0; number < compute_instance_profiles; ++number) {
        ComputeInstanceProfileInfo info{};
        if (library_->nvmlGpuInstanceGetComputeInstanceProfileInfo(handle, number, engine_profile_shared, &info) !=
            Return::success)
            continue;
        std::array<ComputeInstance, 16> inside{};
        auto count = static_cast<std::uint32_t>(inside.size());
        if (library_->nvmlGpuInstanceGetComputeInstances(handle, info.id, inside.data(), &count) != Return::success)
            continue;
        for (std::uint32_t i = 0; i < std::min<std::uint32_t>(count, inside.size()); ++i)
            if (const auto gone = library_->check(library_->nvmlComputeInstanceDestroy(inside[i]), doing); !gone)
                return gone;
    }
    return library_->check(library_->nvmlGpuInstanceDestroy(handle), doing);
}

}  // namespace bulkhead::nvml
