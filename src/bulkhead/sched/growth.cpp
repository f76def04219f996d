// Elastic gangs that run with fewer tasks than they asked for. The next task is a claim of its own: a record that waits
// like a job, is served while the tenant stays within its guarantee or its due, and gives its task to the gang. Beyond
// that, gangs grow only into room that nothing else waits for.
#include <algorithm>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

using Phase = JobRec::Phase;

// A gang that must stay together, or whose groups must, would have to move as a whole.
bool Engine::State::can_grow(const JobRec& rec) const {
    return settings.grow && rec.grows == nil && rec.job.least > 0 && rec.job.within == TopologyLevel::none &&
           rec.job.group <= 1;
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
    const JobRec& whole = jobs[gang];
    JobRec& rec = jobs[number];
    rec.job = whole.job;
    rec.job.tasks = 1;
    rec.job.least = 0;
    rec.job.gpus = Gpus{whole.job.counted(whole.placed + 1) - whole.holds()};
    rec.job.all = {};
    rec.job.prefer = TopologyLevel::none;
    rec.grows = gang;
    jobs[gang].growth = number;
    enlist(pending, number, Phase::pending);
    return number;
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
    if (!any_elastic || !settings.grow) return;
    for (std::size_t i = 0; i < running.size(); ++i) {
        const JobNo gang = running[i];
        if (jobs[gang].phase != Phase::running || !can_grow(jobs[gang])) continue;
        if (jobs[gang].placed < jobs[gang].job.tasks && jobs[gang].placed >= jobs[gang].job.least)
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
