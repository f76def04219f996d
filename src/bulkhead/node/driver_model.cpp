// Modes, resets, health and faults. Instances are in driver_instances.cpp, processes and memory in driver_work.cpp.
#include "bulkhead/node/driver_model.hpp"

#include <algorithm>

namespace bulkhead::driver {

Model::Model(Spec spec) : spec_{std::move(spec)}, gpus_(spec_.gpus.size()) {
    look_up_products();
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
        gpus_[i].power_limit_mw = products_[i]->power.normal_mw;
        gpus_[i].keeps_residue = spec_.keeps_residue;
    }
}

void Model::look_up_products() {
    products_.clear();
    profiles_.clear();
    for (const GpuSpec& gpu : spec_.gpus) {
        const auto product = find_product(gpu.product);
        invariant(product.has_value(), "a node is made of products that exist");
        products_.push_back(*product);
        profiles_.push_back(gpu_profiles(**product));
    }
}

Answer<> Model::usable(std::uint16_t gpu) const {
    if (gpu >= gpus_.size()) return std::unexpected(Refusal::not_found);
    if (gpus_[gpu].lost) return std::unexpected(Refusal::lost);
    return {};
}

Answer<Answer<>> Model::set_mig_mode(std::uint16_t index, bool on) {
    if (const auto can = usable(index); !can) return std::unexpected(can.error());
    if (products_[index]->board() == nullptr) return std::unexpected(Refusal::not_supported);
    Gpu& gpu = gpus_[index];
    gpu.mig_pending = on;
    if (gpu.mig == on) return Answer<>{};
    // Instances hold the GPU as processes do: what is still there must go first.
    if (!gpu.processes.empty() || !gpu.instances.empty()) return Answer<>{std::unexpected(Refusal::in_use)};
    if (!products_[index]->switches_mig_without_reset()) {
        if (spec_.passed_through) return Answer<>{std::unexpected(Refusal::reset_required)};
        const auto done = reset(index);
        invariant(done.has_value(), "a GPU that nobody uses can be reset");
    }
    gpu.mig = on;
    raise(EventKind::mig_change, {.gpu = index}, 0);
    return Answer<>{};
}

Answer<> Model::set_compute_mode(std::uint16_t gpu, ComputeMode mode) {
    if (const auto can = usable(gpu); !can) return can;
    gpus_[gpu].compute_mode = mode;
    return {};
}

Answer<> Model::set_persistence(std::uint16_t gpu, bool on) {
    if (const auto can = usable(gpu); !can) return can;
    gpus_[gpu].persistence = on;
    return {};
}

Answer<> Model::set_timeslice(std::uint16_t gpu, std::uint32_t timeslice) {
    if (const auto can = usable(gpu); !can) return can;
    if (timeslice > 3) return std::unexpected(Refusal::invalid);
    gpus_[gpu].timeslice = timeslice;
    return {};
}

Answer<> Model::set_power_limit(std::uint16_t gpu, std::uint32_t mw) {
    if (const auto can = usable(gpu); !can) return can;
    const PowerLimits& limits = products_[gpu]->power;
    if (mw < limits.min_mw || mw > limits.max_mw) return std::unexpected(Refusal::invalid);
    gpus_[gpu].power_limit_mw = mw;
    return {};
}

Answer<> Model::reset(std::uint16_t index) {
    if (index >= gpus_.size()) return std::unexpected(Refusal::not_found);
    Gpu& gpu = gpus_[index];
    if (!gpu.processes.empty()) return std::unexpected(Refusal::in_use);
    gpu.instances.clear();
    gpu.mig = gpu.mig_pending;
    gpu.lost = false;
    gpu.health.corrected = gpu.health.uncorrected = 0;
    gpu.health.remap_pending = false;
    if (gpu.stuck == Stuck::until_reset) gpu.stuck = Stuck::no;
    if (!gpu.keeps_residue) gpu.contents = {};
    return {};
}

void Model::reboot() {
    for (std::size_t index = 0; index < gpus_.size(); ++index) {
        Gpu& gpu = gpus_[index];
        gpu.processes.clear();
        gpu.allocations.clear();
        if (!products_[index]->keeps_mig_mode_over_reboot()) gpu.mig_pending = false;
        const auto done = reset(static_cast<std::uint16_t>(index));
        invariant(done.has_value(), "nobody uses a GPU of a node that boots");
        gpu.compute_mode = ComputeMode::normal;
        gpu.timeslice = 0;
        gpu.power_limit_mw = products_[index]->power.normal_mw;
        gpu.energy_mj = 0;
    }
    events_.clear();
    ready_ = !spec_.confidential;  // somebody must have looked at the evidence first
    ++boots_;
}

void Model::raise(EventKind kind, Place where, std::uint64_t data) {
    Health& health = gpus_[where.gpu].health;
    if (kind == EventKind::single_bit) ++health.corrected, ++health.corrected_lifetime;
    if (kind == EventKind::double_bit) ++health.uncorrected, ++health.uncorrected_lifetime;
    events_.push_back({next_event_++, kind, where, data});
    if (events_.size() > events_kept) events_.erase(events_.begin());
}

void Model::clear_errors(std::uint16_t gpu, bool lifetime) {
    Health& health = gpus_[gpu].health;
    (lifetime ? health.corrected_lifetime : health.corrected) = 0;
    (lifetime ? health.uncorrected_lifetime : health.uncorrected) = 0;
}

std::vector<Fault> Model::meet(std::string_view call) {
    std::vector<Fault> met;
    for (Fault& fault : faults_) {
        if (fault.times == 0 || (fault.call != "*" && fault.call != call)) continue;
        --fault.times;
        met.push_back(fault);
    }
    std::erase_if(faults_, [](const Fault& fault) { return fault.times == 0; });
    return met;
}

}  // namespace bulkhead::driver
