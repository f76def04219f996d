// The control plane as a deterministic state machine: no I/O, no clock, no threads, no randomness. Whoever runs it
// gives it the time, makes what it changes durable, and only then lets its orders and answers leave.
#pragma once

#include <memory>
#include <span>

#include "bulkhead/core/effects.hpp"
#include "bulkhead/core/event.hpp"

namespace bulkhead {

// Bugs that tests put in on purpose, one for each invariant, to show that the simulation would find them. Nothing but a
// test sets this.
enum class Planted : std::uint8_t {
    none,
    lease_twice,            // 1: units in use look available to placement
    believe_failed_wipes,   // 2: a wipe that failed makes units available
    ignore_neighbours,      // 3: whoever is on the node does not matter
    answer_early,           // 4: callers hear before the disk does
    start_early,            // 5: each node of a gang starts as soon as it is ready
    ignore_quota,           // 6
    evict_for_nothing,      // 7: a lease is moved at every tick, for no reason
    forget_log_entry,       // 8: closing a lease leaves no entry
    ignore_drains,          // 9: what a node says of a GPU that should take nobody new is not heard
    cover_silence,          // 11: nodes that nothing is heard of count as evidence
    draw_blindly,           // 12: numbers of the fabric are drawn without a look at who has them
    forget_promises,        // 6: room that was freed for a claim is not kept for it
    exceed_lowered_limits,  // 6: a limit that was lowered ends nothing
    keep_host_history,      // 6: a node counts as used by strangers after they would have left and it was rebooted
    serve_by_due_alone,     // 6: a guarantee is no claim; only work above its due gives way
    count_mps_workloads,    // 1: an MPS server's clients are counted once for each workload
    end_one_job_at_most,    // 6: a claim is served only where one job is in its way
    count_in_thousandths,   // 6: a seventh of a GPU counts as 0.143
};

struct CoreSettings {
    Duration silent_after{30'000};      // a node not heard of for so long is fenced
    Duration resend_after{15'000};      // an order nobody answered is given again
    Duration lost_after{300'000};       // leases with a part on such a node end after so long, and are placed elsewhere
    Duration reboot_within{3'600'000};  // room on a node that is being rebooted is kept for so long
    bool restored = false;              // from a backup: nothing is leased before every node was heard of
    bool simulated_fleet = false;       // a simulated node's word stands for evidence of trust-raising capabilities
    Planted planted = Planted::none;
    Instant last_clock;  // of the last commit before this process; nothing that came after it is known
    std::string secret;  // of this fleet: names of leases and versions tell nobody how many there are
};

class Core {
public:
    // The rows are all there are, as the store loaded them; the epoch is this control plane's own; `log_size` is how
    // many leaves are durable. `start()` must be applied before anything else.
    Core(std::int64_t epoch, std::int64_t log_size, const CoreSettings& settings);
    ~Core();
    Core(Core&&) noexcept;
    Core& operator=(Core&&) noexcept;

    Result<> load(const Row& row);  // while loading, once per row
    Effects start(Instant now);     // after the last row: what a new epoch means

    Effects apply(Instant now, const Event& event);

    // Something changed that may let work be placed: a Tick is worth more than waiting for the next second.
    bool wants_tick() const;

    std::int64_t epoch() const;
    bool restoring() const;         // from a backup, and not every node was heard of yet
    std::int64_t log_size() const;  // leaves given out so far, durable or not

    // For those who draw pictures and for what-if questions: everything as one snapshot.
    Snapshot snapshot() const;

    struct State;

private:
    std::unique_ptr<State> state_;
};

}  // namespace bulkhead
