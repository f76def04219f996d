// Seeded randomness, handed in where it is needed: the same seed gives the same numbers on every machine.
#pragma once

#include <cstdint>
#include <span>

namespace bulkhead {

// xoshiro256** seeded by splitmix64.
class Rng {
public:
    constexpr explicit Rng(std::uint64_t seed) {
        for (std::uint64_t& word : state_) {
            seed += 0x9E3779B97F4A7C15u;
            std::uint64_t z = seed;
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
            z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
            word = z ^ (z >> 31);
        }
    }

    constexpr std::uint64_t next() {
        const std::uint64_t result = rotated(state_[1] * 5, 7) * 9, shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = rotated(state_[3], 45);
        return result;
    }

    // In [0, bound); the tiny bias of the multiplication does not matter to simulation. bound > 0.
    constexpr std::uint64_t below(std::uint64_t bound) {
        return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
    }
    // In [low, high].
    constexpr std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
    }
    // True in so many of a thousand cases.
    constexpr bool chance(std::uint64_t thousandths) { return below(1000) < thousandths; }
    // A generator of its own, so that what one part draws does not shift what another does.
    constexpr Rng split() { return Rng{next()}; }

    template <class T>
    constexpr T& pick(std::span<T> from) {
        return from[below(from.size())];
    }

private:
    __extension__ using Wide = unsigned __int128;
    static constexpr std::uint64_t rotated(std::uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }
    std::uint64_t state_[4]{};
};

}  // namespace bulkhead
