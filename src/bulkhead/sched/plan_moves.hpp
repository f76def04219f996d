// Places for jobs that move, found on a copy of the fleet: the claimant and every job that moves have one at the same
// time.
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
    bool place_claimant(FleetIndex& fleet, Plan& plan, std::span<const TenantNo> scattered, std::int64_t& looks);
    bool place_moved(FleetIndex& fleet, Plan& plan, std::size_t at, std::span<const TenantNo> scattered,
                     std::int64_t& looks);
    bool closes_no_more(const FleetIndex& fleet, std::span<const TenantNo> scattered);
};

}  // namespace bulkhead::sched
