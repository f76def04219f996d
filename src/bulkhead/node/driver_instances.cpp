// MIG: who may be cut out of what is left. The rules are those of docs and listings; where the driver chooses, our rule
// is one that agrees with every example NVIDIA prints, and no more is known.
#include <algorithm>

#include "bulkhead/node/driver_model.hpp"

namespace bulkhead::driver {

namespace {

gpu::Placement place_of(const GpuProfile& profile, std::uint32_t start) { return {start, profile.memory_slices}; }

// Ids of GPU instances follow from size and place, the upper half first: 3g at 4 is 1 and at 0 is 2, 1g at 4 is 7 and
// at 0 is 11. That is how we remember listings of an A100; nothing kept here shows it, so it counts as assumed. Two
// instances can never have the same one.
std::uint32_t id_at(const GpuProfile& profile, std::uint32_t start, std::uint32_t slices) {
    const std::uint32_t of_this_size = slices / profile.memory_slices, half = slices / 2;
    const std::uint32_t turned = (start + half) % slices / profile.memory_slices;
    return of_this_size - 1 + turned;
}

template <class Map>
std::uint32_t lowest_free(const Map& taken) {
    std::uint32_t id = 0;
    while (taken.contains(id)) ++id;
    return id;
}

}  // namespace

const GpuProfile* Model::profile(std::uint16_t gpu, std::uint32_t id) const {
    for (const GpuProfile& known : profiles_[gpu])
        if (known.id == id) return &known;
    return nullptr;
}

const GpuInstance* Model::instance(std::uint16_t gpu, std::uint32_t id) const {
    const auto found = gpus_[gpu].instances.find(id);
    return found == gpus_[gpu].instances.end() ? nullptr : &found->second;
}

// Whether slices and media engines of the GPU are free for it there.
bool Model::free_slices(std::uint16_t gpu, const GpuProfile& wanted, std::uint32_t start) const {
    using enum gpu::Media;
    std::uint32_t same = 0;
    for (const auto& [id, there] : gpus_[gpu].instances) {
        const GpuProfile& other = *profile(gpu, there.profile_id);
        if (place_of(other, there.start).overlaps(place_of(wanted, start))) return false;
        if (wanted.media == extended && other.media >= extended) return false;
        if (other.media == all && wanted.media != none) return false;
        if (wanted.media == all && other.media != none) return false;
        same += other.id == wanted.id ? 1 : 0;
    }
    return same < wanted.max_instances;
}

Answer<std::uint32_t> Model::room(std::uint16_t gpu, std::uint32_t profile_id) const {
    if (const auto can = usable(gpu); !can) return std::unexpected(can.error());
    // Driver 580 answers whether MIG mode is on or not.
    const GpuProfile* wanted = profile(gpu, profile_id);
    if (wanted == nullptr) return std::unexpected(Refusal::not_supported);
    std::uint32_t count = 0, same = 0;
    for (const std::uint32_t start : wanted->starts) count += free_slices(gpu, *wanted, start) ? 1u : 0u;
    for (const auto& [id, there] : gpus_[gpu].instances) same += there.profile_id == profile_id ? 1 : 0;
    return std::min(count, wanted->max_instances - same);
}

Answer<std::uint32_t> Model::create_instance(std::uint16_t index, std::uint32_t profile_id,
                                             std::optional<gpu::Placement> at) {
    if (const auto can = usable(index); !can) return std::unexpected(can.error());
    Gpu& gpu = gpus_[index];
    if (!gpu.mig) return std::unexpected(Refusal::not_supported);
    const GpuProfile* wanted = profile(index, profile_id);
    if (wanted == nullptr) return std::unexpected(Refusal::not_supported);
    std::optional<std::uint32_t> start;
    if (at) {
        if (at->size != wanted->memory_slices || !wanted->starts.contains(at->start))
            return std::unexpected(Refusal::invalid);
        if (free_slices(index, *wanted, at->start)) start = at->start;
    } else {
        // The highest: so 19,19,14,9 fails on an A100 and 9,19,14,19 does not, as the guide says of both.
        for (const std::uint32_t candidate : wanted->starts)
            if (free_slices(index, *wanted, candidate)) start = candidate;
    }
    if (!start) return std::unexpected(Refusal::no_room);
    const std::uint32_t id = id_at(*wanted, *start, products_[index]->board()->memory_slices);
    gpu.instances[id] = {.id = id, .profile_id = profile_id, .start = *start, .born = next_born_++, .compute = {}};
    raise(EventKind::mig_change, {.gpu = index}, 0);
    return id;
}

Answer<GpuInstance*> Model::at(std::uint16_t gpu, std::uint32_t id) {
    if (const auto can = usable(gpu); !can) return std::unexpected(can.error());
    const auto found = gpus_[gpu].instances.find(id);
    if (found == gpus_[gpu].instances.end()) return std::unexpected(Refusal::not_found);
    return &found->second;
}

Answer<> Model::destroy_instance(std::uint16_t gpu, std::uint32_t id) {
    const auto found = at(gpu, id);
    if (!found) return std::unexpected(found.error());
    if (!(*found)->compute.empty()) return std::unexpected(Refusal::in_use);
    gpus_[gpu].instances.erase(id);
    raise(EventKind::mig_change, {.gpu = gpu}, 0);
    return {};
}

std::vector<ComputeProfile> Model::compute_profiles_of(std::uint16_t gpu, std::uint32_t id) const {
    const GpuInstance* there = instance(gpu, id);
    if (there == nullptr) return {};
    return compute_profiles(*products_[gpu], *profile(gpu, there->profile_id));
}

Answer<const ComputeProfile> Model::compute_profile(std::uint16_t gpu, std::uint32_t id, std::uint32_t wanted) const {
    for (const ComputeProfile& known : compute_profiles_of(gpu, id))
        if (known.id == wanted) return known;
    return std::unexpected(instance(gpu, id) == nullptr ? Refusal::not_found : Refusal::not_supported);
}

bool Model::free_compute(std::uint16_t gpu, const GpuInstance& there, const ComputeProfile& wanted,
                         std::uint32_t start) const {
    const gpu::Placement asked{start, wanted.slices};
    std::uint32_t same = 0, sms = wanted.sms;
    for (const auto& [id, other] : there.compute) {
        const auto profile_of_other = compute_profile(gpu, there.id, other.profile);
        if (gpu::Placement{other.start, profile_of_other->slices}.overlaps(asked)) return false;
        sms += profile_of_other->sms;
        same += other.profile == wanted.id ? 1 : 0;
    }
    // The wide one-slice instance of a 2g takes more SMs than its slice says.
    return same < wanted.max_instances && sms <= profile(gpu, there.profile_id)->sms;
}

Answer<std::uint32_t> Model::compute_room(std::uint16_t gpu, std::uint32_t id, std::uint32_t wanted) const {
    if (const auto can = usable(gpu); !can) return std::unexpected(can.error());
    const auto known = compute_profile(gpu, id, wanted);
    if (!known) return std::unexpected(known.error());
    std::uint32_t count = 0, same = 0;
    const GpuInstance& there = *instance(gpu, id);
    for (const std::uint32_t start : known->starts) count += free_compute(gpu, there, *known, start) ? 1u : 0u;
    for (const auto& [other, compute] : there.compute) same += compute.profile == wanted ? 1 : 0;
    return std::min(count, known->max_instances - same);
}

Answer<std::uint32_t> Model::create_compute(std::uint16_t index, std::uint32_t id, std::uint32_t wanted,
                                            std::optional<gpu::Placement> place) {
    const auto found = at(index, id);
    if (!found) return std::unexpected(found.error());
    GpuInstance& there = **found;
    const auto known = compute_profile(index, id, wanted);
    if (!known) return std::unexpected(known.error());
    std::optional<std::uint32_t> start;
    if (place && (place->size != known->slices || !known->starts.contains(place->start)))
        return std::unexpected(Refusal::invalid);
    for (const std::uint32_t candidate : known->starts)
        if (!start && (!place || place->start == candidate) && free_compute(index, there, *known, candidate))
            start = candidate;
    if (!start) return std::unexpected(known->starts.empty() ? Refusal::not_supported : Refusal::no_room);

    std::map<std::uint32_t, bool> indices;
    for (const auto& [other, instance] : gpus_[index].instances)
        for (const auto& [compute_id, compute] : instance.compute) indices[compute.index] = true;
    const std::uint32_t compute_id = lowest_free(there.compute);
    const std::uint64_t born = next_born_++;
    there.compute[compute_id] = {.id = compute_id,
                                 .profile = wanted,
                                 .start = *start,
                                 .index = lowest_free(indices),
                                 .uuid = uuid_from("MIG-", spec_.gpus[index].uuid + "/" + std::to_string(born))};
    raise(EventKind::mig_change, {index, id, compute_id}, 0);
    return compute_id;
}

Answer<> Model::destroy_compute(std::uint16_t gpu, std::uint32_t id, std::uint32_t compute) {
    const auto found = at(gpu, id);
    if (!found) return std::unexpected(found.error());
    if (!(*found)->compute.contains(compute)) return std::unexpected(Refusal::not_found);
    const Place where{gpu, id, compute};
    if (std::ranges::any_of(gpus_[gpu].processes, [&](const Process& process) { return process.where == where; }))
        return std::unexpected(Refusal::in_use);
    (*found)->compute.erase(compute);
    raise(EventKind::mig_change, {.gpu = gpu}, 0);
    return {};
}

std::optional<Model::MigDevice> Model::mig_device(std::uint16_t gpu, std::uint32_t index) const {
    for (const auto& [id, instance] : gpus_[gpu].instances)
        for (const auto& [compute_id, compute] : instance.compute)
            if (compute.index == index) return MigDevice{{gpu, id, compute_id}, &instance, &compute};
    return std::nullopt;
}

std::optional<Model::MigDevice> Model::mig_device_by_uuid(std::string_view uuid) const {
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu)
        for (const auto& [id, instance] : gpus_[gpu].instances)
            for (const auto& [compute_id, compute] : instance.compute)
                if (compute.uuid == uuid)
                    return MigDevice{{static_cast<std::uint16_t>(gpu), id, compute_id}, &instance, &compute};
    return std::nullopt;
}

}  // namespace bulkhead::driver
