// The outside view: what is durable, what was said, and what the hardware holds, held against the invariants. Shares no
// code with what it checks: rows are read as JSON by another library, trust is the world's own table, contents are what
// the model holds.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/core/rows.hpp"
#include "bulkhead/node/model.hpp"
#include "bulkhead/node/operation.hpp"
#include "bulkhead/node/order.hpp"
#include "bulkhead/node/report.hpp"

namespace bulkhead::sim {

struct Violation {
    int invariant = 0;
    std::int64_t at_ms = 0;
    std::string what;
};

// What the world was told about its tenants; the checkers' own reading of who trusts whom.
struct TenantFacts {
    std::string name;
    std::string domain;            // empty: trusts nobody
    std::int64_t hard_limit = -1;  // in 1/21,000 GPU; -1: none
    std::int64_t guarantee = 0;    // likewise
    std::int64_t nodes = 0;        // that the guarantees of its trust domain take up, whole ones
    bool gives_way = false;        // guaranteed nothing: all its work that runs gives way to guarantees
    bool never_gives_way = false;  // none of its work may be stopped
};

class Checkers {
public:
    explicit Checkers(const std::vector<TenantFacts>& tenants, Duration bound = Duration::hours(1));

    void set_time(std::int64_t now_ms) { now_ = now_ms; }
    void trace(std::string what) { trace_ = std::move(what); }  // print whatever mentions it

    // Durable: the batch is on the disk.
    void committed(const Batch& batch);
    // A new control plane loaded these rows and leaves: whatever was durable must be there.
    void recovered(const std::map<std::pair<Table, std::int64_t>, std::string>& rows, const std::vector<Hash>& entries);
    // Legitimately back to an old state: what was durable then, and all leaves ever published.
    struct Memory;
    std::shared_ptr<const Memory> remember() const;
    void restored(const Memory& memory);

    // A caller was told.
    void acknowledged_create(const std::string& workload);
    void acknowledged_delete(const std::string& workload);
    void in_doubt(const std::string& workload) { workloads_.erase(workload); }  // asked, and nobody answered
    void refused(const std::string& workload);

    // Messages that really left, and hardware that was really touched.
    void ordered(const std::string& node, const Order& order);
    void reported(const std::string& node, const Report& report) const;  // for the trace alone
    void prepared(const std::string& node, Key lease);
    void begun(const std::string& node, const NodeModel& model, const Operation& operation);
    void ended(const std::string& node, const NodeModel& model, const Operation& operation, bool ok);
    // A node has it in its journal that a GPU should take nobody new, and says so in the report of that number.
    void drained(const std::string& node, const FaultReport& fault, std::int64_t report);
    void acknowledged_report(const std::string& node, std::int64_t number);  // to the node: it is durable elsewhere
    // A node has attacked its own fences, and says what it found in the report of that number.
    void fences_tested(const std::string& node, std::int64_t report, FabricFound found);
    void host_crashed(const std::string& node);
    // Something went wrong, or an operator did something: what takes a bounded time begins anew.
    void disturbed();
    void hangs(
        const std::string& node);  // an operation that will never answer; the node waits for it, for hours if need be

    // Something that must never happen, seen by the world itself.
    void impossible(int invariant, std::string what) { violate(invariant, std::move(what)); }

    // Nothing has been asked or broken for a long time.
    void calm_began();
    void finished();
    // Everything once more from the disk: what the meter makes of it.
    void check_bill(const std::map<std::pair<Table, std::int64_t>, std::string>& rows);

    const std::vector<Violation>& violations() const { return violations_; }
    const std::map<std::string, std::uint64_t>& probes() const { return probes_; }
    void probe(const std::string& name) { ++probes_[name]; }
    const std::vector<Hash>& entries() const { return entries_; }

private:
    struct LeaseSeen {
        std::string name, tenant, phase, compliance, mechanism;
        std::int64_t gpus = 0, tasks = 1, active_at = -1, ended_at = -1;
        std::set<std::string> nodes;
        struct Piece {
            std::string node;
            std::int64_t gpu = 0, start = 0, share = 1000;
            std::string profile;
        };
        std::vector<Piece> pieces;
        bool operator==(const LeaseSeen&) const = default;
    };
    struct Running {
        Key lease = 0;
        std::string tenant;
        Tier tier{};
        std::vector<GpuPart> gpus;
        std::vector<std::uint16_t> drives, functions;
    };
    struct Promised {
        std::string tenant;
        Mechanism mechanism{};
        bool shares = false;  // holds less than the whole of some memory
        std::set<std::string> nodes, prepared;
    };

    void violate(int invariant, std::string what);
    bool distrusting(const std::string& a, const std::string& b) const;
    static std::string unit_name(std::string_view kind, std::int64_t device, std::int64_t slice);

    // Of what became durable: checkers_durable.cpp.
    void check_rows(const Batch& batch, const std::map<std::string, int>& lease_records,
                    const std::set<std::string>& wiped);
    void check_wipe(const boost::json::object& record, std::set<std::string>& wiped);
    void check_gate(const Row& row, const std::set<std::string>& wiped);
    void check_change(std::int64_t key, const LeaseSeen& old, const std::map<std::string, int>& lease_records);
    void check_overlap(std::int64_t key, const LeaseSeen& lease);
    void check_quota(const std::string& tenant);
    static LeaseSeen lease_in(const std::string& body);
    std::string node_named(std::int64_t key) const;

    // Of GPUs that are drained or reset: checkers_drains.cpp.
    struct Drain {
        std::string why;
        std::int64_t report = 0;
        bool open = true;    // not all of it was burnt in since
        bool known = false;  // to the control plane, durably
        std::set<unsigned> burning = {};
    };
    void read_drain(const boost::json::object& record);
    void check_drains(const LeaseSeen& lease);
    void follow_burn_in(const std::string& node, const NodeModel& model, const Operation& operation, bool ok);
    void check_reset(const std::string& node, const ResetGpu& reset);
    static std::string gpu_name(const std::string& node, std::int64_t gpu);

    // Of guarantees and limits: checkers_guarantees.cpp.
    struct WorkSeen {
        std::string name, tenant;
        std::int64_t units = 0, nodes = 1;  // that it is leased, at most; that it needs, at most
        bool waits = false;
        bool plain = false;  // whole GPUs or sevenths of them, of one node, and nothing else
        std::optional<std::int64_t> claims_since = {};
    };
    struct NodeSeen {
        std::string name;
        bool open = false;
    };
    struct LimitSeen {
        std::int64_t units = -1;              // -1: none
        std::int64_t since = 0, kept_at = 0;  // since when it is so much, and when it was last kept
    };
    struct Freeing {
        bool can_be = true;            // nothing is there but work that gives way to every guarantee
        bool closed_for_good = false;  // work is there that gives way to none, and goes on
    };
    void read_work(const Row& row);
    void read_node(const Row& row);
    void read_limit(const Row& row);
    std::set<std::string> unsound_nodes() const;
    std::map<std::string, Freeing> freeable_nodes() const;
    void follow_guarantees();
    void follow_limits();
    void check_lent(const LeaseSeen& lease);
    void check_clients(const LeaseSeen& lease);

    // Of what is billed: checkers_usage.cpp.
    struct Billed {
        std::int64_t from = 0, to = 0;
        std::map<std::string, std::int64_t> units;  // in 1/21,000, by profile
        std::vector<std::pair<std::int64_t, std::int64_t>> covered;
    };
    using Silences = std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>>;
    void read_switch(const Row& row);
    void read_silence(const boost::json::object& record);
    void follow_growth(const boost::json::object& record);
    void check_mode(const LeaseSeen& lease);
    void check_usage(const boost::json::object& usage);

    // Of what the hardware was made to do: checkers_hardware.cpp.
    void check_start(const std::string& node, const NodeModel& model, const StartTenant& start);
    void check_neighbours(const std::string& node, const Promised& mine, const StartTenant& start);

    // Of who functions are on the fabric: checkers_fabric.cpp.
    struct LivePort {
        std::string tenant;
        FabricPort port;
    };
    void check_port(const std::string& node, const AttachFunction& attach);
    void forget_port(const std::string& node, const NodeModel& model, std::uint16_t function);

    // Of what nodes found at their own fences: checkers_fences.cpp.
    struct Fences {
        std::vector<std::pair<std::int64_t, bool>> said;  // report, and whether something got through; in order
        std::int64_t acknowledged = 0;
        bool shown = false;  // as something open, in the node's durable row
    };
    bool is_known_open(const std::string& node) const;
    void check_fences(const std::string& node);
    void read_fences(const Row& row);
    void acknowledged_fences(const std::string& node, std::int64_t report);
    void restored_fences();
    void check_fences_at_rest();

    void check_rest();
    void say(std::string_view what) const;

    std::string trace_;
    std::int64_t now_ = 0;
    Duration bound_;
    std::int64_t restless_until_ = 0, followed_at_ = -1;
    std::int64_t waiting_claims_ = 0, needed_nodes_ = 0;
    std::map<std::int64_t, WorkSeen> works_;
    std::map<std::int64_t, NodeSeen> nodes_;
    std::map<std::string, LimitSeen> limits_;
    std::set<std::string> bound_tenants_;  // frozen, or under a legal hold
    std::map<std::string, TenantFacts> tenants_;
    std::map<std::pair<Table, std::int64_t>, std::string> rows_;
    std::vector<Hash> entries_;
    std::map<std::int64_t, LeaseSeen> leases_;
    std::map<std::string, std::int64_t> usage_expected_, usage_seen_;  // 1/21,000 GPU x ms, by lease
    std::map<std::string, Billed> billed_;                             // by lease, from its usage row
    std::map<std::string, std::string> switches_;                      // tenant -> compliance mode
    Silences silences_;                                       // node -> from the last word to the next; -1: still
    std::map<std::int64_t, std::vector<std::string>> gates_;  // by row: the state of each of its units
    std::map<std::int64_t, std::string> gate_names_;          // by row: "node/kind/device"
    std::map<std::string, bool> workloads_;                   // acknowledged: true exists, false deleted
    std::set<std::string> refused_, durable_names_;           // names are used once
    std::map<Key, Promised> promised_;
    std::map<std::string, std::map<Key, Running>> running_;     // by node: what the hardware runs
    std::map<std::string, std::set<std::string>> wiped_since_;  // node -> units with evidence since their last use
    std::map<std::pair<std::string, std::uint16_t>, LivePort> live_ports_;  // by node and function
    std::set<std::string> hanging_;                                         // nodes on which an operation hangs
    std::vector<std::string> just_taken_;            // units, by the start that is being looked at
    std::set<std::string> leased_names_;             // every lease there ever was, whatever a backup has forgotten
    std::map<std::string, std::size_t> signatures_;  // of evidence: the leaf that first had it
    std::map<std::string, std::set<std::string>> kernel_users_;   // node -> tenants since the last verified reboot
    std::map<std::string, Drain> drains_;                         // by GPU, the last of each
    std::map<std::string, Fences> fences_;                        // by node
    std::set<std::string> unasked_since_restore_;                 // nodes whose fences were not tested since
    std::map<std::string, std::set<std::string>> leased_beside_;  // in this batch: lease -> GPUs drained then
    std::vector<std::string> said_in_calm_;
    bool calm_ = false;
    std::size_t calm_from_ = 0;
    std::optional<std::int64_t> given_up_at_;  // when the calm had something that hung before it
    std::optional<std::int64_t> grew_at_;      // when a gang grew in the calm, last
    std::set<std::string> grown_in_calm_;      // workloads
    std::vector<Violation> violations_;
    std::map<std::string, std::uint64_t> probes_;

public:
    struct Memory {
        std::map<std::pair<Table, std::int64_t>, std::string> rows;
        std::map<std::int64_t, LeaseSeen> leases;
        std::map<std::string, std::int64_t> usage_expected, usage_seen;
        std::map<std::string, bool> workloads;
        std::map<std::int64_t, std::vector<std::string>> gates;
        std::size_t log_size = 0;
        std::map<std::string, Billed> billed;
        std::map<std::string, std::string> switches;
        Silences silences;
    };
};

}  // namespace bulkhead::sim
