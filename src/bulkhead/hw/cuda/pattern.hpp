// What an overwrite leaves behind: word j of chunk i is mul[j] * i + add[j], modulo 2^32 (kernels/memory.cpp). The keys
// are drawn anew for every wipe, so that what a compare finds there can only be what this wipe wrote.
#pragma once

#include <array>
#include <cstdint>

namespace bulkhead::cuda {

struct Pattern {
    alignas(16) std::array<std::uint32_t, 4> mul{};
    alignas(16) std::array<std::uint32_t, 4> add{};

    constexpr std::uint32_t word(std::uint64_t chunk, unsigned j) const {
        return static_cast<std::uint32_t>(chunk) * mul[j] + add[j];
    }
    friend bool operator==(const Pattern&, const Pattern&) = default;
};

inline constexpr Pattern zeros{};
inline constexpr std::uint64_t chunk_bytes = 16;
// A run of chunks that one pattern covers without repeating: after 2^32 chunks it would.
inline constexpr std::uint64_t run_chunks_max = std::uint64_t{1} << 32;

// Odd factors, so that a word differs from chunk to chunk; chosen by what their products look like, of no other
// meaning.
constexpr Pattern keyed(std::array<std::uint32_t, 4> key, std::uint64_t run) {
    Pattern pattern{.mul = {0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35, 0x27D4EB2F}, .add = key};
    for (unsigned j = 0; j < 4; ++j) pattern.add[j] += static_cast<std::uint32_t>(run) * 0x2545F491u;
    return pattern;
}

// What all words of so many chunks add up to, modulo 2^64, in a few steps: what a compare that has read them all found.
std::uint64_t sum_of(const Pattern& pattern, std::uint64_t chunks);

}  // namespace bulkhead::cuda
