// Everything the control plane knows, and the one turn in which an event changes it. The parts of the core are
// functions over a Turn: objects.cpp (what callers command), apply.cpp (what they declare), leases.cpp (the life of a
// lease), gate.cpp (units and orders to wipe them), unit_reports.cpp (what nodes say of them), hold.cpp (what is kept),
// drains.cpp (GPUs that take nobody new), out_of_use.cpp (why drives are quarantined), nodes.cpp (sessions, reports,
// silence), certificates.cpp (which of a node's are good), fabric_tests.cpp (what its own attacks on its fences found),
// cycle.cpp (placing work), moves.cpp (running work that starts again elsewhere, smaller or larger), freeing.cpp (room
// that is being freed), failures.cpp (work that fails, and the history), answers.cpp (questions), permitted.cpp (who
// may do what to whose).
#pragma once

#include <fmt/core.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bulkhead/core/core.hpp"
#include "bulkhead/core/fabric.hpp"
#include "bulkhead/core/persisted.hpp"
#include "bulkhead/evidence/record.hpp"
#include "bulkhead/evidence/signing.hpp"
#include "bulkhead/lifecycle/lease.hpp"
#include "bulkhead/lifecycle/node.hpp"
#include "bulkhead/lifecycle/tenant.hpp"
#include "bulkhead/lifecycle/unit.hpp"
#include "bulkhead/policy/compile.hpp"
#include "bulkhead/policy/return_bound.hpp"
#include "bulkhead/sched/engine.hpp"
#include "bulkhead/sched/relations.hpp"

namespace bulkhead {

struct Unit {
    lifecycle::UnitState state = lifecycle::UnitState::dirty;
    Key lease = 0;   // that holds it, or held it last
    Key ticket = 0;  // of the wipe in progress, or of the last one
    std::int64_t leaf = -1;
    std::vector<std::string> tenants;  // whose dirt it is: all that had it since it was clean, the last of them last
    bool burn_in = false;              // it comes out of quarantine: its next wipe shows at length that it works
    bool out_of_use = false;           // held, and quarantined when that ends: it was before, or broke meanwhile
    bool told = true;                  // its node may know the ticket; false: no order with it has left, surely
    bool unsettled = false;            // its node may yet do a wipe of it that was told before a fault or a doubt
    friend bool operator==(const Unit&, const Unit&) = default;
};

struct Device {
    Key row = 0;
    UnitKind kind{};
    std::uint16_t index = 0;
    std::vector<Unit> units;
    bool changed = false;
    // Of a GPU: why it takes nobody new. While it does not, only what has passed a burn-in since is available, and the
    // drain is over when all of it is.
    std::string draining = {};
    std::string identity = {};  // which drive or function this is about; empty: not known, or it has none
    std::string why = {};       // of a drive: why it went out of use, and what its node says to do; until it is wiped
};

struct NodeRun {
    Key key = 0;
    GpuNode object;  // status: the inventory; what the gate knows is filled in when it is shown
    NodePhase phase = NodePhase::enrolled;
    std::uint64_t session = 0;  // 0: none
    Instant heard, sent;
    std::optional<Instant> unheard_since;  // of the process before this one, until it is heard of again
    std::int64_t protocol = 0;             // of the agent, as it last said hello
    std::int64_t reports_seen = 0;         // in this process; an older number is a repetition
    std::int64_t tickets = 0;              // given out in this epoch
    std::string boot;                      // as it last said hello; empty: it has not, or does not say
    Instant fabric_hour;                   // since when tests of its fences that nobody asked for are counted
    std::int64_t fabric_records = 0;       // and how many these are
    Key key_row = 0;
    KeyRow signing;
    std::optional<evidence::PublicKey> public_key;
    std::vector<Device> gpus, drives, functions;
    std::string unfit;                    // why it drained itself: a start of its own failed; until it is undrained
    std::vector<std::uint8_t> closeness;  // of functions to GPUs, by the inventory (sched/nearness.hpp)
    Device host{.kind = UnitKind::host};
    std::set<std::string> host_used_by;
    std::set<Key> leases;   // with a part here
    std::set<Key> strays;   // leases the node runs and we do not know
    bool welcomed = false;  // in this epoch
    std::vector<Device*> devices();
    Device* device(UnitKind kind, std::size_t index);
    void measure_closeness();  // after each change of the inventory: too much for every picture of the fleet
};

struct Part {
    Key node = 0;
    PartPhase phase = PartPhase::preparing;
    Prepare prepare;
    bool gone = false;  // the node was removed: nothing will ever be heard of this part
};

struct LeaseRun {
    Key key = 0;
    GpuLease object;
    Key workload = 0;
    sched::TenantNo tenant = 0;
    std::vector<Part> parts;
};

// Room that is being freed for a workload.
struct Freeing {
    Instant since;
    ReturnBound bound;
    std::vector<Key> nodes;  // in order
};

struct WorkloadRun {
    Key key = 0;
    GpuWorkload object;
    Key lease = 0;
    std::int64_t compiled_for = -1;            // fleet generation
    std::int64_t terms_for = -1;               // likewise, while it runs
    std::unique_ptr<const Contract> contract;  // its terms alone; null: refused, or not compiled yet
    std::vector<Reason> waits;
    std::int64_t eligible_for = -1;
    std::uint32_t eligible = 0;           // which set of nodes it may go to, by its number in this generation
    std::int64_t models_left_out = 0;     // nodes that its contract allows and that cannot run its command
    bool runs_nowhere = false;            // every node that its contract allows is such a model
    std::int64_t setbacks = 0;            // leases in a row that a node could not prepare
    Instant not_before;                   // so that a node which refuses again and again is not asked without end
    std::int64_t stays = 0;               // while it starts again smaller or larger: with so many tasks
    std::optional<Freeing> freeing = {};  // while it waits; a new process begins the bound anew
};

template <class T>
struct Stored {
    Key key = 0;
    T object;
};

struct FabricRun {
    Key key = 0;
    FabricRow row;
};

struct Core::State {
    std::int64_t epoch = 0, log_size = 0, count = 0;
    CoreSettings settings;
    bool restoring = false, standing_changed = false;

    std::optional<Stored<FleetPolicy>> policy;
    std::map<std::string, Stored<TenantClass>> classes;
    std::map<std::string, Stored<Tenant>> tenants;
    std::map<Key, WorkloadRun> workloads;
    std::map<Key, NodeRun> nodes;
    std::map<Key, LeaseRun> leases;
    std::map<Key, FabricRun> fabric;       // who tenants are on the fabric
    std::map<std::string, Key> fabric_of;  // by tenant: what it has, but for what it had formerly
    std::map<std::string, Key, std::less<>> node_names, lease_names;
    std::map<std::pair<std::string, std::string>, Key> workload_names;  // by name, then tenant: a name is its tenant's

    std::set<Key> pending;                     // workloads without a lease, that have not ended
    std::set<std::pair<Instant, Key>> timers;  // when a workload is to be looked at: a deadline, a time to live
    std::map<Key, Instant> ended;              // rows of the history, the oldest first
    std::set<Key> keepers;                     // active leases that keep more from others than the rules demand
    std::set<Key> watched;  // active leases under compliance mode: whether it can be shown is followed
    std::map<std::pair<std::string, std::string>, std::string> corrections;  // by lease and id: what each says
    std::vector<sched::Promise> promises;  // room that is kept for workloads, by their keys
    // The engine as the last cycle left it: it answers what is in the way of work that waits.
    struct Asked {
        sched::Engine engine;
        std::map<Key, sched::JobNo> jobs;  // by workload
    };
    std::optional<Asked> asked;
    std::set<Key> searched;  // workloads for whom others were looked for in vain, while not all could be looked for
    std::vector<std::int64_t> usage;  // Gpus::units times milliseconds, by tenant number, as far as they still count
    Instant usage_at;                 // as of when, for leases that are active; one that ends is counted at once
    Instant usage_decayed_at;         // up to when it has decayed
    sched::Relations relations;
    std::vector<sched::Node> fleet;  // by order of `nodes`
    std::map<Key, std::uint32_t> fleet_index;
    std::set<Key> fleet_stale;  // nodes whose picture must be drawn anew
    // The sets of nodes that contracts of this generation name, and by node index which of them it is in.
    std::map<std::vector<std::string>, std::uint32_t> eligible_sets;
    std::vector<std::uint32_t> node_kinds;
    std::vector<std::vector<std::uint32_t>> kinds_of_set;
    bool kinds_stale = true;
    Snapshot declared;  // what the compiler looks at
    std::optional<Compiler> compiler;
    std::optional<WorkCheck> work_check;  // of what is declared, once somebody asks
    std::int64_t generation = 0;          // of what is declared
    std::int64_t limits_kept_for = -1;    // the generation whose limits the last cycle held tenants against
    bool over_limit = false;              // a tenant leases more than its limit, and cannot give it up yet
    bool gangs_lack = true;               // an elastic gang may run with fewer tasks than it asks for
    std::int64_t parted_for = -1;         // the generation whose trust everybody who sits together was held against
    bool declared_stale = true, cycle_wanted = true;
    Instant vouched_at;  // when it was last made durable that covered leases are watched
    Instant compiled_at, retry_at;

    // While loading: rows that point at others.
    std::vector<std::pair<Key, GateRow>> loading_gates;
    std::vector<std::pair<Key, KeyRow>> loading_keys;

    Key fresh_key() { return key_of(epoch, ++count); }
    std::string secret_name(std::string_view what, Key key) const;  // 12 hex digits
    std::string lease_name(Key lease) const { return "lease-" + secret_name("lease", lease); }
    NodeRun* find_node(std::string_view name);
    WorkloadRun* find_workload(const std::string& tenant, const std::string& name);
    void forget_name(const GpuWorkload& workload) {
        workload_names.erase({workload.metadata.name, workload.spec.tenant});
    }
};

// One event at one moment.
struct Turn {
    Core::State& state;
    Instant now;
    Effects& effects;
    std::string actor;
    Rights rights = Rights::everything();  // of whoever asks
    // For whom words are chosen.
    Audience audience() const {
        return rights.may(Permission::read_fleet) ? Audience::fleet_operator : Audience::tenant;
    }
    std::string why;  // as far as whoever asks gave a reason

    std::set<Key> changed_workloads, changed_nodes, changed_leases, changed_fabric;
    std::vector<Row> rows;

    std::int64_t log(evidence::Record record);  // the leaf's index
    template <class T>
    void touch(T& object, Key key) {  // a new version of it
        // Two histories of one object that part after a backup never meet in a version again.
        object.metadata.resourceVersion = state.secret_name(
            fmt::format("version/{}/{}/{}", object.metadata.resourceVersion, state.epoch, state.log_size), key);
    }
    void flush();  // what changed, as rows
};

// gate.cpp
void change_unit(Turn& turn, NodeRun& node, Device& device, std::size_t slice, lifecycle::UnitEvent event);
void order_wipe(Turn& turn, NodeRun& node, Device& device, std::size_t first, std::size_t count);
void order_wipe_of_all_dirt(Turn& turn, NodeRun& node);
std::vector<WipeTask> wipes_under_way(const Core::State& state, NodeRun& node,
                                      const std::function<bool(const Device&, const Unit&)>& wanted);
Release release_of(const Core::State& state, NodeRun& node, Key lease);  // with the wipes of what it left
bool has_verified_reboot(const NodeRun& node);
void add_tenant(Unit& unit, const std::string& tenant);
void sort_out_dirt(Turn& turn, NodeRun& node, Device& device, std::size_t first, std::size_t count);  // held, or wiped
Withdraw withdrawal_for(const Core::State& state, NodeRun& node);  // of wipes that a hold came over
// As nodes hear of tenants, whose statements others get to read.
std::vector<std::string> pseudonyms(const Core::State& state, const std::vector<std::string>& tenants);
GpuNode shown(const Core::State& state, const NodeRun& node);

// hold.cpp
bool under_hold(const Core::State& state, const std::vector<std::string>& tenants);  // any of them
// Held already, or to be when its node has answered, its lease has ended or it is repaired.
bool keeps_for_hold(const Core::State& state, const NodeRun& node, const Device& device, const Unit& unit);
bool keeps_for_hold(const Core::State& state, NodeRun& node);  // anything that no reboot may take along
void hold_run(Turn& turn, NodeRun& node, Device& device, std::size_t at, std::size_t size);
// One that waited because something on its node was kept for a hold. Whether there is an order to be sent now.
bool take_up_reboot(Turn& turn, NodeRun& node);
// Under its ticket: somebody waits for that, or nobody any more since it broke.
bool may_yet_be_wiped(const Unit& unit);
// A wipe of what is under hold, or a reboot under it.
bool is_in_the_way_of_a_hold(const Core::State& state, const Device& device, const Unit& unit, bool node_keeps);
bool is_rebooted_under_a_hold(const Core::State& state, NodeRun& node);
// Wipes of the tenant's that nodes may have begun: all others are stopped. The nodes are asked, and answer by reports.
std::vector<std::string> hold_tenant(Turn& turn, const Tenant& tenant);
void lift_hold(Turn& turn, const Tenant& tenant);

// unit_reports.cpp
void on_wipe_report(Turn& turn, NodeRun& node, const WipeReport& report);
void on_fault_report(Turn& turn, NodeRun& node, const FaultReport& report);
// Another device answers at the place of this one, which is gone, and with it whatever was on it.
void replace_device(Turn& turn, NodeRun& node, Device& device, const std::string& by);

// drains.cpp
void begin_drain(Turn& turn, NodeRun& node, Device& device, const std::string& said);
void hear_of_drains(Turn& turn, NodeRun& node, const GpuNodeStatus& inventory);  // from its journal, as it told them
struct Wiped {
    std::size_t first = 0, count = 0;
    bool burnt_in = false;
};
void settle_drain(Turn& turn, NodeRun& node, Device& device, Wiped wiped);  // these are available now

// out_of_use.cpp
std::string words_of_node(const std::string& said);  // as they may be shown
void remember_why(Turn& turn, NodeRun& node, Device& device, const std::string& said);
// With the operator's next step; empty: it is in use.
std::string why_out_of_use(const NodeRun& node, const Device& device);

// certificates.cpp
void on_renew(Turn& turn, const command::Renew& wanted, Answer& answer);
// A node says hello under this certificate. False: it is not, or no longer, the node's.
bool take_certificate(Turn& turn, NodeRun& node, const std::string& shown);

// tenant_fabric.cpp
// Whether so many functions of the tenant's can be somebody on the fabric; draws its numbers where it has none yet.
// Else what it waits for.
struct FabricLook {  // what one cycle has seen of the books, so that it is not looked for again
    std::optional<std::map<Key, fabric::Numbers>> taken;
    std::set<Key> sound;     // rows that have nothing in common with any other
    bool none_left = false;  // to be drawn
};
std::optional<Reason> await_fabric(Turn& turn, FabricLook& look, const std::string& tenant, std::int64_t functions);
std::int64_t fabric_room(Core::State& state,
                         const std::string& tenant);  // how many more functions it has addresses for
void give_ports(Turn& turn, LeaseRun& lease);         // of a lease that is being bound: an address for each function
void place_ports(const Core::State& state, LeaseRun& lease);  // into its parts, out of what it says it has
void take_ports(Turn& turn, NodeRun& node, const std::vector<KnownPort>& ports);  // that the node says functions have
void function_wiped(Turn& turn, const NodeRun& node, std::uint16_t function);
void tenant_gone(Turn& turn, const std::string& tenant);
void retire_without_tenants(Turn& turn);  // after loading

// fabric_tests.cpp
void on_fabric_report(Turn& turn, NodeRun& node, const FabricTestReport& report);
void on_test_fabric(Turn& turn, const command::TestFabric& wanted, Answer& answer);
// What still speaks of the node as it is now: of NICs that it has, in this boot; and whatever got through, until a test
// has seen it stopped.
void keep_fabric_tests(const NodeRun& node, GpuNodeStatus& inventory);
void forget_fabric_tests(Turn& turn);  // a backup may be older than one that found something open: all are asked anew
// A node may have obeyed the epoch that a restored process began with: tickets of it may be old ones to the node.
void ask_for_tests_again(Turn& turn);
void disclose_fences(Turn& turn, LeaseRun& lease);  // in its status, as far as they are known now

// leases.cpp
void bind(Turn& turn, WorkloadRun& workload, const sched::Binding& binding);
// What its workload wants to run, in every part.
void give_program(const GpuWorkload& workload, Duration hook_at_most, LeaseRun& lease);
Duration save_at_most(const Core::State& state);  // by the fleet's policy
// A workload's next stage, with the same past.
void move_on(GpuWorkloadStatus& status, GpuWorkloadStatus next);
// It will be run again when its lease has ended: neither deleted, nor done, nor placed elsewhere already.
bool comes_back(const Core::State& state, const LeaseRun& lease);
void end_lease(Turn& turn, LeaseRun& lease, const std::string& why);
// Adds to its tenant's usage what this active lease used since usage was last brought up to date.
void count_usage(Core::State& state, const LeaseRun& lease, Instant now);
void abandon_lease(Turn& turn, LeaseRun& lease, const std::string& why);  // and place its work elsewhere at once
void on_lease_report(Turn& turn, NodeRun& node, const LeaseReport& report);
void settle_lease(Turn& turn, Key lease);
// It runs on that node no more, and all that it had there is wiped. It may still have to end on other nodes.
bool has_left(NodeRun& node, LeaseRun& lease);
Part* part_on(LeaseRun& lease, Key node);

// failures.cpp
struct Failed {
    FailureReason reason{};
    std::string says;
    std::optional<std::int64_t> exit_status;
    std::string node;
};
// A run failed by the work's own fault: decides whether it is tried again. Before the lease is ended.
void fail_work(Turn& turn, WorkloadRun& run, LeaseRun* lease, Failed failed);
Failed failed_command(std::int64_t status, const std::string& node);
Duration back_off_after(std::int64_t failures);
// A node refused its part of a lease, or could not prepare, start or keep it; `before` is how far it was.
void on_part_failed(Turn& turn, LeaseRun& lease, NodeRun& node, const LeaseReport& report, PartPhase before);
void note_attempt(Turn& turn, const LeaseRun& lease);  // of a lease that closes: with its workload, and in the history
void settle_workload(Turn& turn, WorkloadRun& run, const LeaseRun& closed);  // whose lease that was: over, or it waits
void erase_workload(Turn& turn, WorkloadRun& run);
void watch_time(Turn& turn);  // deadlines, times to live, the history's retention
void watch_time_of(Core::State& state, const WorkloadRun& run);
void take_up_workload(Core::State& state, WorkloadRun& run);  // after loading
Result<> load_history(Core::State& state, const Row& row);
Duration gpu_time(Gpus gpus, Duration time);  // as time of one GPU

// nodes.cpp
void on_hello(Turn& turn, const AgentHello& hello);
void on_report(Turn& turn, const AgentReport& report);
void on_heartbeat(Turn& turn, const AgentHeartbeat& beat);
void on_gone(Turn& turn, const AgentGone& gone);
void watch_silence(Turn& turn);
void send_orders(Turn& turn, NodeRun& node);                       // everything that is due
void send(Turn& turn, NodeRun& node, decltype(Order::what) what);  // if it has a session
void remove_node(Turn& turn, NodeRun& node);

// metering.cpp
Metered metered_of(const Core::State& state, const Contract& contract, const GpuLeaseSpec& spec);
// A lease is active, on units whose wipes the log records in these leaves; -1: of one of them nothing is recorded.
void begin_coverage(Turn& turn, LeaseRun& lease, const std::set<std::int64_t>& wipes, evidence::Record& record);
void doubt_coverage(Turn& turn, Instant known_until);  // of a process that comes after another
void follow_coverage(Turn& turn);
UsageRow close_usage(Turn& turn, LeaseRun& lease);  // of a lease that was active and ends now
void watch_again(Core::State& state);               // after loading
bool keeps_capacity(const LeaseRun& lease);         // its work asked to have more alone than the rules demand
void follow_keeping(Turn& turn);                    // how much that is, as other leases come and go
void end_keeping(Turn& turn, LeaseRun& lease);
Result<> load_usage(Core::State& state, const Row& row);
void on_correction(Turn& turn, const command::CorrectUsage& wanted, Answer& answer);

// compliance.cpp
void on_compliance(Turn& turn, const command::SetCompliance& wanted, Answer& answer);

// A tenant's switch was turned, whichever way.
void note_switch(Turn& turn, const Tenant& tenant, Compliance before);

// apply.cpp
void apply_objects(Turn& turn, const command::Apply& apply, Answer& answer);

// objects.cpp
void on_command(Turn& turn, const Command& command);
void show_object(Core::State& state, const Command& command, const Effects& effects, Answer& answer);

// freeing.cpp
void follow_freeing(Turn& turn);  // after a cycle: begins, restarts and ends bounds
std::optional<Reason> bound_of(
    const WorkloadRun& workload);  // by when it starts; nothing: no room is being freed for it

// moves.cpp
// Workloads that were moved or made smaller and whose last lease is still ending: their next place is kept, and they
// start there when the old one is stopped and wiped.
std::vector<Key> stopping_with_a_place(Core::State& state);
void carry_out_move(Turn& turn, const sched::Move& moved);
// An elastic gang that loses at most ten minutes of work when it starts again. Which of a node's drives belongs to
// which task is not recorded, so one with local drives keeps its size.
bool may_shrink(const GpuWorkloadSpec& spec);
// `tasks`: with which the gang starts again. All of it does, because each of its nodes is told how many tasks there
// are.
void start_again(Turn& turn, LeaseRun& lease, std::vector<sched::TaskSeat> tasks, const std::string& why);
// Of an elastic gang that runs with fewer tasks than it asks for, and that loses little when it starts again.
struct Lack {
    std::int64_t asks = 0;     // tasks
    std::int64_t grow_by = 0;  // the fewest more tasks that are worth a restart now; 0: none are
    Instant next;              // when fewer will be worth one
};
std::optional<Lack> lack_of(Core::State& state, const LeaseRun& lease, Instant now);
void carry_out_growth(Turn& turn, const sched::Binding& binding, std::vector<sched::TaskSeat> tasks);
// The scheduler counts what it moves or makes smaller as gone, and it still has to be saved, stopped and wiped: until
// then nothing else is bound to a node that it leaves, or to one of the same NVLink domain. The place is kept for the
// workload instead.
bool waits_for_a_move(Turn& turn, const sched::Statement& statement, const sched::Binding& binding);

// cycle.cpp
// The terms that running work runs under; what it runs under is not changed by what policy says since. Where nothing is
// known of them it is not disturbed.
void read_terms(const Core::State& state, WorkloadRun& workload);
void refresh_declared(Turn& turn);
void refresh_fleet(Core::State& state);
void place_work(Turn& turn);

// permitted.cpp
// Whether whoever asks may do this to the object; `old` is null where there is none. A tenant is told the same of what
// is not its own as of what does not exist.
Result<> permitted(const Rights& rights, const FleetPolicy* old, const FleetPolicy& wanted);
Result<> permitted(const Rights& rights, const TenantClass* old, const TenantClass& wanted);
Result<> permitted(const Rights& rights, const Tenant* old, const Tenant& wanted);
Result<> permitted(const Rights& rights, const GpuWorkload* old, const GpuWorkload& wanted);
Result<> permitted(const Rights& rights, const GpuNode* old, const GpuNode& wanted);
Result<> permitted(const Rights& rights, const GpuLease* old, const GpuLease& wanted);
Result<> permitted_to_cut(const Rights& rights, const GpuWorkload& workload, const Contract& contract);
Result<> permitted_to_delete(const Core::State& state, const Rights& rights, const command::Delete& wanted);
Result<> permitted(const Rights& rights, const decltype(Command::what)& what);  // verbs and questions
// The one workload that is meant, among those the caller may do this to.
Result<WorkloadRun*> meant(Turn& turn, Permission permission, const std::string& tenant, const std::string& name);
std::unexpected<Error> there_is_no(std::string_view kind, std::string_view name);

// answers.cpp
std::string explain(Turn& turn, WorkloadRun& workload);
std::string queue(Turn& turn, bool in_the_way);

}  // namespace bulkhead
