// How many GPUs of a board hold a number of MIG instances, of several profiles mixed.
#pragma once

#include <cstdint>
#include <span>

#include "bulkhead/gpu/board.hpp"

namespace bulkhead {

struct InstanceCount {
    std::size_t profile = 0;  // of Board::profiles
    std::int64_t count = 0;
};

// The fewest GPUs where the counts are small (at most 20,000 combinations of what is left), else a number that
// suffices.
std::int64_t gpus_for_instances(const gpu::Board& board, std::span<const InstanceCount> wanted);

}  // namespace bulkhead
