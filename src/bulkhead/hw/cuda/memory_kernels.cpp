#include "bulkhead/hw/cuda/memory_kernels.hpp"

#include <array>
#include <bit>
#include <cmath>

namespace bulkhead::cuda {

namespace {

// Of 1 to 16 chunks a thread and 64 to 1024 threads a block, these were the fastest on an H200 (docs/measurements/).
constexpr std::uint32_t fill_threads = 256, compare_threads = 512;
constexpr std::uint64_t compare_chunks_each = 8;  // as in kernels/memory.cpp

std::uint32_t blocks_for(std::uint64_t chunks, std::uint64_t each) {
    return static_cast<std::uint32_t>((chunks + each - 1) / each);
}

}  // namespace

Result<Tallies> read_tallies(const Context& context, Address at) {
    std::array<std::array<std::uint64_t, 8>, tallies_bytes / 64> slots{};
    if (const auto copied = context.copy_out(std::as_writable_bytes(std::span{slots}), at); !copied)
        return std::unexpected(copied.error());
    Tallies all;
    for (const auto& slot : slots) {
        all.words += slot[0];
        all.words_other += slot[1];
        all.sum += slot[2];
    }
    return all;
}

Result<MemoryKernels> MemoryKernels::load(Context& context) {
    MemoryKernels kernels;
    for (const auto& [function, name] :
         {std::pair{&kernels.fill_, "bulkhead_fill"}, std::pair{&kernels.compare_, "bulkhead_compare"},
          std::pair{&kernels.reckon_, "bulkhead_reckon"}}) {
        const auto found = context.load(memory_ptx, name);
        if (!found) return std::unexpected(found.error());
        *function = *found;
    }
    return kernels;
}

Result<> MemoryKernels::fill(Context& context, Address at, std::uint64_t chunks, const Pattern& pattern) const {
    Pattern copy = pattern;
    std::array<void*, 4> arguments{&at, &chunks, copy.mul.data(), copy.add.data()};
    return context.launch(fill_, {blocks_for(chunks, fill_threads), fill_threads}, arguments);
}

std::uint32_t reckoned(std::uint32_t seed, std::uint32_t rounds) {
    float sum = 1;
    for (; rounds > 0; --rounds) {
        seed = seed * 1664525U + 1013904223U;
        seed ^= seed >> 15;
        sum = std::fma(sum, 0.5F, static_cast<float>(seed & 0xFFFF));
    }
    return seed ^ std::bit_cast<std::uint32_t>(sum);
}

Result<> MemoryKernels::reckon(Context& context, Address at, std::uint64_t words, std::uint32_t seed,
                               std::uint32_t rounds) const {
    std::array<void*, 4> arguments{&at, &words, &rounds, &seed};
    return context.launch(reckon_, {blocks_for(words, fill_threads), fill_threads}, arguments);
}

Result<> MemoryKernels::compare(Context& context, Address at, std::uint64_t chunks, const Pattern& pattern,
                                Address tallies) const {
    Pattern copy = pattern;
    std::array<void*, 5> arguments{&at, &chunks, copy.mul.data(), copy.add.data(), &tallies};
    return context.launch(compare_, {blocks_for(chunks, compare_threads * compare_chunks_each), compare_threads},
                          arguments);
}

}  // namespace bulkhead::cuda
