// Waiting jobs with which their tenant stays within its guarantee. They are served before all other work; one that
// cannot start now, because minimum run times, wipes or reboots have to pass, keeps the place where it will start. So
// no job starts where a guarantee claim would evict it.
#include <algorithm>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

namespace {

constexpr int future_searches_in_a_cycle = 64;

}  // namespace

bool Engine::State::may_be_guaranteed(JobNo number) const {
    const TenantNo its = jobs[number].job.tenant;
    const TenantRec& tenant = tenants[its];
    if (tenant.guarantee == 0) return false;
    const std::int64_t asked = least_of(number);
    if (asked == 0) return false;
    // Work below a tenant may lease more than is guaranteed; its own work may still claim its own part.
    if (!tenant.children.empty()) return tenant.own_has() + asked <= own_guarantee(its);
    return tenant.has() + asked <= tenant.guarantee;
}

bool Engine::State::claims_guarantee(JobNo number) const {
    const TenantRec& tenant = tenants[jobs[number].job.tenant];
    const std::int64_t asked = least_of(number);
    if (asked == 0) return false;
    std::int64_t own = tenant.guarantee;
    for (const TenantNo child : tenant.children) own -= tenants[child].guarantee;
    const bool kept = std::ranges::any_of(
        claims, [&](const RoomClaim& claim) { return claim.job == number && claim.firm() && !claim.seats.empty(); });
    const std::int64_t needed = kept ? 0 : asked;  // a firm claim counts as held
    return tenant.own + tenant.own_coming.freed - tenant.own_coming.leaving + needed <= own;
}

// Room that is kept for work that is not within a guarantee: its job would be evicted for this one as soon as it ran.
std::vector<Engine::State::LiftedClaim> Engine::State::lift_lesser_claims(JobNo job) {
    std::vector<LiftedClaim> lifted;
    for (RoomClaim& claim : claims) {
        if (claim.guaranteed || claim.job == job) continue;
        if (claim.freed_for_it && (jobs[claim.job].job.tenant == jobs[job].job.tenant || claims_guarantee(claim.job)))
            continue;
        lifted.push_back({claim.job, lift(claim)});
    }
    return lifted;
}

// Those that still have their place keep it.
void Engine::State::lower_lesser_claims(std::span<const LiftedClaim> lifted) {
    FleetIndex::Supposed supposed;
    const auto left = [](const SeatRec& seat) { return seat.ending; };
    for (const LiftedClaim& each : lifted) {
        const Job& job = jobs[each.job].job;
        const bool fits = std::ranges::all_of(each.seats, [&](const SeatRec& seat) {
            const auto here = std::ranges::count(each.seats, seat.node, &SeatRec::node);
            return fleet.capacity_without(supposed, seat.node, job.shape, job.tenant, left) >= here;
        });
        if (fits)
            lower(*claim_of(each.job), each.seats);
        else
            drop_claim(each.job);
    }
}

// Whether the place would still be enough, once work that may go has left it.
bool Engine::State::still_possible(const RoomClaim& claim, std::span<const SeatRec> lifted) {
    const Job& job = jobs[claim.job].job;
    FleetIndex::Supposed supposed;
    for (const SeatRec& seat : lifted) {
        std::int64_t tasks = 0;
        for (const SeatRec& other : lifted) tasks += other.node == seat.node ? 1 : 0;
        fleet.suppose(supposed, seat.node, [&](const SeatRec& other) {
            return other.ending ||
                   (other.job != nil && !other.pinned && !other.promised && other.tenant != job.tenant &&
                    tenants[other.tenant].has() > tenants[other.tenant].guarantee);
        });
        if (fleet.capacity(supposed.view, seat.node, job.shape, job.tenant) < tasks) return false;
    }
    return true;
}

bool Engine::State::reserve_guaranteed(JobNo job, Instant now) {
    std::vector<SeatRec> lifted;
    if (RoomClaim* claim = claim_of(job)) {
        lifted = lift(*claim);
        if (claim->guaranteed && still_possible(*claim, lifted)) {
            lower(*claim, lifted);
            return true;
        }
        expect(*claim, false);
    }
    // Counted apart from searches for victims: otherwise claims that wait for long would leave none for other work.
    const int before = searches;
    std::optional<Plan> plan;
    if (future_searches++ < future_searches_in_a_cycle) {
        const std::vector<NodeNo> outside = out_of_reach(job);
        plan = find_plan(job, Law::guarantee, now, {.future = true, .inside = {}, .avoid = outside});
    }
    searches = before;
    if (!plan || plan->where.empty()) {
        RoomClaim* claim = claim_of(job);
        if (claim == nullptr) return false;
        // A drained node may be opened again: what is open of the place stays kept until then.
        const bool closed = std::ranges::any_of(lifted, [&](const SeatRec& seat) { return !fleet.is_open(seat.node); });
        expect(*claim, true);
        lower(*claim, lifted);
        if (!closed) drop_claim(job);
        return closed;
    }
    if (claim_of(job) != nullptr) claims.erase(std::ranges::find(claims, job, &RoomClaim::job));
    gone.assign(jobs.size(), false);
    std::optional<Instant> expected = now;
    for (const JobNo victim : plan->victims) {
        gone[victim] = true;
        const JobRec& rec = jobs[victim];
        if (rec.phase == JobRec::Phase::ending) continue;
        const Duration least = least_run(rec.job.tenant, jobs[job].job.tenant, Action::reclaim);
        expected = std::max(*expected, rec.started + least);
    }
    keep_room(job, plan->where, expected, false);
    RoomClaim& claim = claims.back();
    expect(claim, false);
    claim.guaranteed = true;
    expect(claim, true);
    return true;
}

}  // namespace bulkhead::sched
