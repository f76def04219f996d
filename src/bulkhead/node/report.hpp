// What a node tells the control plane. Reports repeat until they are acknowledged as durable; each is safe to hear
// twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/evidence/record.hpp"
#include "bulkhead/model/node.hpp"
#include "bulkhead/node/order.hpp"

namespace bulkhead {

enum class PartPhase : std::uint8_t {
    preparing,
    prepared,  // verified; waits for Start
    running,
    stopped,  // the tenant's code is gone and its instances are taken apart; wipes may go on
    refused,  // the node's own gate said no: nothing was done
    failed,   // preparing or running broke; the part must be released
    exited,   // the tenant's command ended by itself; its part is held until it is released
};
constexpr auto words(PartPhase) {
    return std::to_array<Words>({"preparing", "prepared", "running", "stopped", "refused", "failed", "exited"});
}

// Whose fault it is that a part failed. `node` is said only after a start of the node's own, with nothing of the
// tenant's in it, failed as well: so no workload can make a node look broken.
enum class PartFault : std::uint8_t {
    none,            // not known: an agent from before version 7 does not say
    not_found,       // the tier has no such program
    not_executable,  // the program may not be executed
    invalid,         // what was asked for cannot be used: a variable, a user, a working directory
    start,           // it could not be prepared or started; the node starts others
    node,            // it could not be started, and neither could the node's own test
    interrupted,     // the host was restarted, or a device failed
};
constexpr auto words(PartFault) {
    return std::to_array<Words>({"none", "not-found", "not-executable", "invalid", "start", "node", "interrupted"});
}

// How much a command printed in all, and how much of the end of it that travels is of the first stream.
struct Printed {
    std::int64_t out = 0, err = 0, out_kept = 0;
    friend bool operator==(const Printed&, const Printed&) = default;
};

struct LeaseReport {
    Key lease = 0;
    PartPhase phase{};
    std::string why;  // of refused and failed
    // Of exited: as a shell says it, 128 and the signal for one that was killed; and the end of what it printed.
    std::optional<std::int64_t> exit_status = {};
    std::string output = {};
    Printed printed = {};
    std::optional<Saved> saved = {};    // of stopped, where its work was to be saved first
    PartFault fault = PartFault::none;  // of failed
    friend bool operator==(const LeaseReport&, const LeaseReport&) = default;
};

struct WipeReport {
    UnitKind kind{};
    std::uint16_t device = 0;
    std::uint8_t start = 0, size = 1;
    Key ticket = 0;
    bool verified = false;
    bool stale = false;  // nothing was tried, nor will be: the unit has been wiped or used since, or it was withdrawn
    std::string why;     // of one that failed, or is stale
    bulkhead::evidence::SignedEvidence evidence;  // a WipeStatement, signed by the node; not of one that is stale
    friend bool operator==(const WipeReport&, const WipeReport&) = default;
};

// A device is gone or broken; whatever it holds can neither be used nor wiped.
struct FaultReport {
    UnitKind kind{};
    std::uint16_t device = 0;
    std::string why;  // "Xid 79: GPU has fallen off the bus"
    // It works, and should not much longer: who is on it may stay, nobody else comes, and what is left is wiped as ever
    // and then kept out of use.
    bool drain = false;
    friend bool operator==(const FaultReport&, const FaultReport&) = default;
};

// What a node found when it attacked its own fences, of one NIC and with one setting of them; or why it did not.
struct FabricTestReport {
    Key ticket = 0;                               // of whoever asked for it; 0: nobody did
    std::string why;                              // no test was made
    bulkhead::evidence::SignedEvidence evidence;  // a FabricStatement, signed by the node; not with a why
    friend bool operator==(const FabricTestReport&, const FabricTestReport&) = default;
};

// A tenant's command has ended by itself.
struct TenantExit {
    Key lease = 0;
    std::int64_t status = 0;
    std::string output;
    Printed printed;
    friend bool operator==(const TenantExit&, const TenantExit&) = default;
};
inline constexpr std::size_t output_bytes_max = 16 << 10;  // of the end of its output, that travels

// A part of what a command prints, while it runs.
struct OutputPlace {
    Key lease = 0;
    bool errors = false;  // of its second stream
    std::int64_t from = 0;
    friend bool operator==(const OutputPlace&, const OutputPlace&) = default;
};
struct OutputPiece {
    std::int64_t from = 0;  // later than asked for when that is no longer kept
    std::string bytes;      // empty: nothing further yet
    friend bool operator==(const OutputPiece&, const OutputPiece&) = default;
};
inline constexpr std::size_t output_piece_bytes_max = 64 << 10;

// Of what agents and control planes say to each other (wire/agent.proto): 2 brought saved work and output, 3 brought
// what heartbeats carry, 4 brought who functions are on the fabric, 5 brought tests of the fences, 6 brought wipes that
// are withdrawn, 7 brought whose fault a failed part is. Agents from 3 on are welcome.
inline constexpr std::int64_t agent_protocol = 7, agent_protocol_oldest = 3;
inline constexpr std::int64_t agent_protocol_fabric = 4, agent_protocol_fabric_test = 5, agent_protocol_withdraw = 6,
                              agent_protocol_fault = 7;

// What a node knows of itself when a session opens: all that a control plane restored from an old backup must learn.
struct KnownLease {
    Key lease = 0;
    PartPhase phase{};
    std::string tenant;
    std::vector<UnitId> units;
    friend bool operator==(const KnownLease&, const KnownLease&) = default;
};
struct KnownUnit {
    UnitId unit;
    bool clean = false;  // wiped, and not handed out since
    Key ticket = 0;      // of its last wipe
    friend bool operator==(const KnownUnit&, const KnownUnit&) = default;
};
// Who a virtual function was made on the fabric, until a wipe of it was verified; whatever came of its lease.
struct KnownPort {
    std::string tenant;
    FabricPort port;
    friend bool operator==(const KnownPort&, const KnownPort&) = default;
};
struct Hello {
    std::int64_t protocol = agent_protocol;
    std::int64_t epoch_seen = 0;  // the highest ever obeyed
    std::string agent_version;
    std::string boot_id;
    GpuNodeStatus inventory;  // GPUs, drives, functions, capabilities, versions
    std::vector<KnownLease> leases;
    std::vector<KnownUnit> units;
    std::vector<KnownPort> ports = {};
    friend bool operator==(const Hello&, const Hello&) = default;
};

struct Report {
    std::int64_t number = 0;  // counts up for the life of the node's journal; acknowledged by number
    std::variant<LeaseReport, WipeReport, FaultReport, FabricTestReport> what;
    friend bool operator==(const Report&, const Report&) = default;
};

}  // namespace bulkhead
