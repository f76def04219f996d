// Cutting: instances made where the order says, adopted when they are there, taken apart when nobody uses them.
#include <fmt/format.h>

#include <algorithm>

#include "bulkhead/agent/gpu_hardware.hpp"
#include "bulkhead/gpu/board.hpp"

namespace bulkhead::agent {

namespace {

OperationResult refusal(const Error& error) { return {.ok = false, .why = error.what}; }

// Drivers have renamed profiles; an order may have either name.
bool is_called(const nvml::Gpu& gpu, std::string_view ordered, std::string_view name) {
    if (name == ordered) return true;
    const gpu::Board* const board = gpu::find_board_by_pci(fmt::format("0x{:08X}", gpu.pci_device));
    if (board == nullptr) return false;
    return std::ranges::any_of(board->profiles, [&](const gpu::Profile& known) {
        return !known.also_named.empty() && ((known.name == ordered && known.also_named == name) ||
                                             (known.also_named == ordered && known.name == name));
    });
}

}  // namespace

Result<nvml::Instance> GpuHardware::instance_at(const nvml::Gpu& gpu, unsigned start) const {
    const auto instances = nvml_.instances(gpu.uuid);
    if (!instances) return std::unexpected(instances.error());
    const auto found =
        std::ranges::find_if(*instances, [&](const nvml::Instance& one) { return one.place.start == start; });
    if (found == instances->end())
        return fail(Code::not_found, fmt::format("no instance of {} starts at slice {}", gpu.uuid, start), "");
    return *found;
}

OperationResult GpuHardware::carry(const CreateInstance& what) {
    const auto gpu = this->gpu(what.gpu);
    if (!gpu) return refusal(gpu.error());
    const std::string& uuid = (*gpu)->uuid;
    const auto now = nvml_.gpus();
    if (!now) return refusal(now.error());
    const auto current = std::ranges::find(*now, uuid, &nvml::Gpu::uuid);
    if (current == now->end()) return {.ok = false, .why = fmt::format("{} is gone", uuid)};
    if (current->mig != nvml::MigMode::enabled)
        if (const auto cut = set_mig(uuid, true); !cut) return refusal(cut.error());
    const auto profiles = nvml_.profiles(uuid);
    if (!profiles) return refusal(profiles.error());
    const auto profile = std::ranges::find_if(
        *profiles, [&](const nvml::Profile& one) { return is_called(**gpu, what.profile, one.name); });
    if (profile == profiles->end())
        return {.ok = false, .why = fmt::format("the driver of {} has no profile {}", uuid, what.profile)};
    const auto place = std::ranges::find(profile->places, unsigned{what.start}, &gpu::Placement::start);
    if (place == profile->places.end())
        return {.ok = false, .why = fmt::format("{} cannot start at slice {} of {}", what.profile, what.start, uuid)};
    if (const auto there = instance_at(**gpu, what.start); there) {
        // Ours from before a restart, or somebody's whom nobody told us about: the same shape is as good as new.
        if (there->profile == profile->id && there->place == *place && there->compute_instances.size() == 1)
            return {.ok = true};
        if (const auto cleared = nvml_.destroy_instance(uuid, there->id); !cleared) return refusal(cleared.error());
    }
    const auto made = nvml_.create_instance(uuid, profile->id, *place);
    if (!made) return refusal(made.error());
    if (made->place != *place)
        return {
            .ok = false,
            .why = fmt::format("{} was made at slice {} and not at {}", what.profile, made->place.start, what.start)};
    return {.ok = true, .device_identity = made->uuid};
}

OperationResult GpuHardware::carry(const DestroyInstance& what) {
    const auto gpu = this->gpu(what.gpu);
    if (!gpu) return refusal(gpu.error());
    const auto there = instance_at(**gpu, what.start);
    if (!there) return there.error().code == Code::not_found ? OperationResult{.ok = true} : refusal(there.error());
    const auto gone = nvml_.destroy_instance((*gpu)->uuid, there->id);
    return gone ? OperationResult{.ok = true} : refusal(gone.error());
}

}  // namespace bulkhead::agent
