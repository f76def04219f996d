// The value of each layout of a MIG GPU in a fleet where requests for instances come in known proportions, are placed
// at once or refused, and end again. A layout is which slices are taken and where its instances begin.
//
// One GPU is looked at as if it got its even part of the fleet's requests at full load, placed each where the value
// stays largest, and paid for every request that it cannot place. The value of a layout is what it pays less, from
// there on, than a GPU that is full; departures count, so a slice between two instances that have to end first is
// worth less than one that is free on its own. The payment for a refusal grows with the size of the profile (power
// 1.4), because large profiles find no other place, and with its rarity, so that a profile that is asked for in one
// request of ten is not forgotten beside one that is asked for in nine. Found by trying (docs/promises.md, MIG
// acceptance; docs/decisions/0043).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "bulkhead/gpu/board.hpp"

namespace bulkhead::gpu {

// How often each profile is asked for, in fortieths of all requests; same order as Board::profiles.
using Demand40 = std::vector<std::uint8_t>;

// From counted requests. Each profile without attributes counts once more than it was asked for: that is all that is
// known before the first request.
Demand40 demand_of(const Board& board, std::span<const std::int64_t> asked);

class LayoutValues {
public:
    LayoutValues(const Board& board, const Demand40& demand);

    // In millionths of the difference between the best and the worst layout. Slices that are taken by no instance
    // (dirty, lost) are allowed: then it is the value of the best layout that takes at least these slices.
    std::int64_t value(std::uint8_t taken, std::uint8_t begins) const {
        const std::uint16_t known = number_[std::size_t{taken} << 8 | begins];
        return known != unknown ? values_[known] : best_with_[taken];
    }
    std::size_t layouts() const { return values_.size(); }

private:
    static constexpr std::uint16_t unknown = 0xFFFF;
    std::vector<std::uint16_t> number_;  // by taken slices and begins
    std::vector<std::int64_t> values_;
    std::array<std::int64_t, 256> best_with_{};
};

}  // namespace bulkhead::gpu
