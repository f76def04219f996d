// Everything that can happen to the control plane: a caller's command, something from a node, or time passing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bulkhead/model/role.hpp"
#include "bulkhead/model/snapshot.hpp"
#include "bulkhead/node/report.hpp"

namespace bulkhead {

enum class ObjectKind : std::uint8_t { policy, tenant_class, tenant, workload, node, lease };
constexpr auto words(ObjectKind) {
    return std::to_array<Words>({"FleetPolicy", "TenantClass", "Tenant", "GpuWorkload", "GpuNode", "GpuLease"});
}

namespace command {

// Create or change; several objects are one command: all of them or none.
enum class Mode : std::uint8_t { create, replace, create_or_replace };
struct Apply {
    std::vector<AnyObject> objects;
    Mode mode = Mode::create_or_replace;
    std::string if_version;  // only when the (one) object is still at this version
    bool dry_run = false;    // answer as if, change nothing
};
struct Delete {
    ObjectKind kind{};
    std::string name;
    std::string if_version;
    std::string tenant = {};  // of a workload; empty: whoever's has that name, if one alone has
};
// Close a node to new leases and end those it has; or open it again.
struct Drain {
    std::string node;
    bool on = true;
};
// Stop a tenant at once: end its leases, start nothing.
struct Freeze {
    std::string tenant;
    bool on = true;
    std::string why;
};
// Legal hold: from now on keep what the tenant leaves instead of wiping it.
struct Hold {
    std::string tenant;
    bool on = true;
    std::string why;
};
// An operator has looked at a quarantined device and lets it be wiped again.
struct Repair {
    std::string node;
    UnitKind kind{};
    std::int64_t device = 0;
    std::string why;
};
// A node is to attack its own fences, between functions that nobody has.
struct TestFabric {
    std::string node;
};
// A node is admitted: its evidence key goes into the log. Again with another key: rotation.
struct Enrol {
    std::string node;
    GpuNodeSpec spec;
    std::string evidence_key;  // Ed25519 public key, base64
    std::string certificate;   // fingerprint of its TLS certificate, hex
};
// A node that is heard of asks for a new TLS certificate; its evidence key stays as it is.
struct Renew {
    std::string node;
    std::uint64_t session = 0;  // in which it asks
    std::string shown;          // fingerprint of the certificate that opened the session
    std::string renewed;        // fingerprint of the new one
};
struct Revoke {
    std::string node;
    std::string why;
};
// A door key was made or taken back. The door keeps it; the log says who did it.
struct NoteToken {
    std::string id, role, subject, tenant, why;
    bool minted = true;
};
// Somebody came in, was turned away, or used a key to a tenant that is not theirs.
struct NoteAccess {
    enum class What : std::uint8_t { signed_in, denied, entered };
    What what{};
    std::string tenant;  // whom it touches; empty: the operator alone
    std::map<std::string, std::string> detail;
};
// The compliance switch of a tenant, for leases to come. The answer says what changes; `dry_run`: what would.
struct SetCompliance {
    std::string tenant;
    Compliance mode = Compliance::off;
    std::string why;
    bool dry_run = false;
};
// An amount about time that was counted before, under an id of whoever posts it.
struct CorrectUsage {
    std::string id, lease, tenant, workload, tenant_class, account;
    Instant from, to;
    Money amount;
    std::string currency, why;
};
// The log gets another key. The door makes it; the log says who asked for it. The answer's body names the leaf.
struct RotateLogKey {
    std::string before, after;  // verifier keys
};
// Questions, answered from the state after everything before them is durable.
struct Explain {
    std::string workload;
    std::string tenant = {};  // as in Delete
};
struct Queue {
    bool in_the_way = false;  // and what is in the way of each of the first
};

}  // namespace command

struct Command {
    std::uint64_t request = 0;  // the answer carries it back
    std::string actor;          // who asks, for the log: "admin", "tenant:acme/alice"
    std::variant<command::Apply, command::Delete, command::Drain, command::Freeze, command::Hold, command::Repair,
                 command::Enrol, command::Renew, command::Revoke, command::NoteToken, command::NoteAccess,
                 command::RotateLogKey, command::Explain, command::Queue, command::SetCompliance, command::CorrectUsage,
                 command::TestFabric>
        what;
    Rights rights = Rights::everything();  // of whoever asks
};

// A node's agent, by the session it speaks in. A newer session replaces the older.
struct AgentHello {
    std::string node;
    std::uint64_t session = 0;
    Hello hello;
    std::string certificate{};  // fingerprint of the one that opened the session; empty: there is no TLS (simulation)
};
struct AgentReport {
    std::string node;
    std::uint64_t session = 0;
    Report report;
};
struct AgentHeartbeat {
    std::string node;
    std::uint64_t session = 0;
};
struct AgentGone {
    std::string node;
    std::uint64_t session = 0;
};

// Time passes: silent nodes are fenced, orders that nobody answered are sent again, work is placed.
struct Tick {};

using Event = std::variant<Command, AgentHello, AgentReport, AgentHeartbeat, AgentGone, Tick>;

}  // namespace bulkhead
