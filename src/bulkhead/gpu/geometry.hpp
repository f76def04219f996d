// A MIG GPU is a small finite automaton. Its state is which memory slices are taken and what is left of the media
// engines: 1024 states, so "does it fit", "where" and "where best" are read from tables built once per board.
//
// The value of an occupancy is the number of further requests it is expected to serve before it must refuse one, when
// requests are drawn by the weights and each goes where that number stays largest. It is computed exactly, backwards
// from the full GPU. So a 3g goes to slice 4 of an empty H100, not 0: that keeps the 4g, and four 1g instead of three.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bulkhead/gpu/board.hpp"

namespace bulkhead::gpu {

class Occupancy {
public:
    static constexpr std::size_t states = 1024;

    constexpr Occupancy() = default;
    static constexpr Occupancy of_state(std::size_t state) { return Occupancy{static_cast<std::uint16_t>(state)}; }

    constexpr std::uint8_t slices() const { return static_cast<std::uint8_t>(state_ & 0xFF); }
    constexpr Media engines() const { return static_cast<Media>(state_ >> 8); }  // the most that any instance took
    constexpr std::size_t state() const { return state_; }

    constexpr bool admits(const Profile& profile) const {
        switch (profile.media) {
            case Media::none:
                return true;
            case Media::some:
                return engines() != Media::all;
            case Media::extended:
                return engines() < Media::extended;
            // Every engine must still be free, so not even a plain instance may be there first. The guide states only
            // the other order; an engine cannot belong to two instances in either.
            case Media::all:
                return engines() == Media::none;
        }
        return false;
    }
    constexpr bool free(Placement place) const { return (slices() & place.mask()) == 0; }

    // The caller has made sure that it fits.
    constexpr Occupancy with(const Profile& profile, unsigned start) const {
        const Media most = engines() > profile.media ? engines() : profile.media;
        const unsigned taken = slices() | profile.at(start).mask();
        return Occupancy{static_cast<std::uint16_t>(static_cast<unsigned>(most) << 8 | taken)};
    }

    friend constexpr auto operator<=>(Occupancy, Occupancy) = default;

private:
    constexpr explicit Occupancy(std::uint16_t state) : state_{state} {}
    std::uint16_t state_{};
};

// How likely each profile of the board is to be asked for next, against the others; same order as Board::profiles.
using Weights = std::vector<std::uint32_t>;
inline constexpr std::uint32_t weight_max = 1'000'000;

// Nobody said what is coming: every profile without attributes is as likely as any other; those with are rare.
Weights even_weights(const Board& board);

// In 2^-32 of a request, rounded down: integers, so that every machine breaks a tie the same way.
struct Value {
    std::uint64_t ticks{};
    constexpr double requests() const { return static_cast<double>(ticks) / 4294967296.0; }
    friend constexpr auto operator<=>(Value, Value) = default;
};

class Geometry {
public:
    static constexpr std::size_t profiles_max = 11;

    explicit Geometry(const Board& board) : Geometry{board, even_weights(board)} {}
    Geometry(const Board& board, const Weights& weights);

    const Board& board() const { return *board_; }

    // All starts at which the profile fits now.
    Starts fit(Occupancy now, std::size_t profile) const { return Starts{fit_[profile][now.state()]}; }

    // The start that leaves the highest value; of several, the lowest.
    std::optional<unsigned> place(Occupancy now, std::size_t profile) const {
        const std::uint8_t start = best_[profile][now.state()];
        return start == nowhere ? std::nullopt : std::optional<unsigned>{start};
    }

    Value value(Occupancy now) const { return {value_[now.state()]}; }

    // How many more instances of this profile alone would fit, as nvmlDeviceGetGpuInstanceRemainingCapacity counts.
    unsigned room(Occupancy now, std::size_t profile) const;

private:
    static constexpr std::uint8_t nowhere = 0xFF;
    using PerState = std::array<std::uint8_t, Occupancy::states>;

    const Board* board_;
    std::array<PerState, profiles_max> fit_{};
    std::array<PerState, profiles_max> best_{};
    std::array<std::uint64_t, Occupancy::states> value_{};
};

}  // namespace bulkhead::gpu
