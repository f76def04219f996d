// What a node knows after its journal: the sum of all records so far. Executor and recovery add records by the same
// `play_back` (journal.hpp), so what is rebuilt after a crash is what was there before it, by construction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bulkhead/node/order.hpp"
#include "bulkhead/node/report.hpp"

namespace bulkhead {

// A device of the node, by kind and index; the host is {host, 0}.
struct DeviceId {
    UnitKind kind{};
    std::uint16_t device = 0;
    friend constexpr auto operator<=>(const DeviceId&, const DeviceId&) = default;
};
std::string print(DeviceId device);  // "gpu3", "drive0", "vf12", "host"

// What a wipe is about, as evidence names it: "gpu3/slices 4-7", "drive0", "host".
std::string print_units(const WipeTask& task);
std::vector<UnitId> units_of(const WipeTask& task);
// Everything a lease touches: memory slices, drives, functions and, below the vm tier, the host.
std::vector<UnitId> units_of(const Prepare& lease);
bool touches(const WipeTask& task, UnitId unit);
bool touches(const Prepare& lease, UnitId unit);

struct Ledger {
    struct Lease {
        Prepare order;
        PartPhase phase{};                  // preparing, prepared, running or failed; what is stopped leaves the list
        std::string why;                    // of failed
        bool starting = false;              // Start was obeyed; running when its operation has answered
        std::optional<Release> release;     // being taken apart
        std::optional<Saved> saved;         // of one that is: what came of saving its work, once it was stopped
        PartFault fault = PartFault::none;  // of failed
        friend bool operator==(const Lease&, const Lease&) = default;
    };
    struct Unit {
        bool clean = false;  // wiped, verified, and not handed out since
        Key ticket = 0;      // of its last wipe
        friend bool operator==(const Unit&, const Unit&) = default;
    };
    struct Wipe {  // ordered, not answered
        WipeTask task;
        bool begun = false;
        Instant began;
        std::string boot;  // under which it began
        bool second_pass = false;
        bool reset = false;  // the GPU was, or was to be, reset for it: once is enough
        friend bool operator==(const Wipe&, const Wipe&) = default;
    };

    std::int64_t epoch = 0;                    // the highest ever obeyed
    std::int64_t lives = 0;                    // how often an agent started on this journal
    std::string boot;                          // as last told
    std::int64_t reports = 0;                  // made so far
    std::map<Key, Lease> leases;               // that are not stopped
    std::map<UnitId, Unit> units;              // one that is not here is dirty
    std::map<Key, Wipe> wipes;                 // by ticket, to be done in this order on each device
    std::map<Key, WipeReport> answered;        // by ticket, while it is the last of any of its units
    std::map<DeviceId, std::string> faulty;    // and why; until a wipe of it is verified
    std::map<DeviceId, std::string> draining;  // and why; until it has passed its burn-in
    std::map<std::uint16_t, KnownPort> ports;  // of functions that are not wiped since
    std::set<std::string> host_tenants;        // whose code may have run on the kernel since its last verified reboot
    std::map<std::int64_t, Report> unacknowledged;
    // Leases that are over, so that an order that comes late finds them so. Of very old ones only this is known: keys
    // not above `closed_up_to` that are in no list are over.
    std::map<Key, PartPhase> closed;
    Key closed_up_to = 0;
    friend bool operator==(const Ledger&, const Ledger&) = default;

    static constexpr std::size_t closed_max = 1024;

    std::vector<Key> holders(UnitId unit) const;  // leases that are not stopped
    std::vector<Key> wipes_of(UnitId unit) const;
    bool clean(UnitId unit) const;
    std::optional<PartPhase> closed_as(Key lease) const;
};

}  // namespace bulkhead
