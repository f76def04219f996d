// The measuring half of Nvml: what a device tells of itself at this moment.
#include <algorithm>
#include <optional>

#include "bulkhead/hw/nvml/library.hpp"
#include "bulkhead/hw/nvml/nvml.hpp"

namespace bulkhead::nvml {

namespace {

class Readings {
public:
    void put(Counter counter, std::uint64_t value) { all_.push_back({counter, value}); }
    // A number that the driver does not tell (not supported, or a call it lacks) is left out: 0 would be a claim.
    template <class Number, class Call, class... Arguments>
    void ask(Counter counter, Call* call, Device device, Arguments... arguments) {
        Number value{};
        if (call != nullptr && call(device, arguments..., &value) == Return::success)
            put(counter, static_cast<std::uint64_t>(value));
    }
    std::vector<Measured> take() && {
        std::ranges::sort(all_, {}, &Measured::counter);
        return std::move(all_);
    }

private:
    std::vector<Measured> all_;
};

void ask_memory(Readings& out, const Nvml& nvml, const std::string& uuid) {
    const auto memory = nvml.memory(uuid);
    if (!memory) return;
    out.put(Counter::memory_used_bytes, memory->used);
    out.put(Counter::memory_free_bytes, memory->free);
    out.put(Counter::memory_reserved_bytes, memory->reserved);
}

void ask_load(Readings& out, const Library& library, Device device) {
    Utilization use{};
    if (library.nvmlDeviceGetUtilizationRates == nullptr ||
        library.nvmlDeviceGetUtilizationRates(device, &use) != Return::success)
        return;
    out.put(Counter::gpu_percent, use.gpu);
    out.put(Counter::memory_percent, use.memory);
}

void ask_health(Readings& out, const Library& library, Device device) {
    constexpr struct {
        Counter counter;
        MemoryErrorType type;
        EccCounter since;
    } errors[] = {
        {Counter::ecc_corrected, MemoryErrorType::corrected, EccCounter::since_reset},
        {Counter::ecc_uncorrected, MemoryErrorType::uncorrected, EccCounter::since_reset},
        {Counter::ecc_corrected_lifetime, MemoryErrorType::corrected, EccCounter::lifetime},
        {Counter::ecc_uncorrected_lifetime, MemoryErrorType::uncorrected, EccCounter::lifetime},
    };
    for (const auto& row : errors)
        out.ask<std::uint64_t>(row.counter, library.nvmlDeviceGetTotalEccErrors, device, row.type, row.since);
    std::uint32_t corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    if (library.nvmlDeviceGetRemappedRows != nullptr &&
        library.nvmlDeviceGetRemappedRows(device, &corrected, &uncorrected, &pending, &failed) == Return::success) {
        out.put(Counter::rows_remapped_corrected, corrected);
        out.put(Counter::rows_remapped_uncorrected, uncorrected);
        out.put(Counter::row_remap_failed, failed != 0 ? 1 : 0);
    }
}

std::optional<std::uint64_t> memory_celsius(const Library& library, Device device) {
    FieldValue wanted{};
    wanted.field = static_cast<std::uint32_t>(Field::memory_temperature);
    if (library.nvmlDeviceGetFieldValues == nullptr ||
        library.nvmlDeviceGetFieldValues(device, 1, &wanted) != Return::success || wanted.result != Return::success ||
        wanted.type != ValueType::u32)
        return std::nullopt;
    return wanted.value.u32;
}

}  // namespace

Result<std::vector<Measured>> Nvml::sample(const std::string& uuid) const {
    const auto device = find(uuid);
    if (!device) return std::unexpected(device.error());
    const Library& library = *library_;
    Readings out;
    ask_memory(out, *this, uuid);
    ask_load(out, library, *device);
    out.ask<std::uint32_t>(Counter::power_mw, library.nvmlDeviceGetPowerUsage, *device);
    out.ask<std::uint64_t>(Counter::energy_mj, library.nvmlDeviceGetTotalEnergyConsumption, *device);
    out.ask<std::uint32_t>(Counter::celsius, library.nvmlDeviceGetTemperature, *device, TemperatureSensor::gpu);
    if (const auto celsius = memory_celsius(library, *device)) out.put(Counter::memory_celsius, *celsius);
    out.ask<std::uint32_t>(Counter::sm_mhz, library.nvmlDeviceGetClockInfo, *device, ClockType::sm);
    out.ask<std::uint32_t>(Counter::memory_mhz, library.nvmlDeviceGetClockInfo, *device, ClockType::memory);
    out.ask<std::uint32_t>(Counter::pcie_tx_kbps, library.nvmlDeviceGetPcieThroughput, *device, PcieCounter::tx_bytes);
    out.ask<std::uint32_t>(Counter::pcie_rx_kbps, library.nvmlDeviceGetPcieThroughput, *device, PcieCounter::rx_bytes);
    out.ask<std::uint32_t>(Counter::pcie_replays, library.nvmlDeviceGetPcieReplayCounter, *device);
    // The newer name of the same call, where the driver has it.
    out.ask<std::uint64_t>(Counter::clock_reasons,
                           library.nvmlDeviceGetCurrentClocksEventReasons != nullptr
                               ? library.nvmlDeviceGetCurrentClocksEventReasons
                               : library.nvmlDeviceGetCurrentClocksThrottleReasons,
                           *device);
    ask_health(out, library, *device);
    return std::move(out).take();
}

// Of a MIG device NVML tells memory alone; asked for temperature or clocks it would answer for the board.
Result<std::vector<Measured>> Nvml::sample_instance(const std::string& uuid) const {
    if (const auto device = find(uuid); !device) return std::unexpected(device.error());
    Readings out;
    ask_memory(out, *this, uuid);
    return std::move(out).take();
}

}  // namespace bulkhead::nvml
