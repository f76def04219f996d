// Places for jobs that move, found on a copy of the fleet: every job that moves has one now, and the claimant has one
// when the evicted work has left.
#pragma once

#include "bulkhead/sched/plan_search.hpp"

namespace bulkhead::sched {

struct Engine::State::MoveTrial {
    PlanSearch& search;
    State& state;
    std::vector<std::int64_t> footprints_before;  // by tenant
    std::optional<FleetIndex> base;               // a copy of the fleet as it is
    std::int64_t cores = 0, memory = 0;           // of `base`: free, or of work that is ending
    std::vector<NodeNo> twins;                    // by node: an earlier one that is like it, or itself

    explicit MoveTrial(PlanSearch& of) : search{of}, state{of.state} {}

    // Fills in where the claimant and the moved jobs go. `scattered` tenants must not close more than before.
    // False: there is no room for all at once.
    bool place_all(Plan& plan, std::span<const TenantNo> scattered, std::int64_t& looks);

private:
    struct Trial {
        FleetIndex fleet;
        Plan& plan;
        std::span<const TenantNo> scattered;
        std::int64_t& looks;
        std::span<const NodeNo> twins;
        std::vector<bool> leaves{};                  // by seat: it is evicted, and still there while others move
        std::vector<std::int32_t> room{};            // by node: tasks of the claimant, as long as no more jobs come
        std::vector<std::int64_t> sums{};            // of that, by domain in which the claimant stays
        std::unordered_set<std::uint64_t> failed{};  // what is placed already, where that led nowhere
        std::uint64_t signature = 0;                 // of what is placed
        FleetIndex::Supposed supposed{};
    };
    // One job that is placed task by task.
    struct Placing {
        std::size_t at = 0;
        std::vector<SeatNo> taken;
        std::vector<std::int64_t> room;  // by node: tasks that it and all later ones take
        std::vector<std::int8_t> twin;   // on the last node, by GPU: an earlier one that was like it, or -1
    };
    // Job number `at` of those that move, and those after it.
    bool place_job(Trial& trial, std::size_t at);
    // Its next task, at no lower node and GPU than the task before: tasks of a job are alike, and so are equal GPUs and
    // equal nodes. A place that leaves the claimant too little room is left at once.
    bool place_task(Trial& trial, Placing& placing);
    bool later_jobs_fit(Trial& trial, std::size_t from) const;
    bool place_claimant(Trial& trial);
    bool may_still_fit(const Trial& trial) const;
    void look_again(Trial& trial, NodeNo node);
    void look_again_around(Trial& trial, NodeNo node);
    std::vector<std::int8_t> twins_on(Trial& trial, NodeNo node) const;
    std::vector<NodeNo> twin_nodes();
    void count_cores();
    // Work that moves takes as many cores and as much memory elsewhere: the claimant needs what is free, or is given.
    bool has_cores(const Plan& plan) const;
    bool closes_no_more(const FleetIndex& fleet, std::span<const TenantNo> scattered);
};

}  // namespace bulkhead::sched
