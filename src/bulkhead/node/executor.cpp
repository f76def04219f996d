// What comes in, and what it means for the journal. What then happens step by step is in executor_lease.cpp and
// executor_wipe.cpp.
#include "bulkhead/node/executor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "bulkhead/node/gate.hpp"

namespace bulkhead {

namespace {

constexpr std::ptrdiff_t fabric_tests_unheard_max = 64;

}  // namespace

Executor::Executor(NodeIdentity identity, evidence::SigningKey key, std::span<const JournalRecord> records)
    : identity_{std::move(identity)}, key_{std::move(key)} {
    for (const JournalRecord& record : records) play_back(ledger_, record);
}

void Executor::add(Outcome& out, JournalRecord record) {
    invariant(resumed_, "a journal is taken up with resume() before anything is added to it");
    play_back(ledger_, record);
    out.journal.push_back(std::move(record));
}

// What was said and not yet heard is said again under its own number, so that repeated orders do not pile up reports.
void Executor::report(Outcome& out, decltype(Report::what) what) {
    for (const auto& [number, open] : ledger_.unacknowledged)
        if (open.what == what) {
            if (std::ranges::find(out.reports, number, &Report::number) == out.reports.end())
                out.reports.push_back(open);
            return;
        }
    const Report made{ledger_.reports + 1, std::move(what)};
    add(out, journal::ReportMade{made});
    out.reports.push_back(made);
}

void Executor::report_phase(Outcome& out, Key lease) {
    if (const auto known = ledger_.leases.find(lease); known != ledger_.leases.end())
        return report(
            out,
            LeaseReport{
                .lease = lease, .phase = known->second.phase, .why = known->second.why, .fault = known->second.fault});
    if (const auto closed = ledger_.closed_as(lease))
        return report(out, LeaseReport{lease, *closed, "the lease is over on this node"});
    report(out, LeaseReport{lease, PartPhase::refused, "the lease is not prepared on this node"});
}

Outcome Executor::resume(Instant now, const std::string& boot_id) {
    Outcome out;
    invariant(!resumed_, "a journal is taken up once");
    resumed_ = true;
    const std::string before = ledger_.boot;
    add(out, journal::AgentStarted{boot_id});
    // Answers to another process never pass for answers to this one.
    operations_ = ledger_.lives * (std::int64_t{1} << 32);
    if (!before.empty() && !boot_id.empty() && boot_id != before) host_restarted(out);
    pump(now, out);
    return out;
}

Outcome Executor::on_boot(Instant now, const std::string& boot_id) {
    Outcome out;
    if (boot_id == ledger_.boot) return out;
    const bool known = !ledger_.boot.empty() && !boot_id.empty();
    add(out, journal::BootSeen{boot_id});
    if (known) host_restarted(out);
    pump(now, out);
    return out;
}

// Whatever ran is gone. What is being released is stopped as always: a tenant that is not there stops at once.
void Executor::host_restarted(Outcome& out) {
    std::vector<Key> lost;
    for (const auto& [key, lease] : ledger_.leases)
        if (!lease.release && lease.phase != PartPhase::failed) lost.push_back(key);
    for (const Key key : lost) fail_lease(out, key, {"the host was restarted", PartFault::interrupted});
}

Outcome Executor::on_order(Instant now, const Order& order) {
    Outcome out;
    if (order.epoch < ledger_.epoch) {
        out.ignored = fmt::format("an order of epoch {}; this node has obeyed epoch {}", order.epoch, ledger_.epoch);
        return out;
    }
    if (order.epoch > ledger_.epoch) add(out, journal::EpochSeen{order.epoch});
    if (const auto* what = std::get_if<Prepare>(&order.what)) prepare(out, *what);
    if (const auto* what = std::get_if<Start>(&order.what)) start(out, what->lease);
    if (const auto* what = std::get_if<Release>(&order.what)) release(out, *what);
    if (const auto* what = std::get_if<Sanitize>(&order.what))
        for (const WipeTask& task : what->wipes) take_wipe(out, task);
    if (const auto* what = std::get_if<Withdraw>(&order.what))
        for (const WipeTask& task : what->wipes) withdraw_wipe(out, task);
    if (const auto* what = std::get_if<TestFabric>(&order.what)) {
        if (what->ticket <= 0)
            out.ignored = fmt::format("{} is no ticket of a test", what->ticket);
        else if (what->ticket != std::exchange(test_taken_, what->ticket))  // the same order again: it is under way
            out.test_fabric = what->ticket;
    }
    pump(now, out);
    return out;
}

void Executor::prepare(Outcome& out, const Prepare& order) {
    if (const auto known = ledger_.leases.find(order.lease); known != ledger_.leases.end()) {
        if (known->second.order != order)
            out.ignored = fmt::format("lease {} again, with other parts than it was prepared with", order.lease);
        return report_phase(out, order.lease);
    }
    if (ledger_.closed_as(order.lease)) return report_phase(out, order.lease);
    const std::vector<std::string> why = objections(ledger_, order, {identity_.host_must_be_known});
    if (why.empty()) return add(out, journal::LeaseTaken{order});
    // Remembered: the same order, late, must not be let in after the control plane has heard that it was refused.
    if (order.lease > 0) add(out, journal::LeaseRefused{order.lease});
    report(out, LeaseReport{order.lease, PartPhase::refused, joined(why)});
}

void Executor::start(Outcome& out, Key lease) {
    const auto known = ledger_.leases.find(lease);
    if (known == ledger_.leases.end() || known->second.release || known->second.phase != PartPhase::prepared)
        return report_phase(out, lease);
    if (!known->second.starting) add(out, journal::LeaseStarting{lease});
}

void Executor::release(Outcome& out, const Release& order) {
    if (order.lease <= 0) {
        out.ignored = fmt::format("{} is no key of a lease", order.lease);
        return;
    }
    if (const auto closed = ledger_.closed.find(order.lease); closed != ledger_.closed.end()) {
        report(out, LeaseReport{order.lease, PartPhase::stopped, {}});
        for (const WipeTask& task : order.wipes) take_wipe(out, task);
        return;
    }
    const auto known = ledger_.leases.find(order.lease);
    const bool under_way = known != ledger_.leases.end() && known->second.release;
    const auto is_new = [&](const WipeTask& task) {
        const std::vector<WipeTask>& wipes = known->second.release->wipes;
        return std::ranges::find(wipes, task.ticket, &WipeTask::ticket) == wipes.end();
    };
    if (under_way && std::ranges::none_of(order.wipes, is_new)) return;
    add(out, journal::ReleaseTaken{order});
    if (!under_way) work_.erase(order.lease);
}

Outcome Executor::on_result(Instant now, const OperationResult& result) {
    Outcome out;
    const auto found = flights_.find(result.number);
    if (found == flights_.end()) return out;
    const Flight flight = found->second;
    flights_.erase(found);
    busy_.erase(flight.place);
    // After it was given up, an answer says only that it is over: what it did is undone by the release or the next
    // wipe.
    if (!flight.given_up) {
        if (flight.ticket != 0)
            wipe_answered(now, out, flight, result);
        else
            step_answered(out, flight, result);
    }
    pump(now, out);
    return out;
}

Outcome Executor::on_fault(Instant now, const FaultReport& fault) {
    Outcome out;
    const DeviceId device{fault.kind, fault.device};
    if (fault.drain) {
        if (const auto known = ledger_.draining.find(device);
            known == ledger_.draining.end() || known->second != fault.why)
            add(out, journal::DeviceDraining{device, fault.why});
        for (auto& [ticket, work] : wiping_)
            if (const auto wipe = ledger_.wipes.find(ticket);
                wipe != ledger_.wipes.end() && DeviceId{wipe->second.task.kind, wipe->second.task.device} == device)
                work.drained = work.touched;
        report(out, fault);
        return out;
    }
    if (const auto known = ledger_.faulty.find(device); known == ledger_.faulty.end() || known->second != fault.why)
        add(out, journal::DeviceFaulty{device, fault.why});
    report(out, fault);
    std::vector<Key> broken;
    for (const auto& [key, lease] : ledger_.leases) {
        const std::vector<UnitId> units = units_of(lease.order);
        const bool has_it = std::ranges::any_of(
            units, [&](UnitId unit) { return unit.kind == device.kind && unit.device == device.device; });
        if (has_it && !lease.release && lease.phase != PartPhase::failed) broken.push_back(key);
    }
    for (const Key key : broken)
        fail_lease(out, key, {fmt::format("{}: {}", print(device), fault.why), PartFault::interrupted});
    pump(now, out);
    return out;
}

Outcome Executor::on_exit(Instant now, const TenantExit& exit) {
    Outcome out;
    const auto lease = ledger_.leases.find(exit.lease);
    // One that is being released ends because of that; one that is starting has not said yet that it runs.
    if (lease == ledger_.leases.end() || lease->second.release || lease->second.phase != PartPhase::running) return out;
    add(out, journal::LeaseMoved{exit.lease, PartPhase::exited, {}});
    report(out, LeaseReport{.lease = exit.lease,
                            .phase = PartPhase::exited,
                            .why = {},
                            .exit_status = exit.status,
                            .output = exit.output,
                            .printed = exit.printed});
    pump(now, out);
    return out;
}

Outcome Executor::on_fabric_tested(evidence::FabricStatement found) {
    Outcome out;
    found.node = identity_.node;
    found.agent_version = identity_.agent_version;
    const Key ticket = found.ticket;
    // An agent that is started over and over while nobody hears it has told enough; but not to whoever asks, and not
    // that something gets through.
    const bool is_open = std::ranges::find(found.attempts, AttemptEnd::got_through, &evidence::FabricAttempt::end) !=
                         found.attempts.end();
    if (ticket == 0 && std::ranges::count_if(ledger_.unacknowledged, [](const auto& entry) {
                           return std::holds_alternative<FabricTestReport>(entry.second.what);
                       }) >= (is_open ? 4 : 1) * fabric_tests_unheard_max) {
        out.ignored = "a test of the fences is not told: earlier ones have not been heard yet";
        return out;
    }
    report(out, FabricTestReport{.ticket = ticket,
                                 .why = {},
                                 .evidence = evidence::sign_statement(key_, evidence::fabric_statement_text(found))});
    return out;
}

Outcome Executor::on_no_fabric_test(Key ticket, std::string why) {
    Outcome out;
    if (why.empty()) why = "the hardware does not say why";  // without either there would be nothing to tell
    report(out, FabricTestReport{.ticket = ticket, .why = std::move(why), .evidence = {}});
    return out;
}

Outcome Executor::on_welcome(std::int64_t epoch) {
    Outcome out;
    if (epoch > ledger_.epoch) add(out, journal::EpochSeen{epoch});
    if (epoch < ledger_.epoch)
        out.ignored = fmt::format("a session of epoch {}; this node has obeyed epoch {}", epoch, ledger_.epoch);
    return out;
}

Outcome Executor::on_ack(std::int64_t number) {
    Outcome out;
    const auto& open = ledger_.unacknowledged;
    if (!open.empty() && open.begin()->first <= number) add(out, journal::Acknowledged{number});
    return out;
}

Outcome Executor::tick(Instant now) {
    Outcome out;
    std::vector<std::int64_t> late;
    for (const auto& [number, flight] : flights_)
        if (!flight.given_up && flight.deadline <= now) late.push_back(number);
    for (const std::int64_t number : late) {
        Flight& flight = flights_.at(number);
        flight.given_up = true;
        const Flight copy = flight;
        const OperationResult none{.number = number,
                                   .why = fmt::format("no answer within {}", print(limit_of(copy.operation.what)))};
        if (copy.ticket != 0)
            wipe_answered(now, out, copy, none);
        else
            step_answered(out, copy, none);
    }
    pump(now, out);
    return out;
}

std::optional<Instant> Executor::next_deadline() const {
    std::optional<Instant> next;
    for (const auto& [number, flight] : flights_)
        if (!flight.given_up && (!next || flight.deadline < *next)) next = flight.deadline;
    return next;
}

std::vector<Report> Executor::unacknowledged() const {
    std::vector<Report> open;
    open.reserve(ledger_.unacknowledged.size());
    for (const auto& [number, report] : ledger_.unacknowledged) open.push_back(report);
    return open;
}

namespace {

// Equal GPUs are listed together; one that is drained stands alone.
std::vector<NodeGpus> with_drains(const std::vector<NodeGpus>& found, const std::map<DeviceId, std::string>& draining) {
    std::vector<NodeGpus> told;
    std::uint16_t index = 0;
    for (const NodeGpus& group : found) {
        bool joins = false;
        for (std::int64_t i = 0; i < group.count; ++i, ++index) {
            const auto drain = draining.find({UnitKind::memory, index});
            const bool drained = drain != draining.end();
            if (joins && !drained) {
                ++told.back().count;
                continue;
            }
            told.push_back({group.model, 1, group.slices, drained ? drain->second : std::string{}});
            joins = !drained;
        }
    }
    return told;
}

}  // namespace

Hello Executor::hello(GpuNodeStatus inventory, std::string boot_id) const {
    inventory.gpus = with_drains(inventory.gpus, ledger_.draining);
    const UnitId host{UnitKind::host, 0, 0};
    NodeHost& told = inventory.host.emplace();
    told.usedBy.assign(ledger_.host_tenants.begin(), ledger_.host_tenants.end());
    if (ledger_.faulty.contains({UnitKind::host, 0}))
        told.state = CleanState::quarantined;
    else if (!ledger_.holders(host).empty())
        told.state = CleanState::in_use;
    else
        told.state = ledger_.clean(host) ? CleanState::available : CleanState::sanitizing;

    Hello hello{.epoch_seen = ledger_.epoch,
                .agent_version = identity_.agent_version,
                .boot_id = std::move(boot_id),
                .inventory = std::move(inventory)};
    for (const auto& [key, lease] : ledger_.leases)
        hello.leases.push_back({key, lease.phase, lease.order.tenant, units_of(lease.order)});
    for (const auto& [id, unit] : ledger_.units) hello.units.push_back({id, unit.clean, unit.ticket});
    for (const auto& [function, known] : ledger_.ports) hello.ports.push_back(known);
    return hello;
}

// ---- operations in flight

Executor::Place Executor::place_of(const decltype(Operation::what)& what) {
    struct {
        Place operator()(const CreateInstance& o) const { return {false, {UnitKind::memory, o.gpu}, 0}; }
        Place operator()(const DestroyInstance& o) const { return {false, {UnitKind::memory, o.gpu}, 0}; }
        Place operator()(const AttachDrive& o) const { return {false, {UnitKind::drive, o.drive}, 0}; }
        Place operator()(const DetachDrive& o) const { return {false, {UnitKind::drive, o.drive}, 0}; }
        Place operator()(const AttachFunction& o) const { return {false, {UnitKind::vf, o.function}, 0}; }
        Place operator()(const DetachFunction& o) const { return {false, {UnitKind::vf, o.function}, 0}; }
        Place operator()(const StartTenant& o) const { return {true, {}, o.lease}; }
        Place operator()(const StopTenant& o) const { return {true, {}, o.lease}; }
        Place operator()(const Wipe& o) const { return {false, {o.kind, o.device}, 0}; }
        Place operator()(const Verify& o) const { return {false, {o.kind, o.device}, 0}; }
        Place operator()(const ResetGpu& o) const { return {false, {UnitKind::memory, o.gpu}, 0}; }
    } place;
    return std::visit(place, what);
}

Duration Executor::limit_of(const decltype(Operation::what)& what) const {
    const OperationLimits& limits = identity_.limits;
    if (std::holds_alternative<CreateInstance>(what) || std::holds_alternative<DestroyInstance>(what))
        return limits.instance;
    if (std::holds_alternative<StartTenant>(what)) return limits.start;
    if (const auto* stop = std::get_if<StopTenant>(&what)) return {limits.stop.ms + stop->save.ms};
    if (std::holds_alternative<Verify>(what)) return limits.verify;
    if (std::holds_alternative<ResetGpu>(what)) return limits.reset;
    const auto* wipe = std::get_if<Wipe>(&what);
    if (wipe == nullptr) return limits.attach;
    switch (wipe->kind) {
        case UnitKind::memory:
            return limits.wipe_memory;
        case UnitKind::drive:
            return limits.wipe_drive;
        case UnitKind::vf:
            return limits.wipe_function;
        case UnitKind::host:
            return limits.reboot;
    }
    return limits.attach;
}

const Executor::Flight* Executor::flight_at(const Place& place) const {
    const auto number = busy_.find(place);
    return number == busy_.end() ? nullptr : &flights_.at(number->second);
}

std::int64_t Executor::begin(Instant now, Outcome& out, decltype(Operation::what) what, Owner owner) {
    const std::int64_t number = ++operations_;
    Flight flight{.operation = {number, std::move(what)}, .lease = owner.lease, .ticket = owner.ticket};
    flight.place = place_of(flight.operation.what);
    flight.deadline = now + limit_of(flight.operation.what);
    invariant(!busy_.contains(flight.place), "one operation at a time on each device");
    busy_[flight.place] = number;
    out.begin.push_back(flight.operation);
    flights_.emplace(number, std::move(flight));
    return number;
}

// Until nothing more can begin or end by itself. Leases first: what is stopped brings wipes.
void Executor::pump(Instant now, Outcome& out) {
    for (bool again = true; again;) {
        again = false;
        std::vector<Key> keys;
        keys.reserve(ledger_.leases.size());
        for (const auto& [key, lease] : ledger_.leases) keys.push_back(key);
        for (const Key key : keys) again = pump_lease(now, out, key) || again;
        again = pump_wipes(now, out) || again;
    }
}

}  // namespace bulkhead
