// Which jobs may be touched for a claimant, and by which way a plan is looked for.
#include "bulkhead/sched/plan_search.hpp"

#include <algorithm>
#include <utility>

namespace bulkhead::sched {

using Phase = JobRec::Phase;

namespace {

// Up to so many nodes and running jobs every candidate is listed, and up to so many candidates every combination is
// tried before anything else; up to the second number they are tried when the search node by node found nothing.
constexpr std::size_t few_nodes = 64, few_running = 512, few_candidates = 16, some_candidates = 48;
// Up to so many nodes and running jobs scattered work is looked for, node by node, when nothing else was found.
constexpr std::size_t most_nodes = 1024, most_running = 8192;

}  // namespace

std::int64_t Engine::State::lost_by(const JobRec& job, Instant now) const {
    std::int64_t since = std::max<std::int64_t>(now.ms - job.started.ms, 0);
    if (job.job.checkpoint && job.job.checkpoint->ms > 0) since %= job.job.checkpoint->ms;
    // Bounded, so that the sum over many never overflows: it is longer than anything runs.
    const Wide lost = static_cast<Wide>(job.holds()) * static_cast<Wide>(since) / gpu_unit;
    return static_cast<std::int64_t>(std::min(lost, Wide{1} << 50));
}

Engine::State::PlanSearch::PlanSearch(State& of, JobNo claimant, Law by, Instant at, const PlanAsk& how)
    : state{of},
      number{claimant},
      law{by},
      now{at},
      ask{how},
      job{of.jobs[claimant].job},
      tasks{of.jobs[claimant].fewest()},
      urgency_of_claimant{of.urgency(of.jobs[claimant].job, at)},
      protection{of, claimant, by, how},
      least(of.tenants.size(), -1),
      gentle_most(of.tenants.size(), -1),
      harsh_most(of.tenants.size(), -1) {
    state.gone.assign(state.jobs.size(), false);
    state.spare_gone.assign(state.fleet.seats(), 0);
}

bool Engine::State::PlanSearch::rested(const JobRec& rec) {
    if (ask.future) return true;
    std::int64_t& runs = least[rec.job.tenant];
    if (runs < 0) runs = state.least_run(rec.job.tenant, job.tenant, action()).ms;
    return now.ms - rec.started.ms >= runs;
}

bool Engine::State::PlanSearch::untouched(JobNo victim) const {
    const JobRec& rec = state.jobs[victim];
    if (rec.phase != Phase::running || !rec.job.preemptible || victim == number) return false;
    return ask.future ||
           (rec.evicted_in != state.generation && rec.started_in != state.cycles && rec.moved_at != state.cycles);
}

bool Engine::State::PlanSearch::may_end(JobNo victim, bool gently) {
    const JobRec& rec = state.jobs[victim];
    if (!protection.gives[rec.job.tenant] || !untouched(victim)) return false;
    std::int64_t& most = (gently ? gentle_most : harsh_most)[rec.job.tenant];
    if (most < 0) most = protection.takeable(rec.job.tenant, gently);
    if (rec.holds() > most) return false;
    if (law == Law::priority && state.urgency(rec.job, now) >= urgency_of_claimant) return false;
    return ask.moving ? may_move(victim) : rested(rec);
}

// Tasks that an elastic gang can spare.
std::int32_t Engine::State::PlanSearch::spare_of(JobNo victim) {
    const JobRec& rec = state.jobs[victim];
    if (rec.job.least == 0 || !protection.gives[rec.job.tenant] || !untouched(victim) || !rested(rec)) return 0;
    if (law == Law::priority && state.urgency(rec.job, now) >= urgency_of_claimant) return 0;
    return state.can_shrink(rec) ? rec.placed - rec.job.least : 0;
}

// Work of the claimant's own tenant, work that no guarantee protects, and work that is scattered over more than its
// tenant is entitled to. The last is looked at where candidates are listed.
bool Engine::State::PlanSearch::may_move(JobNo victim) {
    const JobRec& rec = state.jobs[victim];
    if (law == Law::priority || ask.future || state.settings.moves == 0 || !untouched(victim)) return false;
    if (rec.moved_in == state.generation) return false;
    if (state.jobs[number].grows != nil) return false;  // a gang that runs grows by what others give
    if (!rested(rec)) return false;
    std::int32_t seats = 0;
    for (SeatNo s = rec.seats; s != nil; s = state.fleet.seat(s).next_of_job) {
        // A move from or to a node that is kept beyond the rules changes what counts against a limit.
        if (state.kept_on.contains(state.fleet.seat(s).node)) return false;
        ++seats;
    }
    return seats == rec.placed && !state.fleet.shape(rec.job.shape).need.wants.empty();
}

Cost Engine::State::PlanSearch::cost_of(JobNo victim) const {
    const JobRec& rec = state.jobs[victim];
    return {law == Law::priority ? std::max<std::int64_t>(state.urgency(rec.job, now), 0) : 0, state.lost_by(rec, now),
            1, 0};
}

bool Engine::State::PlanSearch::usable(NodeNo node) const {
    return state.fleet.able(node, job.shape) && std::ranges::find(ask.avoid, node) == ask.avoid.end() &&
           state.may_fix(job, node);
}

std::int32_t Engine::State::PlanSearch::room_without(NodeNo node) {
    const State& of = state;
    const auto left = [&](const SeatRec& seat) {
        return seat.ending || (seat.job != nil && of.gone[seat.job]) || of.spare_gone[of.fleet.number_of(seat)] != 0;
    };
    return static_cast<std::int32_t>(state.fleet.capacity_without(supposed, node, job.shape, job.tenant, left));
}

std::vector<SeatNo> Engine::State::PlanSearch::seats_of(JobNo victim, NodeNo node) const {
    std::vector<SeatNo> seats;
    for (SeatNo s = state.fleet.first_seat(node); s != nil; s = state.fleet.seat(s).next_here)
        if (state.fleet.seat(s).job == victim && !state.fleet.seat(s).promised) seats.push_back(s);
    std::ranges::sort(seats, {}, [&](SeatNo s) {
        const SeatRec& seat = state.fleet.seat(s);
        return std::tuple{seat.gpus, seat.start, s};
    });
    return seats;
}

bool Engine::State::PlanSearch::within_quota_after(std::span<const Protection::Taken> taken) const {
    const std::int64_t asked = job.counted(tasks), keeps = state.would_keep(job, tasks, true);
    const auto given = [&](TenantNo by) {
        std::int64_t sum = 0;
        for (const Protection::Taken& each : taken)
            if (std::ranges::find(state.tenants[each.tenant].line, by) != state.tenants[each.tenant].line.end())
                sum += each.gpus;
        return sum;
    };
    bool hard = state.owed > 0;
    for (const TenantNo holder : state.tenants[job.tenant].line) {
        const TenantRec& tenant = state.tenants[holder];
        const std::int64_t leaving = ask.future ? tenant.coming.leaving : 0;
        if (const auto most = tenant.most(); most && tenant.counts() - leaving - given(holder) + asked + keeps > *most)
            return false;
        if (!job.preemptible && tenant.pinned + tenant.coming.freed_pinned + asked > tenant.guarantee) return false;
    }
    for (const Protection::Taken& each : taken)
        for (const TenantNo holder : state.tenants[each.tenant].line) hard = hard || state.tenants[holder].facts.hard;
    if (!hard) return true;
    // What hard partitions are owed once these have gone, as count_owed() counts it.
    std::vector<std::int64_t> still_owed(state.tenants.size());
    for (TenantNo holder = 0; holder < state.tenants.size(); ++holder)
        if (const TenantRec& tenant = state.tenants[holder]; tenant.facts.hard)
            still_owed[holder] = std::max<std::int64_t>(*tenant.partition() - tenant.held + given(holder), 0);
    for (auto holder = state.down.rbegin(); holder != state.down.rend(); ++holder) {
        const std::vector<TenantNo>& line = state.tenants[*holder].line;
        for (std::size_t i = 1; still_owed[*holder] > 0 && i < line.size(); ++i)
            if (state.tenants[line[i]].facts.hard) {
                still_owed[line[i]] = std::max<std::int64_t>(still_owed[line[i]] - still_owed[*holder], 0);
                break;
            }
    }
    std::int64_t all = 0, own = 0, freed = 0;
    for (const std::int64_t each : still_owed) all += each;
    for (const TenantNo holder : state.tenants[job.tenant].line) own += still_owed[holder];
    for (const Protection::Taken& each : taken) freed += each.gpus;
    const std::int64_t others = all - own, beyond = asked - std::min(asked, own);
    return others <= 0 || beyond <= 0 || state.fleet.free_units() + freed - state.spoken_for() - beyond >= others;
}

// Room that is on its way: what is ending, being wiped, or about to be rebooted.
std::optional<Plan> Engine::State::PlanSearch::nothing_needed() {
    if (over) return std::nullopt;
    const FleetIndex& around = state.fleet;
    std::vector<NodeNo> coming;
    for (NodeNo node = 0; node < around.nodes(); ++node)
        if (around.room_comes(node) && around.may_take_soon(node, job.shape, job.tenant) && usable(node))
            coming.push_back(node);
    if (coming.empty()) return std::nullopt;
    if (tasks == 1) {
        for (const NodeNo node : coming)
            if (room_without(node) > 0) return Plan{.victims = {}, .where = {{node, 1}}};
        return std::nullopt;
    }
    std::vector<std::vector<FleetIndex::Portion>> bins(around.domain_count(job.within));
    for (NodeNo node = 0; node < around.nodes(); ++node) {
        if (!usable(node)) continue;
        const std::int32_t takes = std::ranges::binary_search(coming, node)
                                       ? room_without(node)
                                       : static_cast<std::int32_t>(around.capacity(node, job.shape, job.tenant));
        if (takes > 0) bins[around.domain_of(node, job.within)].push_back({node, takes});
    }
    for (std::vector<FleetIndex::Portion>& bin : bins)
        if (auto where = around.arrange(job, tasks, bin); !where.empty() && state.stays_entitled(job, where))
            return Plan{.victims = {}, .where = std::move(where)};
    return std::nullopt;
}

std::vector<Engine::State::PlanSearch::Candidate> Engine::State::PlanSearch::candidates() {
    std::vector<Candidate> all;
    std::vector<std::int64_t> footprints;
    const std::span<const std::int64_t> entitlement_of = state.entitlements();
    for (const JobNo victim : state.running) {
        const JobRec& rec = state.jobs[victim];
        Candidate candidate{.job = victim, .key = rec.job.key, .holds = rec.holds(), .cost = cost_of(victim)};
        candidate.may_end = may_end(victim, false);
        candidate.spare = spare_of(victim);
        if (may_move(victim)) {
            const TenantNo tenant = rec.job.tenant;
            candidate.may_move = tenant == job.tenant || !protection.within[tenant];
            if (!candidate.may_move) {
                if (footprints.empty()) footprints = state.footprints(state.fleet);
                candidate.scattered = candidate.may_move =
                    footprints[tenant] > entitlement_of[tenant] + rounding_of_footprints;
            }
        }
        if (candidate.may_end || candidate.may_move || candidate.spare > 0) all.push_back(candidate);
    }
    return all;
}

bool Engine::State::lists_candidates() const { return fleet.nodes() <= few_nodes && running.size() <= few_running; }

std::optional<Plan> Engine::State::PlanSearch::find() {
    if (!protection.may_claim()) return std::nullopt;
    over = !within_quota_after({});
    if (ask.moving) {
        if (over || !protection.claims_alone()) return std::nullopt;
        return tasks == 1 ? nearby_single(PlanKind::moves) : nearby_gang(PlanKind::moves);
    }
    if (auto plan = nothing_needed()) {
        // No work ends where room is on its way; it is kept for those who are owed it.
        if (law == Law::priority || !protection.claims_alone()) return std::nullopt;
        return plan;
    }
    const bool few = state.lists_candidates();
    std::vector<Candidate> all;
    if (few) {
        all = candidates();
        if (all.empty()) return std::nullopt;
    } else if (std::ranges::none_of(protection.gives, [](bool gives) { return gives; }) && !may_move_scattered()) {
        return std::nullopt;
    }
    ++state.searches;
    if (few && all.size() <= few_candidates) {
        auto plan = exact(all);
        if (plan || !spent) return plan;
    }
    bool cut = std::exchange(spent, false);
    for (const PlanKind kind : {PlanKind::spares, PlanKind::gentle, PlanKind::harsh}) {
        if (kind == PlanKind::harsh && law == Law::priority) break;
        if (kind == PlanKind::spares && !state.any_elastic) continue;
        auto plan = tasks == 1 ? nearby_single(kind) : nearby_gang(kind);
        if (plan) return plan;
        cut = cut || spent;
    }
    spent = cut;
    if (few && all.size() > few_candidates && all.size() <= some_candidates) {
        spent = false;
        if (auto plan = exact(all); plan || !spent) return plan;
    }
    if (few) return node_by_node(all);
    // Not among what was looked at: work that is scattered within its guarantee, and nodes with very many candidates.
    const bool scattered = law == Law::guarantee && !ask.future && may_move_scattered();
    if (!scattered && !crowded) return std::nullopt;
    spent = true;
    if (state.fleet.nodes() > most_nodes || state.running.size() > most_running) return std::nullopt;
    all = candidates();
    spent = cut;
    if (!crowded && std::ranges::none_of(all, &Candidate::scattered)) return std::nullopt;
    return node_by_node(all);
}

// Cheap: there is room for more, and work that a guarantee protects.
bool Engine::State::PlanSearch::may_move_scattered() const {
    if (state.settings.moves == 0 || state.fleet.free_units() < protection.asked) return false;
    for (TenantNo tenant = 0; tenant < state.tenants.size(); ++tenant)
        if (protection.within[tenant] && state.tenants[tenant].own > 0) return true;
    return false;
}

std::optional<Plan> Engine::State::find_plan(JobNo number, Law law, Instant now, const PlanAsk& ask) {
    PlanSearch search{*this, number, law, now, ask};
    auto plan = search.find();
    gone.assign(jobs.size(), false);
    std::ranges::fill(spare_gone, std::uint8_t{0});
    if (!plan && search.spent) jobs[number].budget_in = generation;
    return plan;
}

std::optional<Plan> Engine::State::future_plan(JobNo job, Instant now) {
    return find_plan(job, Law::guarantee, now, {.future = true, .inside = {}, .avoid = {}});
}

std::vector<Eviction> Engine::would_reclaim(JobNo job, Instant now) {
    State& state = *state_;
    state.divide_now();
    std::vector<Eviction> out;
    auto plan = state.find_plan(job, Law::guarantee, now, {});
    if (!plan) plan = state.find_plan(job, Law::share, now, {});
    if (!plan) return out;
    for (const JobNo victim : plan->victims) {
        Eviction eviction{.workload = state.jobs[victim].job.key, .claimant = state.jobs[job].job.key};
        eviction.tasks = state.jobs[victim].placed;
        eviction.lost_gpu_ms = state.lost_by(state.jobs[victim], now);
        out.push_back(std::move(eviction));
    }
    for (const Shrink& shrink : plan->shrinks) {
        Eviction eviction{.workload = state.jobs[shrink.job].job.key, .claimant = state.jobs[job].job.key};
        eviction.tasks = std::ssize(shrink.seats);
        eviction.whole = false;
        out.push_back(std::move(eviction));
    }
    return out;
}

}  // namespace bulkhead::sched
