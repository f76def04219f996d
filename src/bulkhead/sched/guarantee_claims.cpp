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
    const TenantRec& tenant = tenants[jobs[number].job.tenant];
    if (tenant.guarantee == 0) return false;
    const std::int64_t asked = least_of(number);
    return asked > 0 && tenant.has() + asked <= tenant.guarantee;
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

// Reservations of other work give way to a guarantee claim, if that is enough for it to start.
bool Engine::State::place_guaranteed(JobNo job, Instant now, Binding& out) {
    std::vector<std::pair<JobNo, std::vector<SeatRec>>> lifted;
    for (RoomClaim& claim : claims)
        if (!claim.firm()) lifted.emplace_back(claim.job, lift(claim));
    if (lifted.empty()) return false;
    if (place(job, now, &out)) {
        for (const auto& [claimant, seats] : lifted) drop_claim(claimant);
        return true;
    }
    for (const auto& [claimant, seats] : lifted) lower(*claim_of(claimant), seats);
    return false;
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
    if (future_searches++ < future_searches_in_a_cycle) plan = future_plan(job, now);
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
