// How busy, hot and fast a device is, and the modes that are set on it.
#include <algorithm>

#include "exports.hpp"
#include "session.hpp"

namespace bulkhead::nvml {

namespace {

constexpr std::uint32_t clock_step_mhz = 15;     // between graphics clocks, as an H200 lists them
constexpr std::uint32_t sampling_us = 100'000;   // of engine utilisation
constexpr std::uint64_t bar1_in_use = 0x1A0000;  // of an idle H200

Feature feature(bool on) { return on ? Feature::enabled : Feature::disabled; }

std::optional<std::uint32_t> clock_of(const driver::Clocks& clocks, ClockType type) {
    switch (type) {
        case ClockType::graphics:
            return clocks.graphics_mhz;
        case ClockType::sm:
            return clocks.sm_mhz;
        case ClockType::memory:
            return clocks.memory_mhz;
        case ClockType::video:
            return clocks.video_mhz;
    }
    return std::nullopt;
}

Return tell_clock(const driver::Clocks& clocks, ClockType type, std::uint32_t* mhz) {
    const auto clock = clock_of(clocks, type);
    return clock ? put(mhz, *clock) : Return::invalid_argument;
}

// Clocks that applications may ask for: there is none for video.
Return application_clock(std::string_view call, Device device, ClockType type, std::uint32_t* mhz) {
    return ask_gpu(call, device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (type == ClockType::video) return Return::not_supported;
        return tell_clock(model.product(gpu).busiest, type, mhz);
    });
}

// Engines other than SMs: nothing in the model uses them.
Return idle_engine(std::string_view call, Device device, std::uint32_t* percent, std::uint32_t* period_us) {
    return ask(call, device, [&](const driver::Model& model, const Target& target) {
        if (percent == nullptr || period_us == nullptr) return Return::invalid_argument;
        if (model.gpu(target.gpu()).mig) return Return::not_supported;
        *period_us = sampling_us;
        return put(percent, 0u);
    });
}

Return performance_state(std::string_view call, Device device, PerformanceState* state) {
    return ask(call, device, [&](const driver::Model&, const Target&) { return put(state, PerformanceState::p0); });
}

Return clock_reasons(std::string_view call, Device device, std::uint64_t* reasons) {
    return ask_gpu(call, device, [&](const driver::Model& model, std::uint16_t gpu) {
        const driver::Load load = model.load(gpu);
        return put(reasons, load.sm_percent == 0                             ? clocks_gpu_idle
                            : load.power_mw >= model.gpu(gpu).power_limit_mw ? clocks_sw_power_cap
                                                                             : 0);
    });
}

Return supported_reasons(std::string_view call, Device device, std::uint64_t* reasons) {
    return ask_gpu(call, device, [&](const driver::Model&, std::uint16_t) { return put(reasons, 0x1FFu); });
}

Return power_limit(std::string_view call, Device device, std::uint32_t* mw) {
    return ask_gpu(call, device, [&](const driver::Model& model, std::uint16_t gpu) {
        return put(mw, model.gpu(gpu).power_limit_mw);
    });
}

}  // namespace

extern "C" {

// Of all memory: what the driver keeps for itself counts as used here, and is told apart in v2.
Return nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
    return ask("nvmlDeviceGetMemoryInfo", device, [&](const driver::Model& model, const Target& target) {
        if (memory == nullptr) return Return::invalid_argument;
        const driver::MemoryUse use = model.memory(target.where);
        *memory = {use.total, use.free(), use.used + use.reserved};
        return Return::success;
    });
}
Return nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* memory) {
    return ask("nvmlDeviceGetMemoryInfo_v2", device, [&](const driver::Model& model, const Target& target) {
        if (memory == nullptr) return Return::invalid_argument;
        if (memory->version != memory_v2) return Return::argument_version_mismatch;
        const driver::MemoryUse use = model.memory(target.where);
        *memory = {memory_v2, use.total, use.reserved, use.free(), use.used};
        return Return::success;
    });
}
Return nvmlDeviceGetBAR1MemoryInfo(Device device, Bar1Memory* memory) {
    return ask("nvmlDeviceGetBAR1MemoryInfo", device, [&](const driver::Model& model, const Target& target) {
        if (memory == nullptr) return Return::invalid_argument;
        const std::uint64_t total = std::uint64_t{model.product(target.gpu()).bar1_mib} << 20;
        *memory = {total, total - bar1_in_use, bar1_in_use};
        return Return::success;
    });
}
Return nvmlDeviceGetUtilizationRates(Device device, Utilization* utilization) {
    return ask("nvmlDeviceGetUtilizationRates", device, [&](const driver::Model& model, const Target& target) {
        if (utilization == nullptr) return Return::invalid_argument;
        if (model.gpu(target.gpu()).mig) return Return::not_supported;  // nobody counts per instance through this call
        const driver::Load load = model.load(target.gpu());
        *utilization = {load.sm_percent, load.memory_percent};
        return Return::success;
    });
}
Return nvmlDeviceGetEncoderUtilization(Device device, std::uint32_t* percent, std::uint32_t* us) {
    return idle_engine("nvmlDeviceGetEncoderUtilization", device, percent, us);
}
Return nvmlDeviceGetDecoderUtilization(Device device, std::uint32_t* percent, std::uint32_t* us) {
    return idle_engine("nvmlDeviceGetDecoderUtilization", device, percent, us);
}
Return nvmlDeviceGetJpgUtilization(Device device, std::uint32_t* percent, std::uint32_t* us) {
    return idle_engine("nvmlDeviceGetJpgUtilization", device, percent, us);
}
Return nvmlDeviceGetOfaUtilization(Device device, std::uint32_t* percent, std::uint32_t* us) {
    return idle_engine("nvmlDeviceGetOfaUtilization", device, percent, us);
}

Return nvmlDeviceGetTemperature(Device device, TemperatureSensor sensor, std::uint32_t* celsius) {
    return ask("nvmlDeviceGetTemperature", device, [&](const driver::Model& model, const Target& target) {
        return sensor == TemperatureSensor::gpu ? put(celsius, model.load(target.gpu()).celsius)
                                                : Return::invalid_argument;
    });
}
Return nvmlDeviceGetTemperatureV(Device device, TemperatureV1* temperature) {
    return ask("nvmlDeviceGetTemperatureV", device, [&](const driver::Model& model, const Target& target) {
        if (temperature == nullptr) return Return::invalid_argument;
        if (temperature->version != temperature_v1) return Return::argument_version_mismatch;
        if (temperature->sensor != TemperatureSensor::gpu) return Return::invalid_argument;
        return put(&temperature->celsius, model.load(target.gpu()).celsius);
    });
}
Return nvmlDeviceGetTemperatureThreshold(Device device, TemperatureThreshold which, std::uint32_t* celsius) {
    return ask_gpu("nvmlDeviceGetTemperatureThreshold", device, [&](const driver::Model& model, std::uint16_t gpu) {
        const driver::TemperatureLimits& limits = model.product(gpu).hottest;
        const std::uint32_t known[] = {limits.shutdown_c, limits.slowdown_c, limits.memory_c, limits.gpu_c};
        if (which > TemperatureThreshold::gps_current) return Return::invalid_argument;
        if (which > TemperatureThreshold::gpu_max || known[static_cast<std::size_t>(which)] == 0)
            return Return::not_supported;
        return put(celsius, known[static_cast<std::size_t>(which)]);
    });
}

Return nvmlDeviceGetFanSpeed(Device device, std::uint32_t* percent) {
    return ask_gpu("nvmlDeviceGetFanSpeed", device, [&](const driver::Model& model, std::uint16_t gpu) {
        return model.product(gpu).fans == 0 ? Return::not_supported : put(percent, 30u);
    });
}
Return nvmlDeviceGetFanSpeed_v2(Device device, std::uint32_t fan, std::uint32_t* percent) {
    return ask_gpu("nvmlDeviceGetFanSpeed_v2", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (model.product(gpu).fans == 0) return Return::not_supported;
        return fan < model.product(gpu).fans ? put(percent, 30u) : Return::invalid_argument;
    });
}
Return nvmlDeviceGetNumFans(Device device, std::uint32_t* count) {
    return ask_gpu("nvmlDeviceGetNumFans", device,
                   [&](const driver::Model& model, std::uint16_t gpu) { return put(count, model.product(gpu).fans); });
}

Return nvmlDeviceGetPowerUsage(Device device, std::uint32_t* mw) {
    return ask_gpu("nvmlDeviceGetPowerUsage", device,
                   [&](const driver::Model& model, std::uint16_t gpu) { return put(mw, model.load(gpu).power_mw); });
}
Return nvmlDeviceGetTotalEnergyConsumption(Device device, std::uint64_t* mj) {
    return ask_gpu("nvmlDeviceGetTotalEnergyConsumption", device,
                   [&](const driver::Model& model, std::uint16_t gpu) { return put(mj, model.energy_mj(gpu, now())); });
}
Return nvmlDeviceGetPowerManagementMode(Device device, Feature* mode) {
    return ask_gpu("nvmlDeviceGetPowerManagementMode", device,
                   [&](const driver::Model&, std::uint16_t) { return put(mode, Feature::enabled); });
}
Return nvmlDeviceGetPowerManagementLimit(Device device, std::uint32_t* mw) {
    return power_limit("nvmlDeviceGetPowerManagementLimit", device, mw);
}
Return nvmlDeviceGetEnforcedPowerLimit(Device device, std::uint32_t* mw) {
    return power_limit("nvmlDeviceGetEnforcedPowerLimit", device, mw);
}
Return nvmlDeviceGetPowerManagementDefaultLimit(Device device, std::uint32_t* mw) {
    return ask_gpu(
        "nvmlDeviceGetPowerManagementDefaultLimit", device,
        [&](const driver::Model& model, std::uint16_t gpu) { return put(mw, model.product(gpu).power.normal_mw); });
}
Return nvmlDeviceGetPowerManagementLimitConstraints(Device device, std::uint32_t* min_mw, std::uint32_t* max_mw) {
    return ask_gpu("nvmlDeviceGetPowerManagementLimitConstraints", device,
                   [&](const driver::Model& model, std::uint16_t gpu) {
                       if (min_mw == nullptr || max_mw == nullptr) return Return::invalid_argument;
                       *max_mw = model.product(gpu).power.max_mw;
                       return put(min_mw, model.product(gpu).power.min_mw);
                   });
}
Return nvmlDeviceSetPowerManagementLimit(Device device, std::uint32_t mw) {
    return change_gpu("nvmlDeviceSetPowerManagementLimit", device,
                      [&](driver::Model& model, std::uint16_t gpu) { return code(model.set_power_limit(gpu, mw)); });
}

Return nvmlDeviceGetPerformanceState(Device device, PerformanceState* state) {
    return performance_state("nvmlDeviceGetPerformanceState", device, state);
}
Return nvmlDeviceGetPowerState(Device device, PerformanceState* state) {
    return performance_state("nvmlDeviceGetPowerState", device, state);
}

Return nvmlDeviceGetClockInfo(Device device, ClockType type, std::uint32_t* mhz) {
    return ask("nvmlDeviceGetClockInfo", device, [&](const driver::Model& model, const Target& target) {
        return tell_clock(model.load(target.gpu()).clocks, type, mhz);
    });
}
Return nvmlDeviceGetMaxClockInfo(Device device, ClockType type, std::uint32_t* mhz) {
    return ask("nvmlDeviceGetMaxClockInfo", device, [&](const driver::Model& model, const Target& target) {
        return tell_clock(model.product(target.gpu()).busiest, type, mhz);
    });
}
Return nvmlDeviceGetClock(Device device, ClockType type, ClockId id, std::uint32_t* mhz) {
    return ask("nvmlDeviceGetClock", device, [&](const driver::Model& model, const Target& target) {
        if (id > ClockId::customer_boost_max) return Return::invalid_argument;
        return tell_clock(
            id == ClockId::current ? model.load(target.gpu()).clocks : model.product(target.gpu()).busiest, type, mhz);
    });
}
Return nvmlDeviceGetApplicationsClock(Device device, ClockType type, std::uint32_t* mhz) {
    return application_clock("nvmlDeviceGetApplicationsClock", device, type, mhz);
}
Return nvmlDeviceGetDefaultApplicationsClock(Device device, ClockType type, std::uint32_t* mhz) {
    return application_clock("nvmlDeviceGetDefaultApplicationsClock", device, type, mhz);
}
Return nvmlDeviceGetMaxCustomerBoostClock(Device device, ClockType type, std::uint32_t* mhz) {
    return ask_gpu("nvmlDeviceGetMaxCustomerBoostClock", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (type == ClockType::memory || type == ClockType::video) return Return::not_supported;
        return tell_clock(model.product(gpu).busiest, type, mhz);
    });
}
Return nvmlDeviceGetSupportedMemoryClocks(Device device, std::uint32_t* count, std::uint32_t* mhz) {
    return ask_gpu("nvmlDeviceGetSupportedMemoryClocks", device, [&](const driver::Model& model, std::uint16_t gpu) {
        std::vector<std::uint32_t> clocks{model.product(gpu).busiest.memory_mhz};
        if (model.product(gpu).id == "h200-141gb") clocks.push_back(2201);
        return put_list(count, mhz, clocks);
    });
}
Return nvmlDeviceGetSupportedGraphicsClocks(Device device, std::uint32_t, std::uint32_t* count, std::uint32_t* mhz) {
    return ask_gpu("nvmlDeviceGetSupportedGraphicsClocks", device, [&](const driver::Model& model, std::uint16_t gpu) {
        std::vector<std::uint32_t> clocks;
        const driver::Product& product = model.product(gpu);
        for (std::uint32_t clock = product.busiest.graphics_mhz; clock >= product.idle.graphics_mhz;
             clock -= clock_step_mhz)
            clocks.push_back(clock);
        return put_list(count, mhz, clocks);
    });
}
Return nvmlDeviceGetCurrentClocksEventReasons(Device device, std::uint64_t* reasons) {
    return clock_reasons("nvmlDeviceGetCurrentClocksEventReasons", device, reasons);
}
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device, std::uint64_t* reasons) {
    return clock_reasons("nvmlDeviceGetCurrentClocksThrottleReasons", device, reasons);
}
Return nvmlDeviceGetSupportedClocksEventReasons(Device device, std::uint64_t* reasons) {
    return supported_reasons("nvmlDeviceGetSupportedClocksEventReasons", device, reasons);
}
Return nvmlDeviceGetSupportedClocksThrottleReasons(Device device, std::uint64_t* reasons) {
    return supported_reasons("nvmlDeviceGetSupportedClocksThrottleReasons", device, reasons);
}
Return nvmlDeviceGetAutoBoostedClocksEnabled(Device device, Feature*, Feature*) {
    return ask_gpu("nvmlDeviceGetAutoBoostedClocksEnabled", device,
                   [](const driver::Model&, std::uint16_t) { return Return::not_supported; });
}

Return nvmlDeviceGetDisplayMode(Device device, Feature* mode) {
    return ask_gpu("nvmlDeviceGetDisplayMode", device,
                   [&](const driver::Model&, std::uint16_t) { return put(mode, Feature::enabled); });
}
Return nvmlDeviceGetDisplayActive(Device device, Feature* active) {
    return ask_gpu("nvmlDeviceGetDisplayActive", device,
                   [&](const driver::Model&, std::uint16_t) { return put(active, Feature::disabled); });
}
Return nvmlDeviceGetPersistenceMode(Device device, Feature* mode) {
    return ask("nvmlDeviceGetPersistenceMode", device, [&](const driver::Model& model, const Target& target) {
        return put(mode, feature(model.gpu(target.gpu()).persistence));
    });
}
Return nvmlDeviceSetPersistenceMode(Device device, Feature mode) {
    return change_gpu("nvmlDeviceSetPersistenceMode", device, [&](driver::Model& model, std::uint16_t gpu) {
        return mode > Feature::enabled ? Return::invalid_argument
                                       : code(model.set_persistence(gpu, mode == Feature::enabled));
    });
}
Return nvmlDeviceGetComputeMode(Device device, ComputeMode* mode) {
    return ask("nvmlDeviceGetComputeMode", device, [&](const driver::Model& model, const Target& target) {
        switch (model.gpu(target.gpu()).compute_mode) {
            case driver::ComputeMode::normal:
                return put(mode, ComputeMode::normal);
            case driver::ComputeMode::prohibited:
                return put(mode, ComputeMode::prohibited);
            case driver::ComputeMode::exclusive_process:
                return put(mode, ComputeMode::exclusive_process);
        }
        return Return::unknown;
    });
}
Return nvmlDeviceSetComputeMode(Device device, ComputeMode mode) {
    return change_gpu("nvmlDeviceSetComputeMode", device, [&](driver::Model& model, std::uint16_t gpu) {
        switch (mode) {
            case ComputeMode::normal:
                return code(model.set_compute_mode(gpu, driver::ComputeMode::normal));
            case ComputeMode::prohibited:
                return code(model.set_compute_mode(gpu, driver::ComputeMode::prohibited));
            case ComputeMode::exclusive_process:
                return code(model.set_compute_mode(gpu, driver::ComputeMode::exclusive_process));
            case ComputeMode::exclusive_thread:
                return Return::not_supported;  // gone since CUDA 8
        }
        return Return::invalid_argument;
    });
}
// Windows has two of them; every other driver says so.
Return nvmlDeviceGetDriverModel_v2(Device device, std::uint32_t*, std::uint32_t*) {
    return ask_gpu("nvmlDeviceGetDriverModel_v2", device,
                   [](const driver::Model&, std::uint16_t) { return Return::not_supported; });
}
Return nvmlDeviceGetDriverModel(Device device, std::uint32_t* current, std::uint32_t* pending) {
    return nvmlDeviceGetDriverModel_v2(device, current, pending);
}
Return nvmlDeviceGetAccountingMode(Device device, Feature* mode) {
    return ask_gpu("nvmlDeviceGetAccountingMode", device,
                   [&](const driver::Model&, std::uint16_t) { return put(mode, Feature::disabled); });
}
Return nvmlDeviceGetAccountingBufferSize(Device device, std::uint32_t* size) {
    return ask_gpu("nvmlDeviceGetAccountingBufferSize", device,
                   [&](const driver::Model&, std::uint16_t) { return put(size, 4000u); });
}

}  // extern "C"

}  // namespace bulkhead::nvml
