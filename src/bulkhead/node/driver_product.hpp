// What a GPU is before anybody uses it: name, memory, clocks, links, limits. One row per product that a simulated node
// can have. What can be cut into instances also has a board in gpu/, which holds the MIG tables; this is the rest of
// what a driver tells.
//
// A row says how far to believe it: an H200 was read, the others are data sheets and habit, good for running clients
// and for nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "bulkhead/base/result.hpp"
#include "bulkhead/gpu/board.hpp"

namespace bulkhead::driver {

enum class Architecture : std::uint8_t { volta, turing, ampere, ada, hopper, blackwell };
constexpr auto words(Architecture) {
    return std::array<std::string_view, 6>{"volta", "turing", "ampere", "ada", "hopper", "blackwell"};
}

struct Clocks {
    std::uint32_t graphics_mhz{}, sm_mhz{}, memory_mhz{}, video_mhz{};
    friend bool operator==(const Clocks&, const Clocks&) = default;
};
struct PowerLimits {
    std::uint32_t normal_mw{}, min_mw{}, max_mw{}, idle_mw{};  // as the board is shipped, and what may be set
};
struct TemperatureLimits {
    std::uint32_t shutdown_c{}, slowdown_c{}, memory_c{}, gpu_c{};  // 0: the driver does not say
};
struct Links {
    std::uint32_t pcie_generation{}, pcie_width{}, nvlinks{}, nvlink_version{}, nvlink_mbps{};
};

struct Product {
    std::string_view id;    // "h200-141gb", "l40s"
    std::string_view name;  // "NVIDIA H200"
    Architecture architecture{};
    std::uint32_t capability_major{}, capability_minor{};
    std::uint32_t pci_id{}, subsystem_id{};  // device, then vendor
    std::uint32_t memory_mib{}, reserved_kib{}, bus_width_bits{};
    std::uint32_t sms{}, cores_per_sm{};
    PowerLimits power;
    Clocks idle, busiest;
    TemperatureLimits hottest;
    Links links;
    std::uint32_t fans{}, bar1_mib{};
    bool ecc{}, conf_compute{};
    std::uint32_t remap_banks{};  // of memory with spare rows; 0: retires pages instead
    Grade grade{};

    const gpu::Board* board() const;  // null: cannot be cut with MIG
    // Hopper and newer switch MIG mode without a reset and forget it when the node reboots; Ampere does neither.
    bool switches_mig_without_reset() const { return architecture >= Architecture::hopper; }
    bool keeps_mig_mode_over_reboot() const { return architecture == Architecture::ampere; }
    std::uint64_t memory_bytes() const { return std::uint64_t{memory_mib} << 20; }
    std::uint64_t reserved_bytes() const { return std::uint64_t{reserved_kib} << 10; }
};

std::span<const Product> products();
Result<const Product*> find_product(std::string_view id);

}  // namespace bulkhead::driver
