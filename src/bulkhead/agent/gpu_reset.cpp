// Resetting a GPU: what is left when wiping it does not help. Everything on it goes, and what is joined to it by NVLink
// is disturbed; so it is done to a GPU that nobody is on, and beside others only while no tenant runs here.
#include <fmt/format.h>

#include <algorithm>

#include "bulkhead/agent/gpu_hardware.hpp"
#include "bulkhead/hw/program/program.hpp"

namespace bulkhead::agent {

namespace {

constexpr std::chrono::minutes reset_patience{4};  // within the executor's five

OperationResult reset_refused(std::string why) { return {.ok = false, .why = std::move(why), .untouched = true}; }
OperationResult reset_failed(std::string why) { return {.ok = false, .why = std::move(why)}; }

}  // namespace

OperationResult GpuHardware::carry(const ResetGpu& what) {
    if (!settings_.allow_gpu_reset) return reset_refused("resetting GPUs is not allowed on this node");
    const auto gpu = this->gpu(what.gpu);
    if (!gpu) return reset_refused(gpu.error().what);
    const std::string& uuid = (*gpu)->uuid;
    const auto processes = nvml_.processes(uuid);
    if (!processes) return reset_refused(processes.error().what);
    if (!processes->empty()) return reset_refused(fmt::format("{} processes are on {}", processes->size(), uuid));
    // Held until it is over: nobody is started meanwhile. How a GPU is joined to others shows only while its links are
    // up, so that on a machine with several any may be.
    const std::scoped_lock lock{tenants_mutex_};
    if (gpus_->size() > 1) {
        const auto tenants = tenants_.leases();
        if (!tenants) return reset_refused(tenants.error().what);
        if (!tenants->empty())
            return reset_refused(
                fmt::format("{} may be joined to others by NVLink, and {} tenants run here", uuid, tenants->size()));
    }
    const auto ran = program::run_tied({settings_.smi, "--gpu-reset", "-i", uuid}, settings_.lock, reset_patience);
    if (!ran) return reset_failed(ran.error().what);
    if (ran->status != 0)
        return reset_failed(
            fmt::format("{} ended with status {}: {}", settings_.smi, ran->status, ran->output.substr(0, 500)));
    const auto now = nvml_.gpus();
    if (!now) return reset_failed(now.error().what);
    const bool there = std::ranges::any_of(*now, [&](const nvml::Gpu& one) { return !one.lost && one.uuid == uuid; });
    return there ? OperationResult{.ok = true} : reset_failed(fmt::format("{} did not come back", uuid));
}

}  // namespace bulkhead::agent
