#include "bulkhead/sched/engine.hpp"

#include <algorithm>
#include <unordered_map>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

using Phase = JobRec::Phase;

Engine::Engine(EngineSettings settings) : state_{std::make_unique<State>()} {
    state_->settings = settings;
    state_->fleet.remember_hosts(settings.remember_hosts);
}
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
    state.sites.resize(std::max<std::size_t>(state.sites.size(), number + 1));
    state.sites[number] =
        state.site_numbers.try_emplace(node.site, static_cast<std::uint32_t>(state.site_numbers.size())).first->second;
    for (SeatNo s = state.fleet.first_seat(number); s != nil; s = state.fleet.seat(s).next_here) {
        SeatRec& seat = state.fleet.seat(s);
        if (seat.job == nil) continue;
        seat.shape = state.jobs[seat.job].job.shape;
        seat.pinned = !state.jobs[seat.job].job.preemptible;
        seat.next_of_job = state.jobs[seat.job].seats;
        state.jobs[seat.job].seats = s;
    }
    state.recount_kept(number);
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
ShapeNo Engine::shape(const TaskNeed& need) {
    state_->keeping = state_->keeping || need.keeps_node || need.keeps_gpu;
    return state_->fleet.shape(need);
}

// --- what happens ----------------------------------------------------------------------------------------------------

namespace {

// Quota counts something other than whole GPUs for it.
bool is_fractional(const Job& job) { return job.counted(1) % gpu_unit != 0; }

}  // namespace

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
    state.count_waiting(number);
    state.any_elastic = state.any_elastic || job.least > 0;
    state.fractional += is_fractional(job) ? 1 : 0;
    state.fleet.count(job.shape, job.tasks);
    state.counted += job.tasks;
    state.dues_stale = true;
    ++state.generation;
    return number;
}

void Engine::State::count_waiting(JobNo job) {
    JobRec& rec = jobs[job];
    std::int64_t waits_for = 0;
    if (rec.grows != nil)
        waits_for = 0;  // the gang counts what it lacks
    else if (rec.phase == Phase::pending)
        waits_for = rec.asked();
    else if (rec.phase == Phase::running && can_grow(rec))
        waits_for = std::max<std::int64_t>(rec.asked() - rec.holds(), 0);
    tenants[rec.job.tenant].waiting += waits_for - rec.waits_for;
    rec.waits_for = waits_for;
}

void Engine::State::hold(JobNo job, std::int64_t gpus) {
    const Job& its = jobs[job].job;
    tenants[its.tenant].own += gpus;
    if (!its.preemptible) tenants[its.tenant].own_pinned += gpus;
    bool hard = false;
    for (const TenantNo holder : tenants[its.tenant].line) {
        tenants[holder].held += gpus;
        if (!its.preemptible) tenants[holder].pinned += gpus;
        hard = hard || tenants[holder].facts.hard;
    }
    if (hard) count_owed();
    count_waiting(job);
}

void Engine::State::expect(JobNo job, const TenantRec::Coming& more) {
    const Job& its = jobs[job].job;
    tenants[its.tenant].own_coming.add(more);
    for (const TenantNo holder : tenants[its.tenant].line) tenants[holder].coming.add(more);
}

void Engine::State::expect(const RoomClaim& claim, bool is_kept) {
    const std::int64_t gpus = is_kept ? least_of(claim.job) : -least_of(claim.job);
    TenantRec::Coming more;
    (claim.firm() ? more.freed : more.reserved) = gpus;
    if (claim.firm() && !jobs[claim.job].job.preemptible) more.freed_pinned = gpus;
    expect(claim.job, more);
}

void Engine::State::set_ending(JobNo job) {
    for (SeatNo seat = jobs[job].seats; seat != nil; seat = fleet.seat(seat).next_of_job) fleet.set_ending(seat, true);
    jobs[job].phase = Phase::ending;
    count_waiting(job);
    end_growth(job);
    expect(job, {.leaving = jobs[job].holds()});
}

void Engine::State::seat(JobNo job, SeatNo seat) {
    SeatRec& rec = fleet.seat(seat);
    rec.next_of_job = jobs[job].seats;
    jobs[job].seats = seat;
    ++jobs[job].placed;
}

// A record that asks for a gang's next task gives its task to the gang, and is done.
void Engine::State::start(JobNo job, std::span<const FleetIndex::Portion> where, Instant now) {
    const JobNo owner = jobs[job].grows != nil ? jobs[job].grows : job;
    JobRec& rec = jobs[owner];
    const bool joins = rec.phase == Phase::running;
    const std::int64_t before = rec.holds();
    const bool as_given = takes_as_given(rec.job, where);
    for (const FleetIndex::Portion& portion : where)
        for (std::int32_t i = 0; i < portion.tasks; ++i) seat(owner, fleet.take(portion.node, rec.job, owner));
    hold(owner, rec.holds() - before);
    note_fixed(rec.job, where, as_given);
    if (keeping)
        for (const FleetIndex::Portion& portion : where) recount_kept(portion.node);
    rec.started_in = deciding ? cycles : nil;
    if (owner != job) retire_growth(owner);
    if (!joins) {
        unlist(job);
        enlist(running, job, Phase::running);
        rec.started = now;
    }
    count_waiting(owner);
}

void Engine::State::leave(JobNo job, bool clean) {
    JobRec& rec = jobs[job];
    if (rec.phase == Phase::ending) expect(job, {.leaving = -rec.holds()});
    std::vector<NodeNo> left;
    for (SeatNo seat = rec.seats; seat != nil;) {
        const SeatNo next = fleet.seat(seat).next_of_job;
        if (keeping) left.push_back(fleet.seat(seat).node);
        fleet.release(seat, clean);
        seat = next;
    }
    for (const NodeNo node : left) recount_kept(node);
    tenants[rec.job.tenant].ended += rec.holds();
    hold(job, -rec.holds());
    rec.seats = nil;
    rec.placed = 0;
}

void Engine::adopt(JobNo job, std::span<const TaskSeat> tasks, Instant started) {
    State& state = *state_;
    JobRec& rec = state.jobs[job];
    for (const TaskSeat& task : tasks) state.seat(job, state.fleet.take_exactly(task, rec.job, job));
    state.hold(job, rec.holds());
    for (const TaskSeat& task : tasks) state.recount_kept(task.node);
    state.unlist(job);
    state.enlist(state.running, job, Phase::running);
    state.count_waiting(job);
    rec.started = started;
}

void Engine::run(JobNo job, Instant started, std::optional<std::int32_t> tasks) {
    State& state = *state_;
    JobRec& rec = state.jobs[job];
    rec.placed = tasks.value_or(rec.job.tasks);
    state.hold(job, rec.holds());
    state.unlist(job);
    state.enlist(state.running, job, Phase::running);
    state.count_waiting(job);
    rec.started = started;
}

std::vector<Promise> Engine::promises() const {
    std::vector<Promise> out;
    for (const RoomClaim& claim : state_->claims) {
        Promise promise{state_->jobs[claim.job].job.key, claim.freed_for_it, claim.guaranteed, claim.expected, {}};
        for (const SeatNo seat : claim.seats) promise.tasks.push_back(state_->fleet.described(seat));
        out.push_back(std::move(promise));
    }
    return out;
}

void Engine::keep(JobNo job, const Promise& promise) {
    State& state = *state_;
    // Room of a running elastic gang is for its next tasks.
    if (state.jobs[job].phase != Phase::pending) {
        const JobRec& gang = state.jobs[job];
        const auto more = static_cast<std::int32_t>(promise.tasks.size());
        if (gang.phase != Phase::running || !state.can_grow(gang) || gang.placed + more > gang.job.tasks) return;
        const JobNo growth = state.growth_of(job);
        state.size_growth(job, more);
        job = growth;
    }
    RoomClaim claim{.job = job,
                    .seats = {},
                    .expected = promise.expected,
                    .freed_for_it = promise.freed,
                    .guaranteed = promise.guaranteed};
    for (const TaskSeat& task : promise.tasks)
        claim.seats.push_back(state.fleet.promise_exactly(task, state.jobs[job].job, job));
    state.claims.push_back(std::move(claim));
    state.expect(state.claims.back(), true);
}

void Engine::finish(JobNo job) {
    State& state = *state_;
    JobRec& rec = state.jobs[job];
    state.drop_claim(job);
    state.end_growth(job);
    if (rec.placed > 0) state.leave(job, !state.settings.wipes);
    state.unlist(job);
    rec.phase = Phase::unused;
    state.count_waiting(job);
    state.fractional -= is_fractional(rec.job) ? 1 : 0;
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
    state.count_waiting(job);
    rec.started = {};
}

// --- placing ---------------------------------------------------------------------------------------------------------

void Engine::State::refresh_mix() {
    fleet.refresh_layout_values();
    if (mix_given || counted < 2 * mixed_at || counted == 0) return;
    mixed_at = counted;
    fleet.set_mix(fleet.observed_mix());
}

std::vector<FleetIndex::Portion> Engine::State::find_room(JobNo job, std::int32_t tasks) {
    const Job& its = jobs[job].job;
    if (grows_in_place(job)) return room_to_grow(jobs[job].grows, tasks);
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

Binding Engine::State::described(JobNo job, SeatNo after) const {
    Binding binding{.workload = jobs[job].job.key};
    for (SeatNo seat = jobs[job].seats; seat != after; seat = fleet.seat(seat).next_of_job)
        binding.tasks.push_back(fleet.described(seat));
    std::ranges::reverse(binding.tasks);
    return binding;
}

void Engine::State::begin(JobNo job, std::span<const FleetIndex::Portion> where, Instant now, Binding* out) {
    const JobNo gang = jobs[job].grows;
    const SeatNo before = gang == nil ? nil : jobs[gang].seats;
    start(job, where, now);
    if (out == nullptr) return;
    *out = described(gang == nil ? job : gang, before);
}

// Where gangs do not grow, giving spare tasks back interrupts them. A gang that others were disturbed for, and
// that started larger than its tenant's share, would be disturbed in turn by those it took the room from. So while work
// of others waits it starts within its tenant's due, and within its guarantee while they claim theirs.
bool Engine::State::keeps_share(JobNo number, std::int64_t tasks) {
    const RoomClaim* claim = claim_of(number);
    if (settings.grow || claim == nullptr || !claim->firm()) return true;
    const JobRec& rec = jobs[number];
    const TenantRec& tenant = tenants[rec.job.tenant];
    bool others_wait = false, others_claim = false;
    for (const JobNo other : pending) {
        if (jobs[other].job.tenant == rec.job.tenant) continue;
        others_wait = true;
        others_claim = others_claim || may_be_guaranteed(other);
    }
    const std::int64_t asked = rec.job.counted(tasks), least = rec.job.counted(rec.fewest());
    if (others_claim && tenant.has() + least <= tenant.guarantee) return tenant.has() + asked <= tenant.guarantee;
    return !others_wait ||
           (tenant.own_will_hold() + asked <= tenant.own_due && std::ranges::all_of(tenant.line, [&](TenantNo holder) {
                return tenants[holder].will_hold() + asked <= tenants[holder].due;
            }));
}

// All its tasks, or as many as are worth running.
bool Engine::State::place(JobNo job, Instant now, Binding* out) {
    refresh_mix();
    const JobRec& rec = jobs[job];
    std::int64_t most = rec.job.tasks;
    const std::int64_t unit = std::max(rec.job.group, 1);  // no group is halved
    const auto allows = [&](std::int64_t tasks) {
        return within_quota(rec.job, tasks) && (tasks <= rec.fewest() || keeps_share(job, tasks));
    };
    if (!allows(most)) {
        // The most groups that quota and share allow, beyond the fewest.
        std::int64_t allowed = 0, refused = (most - rec.fewest() + unit - 1) / unit;
        while (refused - allowed > 1) {
            const std::int64_t middle = (allowed + refused) / 2;
            (allows(rec.fewest() + middle * unit) ? allowed : refused) = middle;
        }
        most = rec.fewest() + allowed * unit;
    }
    const auto room_for = [&](std::int64_t tasks) {
        const auto count = static_cast<std::int32_t>(tasks);
        return on_given_nodes(job, count, rec.job.preemptible ? find_room(job, count) : find_entitled_room(job, count));
    };
    std::vector<FleetIndex::Portion> where = room_for(most);
    if (where.empty() && rec.fewest() < most) {
        most = std::min(most, fleet.most(rec.job));
        if (most >= rec.fewest()) where = room_for(most);
    }
    if (keeping && !where.empty() && !limits_allow(job, where)) {
        if (grows_in_place(job)) return false;
        where = room_within_limits(job, static_cast<std::int32_t>(most));
        if (!stays_entitled(rec.job, where)) where.clear();
    }
    if (where.empty()) return false;
    begin(job, where, now, out);
    return true;
}

bool Engine::allocate(JobNo job, Instant now) {
    State& state = *state_;
    const JobRec& rec = state.jobs[job];
    if (rec.phase != Phase::pending || !state.within_quota(rec.job, rec.fewest())) return false;
    return state.place(job, now, nullptr);
}

// --- asked about it ------------------------------------------------------------------------------------------------

bool Engine::was_searched(JobNo job) const {
    const JobRec& rec = state_->jobs[job];
    const bool waits = rec.phase == Phase::pending || (rec.phase == Phase::running && state_->can_grow(rec));
    return waits && rec.searched_in >= state_->round;
}
void Engine::searched(JobNo job) { state_->jobs[job].searched_in = state_->round; }

Waiting Engine::why(JobNo job, Instant now) const { return state_->why(job, now); }
Waiting Engine::explain(JobNo job, Instant now) {
    state_->divide_now();
    Waiting waiting = state_->why(job, now);
    waiting.blocking = state_->blocking(job, now);
    return waiting;
}
bool Engine::waiting(JobNo job) const { return state_->jobs[job].phase == Phase::pending; }
bool Engine::running(JobNo job) const { return state_->jobs[job].phase == Phase::running; }
std::vector<TaskSeat> Engine::seats(JobNo job) const { return state_->described(job).tasks; }
std::int64_t Engine::held(TenantNo tenant) const { return state_->tenants[tenant].held; }
std::int64_t Engine::kept(TenantNo tenant) const { return state_->tenants[tenant].kept; }
std::int64_t Engine::due(TenantNo tenant) const { return state_->tenants[tenant].due; }
std::int64_t Engine::own_due(TenantNo tenant) const { return state_->tenants[tenant].own_due; }

EngineFigures Engine::figures() const {
    const State& state = *state_;
    return {.nodes = state.fleet.nodes(),
            .jobs = state.jobs.size() - state.spare_jobs.size(),
            .states = state.fleet.distinct_states(),
            .node_bytes = state.fleet.bytes() + state.fixed_nodes.on.capacity() * sizeof(State::FixedNodes::OnNode),
            .job_bytes =
                state.jobs.capacity() * sizeof(JobRec) + state.fleet.seat_bytes() +
                (state.pending.capacity() + state.running.capacity() + state.spare_jobs.capacity()) * sizeof(JobNo)};
}

}  // namespace bulkhead::sched
