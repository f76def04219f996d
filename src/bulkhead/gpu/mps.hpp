// The bound on processes that share one GPU by NVIDIA's Multi-Process Service (MPS).
#pragma once

#include <cstdint>

namespace bulkhead::gpu {

// Client contexts of one MPS server, on Volta and newer with CUDA 13.0 and older; newer ones take more. A server serves
// one GPU, or one MIG instance.
inline constexpr std::int64_t mps_clients = 48;

}  // namespace bulkhead::gpu
