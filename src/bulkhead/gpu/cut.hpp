// How the compute slices of one GPU instance are divided: so many compute instances of each size. They share the
// instance's memory and engines, so dividing separates SMs and nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bulkhead/gpu/board.hpp"

namespace bulkhead::gpu {

struct Cut {
    std::array<std::uint8_t, 8> count{};  // by compute slices; count[0] stays 0

    static constexpr Cut whole(unsigned slices) { return Cut{}.plus(slices); }
    constexpr Cut plus(unsigned slices) const {
        Cut more = *this;
        ++more.count.at(slices);
        return more;
    }
    constexpr bool covers(const Cut& wanted) const {
        for (std::size_t size = 1; size < count.size(); ++size)
            if (count[size] < wanted.count[size]) return false;
        return true;
    }
    friend constexpr auto operator<=>(const Cut&, const Cut&) = default;
};

// The compute instances of a cut with their places, in compute slices from the start of the GPU instance; nothing when
// they do not fit into one instance of that size.
std::optional<std::vector<Placement>> arrange_cut(unsigned gpu_slices, const Cut& cut);

// The NVML compute-instance profile that makes `compute` slices of this GPU instance; unknown where no source says.
std::optional<CiEnum> compute_profile(const Board& board, const Profile& profile, unsigned compute);

}  // namespace bulkhead::gpu
