// How a plan is looked for that makes room for one waiting job: which jobs end, which elastic gangs give spare tasks,
// which jobs move. protection.cpp says what may be taken from which tenant, plan_search.cpp collects the candidates and
// chooses the way to search, plan_nearby.cpp searches node by node in large fleets, plan_exact.cpp tries every
// combination where there are few candidates, and plan_moves.cpp finds places for jobs that move.
//
// The order of plans: the kind (PlanKind), then what is lost since checkpoints, then the number of jobs, then the
// number of spare tasks, then the lowest keys.
#pragma once

#include <unordered_map>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

struct NearbyItem;

// What may be taken from each tenant for one claimant.
//
// The branch of a victim, seen from the claimant, is its tenant and everyone above it up to where the two lines meet;
// each step is a level, and the own work of a tenant that has children is a level too. A level gives while it holds
// more than its floor: its guarantee, or under the law of shares also its due.
struct Engine::State::Protection {
    using Level = std::uint32_t;  // a tenant with everyone below it; or, beyond their number, a tenant's own work
    struct Taken {
        TenantNo tenant = 0;
        std::int64_t gpus = 0;     // as quota counts them
        std::int64_t largest = 0;  // that goes at once: the whole job, or one spare task
    };

    const State& state;
    Law law = Law::guarantee;
    TenantNo claimant = 0;
    std::int64_t asked = 0;
    bool moving = false;               // those who go keep a place
    bool claims = true;                // the claimant asks for GPUs, so that it can be owed any
    std::vector<std::int64_t> excess;  // by level: what it holds above its floor
    std::vector<std::int64_t> most;    // by level: the most that may ever be taken
    std::vector<std::uint32_t> meets;  // by tenant: at which step of the claimant's line the two lines meet
    std::vector<bool> gives;           // by tenant: its work is unprotected
    std::vector<bool> within;          // by tenant: its work is within a guarantee
    std::vector<std::int64_t> slack;   // by step of the claimant's line: what is left below guarantee or due
    bool needs_credit = false;         // some of it is negative
    std::int64_t own_slack = 0;        // of the own work of the claimant's tenant

    Protection(const State& of, JobNo job, Law by, const PlanAsk& ask);

    bool has_own_level(TenantNo tenant) const { return !state.tenants[tenant].children.empty(); }
    template <class Each>
    void each_level(TenantNo tenant, const Each& each) const;
    // The most that one job of this tenant may hold to be taken.
    std::int64_t takeable(TenantNo tenant, bool gently) const;
    // Each victim is unprotected when it goes; `gently`: no level ends below its floor.
    bool in_order(std::span<const Taken> taken, bool gently) const;
    // The claimant stays within its guarantee (or due) at every level below where it meets each victim, counting what
    // its own branch gives; without victims on every level.
    bool owed_after(std::span<const Taken> taken) const;
    // The step of the claimant's line beyond which no victim may be, if no more than this is taken: that level has
    // nothing left, and what its own branch gives is too little.
    std::size_t reach(std::span<const Taken> at_most) const;
    // False: no victim could make it a claim.
    bool may_claim() const;
    bool claims_alone() const { return owed_after({}); }
};

template <class Each>
void Engine::State::Protection::each_level(TenantNo tenant, const Each& each) const {
    const std::vector<TenantNo>&theirs = state.tenants[tenant].line, &mine = state.tenants[claimant].line;
    const auto number = static_cast<Level>(state.tenants.size());
    const bool above_claimant = meets[tenant] < mine.size() && mine[meets[tenant]] == tenant;
    if (above_claimant || has_own_level(tenant)) each(number + tenant);
    if (above_claimant) return;
    for (const TenantNo holder : theirs) {
        if (meets[tenant] < mine.size() && mine[meets[tenant]] == holder) return;
        each(holder);
    }
}

// One search: the claimant, the law, and the jobs that may be touched.
struct Engine::State::PlanSearch {
    // What may happen to one running job.
    struct Candidate {
        JobNo job = nil;
        std::int64_t key = 0, holds = 0;
        Cost cost;  // if it ends or moves
        bool may_end = false, may_move = false, scattered = false;
        std::int32_t spare = 0;
    };

    State& state;
    const JobNo number;
    const Law law;
    const Instant now;
    const PlanAsk ask;
    const Job& job;
    const std::int32_t tasks;
    const std::int64_t urgency_of_claimant;
    Protection protection;
    bool over = false;                                  // quota is in the way as things stand
    bool spent = false;                                 // the budget ended the search
    bool crowded = false;                               // a node has more candidates than nearby_single() looks at
    std::int64_t looked = 0;                            // by exact(), so far
    std::vector<std::int64_t> least;                    // by tenant: minimum run time, where it was asked
    std::vector<std::int64_t> gentle_most, harsh_most;  // likewise: the most that one job may hold to be taken
    FleetIndex::Supposed supposed;

    PlanSearch(State& of, JobNo claimant, Law by, Instant at, const PlanAsk& how);

    Action action() const { return law == Law::priority ? Action::preempt : Action::reclaim; }
    bool rested(const JobRec& rec);  // it has run its minimum run time
    bool untouched(JobNo victim) const;
    bool may_end(JobNo victim, bool gently);
    std::int32_t spare_of(JobNo victim);
    bool may_move(JobNo victim);
    Cost cost_of(JobNo victim) const;
    bool usable(NodeNo node) const;
    // Room on a node without those marked in `gone` and `spare_gone`, and without what is ending.
    std::int32_t room_without(NodeNo node);
    // Limits of the claimant's line, and what hard partitions of others are owed, once these have gone.
    bool within_quota_after(std::span<const Protection::Taken> taken) const;
    std::vector<SeatNo> seats_of(JobNo victim, NodeNo node) const;

    std::optional<Plan> find();
    std::optional<Plan> nothing_needed();
    bool may_move_scattered() const;

    // plan_nearby.cpp
    std::optional<Plan> nearby_single(PlanKind kind);
    std::optional<Plan> nearby_gang(PlanKind kind);
    bool acceptable(const Plan& plan);  // by quota and protection
    // Takes items off the list that owed_after() would forbid even if all of them went; returns their GPUs.
    std::int64_t drop_unpaid(std::vector<NearbyItem>& items) const;

    // plan_exact.cpp
    std::vector<Candidate> candidates();
    std::optional<Plan> exact(std::vector<Candidate> among, std::span<const NodeNo> targets = {});
    std::optional<Plan> node_by_node(const std::vector<Candidate>& all);
};

}  // namespace bulkhead::sched
