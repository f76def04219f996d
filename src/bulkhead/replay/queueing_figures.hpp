// What one run of the queueing experiment comes to, in the figures that papers print.
#pragma once

#include <map>
#include <optional>
#include <span>

#include "bulkhead/replay/queueing.hpp"

namespace bulkhead::replay {

struct Spread {
    std::size_t count = 0;
    double mean = 0;
    std::int64_t p50 = 0, p99 = 0, most = 0;  // by nearest rank
};
Spread spread_of(std::vector<std::int64_t> values);

struct QueueingFigures {
    std::size_t jobs = 0;
    double utilisation = 0;                          // GPUs in use of all, from the first arrival to the last finish
    std::optional<double> utilisation_with_a_queue;  // likewise, while somebody waits; none: nobody ever does
    Spread waiting_ms;  // all the time a job held no GPUs, before its first start and after evictions
    std::map<Gpus, Spread> waiting_ms_by_gpus;
    std::map<std::int64_t, Spread> jct_ms_by_priority;
    Spread jct_ms;  // from submission to the finish
    Duration makespan;
    std::size_t deadlines = 0;  // asked for
    std::size_t admitted = 0;   // of these, such as could be met by starting at once
    std::size_t met = 0, missed = 0;
    // Jain's index of what each tenant had received by the last arrival, in GPU time, against what it had asked for;
    // later everybody gets everything.
    double jain = 1;
    // Finish-time fairness: how long a job took, against how long it takes when its tenant is alone on its share.
    std::optional<double> rho_mean, rho_most;
    std::int64_t evictions = 0, moves = 0, backfilled = 0, cycles = 0, decisions = 0;
    double lost_gpu_hours = 0, wiping_gpu_hours = 0;
};

// `alone`: of times_alone; empty where that is not known.
QueueingFigures figures_of(const Scenario& scenario, const QueueingRun& run, std::span<const Duration> alone);

}  // namespace bulkhead::replay
