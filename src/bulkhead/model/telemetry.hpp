// What a node measures of its devices, as of one moment. Not an object: it is never stored and never logged, and is
// forgotten with the session that brought it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead {

// Spoken on the wire by these numbers: append, never reorder. Who may see which is policy/telemetry.hpp's to say.
enum class Counter : std::uint8_t {
    gpu_percent,     // of the time since the driver last looked: some kernel ran
    memory_percent,  // likewise: memory was read or written
    memory_used_bytes,
    memory_free_bytes,
    memory_reserved_bytes,  // by the driver and its firmware
    power_mw,
    energy_mj,  // since the driver was loaded
    celsius,
    memory_celsius,
    sm_mhz,
    memory_mhz,
    pcie_tx_kbps,  // thousands of bytes in a second, over the last 20 ms
    pcie_rx_kbps,
    pcie_replays,
    clock_reasons,  // NVML's bits: why clocks are what they are
    ecc_corrected,  // since the last reset
    ecc_uncorrected,
    ecc_corrected_lifetime,  // kept by the board
    ecc_uncorrected_lifetime,
    rows_remapped_corrected,
    rows_remapped_uncorrected,
    row_remap_failed,
    xid_last,   // 0: none since the agent started
    xid_count,  // since then
};
constexpr auto words(Counter) {
    return std::to_array<Words>({"gpu-percent",
                                 "memory-percent",
                                 "memory-used-bytes",
                                 "memory-free-bytes",
                                 "memory-reserved-bytes",
                                 "power-mw",
                                 "energy-mj",
                                 "celsius",
                                 "memory-celsius",
                                 "sm-mhz",
                                 "memory-mhz",
                                 "pcie-tx-kbps",
                                 "pcie-rx-kbps",
                                 "pcie-replays",
                                 "clock-reasons",
                                 "ecc-corrected",
                                 "ecc-uncorrected",
                                 "ecc-corrected-lifetime",
                                 "ecc-uncorrected-lifetime",
                                 "rows-remapped-corrected",
                                 "rows-remapped-uncorrected",
                                 "row-remap-failed",
                                 "xid-last",
                                 "xid-count"});
}

// Bits of clock_reasons that something other than the tenant's wish holds clocks back for.
inline constexpr std::uint64_t clocks_by_power_cap = 0x4, clocks_by_hardware = 0x8, clocks_by_sw_thermal = 0x20,
                               clocks_by_hw_thermal = 0x40, clocks_by_power_brake = 0x80;

struct Measured {
    Counter counter{};
    std::uint64_t value = 0;
    friend bool operator==(const Measured&, const Measured&) = default;
};

struct InstanceSample {  // of a GPU that is cut: what was read of this part of it
    std::uint16_t id = 0;
    std::uint8_t start = 0;  // its first memory slice
    std::string profile, uuid;
    std::vector<Measured> readings;
    friend bool operator==(const InstanceSample&, const InstanceSample&) = default;
};

struct GpuSample {  // what is not among the readings the driver does not tell
    std::uint16_t gpu = 0;
    std::uint16_t minor = 0;  // of /dev/nvidia0
    std::string uuid, bus, name;
    std::vector<Measured> readings;
    std::vector<InstanceSample> instances;
    friend bool operator==(const GpuSample&, const GpuSample&) = default;
};

struct Telemetry {
    Grade grade = Grade::assumed;
    Duration age;  // of the sample, when it was handed on
    std::vector<GpuSample> gpus;
    friend bool operator==(const Telemetry&, const Telemetry&) = default;
};

}  // namespace bulkhead
