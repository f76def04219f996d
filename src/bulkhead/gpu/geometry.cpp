#include "bulkhead/gpu/geometry.hpp"

#include <numeric>

namespace bulkhead::gpu {

Weights even_weights(const Board& board) {
    Weights weights;
    // Attributes are rarely asked for: enough to break a tie, not enough to bend the choice.
    for (const Profile& profile : board.profiles) weights.push_back(profile.plain() ? 1000 : 1);
    return weights;
}

Geometry::Geometry(const Board& board, const Weights& weights) : board_{&board} {
    invariant(board.profiles.size() <= profiles_max, "a board has at most as many profiles as the tables hold");
    invariant(weights.size() == board.profiles.size(), "every profile has a weight");
    std::uint64_t total = 0;
    for (const std::uint32_t weight : weights) {
        invariant(weight <= weight_max, "weights are small enough that a weighted value fits 64 bits");
        total += weight;
    }

    constexpr std::uint64_t one_request = 1ull << 32;
    // Placing only ever sets bits of the state, so counting down meets every successor before it is needed.
    for (std::size_t state = Occupancy::states; state-- > 0;) {
        const Occupancy now = Occupancy::of_state(state);
        std::uint64_t weighted = 0;
        for (std::size_t p = 0; p < board.profiles.size(); ++p) {
            const Profile& profile = board.profiles[p];
            best_[p][state] = nowhere;
            if (!now.admits(profile)) continue;
            unsigned fits = 0;
            std::uint64_t best_value = 0;
            for (const unsigned start : profile.starts) {
                if (!now.free(profile.at(start))) continue;
                fits |= 1u << start;
                const std::uint64_t after = value_[now.with(profile, start).state()];
                if (best_[p][state] != nowhere && after <= best_value) continue;
                best_value = after;
                best_[p][state] = static_cast<std::uint8_t>(start);
            }
            fit_[p][state] = static_cast<std::uint8_t>(fits);
            if (fits == 0) continue;
            weighted += weights[p] * (one_request + best_value);
        }
        value_[state] = total == 0 ? 0 : weighted / total;
    }
}

unsigned Geometry::room(Occupancy now, std::size_t profile) const {
    const unsigned starts =
        fit(now, profile).count();  // starts of one profile never overlap: board_tables.cpp asserts it
    return starts < board_->profiles[profile].max_instances ? starts : board_->profiles[profile].max_instances;
}

}  // namespace bulkhead::gpu
