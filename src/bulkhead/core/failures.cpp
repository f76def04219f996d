// Work that fails: whose fault it was, whether it is tried again and when; deadlines; and what the history keeps of
// work and leases that have ended (decision 0042).
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/state.hpp"

namespace bulkhead {

namespace {

constexpr std::int64_t not_executable_status = 126, not_found_status = 127, killed_above = 128;
constexpr Duration first_back_off{10'000}, longest_back_off{360'000};
// Reports of nodes are lines of any length up to the wire's limit; what is kept with a workload is shorter.
constexpr std::size_t says_bytes_max = 1024;
constexpr int forgotten_each_tick = 1000;

FailureReason reason_of(PartFault fault) {
    switch (fault) {
        case PartFault::not_found:
            return FailureReason::program_not_found;
        case PartFault::not_executable:
            return FailureReason::program_not_executable;
        case PartFault::invalid:
            return FailureReason::program_invalid;
        case PartFault::node:
            return FailureReason::node_unfit;
        case PartFault::interrupted:
            return FailureReason::interrupted;
        case PartFault::none:
        case PartFault::start:
            return FailureReason::start_failed;
    }
    return FailureReason::start_failed;
}

// As a shell would say it.
std::optional<std::int64_t> status_of(FailureReason reason) {
    if (reason == FailureReason::program_not_found) return not_found_status;
    if (reason == FailureReason::program_not_executable) return not_executable_status;
    return std::nullopt;
}

bool is_tried_again(const GpuWorkloadSpec& spec, FailureReason reason, std::int64_t failures) {
    switch (reason) {
        case FailureReason::exited:
        case FailureReason::killed:
            return spec.restartPolicy == RestartPolicy::on_failure && failures <= spec.backoffLimit;
        case FailureReason::start_failed:
            return failures <= spec.backoffLimit;  // none of its code ran
        default:
            return false;
    }
}

std::string next_step(FailureReason reason, const std::string& workload, const std::string& node) {
    switch (reason) {
        case FailureReason::exited:
            return fmt::format("read what it printed: bulkhead logs {}; then change the command, or delete it",
                               workload);
        case FailureReason::killed:
            return fmt::format(
                "read what it printed: bulkhead logs {}; status 137 is often too little memory: raise spec.memory",
                workload);
        case FailureReason::program_not_found:
            return "name a program that is in the tier, by its path or by a name on PATH";
        case FailureReason::program_not_executable:
            return "make the file executable for everybody, or run it by its interpreter: [/bin/sh, FILE]";
        case FailureReason::program_invalid:
            return "correct spec.command and spec.environment as the reason says";
        case FailureReason::start_failed:
            return fmt::format("change what it asks for, or ask the operator to read the log of node {}", node);
        case FailureReason::deadline_exceeded:
            return "raise spec.activeDeadline, or let the work save itself and go on in another workload";
        case FailureReason::node_unfit:
        case FailureReason::node_refused:
        case FailureReason::interrupted:
            break;
    }
    return {};
}

evidence::Record record_of(const WorkloadRun& run, evidence::RecordKind kind) {
    return {.kind = kind,
            .actor = "core",
            .tenant = run.object.spec.tenant,
            .object = "GpuWorkload/" + run.object.metadata.name};
}

// A lease that a node could not keep, by no fault of the work: it is placed again, later each time.
void hold_back(Turn& turn, WorkloadRun& run) {
    run.setbacks = std::min<std::int64_t>(run.setbacks + 1, 6);
    run.not_before = turn.now + Duration{10'000 * (std::int64_t{1} << run.setbacks)};
}

void find_unfit(Turn& turn, NodeRun& node, const std::string& said) {
    const std::string why = words_of_node(said);
    if (node.unfit == why) return;
    node.unfit = why;
    turn.changed_nodes.insert(node.key);
    turn.state.fleet_stale.insert(node.key);
    turn.log({.kind = evidence::RecordKind::node_drained,
              .actor = "node:" + node.object.metadata.name,
              .object = "GpuNode/" + node.object.metadata.name,
              .node = node.object.metadata.name,
              .detail = {{"drained", "true"}, {"why", why}}});
}

std::vector<std::string> nodes_of(const GpuLeaseSpec& spec) {
    std::set<std::string> names;
    for (const LeasedSlice& slice : spec.slices) names.insert(slice.node);
    for (const LeasedDevice& drive : spec.drives) names.insert(drive.node);
    for (const LeasedDevice& function : spec.functions) names.insert(function.node);
    return {names.begin(), names.end()};
}

void keep_in_history(Turn& turn, const HistoryRow& row) {
    const Key key = turn.state.fresh_key();
    turn.rows.push_back({.table = Table::history, .key = key, .body = to_compact_json(row)});
    turn.state.ended[key] = turn.now;
}

HistoryRow row_of(const GpuWorkload& workload, Instant now) {
    const WorkHistory& history = workload.status->history;
    return {.tenant = workload.spec.tenant,
            .workload = workload.metadata.name,
            .submittedBy = history.submittedBy,
            .submittedAt = history.submittedAt,
            .endedAt = now,
            .attempt = history.starts};
}

// It is not run any more.
void end_workload(Turn& turn, WorkloadRun& run) {
    GpuWorkloadStatus& status = *run.object.status;
    const bool failed = status.failure && status.failure->final;
    status.phase = failed ? WorkloadPhase::failed : WorkloadPhase::finished;
    status.since = turn.now;
    status.lease.clear();
    if (failed) status.reasons = {status.failure->says};
    run.waits.clear();
    turn.state.pending.erase(run.key);
    turn.changed_workloads.insert(run.key);
    watch_time_of(turn.state, run);
}

}  // namespace

Duration back_off_after(std::int64_t failures) {
    const std::int64_t doublings = std::clamp<std::int64_t>(failures - 1, 0, 10);
    return {std::min(first_back_off.ms << doublings, longest_back_off.ms)};
}

Duration gpu_time(Gpus gpus, Duration time) { return {time.ms * gpus.units / gpu_unit}; }

void fail_work(Turn& turn, WorkloadRun& run, LeaseRun* lease, Failed failed) {
    GpuWorkloadStatus& status = *run.object.status;
    if (status.is_over() || status.deleting) return;
    const GpuWorkloadSpec& spec = run.object.spec;
    WorkHistory& history = status.history;
    ++history.failures;
    if (failed.says.size() > says_bytes_max) failed.says.resize(says_bytes_max);
    WorkFailure made{.reason = failed.reason,
                     .says = std::move(failed.says),
                     .next = next_step(failed.reason, run.object.metadata.name, failed.node),
                     .exitStatus = failed.exit_status ? failed.exit_status : status_of(failed.reason),
                     .node = std::move(failed.node),
                     .attempt = lease != nullptr ? lease->object.status->attempt : history.starts,
                     .final = !is_tried_again(spec, failed.reason, history.failures)};
    if (made.final) {
        history.retryAt.reset();
        status.exitStatus = made.exitStatus;
        // A deadline may also pass between two runs.
        const std::int64_t runs = lease != nullptr ? history.failures : history.failures - 1;
        if (runs > 1) made.says += fmt::format("; {} runs failed, and backoffLimit is {}", runs, spec.backoffLimit);
    } else {
        history.retryAt = turn.now + back_off_after(history.failures);
        run.not_before = *history.retryAt;
        made.says += fmt::format("; it is tried again after {} (failure {}, backoffLimit {})", print(*history.retryAt),
                                 history.failures, spec.backoffLimit);
    }
    evidence::Record record = record_of(run, evidence::RecordKind::workload_failed);
    record.detail = {{"reason", std::string{word(made.reason)}},
                     {"why", made.says},
                     {"attempt", std::to_string(made.attempt)},
                     {"final", made.final ? "true" : "false"}};
    if (made.exitStatus) record.detail["exit-status"] = std::to_string(*made.exitStatus);
    record.node = made.node;
    if (lease != nullptr) {
        record.lease = lease->object.metadata.name;
        lease->object.status->reason = made.reason;
        lease->object.status->exitStatus = made.exitStatus;
        turn.changed_leases.insert(lease->key);
    }
    turn.log(std::move(record));
    status.failure = std::move(made);
    turn.changed_workloads.insert(run.key);
}

Failed failed_command(std::int64_t status, const std::string& node) {
    std::string says = fmt::format("its command ended with status {} on {}", status, node);
    FailureReason reason = FailureReason::exited;
    if (status == not_found_status) {
        reason = FailureReason::program_not_found;
        says += ", by which a shell says that there is no such program";
    } else if (status == not_executable_status) {
        reason = FailureReason::program_not_executable;
        says += ", by which a shell says that the program may not be executed";
    } else if (status > killed_above && status < 255) {
        reason = FailureReason::killed;
        says += fmt::format(": signal {}", status - killed_above);
    }
    return {.reason = reason, .says = std::move(says), .exit_status = status, .node = node};
}

void on_part_failed(Turn& turn, LeaseRun& lease, NodeRun& node, const LeaseReport& report, PartPhase before) {
    // While it ends, its release is sent again with all other unanswered orders: a node that cannot stop it is not
    // asked as fast as it can say so.
    if (lease.object.status->phase == LeasePhase::ending) return;
    const std::string& name = node.object.metadata.name;
    const bool ran = before == PartPhase::running && lease.object.status->phase == LeasePhase::active;
    FailureReason reason = report.phase == PartPhase::refused ? FailureReason::node_refused : reason_of(report.fault);
    // An agent that does not say whose fault it is knows one way in which a part that runs can fail.
    if (report.fault == PartFault::none && ran && report.phase == PartPhase::failed)
        reason = FailureReason::interrupted;
    if (reason == FailureReason::node_unfit) find_unfit(turn, node, report.why);
    const std::string why = is_fault_of_work(reason)
                                ? fmt::format("its command could not be started on {}: {}", name, report.why)
                                : fmt::format("node {} could not prepare or keep it: {}", name, report.why);
    lease.object.status->reason = reason;
    if (const auto found = turn.state.workloads.find(lease.workload);
        found != turn.state.workloads.end() && found->second.lease == lease.key) {
        if (is_fault_of_work(reason))
            fail_work(turn, found->second, &lease, {.reason = reason, .says = why, .exit_status = {}, .node = name});
        else
            hold_back(turn, found->second);
    }
    end_lease(turn, lease, why);
}

void settle_workload(Turn& turn, WorkloadRun& run, const LeaseRun& closed) {
    GpuWorkloadStatus& status = *run.object.status;
    run.lease = 0;
    if (status.deleting) return erase_workload(turn, run);
    if (status.is_over()) return end_workload(turn, run);
    std::string why = closed.object.status->why;
    if (const auto reason = closed.object.status->reason; reason && is_fault_of_work(*reason) && status.failure)
        why = status.failure->says;
    else if (turn.now < run.not_before)
        why += fmt::format("; it is placed again after {}", print(run.not_before));
    move_on(status, {.phase = WorkloadPhase::pending, .since = turn.now, .reasons = {std::move(why)}});
    turn.state.pending.insert(run.key);
    turn.changed_workloads.insert(run.key);
}

void erase_workload(Turn& turn, WorkloadRun& run) {
    const Key key = run.key;
    // One that waits has no lease by which the history would know it.
    if (!run.object.status->is_over() && !run.object.status->deleting) {
        HistoryRow row = row_of(run.object, turn.now);
        row.state = HistoryState::cancelled;
        row.says = "it was deleted while it waited";
        keep_in_history(turn, row);
    }
    turn.rows.push_back({.table = Table::workload, .key = key, .erased = true});
    turn.changed_workloads.erase(key);
    turn.state.pending.erase(key);
    turn.state.forget_name(run.object);
    turn.state.workloads.erase(key);
}

void note_attempt(Turn& turn, const LeaseRun& lease) {
    const GpuLeaseStatus& status = *lease.object.status;
    const auto found = turn.state.workloads.find(lease.workload);
    WorkloadRun* run = found == turn.state.workloads.end() ? nullptr : &found->second;
    const bool deleted = run == nullptr || run->object.status->deleting;
    WorkAttempt attempt{.attempt = status.attempt,
                        .lease = lease.object.metadata.name,
                        .nodes = nodes_of(lease.object.spec),
                        .startedAt = status.activeAt,
                        .endedAt = status.endedAt,
                        .reason = status.reason,
                        .exitStatus = status.exitStatus,
                        .says = status.why};
    if (!attempt.reason && !attempt.exitStatus && !deleted) attempt.reason = FailureReason::interrupted;
    HistoryRow row = run != nullptr ? row_of(run->object, turn.now) : HistoryRow{};
    row.tenant = lease.object.spec.tenant;
    row.workload = lease.object.spec.workload;
    row.lease = attempt.lease;
    row.nodes = attempt.nodes;
    row.startedAt = status.activeAt;
    row.endedAt = status.endedAt.value_or(turn.now);
    row.gpus = status.gpus;
    if (status.activeAt) row.gpuTime = gpu_time(status.gpus, row.endedAt - *status.activeAt);
    row.attempt = status.attempt;
    row.reason = attempt.reason;
    row.exitStatus = attempt.exitStatus;
    row.says = status.why;
    const bool failed = status.reason && is_fault_of_work(*status.reason);
    row.state = failed                       ? HistoryState::failed
                : status.exitStatus          ? HistoryState::finished
                : attempt.reason.has_value() ? HistoryState::interrupted
                                             : HistoryState::cancelled;
    keep_in_history(turn, row);
    if (run == nullptr) return;
    std::vector<WorkAttempt>& attempts = run->object.status->history.attempts;
    attempts.push_back(std::move(attempt));
    if (attempts.size() > attempts_kept_max) attempts.erase(attempts.begin());
    turn.changed_workloads.insert(run->key);
}

void watch_time_of(Core::State& state, const WorkloadRun& run) {
    const GpuWorkloadStatus& status = *run.object.status;
    const GpuWorkloadSpec& spec = run.object.spec;
    const bool ended = status.phase == WorkloadPhase::finished || status.phase == WorkloadPhase::failed;
    if (ended && spec.ttlAfterFinished && status.since)
        state.timers.emplace(*status.since + *spec.ttlAfterFinished, run.key);
    if (!status.is_over() && spec.activeDeadline && status.history.startedAt)
        state.timers.emplace(*status.history.startedAt + *spec.activeDeadline, run.key);
}

namespace {

// The time that was set for it may have been moved since: it is looked at anew.
void on_time(Turn& turn, WorkloadRun& run) {
    GpuWorkloadStatus& status = *run.object.status;
    const GpuWorkloadSpec& spec = run.object.spec;
    const bool ended = status.phase == WorkloadPhase::finished || status.phase == WorkloadPhase::failed;
    if (ended && spec.ttlAfterFinished && status.since && turn.now >= *status.since + *spec.ttlAfterFinished) {
        evidence::Record record = record_of(run, evidence::RecordKind::deleted);
        record.detail["why"] = fmt::format("ttlAfterFinished: {} have passed", print(*spec.ttlAfterFinished));
        turn.log(std::move(record));
        return erase_workload(turn, run);
    }
    if (status.is_over() || status.deleting || !spec.activeDeadline || !status.history.startedAt ||
        turn.now < *status.history.startedAt + *spec.activeDeadline)
        return;
    const auto lease = turn.state.leases.find(run.lease);
    LeaseRun* held = lease == turn.state.leases.end() ? nullptr : &lease->second;
    const std::string why = fmt::format("its activeDeadline of {} has passed since it first ran at {}",
                                        print(*spec.activeDeadline), print(*status.history.startedAt));
    const bool ending = held != nullptr && held->object.status->phase == LeasePhase::ending;
    fail_work(turn, run, ending ? nullptr : held,
              {.reason = FailureReason::deadline_exceeded, .says = why, .exit_status = {}, .node = {}});
    if (held != nullptr) return end_lease(turn, *held, why);
    HistoryRow row = row_of(run.object, turn.now);
    row.state = HistoryState::failed;
    row.reason = FailureReason::deadline_exceeded;
    row.says = why;
    keep_in_history(turn, row);
    end_workload(turn, run);
}

}  // namespace

void watch_time(Turn& turn) {
    Core::State& state = turn.state;
    while (!state.timers.empty() && state.timers.begin()->first <= turn.now) {
        const Key key = state.timers.extract(state.timers.begin()).value().second;
        if (const auto run = state.workloads.find(key); run != state.workloads.end()) on_time(turn, run->second);
    }
    const Duration kept = (state.policy ? state.policy->object.spec : FleetPolicySpec{}).historyRetention;
    for (int i = 0; i < forgotten_each_tick && !state.ended.empty(); ++i) {
        const auto oldest = state.ended.begin();
        if (turn.now - oldest->second < kept) break;
        turn.rows.push_back({.table = Table::history, .key = oldest->first, .erased = true});
        state.ended.erase(oldest);
    }
}

void take_up_workload(Core::State& state, WorkloadRun& run) {
    GpuWorkloadStatus& status = *run.object.status;
    // A row from before failure was a phase: its status says how the command ended.
    if (status.exitStatus.value_or(0) != 0 && !status.failure) {
        Failed failed = failed_command(*status.exitStatus, "a node");
        if (!status.reasons.empty()) failed.says = status.reasons.front();
        status.failure = WorkFailure{.reason = failed.reason,
                                     .says = std::move(failed.says),
                                     .next = next_step(failed.reason, run.object.metadata.name, {}),
                                     .exitStatus = status.exitStatus,
                                     .node = {},
                                     .attempt = status.history.starts,
                                     .final = true};
        if (status.phase == WorkloadPhase::finished) status.phase = WorkloadPhase::failed;
    }
    if (status.history.retryAt) run.not_before = *status.history.retryAt;
    watch_time_of(state, run);
    if (run.lease == 0 && !status.is_over()) state.pending.insert(run.key);
}

Result<> load_history(Core::State& state, const Row& row) {
    auto read = from_json<HistoryRow>(fmt::format("row {} of table history", row.key), row.body, own_text);
    if (!read) {
        read.error().code = Code::corrupt;
        return std::unexpected(read.error());
    }
    state.ended.emplace_hint(state.ended.end(), row.key, read->endedAt);
    return {};
}

}  // namespace bulkhead
