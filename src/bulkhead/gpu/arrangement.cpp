#include "bulkhead/gpu/arrangement.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace bulkhead::gpu {

namespace {

struct Search {
    const Geometry& geometry;
    std::span<const Demand> demands;
    Arrangement trial{}, best{};
    bool found = false;

    void place(std::size_t nth, Occupancy now) {
        // Placing more never raises the value, so a branch already no better than the best is not worth finishing.
        if (found && geometry.value(now) <= best.value) return;
        if (nth == demands.size()) {
            best = trial;
            best.after = now;
            best.value = geometry.value(now);
            found = true;
            return;
        }
        const Demand& demand = demands[nth];
        unsigned open = geometry.fit(now, demand.profile).bits() & demand.starts.bits();
        // Equal demands are interchangeable: taking their starts in rising order tries each combination once.
        if (nth > 0 && demands[nth - 1] == demand) open &= ~((2u << trial.starts[nth - 1]) - 1u);
        for (const unsigned start : Starts{static_cast<std::uint8_t>(open)}) {
            trial.starts[nth] = static_cast<std::uint8_t>(start);
            place(nth + 1, now.with(geometry.board().profiles[demand.profile], start));
        }
    }
};

}  // namespace

void sort_for_arranging(const Board& board, std::span<Demand> demands) {
    const auto rank = [&](const Demand& demand) {
        return std::tuple{-static_cast<int>(board.profiles[demand.profile].memory_slices), demand.starts.count(),
                          demand.profile, demand.starts.bits()};
    };
    std::ranges::sort(demands, {}, rank);
}

std::optional<Arrangement> arrange(const Geometry& geometry, Occupancy now, std::span<const Demand> demands) {
    if (demands.size() > instances_max) return std::nullopt;
    const Board& board = geometry.board();
    unsigned needed = 0;
    for (const Demand& demand : demands) needed += board.profiles[demand.profile].memory_slices;
    if (needed + static_cast<unsigned>(std::popcount(now.slices())) > board.memory_slices) return std::nullopt;

    Search search{geometry, demands};
    search.place(0, now);
    return search.found ? std::optional{search.best} : std::nullopt;
}

}  // namespace bulkhead::gpu
