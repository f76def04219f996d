// What a simulated node is made of, before its driver is loaded.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/node/driver_product.hpp"

namespace bulkhead::driver {

inline constexpr std::uint32_t gpus_max = 16;

enum class Fabric : std::uint8_t { none, nvlink };  // how GPUs of the node reach each other
constexpr auto words(Fabric) { return std::array<std::string_view, 2>{"none", "nvlink"}; }

enum class CpuProtection : std::uint8_t { none, sev_snp, tdx };  // what the processor offers to confidential computing
constexpr auto words(CpuProtection) { return std::array<std::string_view, 3>{"none", "sev-snp", "tdx"}; }

struct GpuSpec {
    std::string product;  // an id of driver_product.hpp
    std::string uuid;     // "GPU-..."
    std::string serial;
    std::uint32_t pci_domain{}, pci_bus{}, pci_device{}, minor{};
    friend bool operator==(const GpuSpec&, const GpuSpec&) = default;
};

struct Spec {
    std::string node = "node";
    std::vector<GpuSpec> gpus;
    std::string driver = "580.159.04", vbios = "96.00.A5.00.1A";
    std::uint32_t cuda = 13000;  // 1000 major + 10 minor
    Fabric fabric = Fabric::none;
    std::uint32_t gpus_per_socket = 4;
    CpuProtection cpu_protection = CpuProtection::none;
    bool confidential = false;  // the node booted with confidential computing on
    bool passed_through =
        false;  // to a virtual machine: its driver cannot reset, so MIG mode of Ampere waits for the host
    bool keeps_residue = false;  // freed memory keeps its contents; driver 580 was seen to clear it
    friend bool operator==(const Spec&, const Spec&) = default;
};

struct Group {
    std::string product;
    std::uint32_t count = 1;
};
// Gives every GPU a UUID, a serial number and a bus address that follow from the node's name and its place.
Result<Spec> spec_of(std::string_view node, const std::vector<Group>& groups);

// A UUID's text that follows from other text; not random, so that one story always has the same names.
std::string uuid_from(std::string_view prefix, std::string_view text);

}  // namespace bulkhead::driver
