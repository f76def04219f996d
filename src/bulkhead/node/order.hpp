// What the control plane tells a node to do. Every order may arrive twice, late or never, and is safe each time: it
// says what shall be, names its lease or its wipe by a key that is used once in the life of the fleet, and carries the
// epoch of whoever gave it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/lifecycle/unit.hpp"
#include "bulkhead/model/terms.hpp"
#include "bulkhead/node/fabric_port.hpp"

namespace bulkhead {

// Keys of leases and wipes: the epoch in the upper half, a counter below. An epoch is one life of one control plane;
// one that was restored from an old backup rises above every epoch its nodes have seen before it gives a key to any of
// them.
using Key = std::int64_t;
inline constexpr std::int64_t epoch_max = (std::int64_t{1} << 31) - 1;
constexpr Key key_of(std::int64_t epoch, std::int64_t count) { return epoch * (Key{1} << 32) + count; }

// Part of one GPU: all of it, an instance, or a share of either.
struct GpuPart {
    std::uint16_t gpu = 0;
    std::uint8_t start = 0, size = 0;  // memory slices
    std::string profile;               // of the instance to make; empty: the whole GPU
    std::int64_t share = 1000;         // thousandths of it; less than 1000: others may have the rest
    friend bool operator==(const GpuPart&, const GpuPart&) = default;
};

// What a tenant wants to run on this node, and how much of the host it may have for it. Without words nothing is
// started: the lease holds what it holds.
struct Program {
    std::vector<std::string> words;        // the program by its absolute path, then its arguments
    std::vector<std::string> environment;  // NAME=value
    std::int64_t cpu_thousandths = 0;      // 0: not limited
    std::int64_t memory_bytes = 0;
    // What saves its work before it is stopped to be run again, and how long that may take.
    std::vector<std::string> checkpoint;
    Duration checkpoint_within;
    friend bool operator==(const Program&, const Program&) = default;
};

// What came of saving a tenant's work.
struct Saved {
    bool ok = false;
    std::string words;  // what its own command printed, for the next run; or why the work is not saved
    friend bool operator==(const Saved&, const Saved&) = default;
};
inline constexpr std::size_t saved_bytes_max = 2 << 10;

// Make ready, verify, and wait: no tenant code runs before `Start`.
struct Prepare {
    Key lease = 0;
    std::string tenant;  // as the node may know it
    std::string workload;
    Mechanism mechanism{};
    Tier tier{};
    std::vector<GpuPart> gpus;
    std::vector<std::uint16_t> drives;
    std::vector<std::uint16_t> functions;
    Program program;
    std::vector<FabricPort> ports = {};  // of its functions, one each; none: the fabric is not the control plane's
    friend bool operator==(const Prepare&, const Prepare&) = default;
};

// Every node of the gang is ready: run.
struct Start {
    Key lease = 0;
    friend bool operator==(const Start&, const Start&) = default;
};

// Stop the tenant's code, take the instances apart, detach; then wipe these units under these tickets. Units that other
// leases still share are not named.
struct WipeTask {
    UnitKind kind{};
    std::uint16_t device = 0;
    std::uint8_t start = 0, size = 1;  // memory slices
    Key ticket = 0;
    // Whose dirt it is, for the evidence, where that is known: the lease that was the last, by its name, and every
    // tenant that had it since it was clean.
    std::string lease;
    std::vector<std::string> tenants;
    bool burn_in = false;  // it was quarantined, and an operator lets it return
    friend bool operator==(const WipeTask&, const WipeTask&) = default;
};
struct Release {
    Key lease = 0;
    std::vector<WipeTask> wipes;  // empty for units under legal hold: stop, and keep everything as it is
    bool save = false;            // it will be run again: its work is saved first, where it says how
    friend bool operator==(const Release&, const Release&) = default;
};

// Wipe what no lease holds: an unknown node's silicon, a repaired device, the host before another trust domain.
struct Sanitize {
    std::vector<WipeTask> wipes;
    friend bool operator==(const Sanitize&, const Sanitize&) = default;
};

// A legal hold has come over these wipes: what has not been begun is not done. Each is answered by a report that says
// so (stale), or by what came of it.
struct Withdraw {
    std::vector<WipeTask> wipes;
    friend bool operator==(const Withdraw&, const Withdraw&) = default;
};

// Attack your own fences, between functions that nobody has.
struct TestFabric {
    Key ticket = 0;
    friend bool operator==(const TestFabric&, const TestFabric&) = default;
};

struct Order {
    std::int64_t epoch = 0;
    std::variant<Prepare, Start, Release, Sanitize, TestFabric, Withdraw> what;
    friend bool operator==(const Order&, const Order&) = default;
};

}  // namespace bulkhead
