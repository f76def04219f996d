// The queueing experiment: jobs arrive, wait for their GPUs, run and leave. Events come from a heap; after all that
// happens at one moment the scheduler is asked, and what it says is carried out at once.
//
// Who must stop, or moves, loses what it did since its last checkpoint. The engine is told how long each job will run,
// and it is the truth. A deadline that could not be met even by starting at once is not given to it: such a job runs as
// if it had none.
#pragma once

#include <array>
#include <functional>
#include <string_view>

#include "bulkhead/replay/scenario.hpp"
#include "bulkhead/sched/statement.hpp"

namespace bulkhead::replay {

enum class QueuePolicy : std::uint8_t {
    fifo,      // strictly in the order of arrival, without quotas: who does not fit keeps everybody behind it waiting
    bulkhead,  // sched::Engine
};
constexpr auto words(QueuePolicy) { return std::to_array<std::string_view>({"fifo", "bulkhead"}); }

struct QueueingSettings {
    Duration wipe{};  // how long what a task leaves is of use to nobody
    bool keep_stints = false;
    std::function<void(std::size_t finished)> progress{};
};

struct JobStory {
    Instant started, finished;     // the first start
    Duration ran;                  // all the time it held GPUs
    Duration ran_by_last_arrival;  // the part of it while jobs still arrived
};

// How things stand from here until the next.
struct Moment {
    Instant at;
    std::int64_t waiting = 0;             // jobs
    std::int64_t in_use = 0, wiping = 0;  // Gpus::units
};

// One stretch of one job on its GPUs.
struct Stint {
    std::size_t job = 0;
    Instant from, until;
    std::vector<sched::TaskSeat> seats;
};

struct QueueingRun {
    std::vector<JobStory> jobs;  // as in the scenario
    std::vector<Moment> moments;
    std::vector<Stint> stints;  // where they are kept
    std::int64_t cycles = 0, decisions = 0, backfilled = 0, evictions = 0, moves = 0;
    double lost_gpu_ms = 0;
};

Result<QueueingRun> run_queueing(const Scenario& scenario, QueuePolicy policy, const QueueingSettings& settings = {});

// How long each job takes when its tenant is alone, under the same policy, on its share of the fleet. A gang too large
// for the share runs on as many whole nodes as there are, longer in proportion.
Result<std::vector<Duration>> times_alone(const GangTrace& trace, const TraceFleet& fleet, QueuePolicy policy,
                                          const QueueingSettings& settings = {});

}  // namespace bulkhead::replay
