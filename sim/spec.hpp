// What a simulated world is like and what goes wrong in it. A spec is data: about twenty lines compose a load with
// faults.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/core/core.hpp"

namespace bulkhead::sim {

// Mean time between faults of a kind, over the whole world; 0: never.
struct Mishaps {
    Duration server_killed{};  // the process dies; the disk keeps everything written
    Duration power_cut{};      // at some write boundary: unsynced writes survive in any subset, or torn
    Duration second_leader{};  // another control plane takes over while the first believes it leads
    Duration disk_full{};      // for a while nothing grows
    Duration disk_fails{};     // a write or a sync fails
    Duration restore{};        // from an old backup
    Duration clock_step{};     // the server's clock jumps, forwards or back
    Duration agent_killed{};
    Duration host_crash{};    // the node reboots unasked
    Duration gpu_lost{};      // falls off the bus; comes back after a repair
    Duration gpu_drained{};   // works, and should take nobody new
    Duration memory_stuck{};  // two passes do not wipe it; a reset would
    Duration fence_falls{};   // a NIC's, and stands again when it strikes there once more
    Duration wipe_fails{}, wipe_lies{}, wipe_hangs{};
    Duration start_fails{}, stop_fails{};
    Duration partition{};  // some nodes cannot reach the server for a while
    Duration node_lost{};  // a node is dead for longer than its leases are kept
    Duration slow_node{};
    // Of a thousand messages:
    std::uint64_t lost = 0, duplicated = 0, delayed = 0, reordered = 0;
    // Of a thousand journal appends of agents: the process dies before, in the middle of, or right after it.
    std::uint64_t agent_dies_at_journal = 0;
};

struct Spec {
    std::string_view name;
    std::string_view about;
    std::uint32_t nodes = 32, gpus = 8;
    Duration length = Duration::hours(8);
    Duration calm = Duration::hours(3);  // at the end: no input, no faults; everything must settle
    Duration between_submits{20'000};
    Duration run_for{1'500'000};            // mean
    Duration between_operators{1'800'000};  // drain, freeze, hold, a lower limit
    // Within which guaranteed capacity comes back while nothing goes wrong (invariant 6); faults restart it.
    Duration bound = Duration::hours(1);
    bool claims = false;  // tenants that are guaranteed any ask for all of it, again and again, and for nothing else
    Mishaps mishaps;
    Planted planted = Planted::none;
};

std::span<const Spec> specs();
const Spec* find_spec(std::string_view name);

}  // namespace bulkhead::sim
