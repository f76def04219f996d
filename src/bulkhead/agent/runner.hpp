// One node's agent without its network: owns the executor, its journal file and its hardware, and keeps the one order
// that matters: journal first, then operations, then reports. Single-threaded: whoever calls, calls from one thread.
//
//     auto runner = agent::Runner::open({.identity = ..., .journal = "/var/lib/bulkhead/journal"}, key, hardware,
//     deliver, now); on a session:   send runner->hello(); on welcome: runner->welcome(now, epoch), then send
//     runner->unacknowledged() on an order:    runner->handle(now, order) all the while:  runner->poll(now), at the
//     latest at runner->next_due()
//
// An error from any of these, but a `conflict` from welcome, means that the journal or the hardware cannot be relied on
// any more: nothing further is done, and every later call says so again. End the process; a new one takes up the
// journal. An operation that the hardware refuses to begin is no such error: it has failed, and with it its lease.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/agent/hardware.hpp"
#include "bulkhead/agent/journal_file.hpp"
#include "bulkhead/node/executor.hpp"

namespace bulkhead::agent {

struct RunnerSettings {
    NodeIdentity identity;  // its grade is the hardware's
    std::filesystem::path journal;
    std::size_t compact_above_bytes = 4 << 20;  // the journal is rewritten when it is larger, and has doubled since
};

class Runner {
public:
    // Called with each report after it is durable, in order; without a session they may be dropped here, for
    // `unacknowledged` has them. Must not call back into the runner.
    using Deliver = std::function<void(const Report&)>;

    static Result<std::unique_ptr<Runner>> open(RunnerSettings settings, evidence::SigningKey key,
                                                std::unique_ptr<Hardware> hardware, Deliver deliver, Instant now);

    // An order of an older epoch, or one that asks for nothing new, is no error.
    Result<> handle(Instant now, const Order& order);
    // `conflict` when the epoch is older than one already obeyed: close the session, the runner goes on.
    Result<> welcome(Instant now, std::int64_t epoch);
    Result<> acknowledge(std::int64_t number);
    Result<> poll(Instant now);

    // What a tenant's command has printed. An error is the asker's alone: the runner goes on.
    Result<OutputPiece> output(const OutputPlace& place) { return hardware_->output(place); }
    // What the hardware measures of its devices. An error is no reason to end: the next poll tells one that is.
    Result<std::optional<Telemetry>> telemetry() { return hardware_->telemetry(); }
    Result<Hello> hello();
    std::vector<Report> unacknowledged() const;
    std::optional<Instant> next_due() const;
    // Whether the hardware has something else by now than the last hello said.
    bool has_other_stock() const { return has_other_stock_; }
    // What is worth a line in the node's log since the last call: orders that were not obeyed, a torn journal.
    std::vector<std::string> take_notes();
    const Executor& executor() const { return executor_; }

private:
    Runner(RunnerSettings settings, Executor executor, JournalFile journal, std::unique_ptr<Hardware> hardware,
           Deliver deliver);
    Result<> carry(Instant now, const Outcome& outcome);
    Result<> carry_out(Instant now, const Outcome& outcome, std::vector<OperationResult>& refused);
    Result<> test_fabric(Key ticket);
    Result<> test_by_itself();  // an error: the hardware is gone
    Result<> compact_if_large();

    RunnerSettings settings_;
    Executor executor_;
    JournalFile journal_;
    std::unique_ptr<Hardware> hardware_;
    Deliver deliver_;
    std::vector<std::string> notes_;
    bool has_other_stock_ = false;
    bool is_untested_ = false;  // its fences could not be attacked when it started
    std::optional<Error> broken_;
    std::string boot_;
    std::size_t compacted_bytes_ = 0;
};

}  // namespace bulkhead::agent
