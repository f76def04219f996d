// The profiles that a driver offers on a product, without gaps. gpu/board.hpp leaves unknown what no source says; a
// driver must answer something, so here the gaps are filled by proportion and habit, and `assumed` says where.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "bulkhead/node/driver_product.hpp"

namespace bulkhead::driver {

struct GpuProfile {
    std::uint32_t number{};  // what nvmlDeviceGetGpuInstanceProfileInfo is asked with
    std::uint32_t id{};      // what it answers, and what instances are created with
    std::string_view name;
    std::uint32_t slices{}, memory_slices{}, max_instances{}, sms{}, memory_mib{};
    std::uint32_t copy{}, decoders{}, encoders{}, jpeg{}, ofa{};
    gpu::Starts starts;
    gpu::Media media{};
    bool graphics = false;
    bool assumed = false;
    friend bool operator==(const GpuProfile&, const GpuProfile&) = default;
};

struct ComputeProfile {
    std::uint32_t id{};  // question and answer are the same number here
    std::uint32_t slices{}, max_instances{}, sms{};
    gpu::Starts starts;  // in compute slices of the GPU instance; empty: the driver lists it and cannot create it
    bool assumed = false;
};

std::vector<GpuProfile> gpu_profiles(const Product& product);  // none: cannot be cut
std::vector<ComputeProfile> compute_profiles(const Product& product, const GpuProfile& of);

}  // namespace bulkhead::driver
