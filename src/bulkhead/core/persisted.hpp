// What the core keeps in rows besides the objects themselves. Described like everything else, so that a row can be read
// with any SQLite shell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/lifecycle/unit.hpp"
#include "bulkhead/meter/usage_row.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead {

// Neighbouring slices in the same state are one run.
struct GateRun {
    std::int64_t count = 1;
    lifecycle::UnitState state = lifecycle::UnitState::dirty;
    std::int64_t lease = 0, ticket = 0, leaf = -1;
    std::vector<std::string> tenants;
    bool burnIn = false, outOfUse = false, unsettled = false;

    static constexpr void describe(auto&& field) {
        field("count", &GateRun::count, "How many slices.", Rule{.min = 1, .max = 64});
        field("state", &GateRun::state, "Their state.", Rule{.required = true});
        field("lease", &GateRun::lease, "The lease that holds or last held them.");
        field("ticket", &GateRun::ticket, "Of the wipe in progress, or of the last one.");
        field("leaf", &GateRun::leaf, "Where the log records that wipe; -1: nowhere.");
        field("tenants", &GateRun::tenants, "Whose dirt is or was on them.");
        field("burnIn", &GateRun::burnIn, "They come out of quarantine, and are to be burnt in.");
        field("outOfUse", &GateRun::outOfUse, "Held, and quarantined when that ends.");
        field("unsettled", &GateRun::unsettled, "Their node may yet do a wipe that nobody waits for.");
    }
    friend bool operator==(const GateRun&, const GateRun&) = default;
};

// Table gate: one device of one node.
struct GateRow {
    std::int64_t node = 0;
    UnitKind kind{};
    std::int64_t device = 0;
    std::vector<GateRun> runs;
    std::vector<std::string> usedBy;
    std::string draining, identity, why;

    static constexpr void describe(auto&& field) {
        field("node", &GateRow::node, "Key of the node's row.", Rule{.required = true});
        field("kind", &GateRow::kind, "What it is.", Rule{.required = true});
        field("device", &GateRow::device, "Its index.", Rule{.min = 0, .max = 65535});
        field("runs", &GateRow::runs, "Its units.", Rule{.required = true});
        field("usedBy", &GateRow::usedBy, "Of a host: tenants whose code ran on its kernel.");
        field("draining", &GateRow::draining, "Of a GPU: why nobody new comes to it until it has passed a burn-in.");
        field("identity", &GateRow::identity,
              "Serial number of a drive, address of a function: the rest is about the one that has it.");
        field("why", &GateRow::why, "Of a drive: why it went out of use; until it is wiped.");
    }
    friend bool operator==(const GateRow&, const GateRow&) = default;
};

// Table signing_key: what a node signs its evidence with, now and before.
struct KeyRow {
    std::int64_t node = 0;
    std::string publicKey, certificate, renewed;
    std::int64_t leaf = -1;
    bool retired = false;

    static constexpr void describe(auto&& field) {
        field("node", &KeyRow::node, "Key of the node's row.", Rule{.required = true});
        field("publicKey", &KeyRow::publicKey, "Ed25519, base64.", Rule{.required = true});
        field("certificate", &KeyRow::certificate, "Fingerprint of its TLS certificate.");
        field("renewed", &KeyRow::renewed, "Fingerprint of the certificate after it, until that one is first used.");
        field("leaf", &KeyRow::leaf, "Where the log records it.");
        field("retired", &KeyRow::retired, "No longer accepted for new evidence.");
    }
    friend bool operator==(const KeyRow&, const KeyRow&) = default;
};

// Table standing, key 1: what must outlive a restart and belongs to no object.
struct StandingRow {
    bool restoring = false;

    static constexpr void describe(auto&& field) {
        field("restoring", &StandingRow::restoring, "Restored from a backup; not every node was heard of yet.");
    }
    friend bool operator==(const StandingRow&, const StandingRow&) = default;
};

// Which address of the tenant's subnet a function has, until a wipe of it was verified.
struct FabricAddress {
    std::int64_t number = 0;
    std::string node;
    std::int64_t function = 0;

    static constexpr void describe(auto&& field) {
        field("number", &FabricAddress::number, "Within the subnet.", Rule{.required = true, .min = 0});
        field("node", &FabricAddress::node, "The node, by its name.", Rule{.required = true});
        field("function", &FabricAddress::function, "The function's index on it.", Rule{.min = 0, .max = 65535});
    }
    friend bool operator==(const FabricAddress&, const FabricAddress&) = default;
};

// Table fabric: who a tenant is on the fabric, from its first work there until nothing of it is left.
struct FabricRow {
    std::string tenant, subnet;
    std::int64_t vlan = 0, partitionKey = 0;
    std::vector<FabricAddress> addresses;
    bool former = false;

    static constexpr void describe(auto&& field) {
        field("tenant", &FabricRow::tenant, "Whose.", Rule{.required = true});
        field("subnet", &FabricRow::subnet, "10.128.16.0/20.", Rule{.required = true});
        field("vlan", &FabricRow::vlan, "0: none.", Rule{.min = 0, .max = 4094});
        field("partitionKey", &FabricRow::partitionKey, "Without the membership bit; 0: none.",
              Rule{.min = 0, .max = 32767});
        field("addresses", &FabricRow::addresses, "Of functions that are not wiped since.");
        field("former", &FabricRow::former, "Functions still have it, or may; nothing new is made of it.");
    }
    friend bool operator==(const FabricRow&, const FabricRow&) = default;
};

// How a run of a workload ended.
enum class HistoryState : std::uint8_t {
    finished,     // its command ended with status 0
    failed,       // by its own fault; it may have been tried again
    interrupted,  // it was stopped by no fault of its own, to be run again
    cancelled,    // its workload was deleted
};
constexpr auto words(HistoryState) { return std::to_array<Words>({"finished", "failed", "interrupted", "cancelled"}); }

// Table history: one run of a workload that has ended, by its lease; or work that ended without one. Kept for as long
// as the fleet's policy says.
struct HistoryRow {
    std::string lease, tenant, workload, submittedBy;
    std::optional<Instant> submittedAt, startedAt;
    Instant endedAt;
    std::vector<std::string> nodes;
    Gpus gpus;
    Duration gpuTime;
    std::int64_t attempt = 0;
    HistoryState state{};
    std::optional<FailureReason> reason;
    std::optional<std::int64_t> exitStatus;
    std::string says;

    static constexpr void describe(auto&& field) {
        field("lease", &HistoryRow::lease, "The lease; empty: it ended without one.");
        field("tenant", &HistoryRow::tenant, "Whose work it was.", Rule{.required = true});
        field("workload", &HistoryRow::workload, "Which.", Rule{.required = true});
        field("submittedBy", &HistoryRow::submittedBy, "Who applied it.");
        field("submittedAt", &HistoryRow::submittedAt, "When it was first applied.");
        field("startedAt", &HistoryRow::startedAt, "When all of it could start; absent: it never could.");
        field("endedAt", &HistoryRow::endedAt, "When it was asked to end.", Rule{.required = true});
        field("nodes", &HistoryRow::nodes, "Where it was.");
        field("gpus", &HistoryRow::gpus, "How much of GPUs it held.");
        field("gpuTime", &HistoryRow::gpuTime, "For how long, as time of one GPU.");
        field("attempt", &HistoryRow::attempt, "Which of its workload's runs, from 1.");
        field("state", &HistoryRow::state, "How it ended.", Rule{.required = true});
        field("reason", &HistoryRow::reason, "Why it ended before its work was done.");
        field("exitStatus", &HistoryRow::exitStatus, "How its command ended, where it did.");
        field("says", &HistoryRow::says, "The same in words.");
    }
    friend bool operator==(const HistoryRow&, const HistoryRow&) = default;
};

}  // namespace bulkhead
