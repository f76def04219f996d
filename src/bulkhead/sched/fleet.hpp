// The fleet as placement sees it: small plain values, kept up to date by whoever owns the truth.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/enum_set.hpp"
#include "bulkhead/gpu/geometry.hpp"
#include "bulkhead/lifecycle/unit.hpp"
#include "bulkhead/model/lease.hpp"
#include "bulkhead/sched/relations.hpp"

namespace bulkhead::sched {

using LeaseKey = std::int64_t;

// Whoever sits somewhere, and whom it lets sit beside it.
struct Resident {
    LeaseKey lease = 0;
    TenantNo tenant = 0;
    PeerTrust node{}, gpu{}, instance{}, nvlink{};
    bool on_host_kernel = false;     // a tier below vm
    std::vector<TenantNo> excepted;  // tenants that an exception lets share the kernel
    std::uint32_t job = ~0u;         // the engine's number of it, where it has one
    bool ending = false;             // on its way out
    std::uint16_t tasks = 1;         // of it, on this node

    bool excepts(TenantNo other) const;
};

// What one lease holds of a GPU.
struct Seat {
    LeaseKey lease = 0;
    std::uint8_t start = 0, size = 0;
    std::string profile;        // empty: the GPU itself
    std::int64_t share = 1000;  // thousandths
    Mechanism mechanism{};
};

struct Gpu {
    std::string model;
    const gpu::Board* board = nullptr;  // null: it cannot be cut with MIG
    std::uint8_t slices = 1;            // memory slices
    std::uint8_t available = 0;         // one bit for each slice that is clean and nobody's
    std::uint8_t held = 0;              // one bit for each slice that a lease holds and is not giving up
    // One bit for each slice that nobody new gets until a person acts; of a GPU that is drained all of them, though
    // somebody may still hold some.
    std::uint8_t lost = 0;
    std::vector<Seat> seats;

    std::uint8_t all() const { return static_cast<std::uint8_t>((1u << slices) - 1u); }
    bool empty() const { return seats.empty() && available == all(); }
};

struct Node {
    std::string name;
    std::uint32_t kind = 0;  // nodes of one kind are alike to policy
    std::string site, zone, rack, leaf, nvlink_domain;
    bool open = false;          // ready, and not closed to new leases
    bool board_is_one = false;  // NVLink that cannot be partitioned: one tenant, or one consenting domain
    bool can_reboot = false;    // verified reboot
    bool host_busy = false;     // being rebooted, quarantined or held
    bool returns = false;       // while it is closed or its host is busy: it will be open again without a person's help
    std::vector<TenantNo> host_used_by;
    std::int64_t cpu_free = 0, memory_free = 0;
    std::vector<Gpu> gpus;
    std::vector<std::uint16_t> drives, functions;  // available ones
    std::vector<std::int64_t> drive_bytes;         // of each drive in `drives`
    std::vector<std::uint8_t> closeness;           // of all its functions to its GPUs (nearness.hpp); empty: unknown
    std::vector<Resident> residents;               // of every lease that has not stopped here
};

}  // namespace bulkhead::sched
