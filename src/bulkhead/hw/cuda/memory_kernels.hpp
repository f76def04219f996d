// The kernels of kernels/memory.cpp from the host's side: their names, their arguments, and how many threads do best.
#pragma once

#include <cstdint>

#include "bulkhead/hw/cuda/driver.hpp"
#include "bulkhead/hw/cuda/pattern.hpp"

namespace bulkhead::cuda {

extern const char* const memory_ptx;

struct Tallies {
    std::uint64_t words = 0, words_other = 0, sum = 0;
};
// Where kernels/memory.cpp adds them up: 64 slots of 64 bytes, to be zero at first.
inline constexpr std::uint64_t tallies_bytes = 4096;
Result<Tallies> read_tallies(const Context& context, Address at);

// What every thread of bulkhead_reckon must come to.
std::uint32_t reckoned(std::uint32_t seed, std::uint32_t rounds);

class MemoryKernels {
public:
    static Result<MemoryKernels> load(Context& context);
    // Both only begin; Context::finish, a copy or a mark waits.
    Result<> fill(Context& context, Address at, std::uint64_t chunks, const Pattern& pattern) const;
    Result<> compare(Context& context, Address at, std::uint64_t chunks, const Pattern& pattern, Address tallies) const;
    Result<> reckon(Context& context, Address at, std::uint64_t words, std::uint32_t seed, std::uint32_t rounds) const;

private:
    Function fill_, compare_, reckon_;
};

}  // namespace bulkhead::cuda
