// What is measured of the GPUs for monitoring, in a thread of its own: a driver that hangs over a counter keeps nobody
// from work.
#include <algorithm>
#include <utility>

#include "bulkhead/agent/gpu_hardware.hpp"

namespace bulkhead::agent {

// A GPU that is cut has instances; the driver knows what each is called and how much of its memory is used.
std::vector<InstanceSample> GpuHardware::sample_instances(const nvml::Gpu& gpu) const {
    std::vector<InstanceSample> out;
    const auto instances = nvml_.instances(gpu.uuid);
    if (!instances || instances->empty()) return out;
    const auto profiles = nvml_.profiles(gpu.uuid);
    for (const nvml::Instance& instance : *instances) {
        InstanceSample& sample = out.emplace_back();
        sample.id = static_cast<std::uint16_t>(instance.id);
        sample.start = static_cast<std::uint8_t>(instance.place.start);
        sample.uuid = instance.uuid;
        if (profiles)
            if (const auto profile = std::ranges::find(*profiles, instance.profile, &nvml::Profile::id);
                profile != profiles->end())
                sample.profile = profile->name;
        if (instance.uuid.empty()) continue;
        if (auto readings = nvml_.sample_instance(instance.uuid)) sample.readings = *std::move(readings);
    }
    return out;
}

std::vector<GpuSample> GpuHardware::sample() const {
    std::vector<GpuSample> out;
    // Numbers of devices and modes are of this moment; what a GPU is called in orders is from when we started.
    const auto now = nvml_.gpus();
    for (const nvml::Gpu& gpu : gpus_->all()) {
        const nvml::Gpu* there = nullptr;
        if (now)
            for (const nvml::Gpu& one : *now)
                if (!one.lost && one.uuid == gpu.uuid) there = &one;
        if (there == nullptr) continue;  // fallen off the bus: a fault says so
        auto readings = nvml_.sample(gpu.uuid);
        if (!readings) continue;
        out.push_back({.gpu = static_cast<std::uint16_t>(gpu.index),
                       .minor = static_cast<std::uint16_t>(there->minor),
                       .uuid = gpu.uuid,
                       .bus = there->bus_id,
                       .name = there->name,
                       .readings = *std::move(readings),
                       .instances = there->mig == nvml::MigMode::enabled ? sample_instances(gpu)
                                                                         : std::vector<InstanceSample>{}});
    }
    return out;
}

void GpuHardware::watch_counters() {
    auto next = std::chrono::steady_clock::now();
    while (true) {
        {
            const std::scoped_lock lock{mutex_};
            if (stopping_) return;
        }
        const auto now = std::chrono::steady_clock::now();
        if (now < next) {
            std::this_thread::sleep_for(std::chrono::milliseconds{50});
            continue;
        }
        next = now + std::chrono::milliseconds{settings_.sample_every.ms};
        std::vector<GpuSample> gpus = sample();
        const std::scoped_lock lock{mutex_};
        for (GpuSample& gpu : gpus) {  // the last two counters of all
            gpu.readings.push_back({Counter::xid_last, xids_[gpu.uuid].last});
            gpu.readings.push_back({Counter::xid_count, xids_[gpu.uuid].count});
        }
        measured_ = Telemetry{.grade = grade(), .age = {}, .gpus = std::move(gpus)};
        measured_at_ = now;  // as old as its oldest number
    }
}

Result<std::optional<Telemetry>> GpuHardware::telemetry() {
    const std::scoped_lock lock{mutex_};
    if (!measured_) return std::nullopt;
    std::optional<Telemetry> newest = measured_;
    newest->age = {
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - measured_at_).count()};
    return newest;
}

}  // namespace bulkhead::agent
