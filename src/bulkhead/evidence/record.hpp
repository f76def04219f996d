// What one entry of the log says: who did what to which object, when, and with what evidence. Written once as JSON
// text, hashed as that text, and never written anew.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/evidence/statement.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::evidence {

// Written to the log by these words: append, never rename.
enum class RecordKind : std::uint8_t {
    applied,  // an object was created or changed
    deleted,  // an object is gone
    refused,  // what was asked for was not done; the reasons are in the detail
    leased,   // a lease was given; its node is being prepared
    lease_active,
    lease_ending,
    lease_closed,
    wiped,        // a unit was sanitised; the node's signed statement is the evidence
    wipe_failed,  // it was not, or nobody could verify it
    quarantined,
    released_from_quarantine,
    held,  // kept from being leased, by order of a person
    hold_lifted,
    node_enrolled,
    node_joined,
    node_fenced,    // silent too long: nothing new is placed on it
    node_returned,  // heard of again, and reconciled
    node_drained,
    reconfigured,  // a GPU was cut anew
    tenant_frozen,
    tenant_thawed,
    key_added,    // a node's signing key; key_of() reads it
    key_retired,  // statements under it are no longer accepted; older ones stay verifiable
    started,      // the control plane
    restored,     // it goes on from a backup
    usage,
    certificate_renewed,  // a node was given a new TLS certificate; the one before is good until it is first used
    certificate_retired,  // it was used: the one before is not good any more
    token_minted,         // somebody may open a door of the API
    token_revoked,
    draining,        // a GPU works, and should not much longer: who is on it stays, and nobody else comes
    drain_over,      // all of it has passed a burn-in
    signed_in,       // somebody the identity provider vouches for came in
    access_denied,   // and was not let through a door
    tenant_entered,  // somebody of the operator's used a key to a tenant
    compliance_on,   // the switch of a tenant; for leases to come
    compliance_off,
    coverage_lost,  // of a lease under compliance mode: nothing shows any longer that it is in force
    coverage_regained,
    usage_corrected,  // an operator posted an amount about time that was counted before
    log_key_rotated,  // the log signs with another key from here on; key_change_of() reads it
    fabric_tested,    // a node attacked its own fences; its signed statement (fabric_statement.hpp) is the evidence
    lease_units,      // what a lease consists of, with its tenant by pseudonym; units_of() (lease_units.hpp) reads it
    bound_restarted,  // what was being freed for a workload can no longer serve it: the time it may take begins anew
    workload_failed,  // a run of it failed by its own fault; the detail says why, and whether it is tried again
};
constexpr auto words(RecordKind) {
    return std::to_array<Words>({"applied",
                                 "deleted",
                                 "refused",
                                 "leased",
                                 "lease-active",
                                 "lease-ending",
                                 "lease-closed",
                                 "wiped",
                                 "wipe-failed",
                                 "quarantined",
                                 "released-from-quarantine",
                                 "held",
                                 "hold-lifted",
                                 "node-enrolled",
                                 "node-joined",
                                 "node-fenced",
                                 "node-returned",
                                 "node-drained",
                                 "reconfigured",
                                 "tenant-frozen",
                                 "tenant-thawed",
                                 "key-added",
                                 "key-retired",
                                 "started",
                                 "restored",
                                 "usage",
                                 "certificate-renewed",
                                 "certificate-retired",
                                 "token-minted",
                                 "token-revoked",
                                 "draining",
                                 "drain-over",
                                 "signed-in",
                                 "access-denied",
                                 "tenant-entered",
                                 "compliance-on",
                                 "compliance-off",
                                 "coverage-lost",
                                 "coverage-regained",
                                 "usage-corrected",
                                 "log-key-rotated",
                                 "fabric-selftest",
                                 "lease-units",
                                 "bound-restarted",
                                 "workload-failed"});
}

struct Record {
    RecordKind kind{};
    Instant at;          // core time
    std::string actor;   // who caused it: "api:<subject>", "node:<name>", "core"
    std::string tenant;  // whose business it is; empty: the operator's
    std::string object;  // "GpuWorkload/fraud-scoring"
    std::string node;
    std::string lease;
    std::string unit;  // "gpu3/slices 4-7", "drive0", "host"
    std::map<std::string, std::string> detail;
    std::optional<Grade> grade;  // of the evidence
    std::optional<SignedEvidence> evidence;

    static constexpr void describe(auto&& field) {
        field("kind", &Record::kind, "What happened.", Rule{.required = true});
        field("at", &Record::at, "When, by the control plane's clock.", Rule{.required = true});
        field("actor", &Record::actor, "Who caused it.", Rule{.required = true, .format = Format::line});
        field("tenant", &Record::tenant, "Whose business it is.", Rule{.format = Format::line});
        field("object", &Record::object, "The object it is about, as Kind/name.", Rule{.format = Format::line});
        field("node", &Record::node, "The node it is about.", Rule{.format = Format::line});
        field("lease", &Record::lease, "The lease it is about.", Rule{.format = Format::line});
        field("unit", &Record::unit, "What on the node it is about.", Rule{.format = Format::line});
        field("detail", &Record::detail, "Whatever else a reader of this kind of record needs.");
        field("grade", &Record::grade, "How the fact is known.");
        field("evidence", &Record::evidence, "What the node signed.");
    }
    friend bool operator==(const Record&, const Record&) = default;
};

// The payload of a leaf: compact JSON, which read_record reads back as the same record. Text that JSON or the record's
// own rules could not carry (bytes that are no UTF-8, control characters in a name) is replaced by '?', because an
// event that happened must be logged whatever its words.
std::string payload_of(Record record);
Result<Record> read_record(std::string_view payload);

// The record that makes a key known, so that statements signed with it can be believed; and the key in it.
Record key_added(Instant at, std::string_view actor, std::string_view node, const PublicKey& key);
Result<PublicKey> key_of(const Record& key_added);

}  // namespace bulkhead::evidence
