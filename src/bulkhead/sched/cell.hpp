// One GPU as the engine keeps it: sixteen bytes, so that whole nodes are compared and hashed as bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "bulkhead/gpu/geometry.hpp"
#include "bulkhead/gpu/mps.hpp"
#include "bulkhead/sched/company.hpp"

namespace bulkhead::sched {

// A GPU model, or the same model in another number of memory slices.
struct CellModel {
    std::string name;
    const gpu::Board* board = nullptr;
    std::uint8_t slices = 1;
    bool amd = false;  // its memory mode (NPS) is set for all GPUs of a node at once
    std::uint8_t all() const { return static_cast<std::uint8_t>((1u << slices) - 1u); }
};

// How many slices a mask names. By table: without a processor's own instruction, which not every machine has,
// std::popcount is a call.
inline constexpr std::array<std::uint8_t, 256> slice_counts = [] {
    std::array<std::uint8_t, 256> counts{};
    for (unsigned mask = 0; mask < 256; ++mask) counts[mask] = static_cast<std::uint8_t>(std::popcount(mask));
    return counts;
}();
constexpr int slices_in(std::uint8_t mask) { return slice_counts[mask]; }

// So many of a GPU's slices in thousandths of it, rounded down. By table: a division takes as long as ten additions.
inline constexpr std::array<std::array<std::int16_t, 9>, 9> slice_parts = [] {
    std::array<std::array<std::int16_t, 9>, 9> parts{};
    for (std::size_t of = 1; of <= 8; ++of)
        for (std::size_t slices = 0; slices <= 8; ++slices)
            parts[of][slices] = static_cast<std::int16_t>(1000 * slices / of);
    return parts;
}();
constexpr std::int64_t thousandths_in(std::uint8_t mask, std::uint8_t of) {
    return slice_parts[of][slice_counts[mask]];
}

// Shares from here on, in thousandths, fill a GPU before its MPS server has as many clients as it takes. In a fleet
// where all shares are so large, clients are not counted.
inline constexpr std::int64_t large_share = 1000 / gpu::mps_clients + 1;

struct Cell {
    std::uint8_t model = 0;
    std::uint8_t available = 0;  // slices that are clean and nobody's
    std::uint8_t held = 0;       // slices that somebody holds and is not giving up
    std::uint8_t lost = 0;       // slices that nobody new gets until a person acts
    std::uint8_t use = 0;        // of what sits here: 0 instances, else 1 + mechanism of those who hold the GPU itself
    std::uint8_t mode = 0;       // the most media engines an instance took; the partition mode
    std::uint16_t taken = 0;     // thousandths that are held
    Company company;             // bears: on the GPU; closer: in the same memory
    std::uint8_t kept = 0;       // slices that are promised to somebody
    std::uint8_t clients = 0;    // of its MPS server, tasks of all work together; 0 where clients are not counted
    std::uint8_t begins = 0;     // the first slice of each instance and partition, promised ones too
    std::array<std::uint8_t, 1> unused{};

    bool empty(std::uint8_t all) const { return company.empty() && available == all; }
    std::uint8_t open() const { return static_cast<std::uint8_t>(available & ~kept); }
    gpu::Occupancy occupancy(std::uint8_t all) const {
        const unsigned gone = static_cast<unsigned>(~open()) & all;
        return gpu::Occupancy::of_state(static_cast<std::size_t>(mode) << 8 | gone);
    }
    std::int64_t clients_left() const { return std::max<std::int64_t>(gpu::mps_clients - clients, 0); }
    friend auto operator<=>(const Cell&, const Cell&) = default;
};
static_assert(sizeof(Cell) == 16);

}  // namespace bulkhead::sched
