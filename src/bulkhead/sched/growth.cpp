// Elastic gangs that run with fewer tasks than they asked for. The next task (of a gang in groups: the next group) is a
// claim of its own: a record that waits like a job, is served while the tenant stays within its guarantee or its due,
// and gives its tasks to the gang. Beyond that, gangs grow only into room that nothing else waits for. A gang that must
// stay together grows inside the domain where it runs.
//
// Where a gang has to start again to grow (EngineSettings::grow_by_restart), the record asks for as many tasks at once
// as guarantee or due allow, and for none beyond that: others would take them back, by another restart.
#include <algorithm>
#include <limits>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

using Phase = JobRec::Phase;

namespace {

// Fleets in which room is made for the growth of gangs that must stay in one domain. In larger ones they grow only into
// room that is free, because a search would compare each node with each node of other domains.
constexpr std::size_t most_nodes_for_growth_in_place = 1024;

}  // namespace

// Work that may not be preempted is given its place by pinned.cpp, which does not look at the domain of a gang. A gang
// that has to start again asks for several tasks, and for these a domain is not looked at either.
bool Engine::State::can_grow(const JobRec& rec) const {
    if (rec.grows != nil || rec.job.least == 0) return false;
    const bool may_go_anywhere = rec.job.within == TopologyLevel::none && rec.job.group <= 1;
    if (settings.grow_by_restart) return may_go_anywhere;
    return settings.grow && (may_go_anywhere || rec.job.preemptible);
}

bool Engine::State::grows_in_place(JobNo job) const {
    return jobs[job].grows != nil && jobs[job].job.within != TopologyLevel::none;
}

std::vector<FleetIndex::Portion> Engine::State::room_to_grow(JobNo gang, std::int32_t tasks) {
    Job job = jobs[gang].job;
    job.prefer = TopologyLevel::none;
    if (job.within == TopologyLevel::none) {
        if (tasks > 1) return fleet.gang(job, tasks);
        if (const auto node = fleet.best(job.shape, job.tenant)) return {{*node, 1}};
        return {};
    }
    const std::uint32_t domain = fleet.domain_of(fleet.seat(jobs[gang].seats).node, job.within);
    std::vector<FleetIndex::Portion> room;
    const auto look_at = [&](NodeNo node) {
        if (const auto takes = static_cast<std::int32_t>(fleet.capacity(node, job.shape, job.tenant)); takes > 0)
            room.push_back({node, takes});
    };
    if (job.within == TopologyLevel::node)
        look_at(domain);
    else
        std::ranges::for_each(fleet.domains(job.within)[domain].nodes, look_at);
    if (tasks > 1) return fleet.arrange(job, tasks, room);
    const auto best = std::ranges::max_element(
        room, {}, [&](const FleetIndex::Portion& each) { return fleet.standing(each.node, job.shape, job.tenant); });
    if (best == room.end()) return {};
    return {{best->node, 1}};
}

std::vector<NodeNo> Engine::State::out_of_reach(JobNo job) const {
    std::vector<NodeNo> out;
    if (!grows_in_place(job)) return out;
    const TopologyLevel level = jobs[job].job.within;
    const std::uint32_t domain = fleet.domain_of(fleet.seat(jobs[jobs[job].grows].seats).node, level);
    for (NodeNo node = 0; node < fleet.nodes(); ++node)
        if (fleet.domain_of(node, level) != domain) out.push_back(node);
    return out;
}

bool Engine::State::starts_again(const JobRec& rec) const {
    return rec.job.grow_by > 0 && rec.job.grow_by <= rec.job.tasks - rec.placed && has_a_seat_for_each(rec);
}

JobNo Engine::State::growth_of(JobNo gang) {
    if (jobs[gang].growth != nil) return jobs[gang].growth;
    JobNo number = nil;
    if (spare_jobs.empty()) {
        number = static_cast<JobNo>(jobs.size());
        jobs.emplace_back();
    } else {
        number = spare_jobs.back();
        spare_jobs.pop_back();
        jobs[number] = {};
    }
    JobRec& rec = jobs[number];
    rec.job = jobs[gang].job;
    rec.job.least = 0;
    rec.job.prefer = TopologyLevel::none;
    // A job that waits can start without a restart: of equal priority it goes first.
    if (settings.grow_by_restart) rec.job.submitted = Instant{std::numeric_limits<std::int64_t>::max()};
    rec.grows = gang;
    jobs[gang].growth = number;
    size_growth(gang, settings.grow_by_restart ? std::max(rec.job.grow_by, 1) : step_of(rec.job));
    enlist(pending, number, Phase::pending);
    return number;
}

// Not while room is kept for it.
void Engine::State::size_growth(JobNo gang, std::int32_t tasks) {
    const JobRec& whole = jobs[gang];
    Job& more = jobs[whole.growth].job;
    const std::int64_t gpus = whole.job.counted(whole.placed + tasks) - whole.holds();
    more.tasks = tasks;
    more.gpus = Gpus{(gpus + tasks - 1) / tasks};
    more.all = tasks > 1 ? Gpus{gpus} : Gpus{};
}

// The most tasks with which the tenant stays within its guarantee, or within its due; 0: they are not worth a restart.
std::int32_t Engine::State::deserved_growth(JobNo record, bool guaranteed) {
    const JobNo gang = jobs[record].grows;
    const auto allows = [&](std::int32_t tasks) {
        size_growth(gang, tasks);
        return guaranteed ? may_be_guaranteed(record) && claims_guarantee(record) : deserves(record);
    };
    std::int32_t allowed = jobs[gang].job.grow_by - 1, refused = jobs[gang].job.tasks - jobs[gang].placed + 1;
    while (refused - allowed > 1) {
        const std::int32_t middle = (allowed + refused) / 2;
        (allows(middle) ? allowed : refused) = middle;
    }
    return allowed >= jobs[gang].job.grow_by ? allowed : 0;
}

// While its room is lifted and not counted.
bool Engine::State::still_deserves(JobNo record) const {
    return !restarts(record) || deserves(record) || (may_be_guaranteed(record) && claims_guarantee(record));
}

void Engine::State::retire_growth(JobNo gang) {
    const JobNo number = jobs[gang].growth;
    if (number == nil) return;
    unlist(number);
    jobs[number].phase = Phase::unused;
    jobs[gang].growth = nil;
    retired.push_back(number);
}

void Engine::State::end_growth(JobNo gang) {
    if (jobs[gang].growth == nil) return;
    drop_claim(jobs[gang].growth);
    retire_growth(gang);
}

void Engine::State::raise_growth() {
    if (!any_elastic || !(settings.grow || settings.grow_by_restart)) return;
    const bool too_large = fleet.nodes() > most_nodes_for_growth_in_place;
    for (std::size_t i = 0; i < running.size(); ++i) {
        const JobNo gang = running[i];
        const JobRec& rec = jobs[gang];
        if (rec.phase != Phase::running || !can_grow(rec)) continue;
        if (rec.job.within != TopologyLevel::none && too_large) continue;
        const std::int32_t step = settings.grow ? step_of(rec.job) : 1;
        const bool lacks = rec.placed + step <= rec.job.tasks && rec.placed >= rec.job.least;
        if (lacks && (settings.grow || starts_again(rec)))
            growth_of(gang);
        else
            end_growth(gang);
    }
}

void Engine::State::grow(Statement& statement, Instant now) {
    if (!any_elastic) return;
    for (std::size_t i = 0; i < running.size(); ++i) {
        const JobNo job = running[i];
        const JobRec& rec = jobs[job];
        const std::int32_t step = step_of(rec.job);
        if (rec.phase != Phase::running || rec.placed + step > rec.job.tasks || !can_grow(rec)) continue;
        const SeatNo before = rec.seats;
        while (jobs[job].placed + step <= rec.job.tasks && within_quota(rec.job, step)) {
            const std::vector<FleetIndex::Portion> where = room_to_grow(job, step);
            if (where.empty() || !stays_entitled(rec.job, where) || !limits_allow(job, where)) break;
            start(job, where, now);
        }
        if (jobs[job].placed >= jobs[job].job.tasks) end_growth(job);
        if (jobs[job].seats == before) continue;
        Binding binding{.workload = rec.job.key};
        for (SeatNo seat = jobs[job].seats; seat != before; seat = fleet.seat(seat).next_of_job)
            binding.tasks.push_back(fleet.described(seat));
        statement.bind.push_back(std::move(binding));
    }
}

}  // namespace bulkhead::sched
