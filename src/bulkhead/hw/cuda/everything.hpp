// All memory of a device that a program can have.
#pragma once

#include <cstdint>
#include <vector>

#include "bulkhead/hw/cuda/driver.hpp"

namespace bulkhead::cuda {

inline constexpr std::uint64_t page_bytes = 2 << 20;  // memory comes in pages of this size

// Largest pieces first; freed with the context.
Result<std::vector<Piece>> take_everything(Context& context);
// The same, in whole pages, of a context that `can_hold`.
Result<std::vector<Holding>> hold_everything(Context& context);

}  // namespace bulkhead::cuda
