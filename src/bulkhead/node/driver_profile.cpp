// Where the board's table has a number it is taken; where not, the share of the slices is.
#include "bulkhead/node/driver_profile.hpp"

namespace bulkhead::driver {

namespace {

// The ids that boards with the same number of slices answer.
std::uint32_t usual_id(gpu::GiEnum shape) {
    switch (shape) {
        case gpu::GiEnum::slice_1:
            return 19;
        case gpu::GiEnum::slice_1_rev1:
            return 20;
        case gpu::GiEnum::slice_1_rev2:
            return 15;
        case gpu::GiEnum::slice_2:
            return 14;
        case gpu::GiEnum::slice_3:
            return 9;
        case gpu::GiEnum::slice_4:
            return 5;
        default:
            return 0;
    }
}

std::uint32_t known_or(gpu::Known known, std::uint32_t otherwise) {
    return known ? static_cast<std::uint32_t>(*known) : otherwise;
}

// Whole runs from zero on: what small compute instances do on every board that was listed.
gpu::Starts runs_of(std::uint32_t size, std::uint32_t count) {
    std::uint8_t bits = 0;
    for (std::uint32_t i = 0; i < count; ++i) bits = static_cast<std::uint8_t>(bits | 1u << (i * size));
    return gpu::Starts{bits};
}

bool is_nvl(gpu::CiEnum profile) { return profile == gpu::CiEnum::slice_7_nvl; }

gpu::CiEnum whole_instance(const GpuProfile& of) {
    switch (of.slices) {
        case 1:
            return gpu::CiEnum::slice_1;
        case 2:
            return gpu::CiEnum::slice_2;
        case 3:
            return gpu::CiEnum::slice_3;
        case 4:
            return gpu::CiEnum::slice_4;
        default:
            return gpu::CiEnum::slice_7;
    }
}

}  // namespace

std::vector<GpuProfile> gpu_profiles(const Product& product) {
    std::vector<GpuProfile> all;
    const gpu::Board* board = product.board();
    if (board == nullptr) return all;
    for (const gpu::Profile& p : board->profiles) {
        const gpu::Engines& e = p.engines;
        all.push_back({.number = static_cast<std::uint32_t>(p.nvml),
                       .id = known_or(p.id, usual_id(p.nvml)),
                       .name = p.name,
                       .slices = p.slices,
                       .memory_slices = p.memory_slices,
                       .max_instances = p.max_instances,
                       .sms = known_or(p.sms, product.sms * p.slices / board->slices / 2 * 2),
                       .memory_mib = known_or(p.memory_mib, (product.memory_mib - product.reserved_kib / 1024) *
                                                                p.memory_slices / board->memory_slices),
                       .copy = known_or(e.copy, p.slices),
                       .decoders = known_or(e.decoders, p.slices),
                       .encoders = known_or(e.encoders, 0),
                       .jpeg = known_or(e.jpeg, p.slices),
                       .ofa = known_or(e.ofa, p.media == gpu::Media::extended ? 1 : 0),
                       .starts = p.starts,
                       .media = p.media,
                       .graphics = p.attribute == "+gfx",
                       .assumed = !p.id || !p.sms || !p.memory_mib || !e.copy});
    }
    return all;
}

std::vector<ComputeProfile> compute_profiles(const Product& product, const GpuProfile& of) {
    std::vector<ComputeProfile> all;
    const gpu::Board* board = product.board();
    if (board == nullptr) return all;
    for (const gpu::ComputeProfile& p : board->compute_profiles) {
        if (static_cast<std::uint32_t>(p.gpu_instance) != of.number) continue;
        all.push_back({.id = static_cast<std::uint32_t>(p.nvml),
                       .slices = p.slices,
                       .max_instances = p.max_instances,
                       .sms = known_or(p.sms, of.sms * p.slices / of.slices / 2 * 2),
                       .starts = !p.starts.empty() || is_nvl(p.nvml) ? p.starts : runs_of(p.slices, p.max_instances),
                       .assumed = !p.sms});
    }
    if (!all.empty()) return all;
    // No source lists any: the two that every listed board has.
    if (of.slices > 1)
        all.push_back({.id = static_cast<std::uint32_t>(gpu::CiEnum::slice_1),
                       .slices = 1,
                       .max_instances = of.slices,
                       .sms = of.sms / of.slices / 2 * 2,
                       .starts = runs_of(1, of.slices),
                       .assumed = true});
    all.push_back({.id = static_cast<std::uint32_t>(whole_instance(of)),
                   .slices = of.slices,
                   .max_instances = 1,
                   .sms = of.sms,
                   .starts = gpu::Starts::at(0),
                   .assumed = true});
    return all;
}

}  // namespace bulkhead::driver
