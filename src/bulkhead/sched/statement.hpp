// What was decided in one cycle: one transaction, with the reasons of every part of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bulkhead/base/reason.hpp"
#include "bulkhead/sched/blocking.hpp"
#include "bulkhead/sched/fleet.hpp"

namespace bulkhead::sched {

// Where one task goes.
struct TaskSeat {
    std::uint32_t node = 0;
    std::vector<Seat> seats;          // `lease` is the caller's to fill in
    std::vector<std::uint16_t> gpus;  // by seat
    std::vector<std::uint16_t> drives, functions;
};

// Tasks that start now. Of a job that runs already: tasks that join it.
struct Binding {
    std::int64_t workload = 0;
    std::vector<TaskSeat> tasks;
    bool backfilled = false;  // before others whose turn it was, without making them wait longer
};

enum class Action : std::uint8_t { allocate, backfill, consolidate, reclaim, preempt, stale, limit };
constexpr auto words(Action) {
    return std::to_array<std::string_view>(
        {"allocate", "backfill", "consolidate", "reclaim", "preempt", "stale", "limit"});
}

// Tasks that must stop. What they leave is kept for the claimant.
struct Eviction {
    std::int64_t workload = 0;
    Action action = Action::reclaim;
    std::int64_t claimant = 0;         // for whom; 0 with `stale` and `limit`
    std::int64_t tasks = 0;            // of an elastic gang only those above its minimum, where they suffice
    bool whole = true;                 // nothing of the gang stays
    std::int64_t lost_gpu_ms = 0;      // work since the last checkpoint: GPUs times milliseconds
    std::vector<std::uint32_t> nodes;  // where they ran
    std::vector<Reason> reasons;
};

// A whole gang that stops where it is and starts elsewhere, because that makes room and nobody loses a place.
struct Move {
    std::int64_t workload = 0;
    std::int64_t claimant = 0;
    std::vector<std::uint32_t> from;  // nodes
    std::vector<TaskSeat> to;
};

struct Waiting {
    std::int64_t workload = 0;
    std::vector<Reason> reasons;
    std::optional<std::int64_t> expected_ms;  // when there should be room, where running work says how long it takes
    std::optional<Blocking> blocking;         // of Engine::explain() alone: too expensive for every cycle
};

// A tenant that leases more than its limit, with all below it, and that no eviction can bring below it now: the work
// may not be preempted, or its minimum run time is not over.
struct OverLimit {
    std::uint32_t tenant = 0;
    Gpus held, limit;
    Gpus fixed;  // by work that may not be preempted
    Gpus kept;   // not leased, and kept from others by isolation requests beyond the rules
};

struct Statement {
    std::vector<Binding> bind;
    std::vector<Eviction> evict;
    std::vector<Move> move;
    std::vector<std::uint32_t> reboot;  // empty nodes whose host another trust domain used, wanted by somebody
    std::vector<Waiting> waiting;
    std::vector<OverLimit> over_limit;
    bool unfinished = false;  // there were more to look for than one cycle looks for: ask again

    bool quiet() const { return bind.empty() && evict.empty() && move.empty() && !unfinished; }
};

// The words of a reason of this room.
std::string_view words_of(std::string_view code, Audience reader = Audience::fleet_operator);
// The code of a sentence that words_of() gave, in this release or an earlier one; empty: none.
std::string_view code_of(std::string_view words);
// The cause that metrics count for a code: quota, guarantees, turn, capacity, fragmentation, wipe, isolation, nodes,
// stopping, frozen, deadline; else other.
std::string_view cause_of(std::string_view code);
std::span<const std::string_view> reason_codes();  // all there are

}  // namespace bulkhead::sched
