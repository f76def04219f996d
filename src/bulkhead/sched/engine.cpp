#include "bulkhead/sched/engine.hpp"

#include <algorithm>
#include <unordered_map>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

using Phase = JobRec::Phase;

namespace {

constexpr int searches_in_a_cycle = 24;    // looks for whom to disturb, up to four for one claimant; the rest is next
constexpr int backfills_in_a_cycle = 256;  // tries for those like whom one found no room already

}  // namespace

Engine::Engine(EngineSettings settings) : state_{std::make_unique<State>()} { state_->settings = settings; }
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

// --- what is there ---------------------------------------------------------------------------------------------------

void Engine::set_tenants(std::vector<TenantFacts> tenants) {
    ++state_->generation;
    state_->set_tenants(std::move(tenants));
}
NodeNo Engine::add_node(const Node& node) {
    State& state = *state_;
    ++state.generation;
    state.dues_stale = true;
    const NodeNo number = state.fleet.add_node(node);
    for (SeatNo s = state.fleet.first_seat(number); s != nil; s = state.fleet.seat(s).next_here) {
        SeatRec& seat = state.fleet.seat(s);
        if (seat.job == nil) continue;
        seat.shape = state.jobs[seat.job].job.shape;
        seat.pinned = !state.jobs[seat.job].job.preemptible;
        seat.next_of_job = state.jobs[seat.job].seats;
        state.jobs[seat.job].seats = s;
    }
    return number;
}
void Engine::clean(NodeNo node, std::uint16_t gpu, std::uint8_t slices) { state_->fleet.clean(node, gpu, slices); }
void Engine::rebooted(NodeNo node) {
    ++state_->generation;
    state_->fleet.rebooted(node);
}
void Engine::set_mix(Mix mix) {
    state_->mix_given = true;
    state_->fleet.set_mix(std::move(mix));
}
ShapeNo Engine::shape(const TaskNeed& need) { return state_->fleet.shape(need); }

// --- what happens ----------------------------------------------------------------------------------------------------

void Engine::State::enlist(std::vector<JobNo>& list, JobNo job, Phase phase) {
    jobs[job].phase = phase;
    jobs[job].at = static_cast<std::uint32_t>(list.size());
    list.push_back(job);
}

void Engine::State::unlist(JobNo job) {
    std::vector<JobNo>& list = jobs[job].phase == Phase::pending ? pending : running;
    const JobNo last = list.back();
    list[jobs[job].at] = last;
    jobs[last].at = jobs[job].at;
    list.pop_back();
}

JobNo Engine::submit(const Job& job) {
    State& state = *state_;
    JobNo number = nil;
    if (state.spare_jobs.empty()) {
        number = static_cast<JobNo>(state.jobs.size());
        state.jobs.emplace_back();
    } else {
        number = state.spare_jobs.back();
        state.spare_jobs.pop_back();
        state.jobs[number] = {};
    }
    state.jobs[number].job = job;
    state.enlist(state.pending, number, Phase::pending);
    state.tenants[job.tenant].waiting += state.jobs[number].asked();
    state.fleet.count(job.shape, job.tasks);
    state.counted += job.tasks;
    state.dues_stale = true;
    ++state.generation;
    return number;
}

void Engine::State::hold(JobNo job, std::int64_t gpus) {
    const Job& its = jobs[job].job;
    tenants[its.tenant].own += gpus;
    bool hard = false;
    for (const TenantNo holder : tenants[its.tenant].line) {
        tenants[holder].held += gpus;
        if (!its.preemptible) tenants[holder].pinned += gpus;
        hard = hard || tenants[holder].facts.hard;
    }
    if (hard) count_owed();
}

void Engine::State::expect(JobNo job, const TenantRec::Coming& more) {
    const Job& its = jobs[job].job;
    tenants[its.tenant].own_coming.add(more);
    for (const TenantNo holder : tenants[its.tenant].line) tenants[holder].coming.add(more);
}

void Engine::State::expect(const RoomClaim& claim, bool is_kept) {
    const std::int64_t gpus = is_kept ? least_of(claim.job) : -least_of(claim.job);
    TenantRec::Coming more;
    (claim.freed_for_it ? more.freed : more.reserved) = gpus;
    if (claim.freed_for_it && !jobs[claim.job].job.preemptible) more.freed_pinned = gpus;
    expect(claim.job, more);
}

void Engine::State::set_ending(JobNo job) {
    for (SeatNo seat = jobs[job].seats; seat != nil; seat = fleet.seat(seat).next_of_job) fleet.set_ending(seat, true);
    jobs[job].phase = Phase::ending;
    expect(job, {.leaving = jobs[job].holds()});
}

void Engine::State::seat(JobNo job, SeatNo seat) {
    SeatRec& rec = fleet.seat(seat);
    rec.next_of_job = jobs[job].seats;
    jobs[job].seats = seat;
    ++jobs[job].placed;
}

void Engine::State::start(JobNo job, std::span<const FleetIndex::Portion> where, Instant now) {
    JobRec& rec = jobs[job];
    const bool joins = rec.phase == Phase::running;
    const std::int64_t before = rec.holds();
    for (const FleetIndex::Portion& portion : where)
        for (std::int32_t i = 0; i < portion.tasks; ++i) seat(job, fleet.take(portion.node, rec.job, job));
    hold(job, rec.holds() - before);
    if (joins) return;
    tenants[rec.job.tenant].waiting -= rec.asked();
    unlist(job);
    enlist(running, job, Phase::running);
    rec.started = now;
    rec.started_in = deciding ? cycles : nil;
}

void Engine::State::leave(JobNo job, bool clean) {
    JobRec& rec = jobs[job];
    if (rec.phase == Phase::ending) expect(job, {.leaving = -rec.holds()});
    for (SeatNo seat = rec.seats; seat != nil;) {
        const SeatNo next = fleet.seat(seat).next_of_job;
        fleet.release(seat, clean);
        seat = next;
    }
    hold(job, -rec.holds());
    rec.seats = nil;
    rec.placed = 0;
}

void Engine::adopt(JobNo job, std::span<const TaskSeat> tasks, Instant started) {
    State& state = *state_;
    JobRec& rec = state.jobs[job];
    for (const TaskSeat& task : tasks) state.seat(job, state.fleet.take_exactly(task, rec.job, job));
    state.hold(job, rec.holds());
    state.tenants[rec.job.tenant].waiting -= rec.asked();
    state.unlist(job);
    state.enlist(state.running, job, Phase::running);
    rec.started = started;
}

void Engine::run(JobNo job, Instant started) {
    State& state = *state_;
    JobRec& rec = state.jobs[job];
    rec.placed = rec.job.tasks;
    state.hold(job, rec.holds());
    state.tenants[rec.job.tenant].waiting -= rec.asked();
    state.unlist(job);
    state.enlist(state.running, job, Phase::running);
    rec.started = started;
}

std::vector<Promise> Engine::promises() const {
    std::vector<Promise> out;
    for (const RoomClaim& claim : state_->claims) {
        Promise promise{state_->jobs[claim.job].job.key, claim.freed_for_it, claim.expected, {}};
        for (const SeatNo seat : claim.seats) promise.tasks.push_back(state_->fleet.described(seat));
        out.push_back(std::move(promise));
    }
    return out;
}

void Engine::keep(JobNo job, const Promise& promise) {
    State& state = *state_;
    RoomClaim claim{.job = job, .seats = {}, .expected = promise.expected, .freed_for_it = promise.freed};
    for (const TaskSeat& task : promise.tasks)
        claim.seats.push_back(state.fleet.promise_exactly(task, state.jobs[job].job, job));
    state.claims.push_back(std::move(claim));
    state.expect(state.claims.back(), true);
}

void Engine::finish(JobNo job) {
    State& state = *state_;
    JobRec& rec = state.jobs[job];
    state.drop_claim(job);
    if (rec.phase == Phase::pending) state.tenants[rec.job.tenant].waiting -= rec.asked();
    if (rec.placed > 0) state.leave(job, !state.settings.wipes);
    state.unlist(job);
    rec.phase = Phase::unused;
    state.spare_jobs.push_back(job);
    state.dues_stale = true;
    ++state.generation;
}

void Engine::stopped(JobNo job) {
    State& state = *state_;
    JobRec& rec = state.jobs[job];
    if (rec.phase != Phase::ending) return;
    state.leave(job, !state.settings.wipes);
    state.unlist(job);
    state.enlist(state.pending, job, Phase::pending);
    state.tenants[rec.job.tenant].waiting += rec.asked();
    rec.started = {};
}

// --- placing ---------------------------------------------------------------------------------------------------------

void Engine::State::refresh_mix() {
    if (mix_given || counted < 2 * mixed_at || counted == 0) return;
    mixed_at = counted;
    fleet.set_mix(fleet.observed_mix());
}

std::vector<FleetIndex::Portion> Engine::State::find_room(JobNo job, std::int32_t tasks) {
    const Job& its = jobs[job].job;
    if (tasks == 1) {
        if (const auto node = fleet.best(its.shape, its.tenant)) return {{*node, 1}};
        return {};
    }
    if (its.prefer != TopologyLevel::none && its.prefer != its.within && its.group <= 1) {
        Job nearer = its;
        nearer.within = its.prefer;
        auto found = fleet.gang(nearer, tasks);
        // What is preferred may reach beyond what must be kept to.
        const bool kept_to = std::ranges::all_of(found, [&](const FleetIndex::Portion& portion) {
            return fleet.domain_of(portion.node, its.within) == fleet.domain_of(found.front().node, its.within);
        });
        if (!found.empty() && kept_to) return found;
    }
    return fleet.gang(its, tasks);
}

Binding Engine::State::described(JobNo job) const {
    Binding binding{.workload = jobs[job].job.key};
    for (SeatNo seat = jobs[job].seats; seat != nil; seat = fleet.seat(seat).next_of_job)
        binding.tasks.push_back(fleet.described(seat));
    std::ranges::reverse(binding.tasks);
    return binding;
}

// All its tasks, or as many as are worth running.
bool Engine::State::place(JobNo job, Instant now, Binding* out) {
    refresh_mix();
    const JobRec& rec = jobs[job];
    std::int64_t most = rec.job.tasks;
    const std::int64_t unit = std::max(rec.job.group, 1);  // no group is halved
    if (!within_quota(rec.job, most)) {
        // The most groups that quota allows, beyond the fewest.
        std::int64_t allowed = 0, refused = (most - rec.fewest() + unit - 1) / unit;
        while (refused - allowed > 1) {
            const std::int64_t middle = (allowed + refused) / 2;
            (within_quota(rec.job, rec.fewest() + middle * unit) ? allowed : refused) = middle;
        }
        most = rec.fewest() + allowed * unit;
    }
    std::vector<FleetIndex::Portion> where = find_room(job, static_cast<std::int32_t>(most));
    if (where.empty() && rec.fewest() < most) {
        most = std::min(most, fleet.most(rec.job));
        if (most >= rec.fewest()) where = find_room(job, static_cast<std::int32_t>(most));
    }
    if (where.empty()) return false;
    start(job, where, now);
    if (out != nullptr) *out = described(job);
    return true;
}

bool Engine::allocate(JobNo job, Instant now) {
    State& state = *state_;
    const JobRec& rec = state.jobs[job];
    if (rec.phase != Phase::pending || !state.within_quota(rec.job, rec.fewest())) return false;
    return state.place(job, now, nullptr);
}

std::vector<Eviction> Engine::would_reclaim(JobNo job, Instant now) {
    State& state = *state_;
    state.divide_now();
    std::vector<Eviction> out;
    auto plan = state.find_victims(job, Action::reclaim, now, true);
    if (!plan) plan = state.find_victims(job, Action::reclaim, now, false);
    if (!plan) return out;
    for (const JobNo victim : plan->victims) {
        Eviction eviction{.workload = state.jobs[victim].job.key, .claimant = state.jobs[job].job.key};
        eviction.tasks = state.jobs[victim].placed;
        eviction.lost_gpu_ms = state.lost_by(state.jobs[victim], now);
        out.push_back(std::move(eviction));
    }
    return out;
}

// --- the cycle -------------------------------------------------------------------------------------------------------

std::uint64_t Engine::State::signature(const Job& job) const {
    std::uint64_t hash = 0x2545F4914F6CDD1Du;
    const auto add = [&](std::uint64_t word) {
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 31;
    };
    add(std::uint64_t{job.shape} << 32 | job.tenant);
    add(static_cast<std::uint64_t>(job.tasks) << 32 | static_cast<std::uint32_t>(job.least));
    add(static_cast<std::uint64_t>(job.within) << 40 | static_cast<std::uint64_t>(job.group_within) << 32 |
        static_cast<std::uint32_t>(job.group));
    add(static_cast<std::uint64_t>(job.priority) << 1 | (job.preemptible ? 1u : 0u));
    return hash;
}

// Elastic gangs take what nobody waits for.
void Engine::State::grow(Statement& statement, Instant now) {
    for (std::size_t i = 0; i < running.size(); ++i) {
        const JobNo job = running[i];
        const JobRec& rec = jobs[job];
        if (rec.phase != Phase::running || rec.job.least == 0 || rec.placed >= rec.job.tasks) continue;
        if (rec.job.within != TopologyLevel::none || rec.job.group > 1) continue;  // it would have to move as a whole
        const SeatNo before = rec.seats;
        while (jobs[job].placed < rec.job.tasks && within_quota(rec.job, 1)) {
            const auto node = fleet.best(rec.job.shape, rec.job.tenant);
            if (!node) break;
            const FleetIndex::Portion one{*node, 1};
            start(job, {&one, 1}, now);
        }
        if (jobs[job].seats == before) continue;
        Binding binding{.workload = rec.job.key};
        for (SeatNo seat = jobs[job].seats; seat != before; seat = fleet.seat(seat).next_of_job)
            binding.tasks.push_back(fleet.described(seat));
        statement.bind.push_back(std::move(binding));
    }
}

// A gang below its minimum does no work and holds GPUs.
void Engine::State::clear_stale(Statement& statement, Instant now) {
    for (std::size_t i = 0; i < running.size(); ++i) {
        JobRec& rec = jobs[running[i]];
        if (rec.phase != Phase::running || rec.placed >= rec.fewest()) continue;
        if (now - rec.started < settings.stale_grace) continue;
        Eviction eviction{.workload = rec.job.key, .action = Action::stale};
        eviction.tasks = rec.placed;
        eviction.reasons.push_back(
            {"evict.stale", {{"tasks", std::int64_t{rec.placed}}, {"least", std::int64_t{rec.fewest()}}}});
        for (SeatNo seat = rec.seats; seat != nil; seat = fleet.seat(seat).next_of_job)
            eviction.nodes.push_back(fleet.seat(seat).node);
        set_ending(running[i]);
        statement.evict.push_back(std::move(eviction));
    }
}

Statement Engine::cycle(Instant now) {
    State& state = *state_;
    Statement statement;
    state.deciding = true;
    state.age(now);
    state.clear_stale(statement, now);
    state.refresh_mix();
    state.divide_now();
    state.failed.clear();
    state.settle_claims(statement, now);
    state.line_up(now);
    int disturbed = 0, kept = 0, backfills = backfills_in_a_cycle;
    state.searches = 0;
    for (const RoomClaim& claim : state.claims) kept += claim.freed_for_it ? 0 : 1;
    bool somebody_waits = false;
    std::vector<JobNo> waiting;
    while (const auto next = state.next_in_turn()) {
        const JobNo job = *next;
        waiting.push_back(job);
        const RoomClaim* claim = state.claim_of(job);
        if (claim != nullptr && claim->freed_for_it) continue;
        const Job& its = state.jobs[job].job;
        const std::uint64_t signature = state.signature(its);
        if (state.failed.contains(signature)) {
            // What found no room may still be short enough for room that is kept, where one like it was not.
            if (claim == nullptr && backfills-- > 0 && state.within_quota(its, state.jobs[job].fewest()))
                state.backfill(job, now, statement);
            continue;
        }
        const bool over = !state.within_quota(its, state.jobs[job].fewest());
        Binding binding;
        if (!over && claim == nullptr) {
            const auto placed = [&] {
                return state.place(job, now, &binding) ||
                       (state.deserves(job) && state.drop_undeserved_claims() && state.place(job, now, &binding));
            };
            if (placed()) {
                binding.backfilled = somebody_waits;
                statement.bind.push_back(std::move(binding));
                continue;
            }
            if (state.backfill(job, now, statement)) continue;
        }
        if (disturbed < state.settings.disruptions && state.jobs[job].searched_in < state.round) {
            if (state.searches >= searches_in_a_cycle) {
                statement.unfinished = true;
            } else if (state.disturb(job, now, over, statement)) {
                ++disturbed;
                state.failed.clear();
                continue;
            } else {
                state.jobs[job].searched_in = state.cycles;
            }
        }
        if (!over && state.fits_due(job)) {
            somebody_waits = true;
            if (claim == nullptr && kept < state.settings.reservations && state.reserve(job, now)) ++kept;
        }
        if (state.claim_of(job) == nullptr) state.failed.insert(signature);
    }
    if (state.settings.grow) state.grow(statement, now);
    std::unordered_map<std::uint64_t, std::size_t> told;  // alike: what stands in the way of one stands in that of all
    for (const JobNo job : waiting) {
        if (state.jobs[job].phase != Phase::pending) continue;
        const bool alone = state.claim_of(job) != nullptr || state.jobs[job].job.deadline.has_value();
        const auto [known, fresh] = told.try_emplace(state.signature(state.jobs[job].job), statement.waiting.size());
        if (fresh || alone) {
            statement.waiting.push_back(state.why(job, now));
        } else {
            Waiting copy = statement.waiting[known->second];
            copy.workload = state.jobs[job].job.key;
            statement.waiting.push_back(std::move(copy));
        }
        if (alone) told.erase(known);
        const JobRec& rec = state.jobs[job];
        const std::vector<Reason>& reasons = statement.waiting.back().reasons;
        if (std::ranges::find(reasons, "wait.reboot", &Reason::code) != reasons.end() &&
            state.within_quota(rec.job, rec.fewest()) && state.claim_of(job) == nullptr)
            state.want_reboots(statement, job);
    }
    // Whoever was not looked for comes first in the next cycle; when all were, everybody may be again.
    ++state.cycles;
    if (!statement.unfinished) state.round = state.cycles;
    state.deciding = false;
    return statement;
}

// One reboot for one waiting gang: as many empty hosts as it has tasks would do at most.
void Engine::State::want_reboots(Statement& statement, JobNo job) const {
    const JobRec& rec = jobs[job];
    std::int64_t left = rec.fewest();
    for (NodeNo node = 0; node < fleet.nodes() && left > 0; ++node)
        if (fleet.wants_reboot(node, rec.job.shape, rec.job.tenant) &&
            std::ranges::find(statement.reboot, node) == statement.reboot.end()) {
            statement.reboot.push_back(node);
            --left;
        }
}

bool Engine::was_searched(JobNo job) const {
    return state_->jobs[job].phase == Phase::pending && state_->jobs[job].searched_in >= state_->round;
}
void Engine::searched(JobNo job) { state_->jobs[job].searched_in = state_->round; }

Waiting Engine::why(JobNo job, Instant now) const { return state_->why(job, now); }
Waiting Engine::explain(JobNo job, Instant now) {
    state_->divide_now();
    Waiting waiting = state_->why(job, now);
    waiting.blocking = state_->blocking(job, now);
    return waiting;
}
bool Engine::running(JobNo job) const { return state_->jobs[job].phase == Phase::running; }
std::vector<TaskSeat> Engine::seats(JobNo job) const { return state_->described(job).tasks; }
std::int64_t Engine::held(TenantNo tenant) const { return state_->tenants[tenant].held; }
std::int64_t Engine::due(TenantNo tenant) const { return state_->tenants[tenant].due; }
std::int64_t Engine::own_due(TenantNo tenant) const { return state_->tenants[tenant].own_due; }

EngineFigures Engine::figures() const {
    const State& state = *state_;
    return {.nodes = state.fleet.nodes(),
            .jobs = state.jobs.size() - state.spare_jobs.size(),
            .states = state.fleet.distinct_states(),
            .node_bytes = state.fleet.bytes(),
            .job_bytes =
                state.jobs.capacity() * sizeof(JobRec) + state.fleet.seat_bytes() +
                (state.pending.capacity() + state.running.capacity() + state.spare_jobs.capacity()) * sizeof(JobNo)};
}

}  // namespace bulkhead::sched
