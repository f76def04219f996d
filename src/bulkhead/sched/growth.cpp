// Elastic gangs that run with fewer tasks than they asked for. The next task is a claim of its own: a record that waits
// like a job, is served while the tenant stays within its guarantee or its due, and gives its task to the gang. Beyond
// that, gangs grow only into room that nothing else waits for.
//
// Where a gang has to start again to grow (EngineSettings::grow_by_restart), the record asks for as many tasks at once
// as guarantee or due allow, and for none beyond that: others would take them back, by another restart.
#include <algorithm>
#include <limits>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

using Phase = JobRec::Phase;

// A gang that must stay together, or whose groups must, would have to move as a whole.
bool Engine::State::can_grow(const JobRec& rec) const {
    return (settings.grow || settings.grow_by_restart) && rec.grows == nil && rec.job.least > 0 &&
           rec.job.within == TopologyLevel::none && rec.job.group <= 1;
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
    size_growth(gang, settings.grow_by_restart ? std::max(rec.job.grow_by, 1) : 1);
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
    for (std::size_t i = 0; i < running.size(); ++i) {
        const JobNo gang = running[i];
        if (jobs[gang].phase != Phase::running || !can_grow(jobs[gang])) continue;
        const bool lacks = jobs[gang].placed < jobs[gang].job.tasks && jobs[gang].placed >= jobs[gang].job.least;
        if (lacks && (settings.grow || starts_again(jobs[gang])))
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
        if (rec.phase != Phase::running || rec.placed >= rec.job.tasks || !can_grow(rec)) continue;
        const SeatNo before = rec.seats;
        while (jobs[job].placed < rec.job.tasks && within_quota(rec.job, 1)) {
            const auto node = fleet.best(rec.job.shape, rec.job.tenant);
            if (!node) break;
            const FleetIndex::Portion one{*node, 1};
            if (!stays_entitled(rec.job, {&one, 1}) || !limits_allow(job, {&one, 1})) break;
            note_fixed(job, {&one, 1});
            start(job, {&one, 1}, now);
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
