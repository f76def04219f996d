// What is in the way of one waiting job: which nodes, which work would have to end and why it is not evicted, and when
// the job could start. Numbers only; blocking_text.hpp gives them names and words for each reader.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/sched/fleet.hpp"

namespace bulkhead::sched {

// Why a node takes no task of the job now.
enum class Obstacle : std::uint8_t {
    none,
    kind,   // policy
    model,  // its GPUs, were it empty
    closed,
    neighbours,
    nvlink,
    host,
    reboot,
    reserved,
    cores,
    devices,
    gpus,
    end,
};
constexpr auto words(Obstacle) {
    return std::to_array<std::string_view>({"none", "contract", "model", "closed", "neighbours", "nvlink", "host",
                                            "reboot", "reserved", "cores", "devices", "gpus"});
}

// Why work in the way of the job is not evicted for it now.
enum class Stays : std::uint8_t {
    ending,            // it is stopping already
    not_preemptible,   // its contract says so
    guarantee,         // its tenant leases no more than its guarantee
    due,               // its tenant leases no more than it is due
    priority,          // of the job's own tenant, and no less urgent than the job
    minimum_run_time,  // it has not yet run as long as its tenant was promised
    no_claim,          // the job's own tenant would hold more than it is due
    reserved,          // it is not running: capacity is reserved for it, ahead of the job
    evictable,         // nothing: a later cycle may evict it
};
constexpr auto words(Stays) {
    return std::to_array<std::string_view>({"ending", "not-preemptible", "guarantee", "due", "priority",
                                            "minimum-run-time", "no-claim", "reserved", "evictable"});
}

// How the moment at which a job could start is known.
enum class StartBasis : std::uint8_t {
    unknown,           // the run times of work in the way are not declared
    reservation,       // capacity is reserved for the job, and is free by then
    run_times,         // running work ends after the run times that it declared
    minimum_run_time,  // running work may be evicted by then
    under_way,         // work is stopping, GPUs are being wiped or hosts are being rebooted; nobody knows for how long
};
constexpr auto words(StartBasis) {
    return std::to_array<std::string_view>(
        {"unknown", "reservation", "declared-run-times", "minimum-run-time", "under-way"});
}

struct BlockedNode {
    std::uint32_t node = 0;
    Obstacle obstacle = Obstacle::none;
    std::int64_t gpus = 0;  // that it has
    bool chosen = false;    // one of the nodes on which the least GPU time would be lost
    bool wiping = false;    // GPUs of it are neither free nor leased
};

// Work that would have to end, or start and end, before the job can start.
struct Blocker {
    std::int64_t workload = 0;  // 0: the engine knows only whose it is
    TenantNo tenant = 0;
    Stays stays = Stays::evictable;
    Gpus leased;
    std::vector<std::uint32_t> nodes;  // of those chosen; none: it is in the way of a limit, not of a place
    bool closes_node = false;          // the job may not share a node with it
    std::optional<Instant> until;      // when its minimum run time is over
    std::optional<Duration> ran, minimum;
    std::optional<Instant> ends;  // by its declared run time
};

struct Blocking {
    std::vector<BlockedNode> nodes;      // the best candidates first
    std::vector<Blocker> must_end;       // the set that loses the least GPU time
    std::int64_t more_work = 0;          // beyond those listed
    std::vector<TenantNo> reserved_for;  // tenants whose guarantees keep free GPUs from the job
    std::optional<Instant> start;
    StartBasis basis = StartBasis::unknown;
};

}  // namespace bulkhead::sched
