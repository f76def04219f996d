// One scene, decided by the engine and by the referee, and compared.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/referee/plans.hpp"
#include "sim/referee/stage.hpp"

namespace bulkhead::referee {

enum class Answer : std::uint8_t { room, guarantee, fair_share, preemption, refused };
constexpr auto words(Answer) {
    return std::to_array<std::string_view>({"free room", "guarantee", "fair share", "preemption", "refused"});
}

struct Trial {
    Answer answer = Answer::refused;  // the referee's
    bool moves = false;               // its plan moves work
    bool harsh = false;  // the engine ended whole jobs where spare tasks would do, or went below a guarantee
    // What the two disagree about, by kind: "missed", "unlawful", "for nothing", "fault", "unsettled", "budget".
    std::vector<std::pair<std::string, std::string>> disagreements;
    std::uint64_t plans = 0;  // that the referee tried
};
Trial compare(const Scene& scene);

// What the engine did wrong where an elastic gang may grow: within its guarantee it takes what law A allows, one task
// after the other. Empty: nothing.
std::vector<std::string> compare_growth(const Scene& scene);

// What the engine did wrong where limits were lowered below what is leased: preemptible work of the tenants beyond
// their limit gives way, and no more of it than needed. Empty: nothing.
std::vector<std::string> compare_limits(const Scene& scene);

// Whether each order of submission tried leads to the same totals of every tenant; empty: it does, else how they
// differ.
struct OrderTrial {
    int orders = 0;
    std::string difference;
};
OrderTrial compare_orders(const Scene& scene, std::uint64_t seed);

}  // namespace bulkhead::referee
