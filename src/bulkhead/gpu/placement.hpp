// Where an instance sits: a run of memory slices on one GPU, and the set of slices at which a run may begin.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace bulkhead::gpu {

// Placements count memory slices, as nvmlGpuInstancePlacement_t does; inside a GPU instance they count compute slices.
struct Placement {
    unsigned start{}, size{};
    constexpr unsigned end() const { return start + size; }
    constexpr bool overlaps(Placement o) const { return start < o.end() && o.start < end(); }
    constexpr std::uint8_t mask() const { return static_cast<std::uint8_t>(((1u << size) - 1u) << start); }
    friend constexpr auto operator<=>(Placement, Placement) = default;
};
static_assert(!Placement{0, 4}.overlaps({4, 4}));  // neighbours touch; they do not overlap
static_assert(Placement{4, 4}.mask() == 0xF0);

// A set of starts, one bit each. Iterates from the lowest.
class Starts {
public:
    constexpr Starts() = default;
    constexpr explicit Starts(std::uint8_t bits) : bits_{bits} {}
    template <class... Start>
    static constexpr Starts at(Start... starts) {
        return Starts{static_cast<std::uint8_t>((0u | ... | (1u << starts)))};
    }

    constexpr std::uint8_t bits() const { return bits_; }
    constexpr bool empty() const { return bits_ == 0; }
    constexpr unsigned count() const { return static_cast<unsigned>(std::popcount(bits_)); }
    constexpr bool contains(unsigned start) const { return start < 8 && (bits_ >> start & 1u) != 0; }
    constexpr unsigned lowest() const { return static_cast<unsigned>(std::countr_zero(bits_)); }

    struct Iterator {
        using value_type = unsigned;
        using difference_type = std::ptrdiff_t;
        std::uint8_t left{};
        constexpr unsigned operator*() const { return static_cast<unsigned>(std::countr_zero(left)); }
        constexpr Iterator& operator++() {
            left = static_cast<std::uint8_t>(left & (left - 1));
            return *this;
        }
        constexpr Iterator operator++(int) {
            const Iterator before = *this;
            ++*this;
            return before;
        }
        friend constexpr bool operator==(Iterator, Iterator) = default;
    };
    constexpr Iterator begin() const { return {bits_}; }
    constexpr Iterator end() const { return {0}; }
    friend constexpr bool operator==(Starts, Starts) = default;

private:
    std::uint8_t bits_{};
};

}  // namespace bulkhead::gpu
