// The law of guarantees, for one scene: what each tenant leases, is guaranteed and entitled to, whose work is protected
// from a claimant, and whether a set of work may be taken for it.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "sim/referee/floor.hpp"

namespace bulkhead::referee {

// What each tenant is due, in eighths of GPUs. Division has tests of its own; the referee takes its answer.
struct Dues {
    std::vector<double> all, own;  // with its children; of its own work
};

// What is taken of the running jobs: one bit for each task that ends.
using Taken = std::array<std::uint8_t, most_jobs>;

enum class Ground : std::uint8_t { guarantee, fair_share, preemption };

class Law {
public:
    Law(const Scene& scene, const Manners& manners, const Floor& start, Dues dues);

    bool is_ancestor(int above, int tenant) const;  // or the same
    const std::vector<int>& line(int tenant) const { return lines_[at(tenant)]; }
    // Of work that runs: nothing of its branch, seen from the claimant, leases more than its guarantee.
    bool is_within_guarantee(std::size_t job) const;
    bool is_scattered(std::size_t job) const { return is_within_guarantee(job) && !is_inside_entitlement(job); }
    bool is_protected(std::size_t job) const { return is_within_guarantee(job) && is_inside_entitlement(job); }

    bool may_be_taken(std::size_t job, Ground ground) const;  // alone, whatever else is taken
    bool may_be_moved(std::size_t job) const;
    // Taking more makes none of these true again: a search may stop here.
    bool is_ordered(const Taken& taken, Ground ground) const;
    // Some level ends below its guarantee, or its due.
    bool takes_below(const Taken& taken, Ground ground) const;
    bool may_claim(const Taken& taken, Ground ground) const;
    bool is_within_limits(const Taken& taken) const;
    // No tenant's footprint grows by moves of its scattered work.
    bool keeps_footprints(const Floor& moved, JobSet jobs) const;

    double footprint(const Floor& floor, int tenant) const;  // with its children, in eighths
    double entitlement(int tenant) const { return entitlement_[at(tenant)]; }
    int guarantee(int tenant) const { return guarantee_[at(tenant)]; }
    int own_guarantee(int tenant) const { return own_guarantee_[at(tenant)]; }
    int held(int tenant) const { return held_[at(tenant)]; }

private:
    static std::size_t at(int tenant) { return static_cast<std::size_t>(tenant); }
    bool is_inside_entitlement(std::size_t job) const;
    double closed_on(const Floor& floor, std::size_t node, const std::function<bool(int)>& counts) const;
    double empty_nodes_closed(const Floor& floor, int tenant) const;
    // Calls visit(level, own) for each level of the branch, until it answers no. `own`: the level's own work alone.
    template <class Visit>
    bool all_levels(int tenant, const Visit& visit) const;
    struct Losses {
        std::array<int, most_jobs> sum{}, largest{};
        std::array<bool, most_jobs> touched{};
    };
    std::array<Losses, 2> losses(const Taken& taken) const;  // of whole levels; of own work
    int least_run(int tenant, Ground ground) const;          // minutes
    std::optional<int> most(int tenant) const;

    const Scene* scene_;
    const Manners* manners_;
    Dues dues_;
    std::size_t claimant_;
    int mine_;   // the claimant's tenant
    int asked_;  // the claimant's least size
    std::vector<std::vector<int>> lines_;
    std::vector<bool> has_children_;
    std::vector<int> guarantee_, own_guarantee_, held_, own_;
    std::vector<double> entitlement_, footprint_;
    int free_ = 0;
};

}  // namespace bulkhead::referee
