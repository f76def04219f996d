// Every plan that the law allows for the claimant of a scene, tried one after the other.
#pragma once

#include <expected>
#include <optional>
#include <string>

#include "sim/referee/law.hpp"

namespace bulkhead::referee {

struct Plan {
    std::optional<Ground> ground;  // none: there is free room
    Taken taken{};
    JobSet moved = 0;

    bool disturbs() const;
};

// How much a plan disturbs: moves only; spare tasks; whole jobs, and no level falls below its guarantee (by fair share:
// its due); whole jobs, the last of which takes its level below.
enum class Kind : std::uint8_t { moves, spare, gentle, below };

class Plans {
public:
    Plans(const Scene& scene, const Manners& manners, Dues dues);

    // Some allowed plan, one without moves if there is one; none: the claimant has to wait.
    std::optional<Plan> find();
    // On which ground these evictions, shrinks and moves are allowed for the claimant, else the rules they break.
    std::expected<Ground, std::string> ground_of(const Taken& taken, JobSet moved, const Floor& after_moves) const;
    Kind kind_of(const Taken& taken, Ground ground) const;
    // Whether a plan of a less disturbing kind exists on the same ground, without moves.
    bool has_gentler(Kind kind, Ground ground);
    std::uint64_t tried() const { return tried_; }
    const Law& law() const { return law_; }

private:
    bool is_scattered(std::size_t job) const;
    bool moves_too_many(JobSet moved, Ground ground) const;
    void look_at(Ground ground);  // whose jobs may be taken or moved
    bool choose(std::size_t job);
    bool settle();
    bool seat_moved(std::size_t job, std::size_t task, std::size_t from, Floor& floor);
    bool optimistic(std::size_t from) const;

    const Scene& scene_;
    const Manners& manners_;
    Floor start_;
    Law law_;
    std::size_t claimant_;
    int fewest_;
    Ground ground_ = Ground::guarantee;
    Kind most_ = Kind::below;  // plans that disturb more are not looked for
    Plan plan_;
    JobSet takeable_ = 0, movable_ = 0;
    int moves_ = 0;
    std::uint64_t tried_ = 0;
};

}  // namespace bulkhead::referee
