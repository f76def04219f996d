#include "bulkhead/replay/queueing_figures.hpp"

#include <algorithm>

namespace bulkhead::replay {

namespace {

constexpr double ms_per_hour = 3'600'000;

double jain_of(const Scenario& scenario, const QueueingRun& run) {
    std::vector<double> received(scenario.tenants.size()), asked(scenario.tenants.size());
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
        const ScenarioJob& job = scenario.jobs[i];
        const auto gpus = static_cast<double>(job.units());
        received[job.work.tenant] += gpus * static_cast<double>(run.jobs[i].ran_by_last_arrival.ms);
        asked[job.work.tenant] += gpus * static_cast<double>(job.duration.ms);
    }
    double sum = 0, squares = 0, count = 0;
    for (std::size_t i = 0; i < asked.size(); ++i) {
        if (asked[i] == 0) continue;
        const double part = received[i] / asked[i];
        sum += part;
        squares += part * part;
        ++count;
    }
    return squares == 0 ? 1 : sum * sum / (count * squares);
}

// GPU time of each kind, between moments.
void add_utilisation(QueueingFigures& out, std::int64_t units, const QueueingRun& run) {
    double used = 0, all = 0, used_with_queue = 0, all_with_queue = 0, wiping = 0;
    for (std::size_t i = 0; i + 1 < run.moments.size(); ++i) {
        const Moment& moment = run.moments[i];
        const auto lasts = static_cast<double>((run.moments[i + 1].at - moment.at).ms);
        const double here = lasts * static_cast<double>(units);
        used += lasts * static_cast<double>(moment.in_use);
        wiping += lasts * static_cast<double>(moment.wiping);
        all += here;
        if (moment.waiting == 0) continue;
        used_with_queue += lasts * static_cast<double>(moment.in_use);
        all_with_queue += here;
    }
    if (all > 0) out.utilisation = used / all;
    if (all_with_queue > 0) out.utilisation_with_a_queue = used_with_queue / all_with_queue;
    out.wiping_gpu_hours = wiping / gpu_unit / ms_per_hour;
}

template <class Key>
std::map<Key, Spread> spreads(std::map<Key, std::vector<std::int64_t>> values) {
    std::map<Key, Spread> out;
    for (auto& [key, list] : values) out[key] = spread_of(std::move(list));
    return out;
}

}  // namespace

Spread spread_of(std::vector<std::int64_t> values) {
    if (values.empty()) return {};
    std::ranges::sort(values);
    const auto rank = [&](std::size_t percent) { return values[(values.size() * percent + 99) / 100 - 1]; };
    double sum = 0;
    for (const std::int64_t value : values) sum += static_cast<double>(value);
    return {values.size(), sum / static_cast<double>(values.size()), rank(50), rank(99), values.back()};
}

QueueingFigures figures_of(const Scenario& scenario, const QueueingRun& run, std::span<const Duration> alone) {
    QueueingFigures out;
    out.jobs = scenario.jobs.size();
    out.evictions = run.evictions;
    out.moves = run.moves;
    out.backfilled = run.backfilled;
    out.cycles = run.cycles;
    out.decisions = run.decisions;
    out.lost_gpu_hours = run.lost_gpu_ms / ms_per_hour;
    std::vector<std::int64_t> waiting, jct;
    std::map<Gpus, std::vector<std::int64_t>> by_gpus;
    std::map<std::int64_t, std::vector<std::int64_t>> by_priority;
    double rho = 0, rho_most = 0;
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
        const ScenarioJob& job = scenario.jobs[i];
        const JobStory& story = run.jobs[i];
        jct.push_back((story.finished - job.work.submitted).ms);
        waiting.push_back(jct.back() - story.ran.ms);
        by_gpus[Gpus{job.units()}].push_back(waiting.back());
        by_priority[job.work.priority].push_back(jct.back());
        out.makespan = std::max(out.makespan, story.finished - scenario.jobs.front().work.submitted);
        if (job.work.deadline) ++out.deadlines;
        if (job.deadline_is_feasible()) {
            ++out.admitted;
            ++(story.finished <= *job.work.deadline ? out.met : out.missed);
        }
        if (alone.empty()) continue;
        const double ratio = static_cast<double>(jct.back()) / static_cast<double>(alone[i].ms);
        rho += ratio;
        rho_most = std::max(rho_most, ratio);
    }
    if (!alone.empty()) {
        out.rho_mean = rho / static_cast<double>(alone.size());
        out.rho_most = rho_most;
    }
    out.waiting_ms = spread_of(std::move(waiting));
    out.jct_ms = spread_of(std::move(jct));
    out.waiting_ms_by_gpus = spreads(std::move(by_gpus));
    out.jct_ms_by_priority = spreads(std::move(by_priority));
    out.jain = jain_of(scenario, run);
    add_utilisation(out, scenario.units(), run);
    return out;
}

}  // namespace bulkhead::replay
