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
        std::vector<bool> leaves{};  // by seat: it is evicted, and still there while others move
    };
    // Job number `at` of those that move, and those after it.
    bool place_job(Trial& trial, std::size_t at);
    // Its tasks from this one on, at no lower node and GPU than the task before: tasks of a job are alike.
    bool place_task(Trial& trial, std::size_t at, std::vector<SeatNo>& taken);
    bool place_claimant(Trial& trial);
    bool closes_no_more(const FleetIndex& fleet, std::span<const TenantNo> scattered);
};

}  // namespace bulkhead::sched
