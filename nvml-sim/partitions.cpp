// MIG: modes, profiles and instances.
#include <fmt/format.h>

#include <cstring>

#include "exports.hpp"
#include "session.hpp"

namespace bulkhead::nvml {

namespace {

using driver::GpuProfile;

const GpuProfile* by_number(const driver::Model& model, std::uint16_t gpu, std::uint32_t number) {
    for (const GpuProfile& profile : model.profiles(gpu))
        if (profile.number == number) return &profile;
    return nullptr;
}

// Which number is past the end depends on the driver; the model speaks as 580 does.
Return missing_profile(const driver::Model& model, std::uint16_t gpu, std::uint32_t number) {
    if (model.profiles(gpu).empty()) return Return::not_supported;
    return number < gpu_instance_profiles_580 ? Return::not_supported : Return::invalid_argument;
}

void tell(const GpuProfile& p, GpuInstanceProfileInfo& info) {
    info = {p.id, 0, p.slices, p.max_instances, p.sms, p.copy, p.decoders, p.encoders, p.jpeg, p.ofa, p.memory_mib};
}

// The driver leaves the version word at zero in what it fills in.
void tell(const GpuProfile& p, GpuInstanceProfileInfoV2& info) {
    info = {0,          p.id,       0,      p.slices, p.max_instances, p.sms, p.copy,
            p.decoders, p.encoders, p.jpeg, p.ofa,    p.memory_mib,    {}};
    copy_text(info.name, fmt::format("MIG {}", p.name));
}

// Driver 580 writes the name of a v3 as if it were a v2: eight bytes late, so that it reads as empty, and made of what
// lies where a v2 has slices and memory. Clients meet this on real nodes, so they meet it here.
void tell(const GpuProfile& p, GpuInstanceProfileInfoV3& info) {
    info = {0,
            p.id,
            p.slices,
            p.max_instances,
            p.sms,
            p.copy,
            p.decoders,
            p.encoders,
            p.jpeg,
            p.ofa,
            p.memory_mib,
            {},
            p.graphics ? gpu_profile_caps_gfx : 0};
    const std::string late =
        fmt::format("MIG {}g.0gb{}", p.max_instances, p.media == gpu::Media::extended ? "+me" : "");
    std::copy(late.begin(), late.end(), info.name.begin() + 8);
}

Return placements(std::string_view call, Device device, std::uint32_t id, InstancePlacement* out,
                  std::uint32_t* count) {
    return ask_gpu(call, device, [&](const driver::Model& model, std::uint16_t gpu) {
        const GpuProfile* profile = model.profile(gpu, id);
        if (profile == nullptr) return model.profiles(gpu).empty() ? Return::not_supported : Return::invalid_argument;
        std::vector<InstancePlacement> list;
        for (const unsigned start : profile->starts) list.push_back({start, profile->memory_slices});
        if (out == nullptr && count != nullptr) {  // "how many?", the way clients ask it of this call
            *count = static_cast<std::uint32_t>(list.size());
            return Return::success;
        }
        return put_list(count, out, list);
    });
}

Return create(std::string_view call, Device device, std::uint32_t id, std::optional<gpu::Placement> at,
              GpuInstance* out) {
    return change_gpu(call, device, [&](driver::Model& model, std::uint16_t gpu) {
        if (out == nullptr) return Return::invalid_argument;
        const auto made = model.create_instance(gpu, id, at);
        if (made) *out = Session::get().instance(*model.instance(gpu, *made), gpu);
        return code(made);
    });
}

using InInstance = std::function<Return(const driver::Model&, const GpuInstanceObject&)>;
Return ask_instance(std::string_view call, GpuInstance handle, const InInstance& work) {
    return Session::get().answer(call, Session::Access::read, [&](const driver::Model& model) {
        const auto there = Session::get().find(model, handle);
        return there ? work(model, **there) : there.error();
    });
}

std::optional<driver::ComputeProfile> compute_profile(const driver::Model& model, const GpuInstanceObject& there,
                                                      std::uint32_t id) {
    for (const driver::ComputeProfile& profile : model.compute_profiles_of(there.gpu, there.id))
        if (profile.id == id) return profile;
    return std::nullopt;
}

Return missing_compute_profile(std::uint32_t id) {
    return id < compute_instance_profiles ? Return::not_supported : Return::invalid_argument;
}

std::string compute_name(const GpuProfile& of, const driver::ComputeProfile& p) {
    return p.slices == of.slices ? fmt::format("MIG {}", of.name) : fmt::format("MIG {}c.{}", p.slices, of.name);
}

Return create_compute(std::string_view call, GpuInstance handle, std::uint32_t profile,
                      std::optional<gpu::Placement> at, ComputeInstance* out) {
    return Session::get().answer(call, Session::Access::change, [&](driver::Model& model) {
        const auto there = Session::get().find(model, handle);
        if (!there) return there.error();
        if (out == nullptr) return Return::invalid_argument;
        const auto made = model.create_compute((*there)->gpu, (*there)->id, profile, at);
        if (made)
            *out = Session::get().compute((*there)->gpu, (*there)->id,
                                          model.instance((*there)->gpu, (*there)->id)->compute.at(*made));
        return code(made);
    });
}

Return compute_info(std::string_view call, ComputeInstance handle, ComputeInstanceInfo* info) {
    return Session::get().answer(call, Session::Access::read, [&](const driver::Model& model) {
        const auto there = Session::get().find(model, handle);
        if (!there) return there.error();
        if (info == nullptr) return Return::invalid_argument;
        const driver::GpuInstance& instance = *model.instance((*there)->gpu, (*there)->instance);
        const driver::ComputeInstance& compute = instance.compute.at((*there)->id);
        const GpuInstance parent = Session::get().instance(instance, (*there)->gpu);
        const auto profile = compute_profile(model, *parent, compute.profile);
        *info = {Session::get().device((*there)->gpu),
                 parent,
                 compute.id,
                 compute.profile,
                 {compute.start, profile->slices}};
        return Return::success;
    });
}

Return attributes(std::string_view call, Device device, DeviceAttributes* out) {
    return ask(call, device, [&](const driver::Model& model, const Target& target) {
        if (!target.mig) return Return::not_supported;
        if (out == nullptr) return Return::invalid_argument;
        const GpuProfile& of = *model.profile(target.gpu(), target.mig->instance->profile_id);
        for (const driver::ComputeProfile& p : model.compute_profiles_of(target.gpu(), target.mig->instance->id))
            if (p.id == target.mig->compute->profile)
                *out = {p.sms, of.copy, of.decoders, of.encoders, of.jpeg, of.ofa, of.slices, p.slices, of.memory_mib};
        return Return::success;
    });
}

}  // namespace

extern "C" {

Return nvmlDeviceGetMigMode(Device device, MigMode* current, MigMode* pending) {
    return ask_gpu("nvmlDeviceGetMigMode", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (current == nullptr || pending == nullptr) return Return::invalid_argument;
        if (model.profiles(gpu).empty()) return Return::not_supported;
        *pending = model.gpu(gpu).mig_pending ? MigMode::enabled : MigMode::disabled;
        return put(current, model.gpu(gpu).mig ? MigMode::enabled : MigMode::disabled);
    });
}
Return nvmlDeviceSetMigMode(Device device, MigMode mode, Return* activation) {
    return change_gpu("nvmlDeviceSetMigMode", device, [&](driver::Model& model, std::uint16_t gpu) {
        if (activation == nullptr || mode > MigMode::enabled) return Return::invalid_argument;
        const auto asked = model.set_mig_mode(gpu, mode == MigMode::enabled);
        *activation = asked ? code(*asked) : code(asked);
        return code(asked);
    });
}

Return nvmlDeviceGetGpuInstanceProfileInfo(Device device, std::uint32_t number, GpuInstanceProfileInfo* info) {
    return ask_gpu("nvmlDeviceGetGpuInstanceProfileInfo", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (info == nullptr) return Return::invalid_argument;
        const GpuProfile* profile = by_number(model, gpu, number);
        if (profile == nullptr) return missing_profile(model, gpu, number);
        tell(*profile, *info);
        return Return::success;
    });
}
Return nvmlDeviceGetGpuInstanceProfileInfoV(Device device, std::uint32_t number, void* versioned) {
    return ask_gpu("nvmlDeviceGetGpuInstanceProfileInfoV", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (versioned == nullptr) return Return::invalid_argument;
        const std::uint32_t version = *static_cast<std::uint32_t*>(versioned);
        const GpuProfile* profile = by_number(model, gpu, number);
        if (version != gpu_profile_info_v2 && version != gpu_profile_info_v3) return Return::argument_version_mismatch;
        if (profile == nullptr) return missing_profile(model, gpu, number);
        if (version == gpu_profile_info_v2)
            tell(*profile, *static_cast<GpuInstanceProfileInfoV2*>(versioned));
        else
            tell(*profile, *static_cast<GpuInstanceProfileInfoV3*>(versioned));
        return Return::success;
    });
}
Return nvmlDeviceGetGpuInstancePossiblePlacements(Device device, std::uint32_t id, InstancePlacement* out,
                                                  std::uint32_t* count) {
    return placements("nvmlDeviceGetGpuInstancePossiblePlacements", device, id, out, count);
}
Return nvmlDeviceGetGpuInstancePossiblePlacements_v2(Device device, std::uint32_t id, InstancePlacement* out,
                                                     std::uint32_t* count) {
    return placements("nvmlDeviceGetGpuInstancePossiblePlacements_v2", device, id, out, count);
}
Return nvmlDeviceGetGpuInstanceRemainingCapacity(Device device, std::uint32_t id, std::uint32_t* count) {
    return ask_gpu("nvmlDeviceGetGpuInstanceRemainingCapacity", device,
                   [&](const driver::Model& model, std::uint16_t gpu) {
                       const auto room = model.room(gpu, id);
                       return room ? put(count, *room) : code(room);
                   });
}
Return nvmlDeviceCreateGpuInstance(Device device, std::uint32_t id, GpuInstance* out) {
    return create("nvmlDeviceCreateGpuInstance", device, id, {}, out);
}
Return nvmlDeviceCreateGpuInstanceWithPlacement(Device device, std::uint32_t id, const InstancePlacement* at,
                                                GpuInstance* out) {
    if (at == nullptr) return Return::invalid_argument;
    return create("nvmlDeviceCreateGpuInstanceWithPlacement", device, id, gpu::Placement{at->start, at->size}, out);
}
Return nvmlGpuInstanceDestroy(GpuInstance handle) {
    return Session::get().answer("nvmlGpuInstanceDestroy", Session::Access::change, [&](driver::Model& model) {
        const auto there = Session::get().find(model, handle);
        return there ? code(model.destroy_instance((*there)->gpu, (*there)->id)) : there.error();
    });
}
Return nvmlDeviceGetGpuInstances(Device device, std::uint32_t id, GpuInstance* out, std::uint32_t* count) {
    return ask_gpu("nvmlDeviceGetGpuInstances", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (count == nullptr) return Return::invalid_argument;
        if (model.profile(gpu, id) == nullptr)
            return model.profiles(gpu).empty() ? Return::not_supported : Return::invalid_argument;
        // The caller has room for as many as there can be, and says nothing about it.
        *count = 0;
        for (const auto& [number, there] : model.gpu(gpu).instances) {
            if (there.profile_id != id) continue;
            if (out == nullptr) return Return::invalid_argument;
            out[(*count)++] = Session::get().instance(there, gpu);
        }
        return Return::success;
    });
}
Return nvmlDeviceGetGpuInstanceById(Device device, std::uint32_t id, GpuInstance* out) {
    return ask_gpu("nvmlDeviceGetGpuInstanceById", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (out == nullptr) return Return::invalid_argument;
        if (!model.gpu(gpu).mig) return Return::not_supported;
        const driver::GpuInstance* there = model.instance(gpu, id);
        if (there == nullptr) return Return::not_found;
        *out = Session::get().instance(*there, gpu);
        return Return::success;
    });
}
Return nvmlGpuInstanceGetInfo(GpuInstance handle, GpuInstanceInfo* info) {
    return ask_instance("nvmlGpuInstanceGetInfo", handle,
                        [&](const driver::Model& model, const GpuInstanceObject& object) {
                            if (info == nullptr) return Return::invalid_argument;
                            const driver::GpuInstance& there = *model.instance(object.gpu, object.id);
                            *info = {Session::get().device(object.gpu),
                                     there.id,
                                     there.profile_id,
                                     {there.start, model.profile(object.gpu, there.profile_id)->memory_slices}};
                            return Return::success;
                        });
}

Return nvmlGpuInstanceGetComputeInstanceProfileInfo(GpuInstance handle, std::uint32_t id, std::uint32_t engines,
                                                    ComputeInstanceProfileInfo* info) {
    return ask_instance(
        "nvmlGpuInstanceGetComputeInstanceProfileInfo", handle,
        [&](const driver::Model& model, const GpuInstanceObject& object) {
            if (info == nullptr || engines != engine_profile_shared) return Return::invalid_argument;
            const auto p = compute_profile(model, object, id);
            if (!p) return missing_compute_profile(id);
            const GpuProfile& of = *model.profile(object.gpu, model.instance(object.gpu, object.id)->profile_id);
            *info = {p->id, p->slices, p->max_instances, p->sms, of.copy, of.decoders, of.encoders, of.jpeg, of.ofa};
            return Return::success;
        });
}
Return nvmlGpuInstanceGetComputeInstanceProfileInfoV(GpuInstance handle, std::uint32_t id, std::uint32_t engines,
                                                     void* versioned) {
    return ask_instance(
        "nvmlGpuInstanceGetComputeInstanceProfileInfoV", handle,
        [&](const driver::Model& model, const GpuInstanceObject& object) {
            if (versioned == nullptr || engines != engine_profile_shared) return Return::invalid_argument;
            const std::uint32_t version = *static_cast<std::uint32_t*>(versioned);
            if (version != compute_profile_info_v2 && version != compute_profile_info_v3)
                return Return::argument_version_mismatch;
            const auto p = compute_profile(model, object, id);
            if (!p) return missing_compute_profile(id);
            const GpuProfile& of = *model.profile(object.gpu, model.instance(object.gpu, object.id)->profile_id);
            ComputeInstanceProfileInfoV2 info{version,     p->id,       p->slices, p->max_instances, p->sms, of.copy,
                                              of.decoders, of.encoders, of.jpeg,   of.ofa,           {}};
            copy_text(info.name, compute_name(of, *p));
            std::memcpy(versioned, &info, sizeof info);
            if (version == compute_profile_info_v3)
                static_cast<ComputeInstanceProfileInfoV3*>(versioned)->capabilities =
                    of.graphics ? compute_profile_caps_gfx : 0;
            return Return::success;
        });
}
Return nvmlGpuInstanceGetComputeInstanceRemainingCapacity(GpuInstance handle, std::uint32_t id, std::uint32_t* count) {
    return ask_instance("nvmlGpuInstanceGetComputeInstanceRemainingCapacity", handle,
                        [&](const driver::Model& model, const GpuInstanceObject& object) {
                            const auto room = model.compute_room(object.gpu, object.id, id);
                            return room ? put(count, *room) : code(room);
                        });
}
Return nvmlGpuInstanceGetComputeInstancePossiblePlacements(GpuInstance handle, std::uint32_t id, InstancePlacement* out,
                                                           std::uint32_t* count) {
    return ask_instance("nvmlGpuInstanceGetComputeInstancePossiblePlacements", handle,
                        [&](const driver::Model& model, const GpuInstanceObject& object) {
                            const auto p = compute_profile(model, object, id);
                            if (!p) return missing_compute_profile(id);
                            std::vector<InstancePlacement> list;
                            for (const unsigned start : p->starts) list.push_back({start, p->slices});
                            if (out == nullptr && count != nullptr) {
                                *count = static_cast<std::uint32_t>(list.size());
                                return Return::success;
                            }
                            return put_list(count, out, list);
                        });
}
Return nvmlGpuInstanceCreateComputeInstance(GpuInstance handle, std::uint32_t id, ComputeInstance* out) {
    return create_compute("nvmlGpuInstanceCreateComputeInstance", handle, id, {}, out);
}
Return nvmlGpuInstanceCreateComputeInstanceWithPlacement(GpuInstance handle, std::uint32_t id,
                                                         const InstancePlacement* at, ComputeInstance* out) {
    if (at == nullptr) return Return::invalid_argument;
    return create_compute("nvmlGpuInstanceCreateComputeInstanceWithPlacement", handle, id,
                          gpu::Placement{at->start, at->size}, out);
}
Return nvmlComputeInstanceDestroy(ComputeInstance handle) {
    return Session::get().answer("nvmlComputeInstanceDestroy", Session::Access::change, [&](driver::Model& model) {
        const auto there = Session::get().find(model, handle);
        return there ? code(model.destroy_compute((*there)->gpu, (*there)->instance, (*there)->id)) : there.error();
    });
}
Return nvmlGpuInstanceGetComputeInstances(GpuInstance handle, std::uint32_t id, ComputeInstance* out,
                                          std::uint32_t* count) {
    return ask_instance("nvmlGpuInstanceGetComputeInstances", handle,
                        [&](const driver::Model& model, const GpuInstanceObject& object) {
                            if (count == nullptr) return Return::invalid_argument;
                            *count = 0;
                            for (const auto& [number, compute] : model.instance(object.gpu, object.id)->compute) {
                                if (compute.profile != id) continue;
                                if (out == nullptr) return Return::invalid_argument;
                                out[(*count)++] = Session::get().compute(object.gpu, object.id, compute);
                            }
                            return Return::success;
                        });
}
Return nvmlGpuInstanceGetComputeInstanceById(GpuInstance handle, std::uint32_t id, ComputeInstance* out) {
    return ask_instance("nvmlGpuInstanceGetComputeInstanceById", handle,
                        [&](const driver::Model& model, const GpuInstanceObject& object) {
                            if (out == nullptr) return Return::invalid_argument;
                            const auto& all = model.instance(object.gpu, object.id)->compute;
                            const auto found = all.find(id);
                            if (found == all.end()) return Return::not_found;
                            *out = Session::get().compute(object.gpu, object.id, found->second);
                            return Return::success;
                        });
}
Return nvmlComputeInstanceGetInfo(ComputeInstance handle, ComputeInstanceInfo* info) {
    return compute_info("nvmlComputeInstanceGetInfo", handle, info);
}
Return nvmlComputeInstanceGetInfo_v2(ComputeInstance handle, ComputeInstanceInfo* info) {
    return compute_info("nvmlComputeInstanceGetInfo_v2", handle, info);
}

Return nvmlDeviceIsMigDeviceHandle(Device device, std::uint32_t* is_mig) {
    return ask("nvmlDeviceIsMigDeviceHandle", device,
               [&](const driver::Model&, const Target& target) { return put(is_mig, target.mig ? 1u : 0u); });
}
Return nvmlDeviceGetGpuInstanceId(Device device, std::uint32_t* id) {
    return ask("nvmlDeviceGetGpuInstanceId", device, [&](const driver::Model&, const Target& target) {
        return target.mig ? put(id, target.mig->instance->id) : Return::invalid_argument;
    });
}
Return nvmlDeviceGetComputeInstanceId(Device device, std::uint32_t* id) {
    return ask("nvmlDeviceGetComputeInstanceId", device, [&](const driver::Model&, const Target& target) {
        return target.mig ? put(id, target.mig->compute->id) : Return::invalid_argument;
    });
}
// None while the mode is off, whatever the board could hold.
Return nvmlDeviceGetMaxMigDeviceCount(Device device, std::uint32_t* count) {
    return ask_gpu("nvmlDeviceGetMaxMigDeviceCount", device, [&](const driver::Model& model, std::uint16_t gpu) {
        return put(count, model.gpu(gpu).mig ? model.product(gpu).board()->max_instances : 0u);
    });
}
Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, std::uint32_t index, Device* out) {
    return ask_gpu("nvmlDeviceGetMigDeviceHandleByIndex", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (out == nullptr) return Return::invalid_argument;
        const auto mig = model.mig_device(gpu, index);
        if (!mig) return Return::not_found;
        *out = Session::get().mig(gpu, mig->compute->uuid);
        return Return::success;
    });
}
Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device device, Device* out) {
    return ask("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", device, [&](const driver::Model&, const Target& target) {
        if (out == nullptr || !target.mig) return Return::invalid_argument;
        *out = Session::get().device(target.gpu());
        return Return::success;
    });
}
Return nvmlDeviceGetAttributes(Device device, DeviceAttributes* out) {
    return attributes("nvmlDeviceGetAttributes", device, out);
}
Return nvmlDeviceGetAttributes_v2(Device device, DeviceAttributes* out) {
    return attributes("nvmlDeviceGetAttributes_v2", device, out);
}

}  // extern "C"

}  // namespace bulkhead::nvml
