// What a kernel writes over memory: chunks of four 32-bit words, word j of chunk i being mul[j] * i + add[j] modulo
// 2^32. One repeated word is the case where every factor is zero. How many words of two patterns agree, and what all
// words of one add up to, has a closed form, so a simulated GPU compares a hundred gigabytes in no time.
#pragma once

#include <array>
#include <cstdint>

namespace bulkhead::driver {

struct Pattern {
    std::array<std::uint32_t, 4> mul{}, add{};

    static constexpr std::uint64_t chunk = 16;  // bytes
    static constexpr Pattern of_word(std::uint32_t word) { return {{}, {word, word, word, word}}; }

    constexpr bool repeats() const { return mul == std::array<std::uint32_t, 4>{}; }
    constexpr std::uint32_t word(std::uint64_t at, unsigned j) const {
        return static_cast<std::uint32_t>(at) * mul[j] + add[j];
    }
    constexpr char byte(std::uint64_t offset) const {
        return static_cast<char>(word(offset / chunk, static_cast<unsigned>(offset / 4 % 4)) >> offset % 4 * 8 & 0xFF);
    }
    // The same pattern as it reads so many chunks further on.
    constexpr Pattern from(std::uint64_t chunks) const {
        Pattern later = *this;
        for (unsigned j = 0; j < 4; ++j) later.add[j] = word(chunks, j);
        return later;
    }
    friend constexpr bool operator==(const Pattern&, const Pattern&) = default;
};

// How many of the first so many chunks' words are the same in both.
std::uint64_t words_in_common(const Pattern& one, const Pattern& other, std::uint64_t chunks);
// All words of the first so many chunks together, modulo 2^64.
std::uint64_t sum_of_words(const Pattern& pattern, std::uint64_t chunks);

}  // namespace bulkhead::driver
