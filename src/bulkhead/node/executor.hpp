// Makes one node match its orders. Pure: orders, results of operations and time go in; what must be durable, what to do
// to hardware and what to report come out. Whoever runs it makes the journal durable BEFORE it begins an operation or
// sends a report of the same outcome; then a crash anywhere loses nothing that was said and at worst repeats
// operations, which are idempotent.
//
// The node keeps a gate of its own and asks nobody: it hands out what its own journal says is wiped, verified and not
// handed out since; what it does not know is dirty. A control plane that is wrong, old or restored from a backup cannot
// make it hand one tenant's bytes to another.
//
//     Executor executor{identity, key, records};      // of the journal, as far as it was durable
//     carry(executor.resume(now, boot_id));           // first of all: what was cut short goes on
//     carry(executor.on_order(now, order));           // then whatever comes
//     ... executor.on_result(now, result), executor.tick(now) about once a second
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/evidence/fabric_statement.hpp"
#include "bulkhead/evidence/signing.hpp"
#include "bulkhead/model/operation_limits.hpp"
#include "bulkhead/node/journal.hpp"
#include "bulkhead/node/operation.hpp"
#include "bulkhead/node/report.hpp"

namespace bulkhead {

struct Outcome {
    std::vector<JournalRecord> journal;  // durable first, as one append
    std::vector<Operation> begin;        // each is answered by on_result, some time
    std::vector<Report> reports;         // new ones, or old ones that were asked for again
    std::optional<Key> test_fabric;      // whoever has the hardware is to be asked for a test, under this ticket
    std::string ignored;                 // why an order was not obeyed and nothing is reported: for the node's own log
};

struct NodeIdentity {
    std::string node;
    std::string agent_version = "0.1.0";
    Grade grade = Grade::assumed;  // how results on this node's hardware are known; a model's are simulated
    OperationLimits limits;
    // Whether tiers below vm need a host that was rebooted under a ticket once. Off: a fleet whose tenants share
    // kernels anyway may have nodes that cannot be measured; which tenant may follow which is the control plane's to
    // know.
    bool host_must_be_known = false;
    // Whether a GPU on which nobody is may be reset when wiping it twice has not helped. Off: a reset disturbs whoever
    // is joined to it, and is the operator's to allow.
    bool gpu_reset = false;
};

class Executor {
public:
    Executor(NodeIdentity identity, evidence::SigningKey key, std::span<const JournalRecord> records);

    // Once, before anything else. The boot id says whether the host was restarted meanwhile: then leases that were
    // there have failed, and a wipe of the host is to be verified instead of done again. Empty: unknown, and never
    // compared.
    Outcome resume(Instant now, const std::string& boot_id = {});
    // The host was restarted under a living agent (a model can do that).
    Outcome on_boot(Instant now, const std::string& boot_id);

    Outcome on_order(Instant now, const Order& order);
    // Numbers of another process are ignored.
    Outcome on_result(Instant now, const OperationResult& result);
    // The hardware says, unasked, that a device is gone or broken.
    Outcome on_fault(Instant now, const FaultReport& fault);
    // A tenant's command ended by itself. Said twice, it is heard once.
    Outcome on_exit(Instant now, const TenantExit& exit);
    // A test of the fences has ended: it is signed and told. Or none was made, and whoever asked is told why.
    Outcome on_fabric_tested(evidence::FabricStatement found);
    Outcome on_no_fabric_test(Key ticket, std::string why);
    // A session opened under that epoch. One below the highest ever seen is `ignored`: close the session.
    Outcome on_welcome(std::int64_t epoch);
    // Reports up to this number are durable elsewhere.
    Outcome on_ack(std::int64_t number);
    // Operations that take too long fail.
    Outcome tick(Instant now);

    // In order; to be sent after every welcome and before newer ones.
    std::vector<Report> unacknowledged() const;
    // The inventory is the hardware's; what the host has been used for, and which GPUs are drained, is filled in from
    // the journal.
    Hello hello(GpuNodeStatus inventory, std::string boot_id) const;

    // A short journal that says the same as all records so far.
    std::vector<JournalRecord> compacted() const { return {journal::Everything{ledger_}}; }
    const Ledger& ledger() const { return ledger_; }
    std::optional<Instant> next_deadline() const;  // when tick has something to say at the earliest
    bool idle() const { return flights_.empty(); }
    std::int64_t epoch() const { return ledger_.epoch; }

private:
    // What an operation works on; one at a time. Starting and stopping work on the lease.
    struct Place {
        bool tenant = false;
        DeviceId device;
        Key lease = 0;
        friend auto operator<=>(const Place&, const Place&) = default;
    };
    static constexpr Place host_place{false, {UnitKind::host, 0}, 0};
    struct Owner {  // the lease whose step it is, or the wipe's ticket
        Key lease = 0, ticket = 0;
    };
    struct Flight {
        Operation operation;
        Place place;
        Key lease = 0, ticket = 0;
        Instant deadline;
        bool given_up = false;
    };
    struct Step {
        enum class State : std::uint8_t { waiting, flying, done };
        decltype(Operation::what) what;
        State state{};
        std::int64_t number = 0;
    };
    // What is being done for a lease now. Not in the journal: after a crash it begins again at the first step.
    struct Work {
        enum class Aim : std::uint8_t { prepare, start, stop, take_apart };
        Aim aim{};
        std::vector<Step> steps;
        std::map<DeviceId, std::string> stuck;  // could not be detached or taken apart, and why
    };
    struct WipeWork {
        bool touched = false;  // by this process
        bool flying = false;
        bool wiped = false;  // to be verified next
        bool second_pass = false;
        std::string why_reset;  // not empty: wiping has not helped, and the GPU is to be reset next
        std::string reset;      // how that went, for the evidence; empty: nothing is known of it
        bool drained = false;   // its device was, while it went on
        std::string device, model, board, serial, driver, vbios, method, unreachable, digest;
        std::string firmware, command, status, samples, claim;
        std::vector<std::string> skipped;
        std::optional<Grade> grade;  // of the device
        std::int64_t bytes = 0, bytes_unreachable = 0;
        std::optional<std::int64_t> bytes_found;  // before the first pass
    };

    void add(Outcome& out, JournalRecord record);
    void report(Outcome& out, decltype(Report::what) what);
    void report_phase(Outcome& out, Key lease);

    void prepare(Outcome& out, const Prepare& order);
    void start(Outcome& out, Key lease);
    void release(Outcome& out, const Release& order);
    void host_restarted(Outcome& out);

    static Place place_of(const decltype(Operation::what)& what);
    Duration limit_of(const decltype(Operation::what)& what) const;
    const Flight* flight_at(const Place& place) const;
    std::int64_t begin(Instant now, Outcome& out, decltype(Operation::what) what, Owner owner);
    void pump(Instant now, Outcome& out);  // begins and ends whatever can; each helper says whether anything moved

    Work work_for(const Ledger::Lease& lease) const;
    bool pump_lease(Instant now, Outcome& out, Key key);
    bool begin_steps(Instant now, Outcome& out, Key key);
    bool is_shared(Key key, const DestroyInstance& instance) const;
    bool finish(Outcome& out, Key key);
    void step_answered(Outcome& out, const Flight& flight, const OperationResult& result);
    struct Why {
        std::string words;
        PartFault fault = PartFault::start;
    };
    void fail_step(Outcome& out, Key key, std::size_t index, const Why& why);
    void fail_lease(Outcome& out, Key key, const Why& why);
    void fail_release(Outcome& out, Key key, const std::string& why);

    void take_wipe(Outcome& out, const WipeTask& task);
    void refuse_wipe(Outcome& out, const WipeTask& task, std::string why);
    void withdraw_wipe(Outcome& out, const WipeTask& task);
    std::vector<Key> in_the_way_of(const WipeTask& task) const;
    bool pump_wipes(Instant now, Outcome& out);
    void begin_wipe(Instant now, Outcome& out, Key ticket);
    void wipe_answered(Instant now, Outcome& out, const Flight& flight, const OperationResult& result);
    bool may_reset(Key ticket) const;
    void not_clean(Instant now, Outcome& out, const Flight& flight, const std::string& why, std::int64_t bytes);
    void forget_given_up();
    void give_up_wipe(Instant now, Outcome& out, Key ticket, const std::string& why);
    void answer_wipe(Instant now, Outcome& out, Key ticket, const std::string& why_not, std::int64_t bytes_verified);

    NodeIdentity identity_;
    evidence::SigningKey key_;
    Ledger ledger_;
    bool resumed_ = false;
    std::int64_t operations_ = 0;
    Key test_taken_ = 0;  // the ticket of the last test that was asked for in this life
    std::map<std::int64_t, Flight> flights_;
    std::map<Place, std::int64_t> busy_;
    std::map<Key, Work> work_;
    std::map<Key, WipeWork> wiping_;
};

}  // namespace bulkhead
