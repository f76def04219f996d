// All memory of a device that a program can have.
#pragma once

#include <vector>

#include "bulkhead/hw/cuda/driver.hpp"

namespace bulkhead::cuda {

// Largest pieces first; freed with the context.
Result<std::vector<Piece>> take_everything(Context& context);

}  // namespace bulkhead::cuda
