// Room that is kept: for a claimant others were disturbed for, or for a gang that would otherwise never find enough
// free at once; and work that is short enough to use it meanwhile.
#include <algorithm>
#include <limits>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

using Phase = JobRec::Phase;

namespace {

// How many endings are looked at for one reservation: beyond that the answer would come too late to matter.
constexpr std::size_t endings_looked_at = 4096;

}  // namespace

RoomClaim* Engine::State::claim_of(JobNo job) {
    for (RoomClaim& claim : claims)
        if (claim.job == job) return &claim;
    return nullptr;
}

void Engine::State::drop_claim(JobNo job) {
    const auto claim = std::ranges::find(claims, job, &RoomClaim::job);
    if (claim == claims.end()) return;
    lift(*claim);
    expect(*claim, false);
    claims.erase(claim);
}

// A job whose tenant is below its due does not wait behind a reservation of a tenant that is not.
bool Engine::State::drop_undeserved_claims() {
    std::vector<JobNo> undeserved;
    for (const RoomClaim& claim : claims) {
        if (claim.firm()) continue;
        expect(claim, false);
        if (!deserves(claim.job)) undeserved.push_back(claim.job);
        expect(claim, true);
    }
    for (const JobNo job : undeserved) drop_claim(job);
    return !undeserved.empty();
}

std::vector<SeatRec> Engine::State::lift(RoomClaim& claim) {
    std::vector<SeatRec> lifted;
    lifted.reserve(claim.seats.size());
    for (const SeatNo seat : claim.seats) {
        lifted.push_back(fleet.seat(seat));
        fleet.release(seat, false);
    }
    claim.seats.clear();
    return lifted;
}

void Engine::State::lower(RoomClaim& claim, std::span<const SeatRec> lifted) {
    for (const SeatRec& seat : lifted) claim.seats.push_back(fleet.promise_again(seat));
}

void Engine::State::keep_room(JobNo job, std::span<const FleetIndex::Portion> where, std::optional<Instant> expected,
                              bool freed) {
    RoomClaim claim{.job = job, .seats = {}, .expected = expected, .freed_for_it = freed};
    const auto left = [&](const SeatRec& seat) { return seat.ending || (seat.job != nil && gone[seat.job]); };
    for (const FleetIndex::Portion& portion : where) fleet.promise(portion, jobs[job].job, job, left, claim.seats);
    claims.push_back(std::move(claim));
    expect(claims.back(), true);
}

// Where others were disturbed for it, or where it was moved to: another place might close a node that this one leaves
// open. Only a whole gang; one that may be larger or smaller looks anew.
bool Engine::State::place_as_promised(JobNo job, std::span<const SeatRec> promised, Instant now, Binding* out) {
    const Job& its = jobs[job].job;
    if (std::ssize(promised) != its.tasks || !within_quota(its, its.tasks)) return false;
    std::vector<FleetIndex::Portion> where;
    for (const SeatRec& seat : promised) {
        const auto known = std::ranges::find(where, seat.node, &FleetIndex::Portion::node);
        if (known == where.end())
            where.push_back({seat.node, 1});
        else
            ++known->tasks;
    }
    if (std::ranges::any_of(where, [&](const FleetIndex::Portion& portion) {
            return fleet.capacity(portion.node, its.shape, its.tenant) < portion.tasks;
        }))
        return false;
    if (!limits_allow(job, where)) return false;
    begin(job, where, now, out);
    return true;
}

// Jobs with room that is kept start before others as soon as they can; claims that have become pointless are dropped.
void Engine::State::settle_claims(Statement& statement, Instant now, bool firm) {
    std::vector<JobNo> claimants;
    claimants.reserve(claims.size());
    for (const RoomClaim& claim : claims)
        if (claim.firm() == firm && !jobs[claim.job].job.held_back) claimants.push_back(claim.job);
    for (const JobNo job : claimants) {
        const JobRec& rec = jobs[job];
        if (!firm && !fits_due(job)) {  // its turn has passed to others
            drop_claim(job);
            continue;
        }
        const std::vector<SeatRec> lifted = lift(*claim_of(job));
        expect(*claim_of(job), false);
        if (!still_deserves(job)) {
            expect(*claim_of(job), true);
            drop_claim(job);
            continue;
        }
        Binding binding;
        const bool placed = within_quota(rec.job, rec.fewest()) &&
                            (place_as_promised(job, lifted, now, &binding) || place(job, now, &binding));
        const bool guaranteed = firm && !placed && !restarts(job) && claims_guarantee(job);
        expect(*claim_of(job), true);
        if (placed) {
            statement.bind.push_back(std::move(binding));
            drop_claim(job);
            continue;
        }
        RoomClaim& claim = *claim_of(job);
        lower(claim, lifted);
        const bool coming = std::ranges::any_of(claim.seats, [&](SeatNo seat) { return fleet.unsettled(seat); });
        if (claim.freed_for_it ? coming : guaranteed || !firm) continue;
        // Nothing more will become free there. A drained node may be opened again, and the rest belongs to the claim.
        const bool closed =
            std::ranges::any_of(claim.seats, [&](SeatNo seat) { return !fleet.is_open(fleet.seat(seat).node); });
        if (!closed) jobs[job].tried_in = generation;
        if (guaranteed) {
            claim.freed_for_it = false;
            claim.guaranteed = true;
        } else {
            drop_claim(job);
        }
    }
}

// The earliest moment at which the gang would fit as running work ends, and the nodes it would fit on. Work that does
// not say how long it takes is taken to end after all that does, the oldest first.
bool Engine::State::reserve(JobNo number, Instant now) {
    const Job& job = jobs[number].job;
    const std::int32_t tasks = jobs[number].fewest();
    struct Ending {
        std::int64_t at = 0;
        Instant started;
        JobNo job = 0;
    };
    constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::max();
    std::vector<Ending> endings;
    endings.reserve(running.size());
    for (const JobNo each : running) {
        const JobRec& rec = jobs[each];
        std::int64_t at = unknown;
        if (rec.phase == Phase::ending)
            at = now.ms;
        else if (rec.job.duration)
            at = std::max(now.ms + 1, rec.started.ms + rec.job.duration->ms);
        endings.push_back({at, rec.started, each});
    }
    const auto earlier = [&](const Ending& a, const Ending& b) {
        if (a.at != b.at) return a.at < b.at;
        return a.started != b.started ? a.started < b.started : jobs[a.job].job.key < jobs[b.job].job.key;
    };
    const std::size_t looked_at = std::min(endings.size(), endings_looked_at);
    std::ranges::partial_sort(endings, endings.begin() + static_cast<std::ptrdiff_t>(looked_at), earlier);

    std::vector<std::int32_t> room(fleet.nodes());
    std::vector<std::int64_t> sums(fleet.domain_count(job.within));
    const auto bin = [&](NodeNo node) { return fleet.domain_of(node, job.within); };
    for (NodeNo node = 0; node < fleet.nodes(); ++node) {
        room[node] = static_cast<std::int32_t>(fleet.capacity(node, job.shape, job.tenant));
        sums[bin(node)] += room[node];
    }
    gone.assign(jobs.size(), false);
    FleetIndex::Supposed supposed;
    const auto left = [&](const SeatRec& seat) { return seat.job != nil && gone[seat.job]; };
    for (std::size_t i = 0; i < looked_at; ++i) {
        gone[endings[i].job] = true;
        for (SeatNo seat = jobs[endings[i].job].seats; seat != nil; seat = fleet.seat(seat).next_of_job) {
            const NodeNo node = fleet.seat(seat).node;
            if (!fleet.able(node, job.shape)) continue;
            fleet.suppose(supposed, node, left);
            const auto takes = static_cast<std::int32_t>(fleet.capacity(supposed.view, node, job.shape, job.tenant));
            sums[bin(node)] += takes - room[node];
            room[node] = takes;
            if (sums[bin(node)] < tasks) continue;
            if (endings[i].at == unknown && now - job.submitted < settings.patience) return false;
            std::vector<FleetIndex::Portion> here;
            for (NodeNo other = 0; other < fleet.nodes(); ++other)
                if (room[other] > 0 && bin(other) == bin(node)) here.push_back({other, room[other]});
            const std::vector<FleetIndex::Portion> where = fleet.arrange(job, tasks, here);
            if (where.empty()) continue;
            keep_room(number, where, endings[i].at == unknown ? std::optional<Instant>{} : Instant{endings[i].at},
                      false);
            return true;
        }
    }
    return false;
}

// Reserved room may be used by work that says it will be gone before the room is needed. Room of a firm claim may not.
bool Engine::State::backfill(JobNo number, Instant now, Statement& statement) {
    const Job& job = jobs[number].job;
    if (!job.duration || job.tasks != 1 || jobs[number].grows != nil) return false;
    for (RoomClaim& claim : claims) {
        if (claim.firm() || !claim.expected || now + *job.duration > *claim.expected) continue;
        const std::vector<SeatRec> lifted = lift(claim);
        std::optional<NodeNo> found;
        for (const SeatRec& seat : lifted)
            if (!found && fleet.capacity(seat.node, job.shape, job.tenant) > 0 && may_fix(job, seat.node))
                found = seat.node;
        if (const FleetIndex::Portion one{found.value_or(0), 1}; found && !limits_allow(number, {&one, 1}))
            found.reset();
        if (found) {
            const FleetIndex::Portion one{*found, 1};
            start(number, {&one, 1}, now);
        }
        lower(claim, lifted);
        if (!found) continue;
        Binding binding = described(number);
        binding.backfilled = true;
        statement.bind.push_back(std::move(binding));
        return true;
    }
    return false;
}

}  // namespace bulkhead::sched
