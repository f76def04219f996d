// What nodes say of units: that one was wiped, with evidence or without, that a device broke, that it is another one.
#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "bulkhead/core/state.hpp"
#include "bulkhead/core/unit_runs.hpp"
#include "bulkhead/evidence/pseudonym.hpp"
#include "bulkhead/evidence/statement.hpp"

namespace bulkhead {

using lifecycle::UnitEvent;
using lifecycle::UnitState;

namespace {

// Whether the node's signed word is about this very wipe. Evidence that does not fit is no evidence.
Result<evidence::WipeStatement> check_evidence(const Core::State& state, const NodeRun& node, const Device& device,
                                               const WipeReport& report) {
    if (!node.public_key) return fail(Code::denied, "the node has no evidence key on record", "enrol it again");
    if (auto genuine = evidence::verify_statement(*node.public_key, report.evidence); !genuine)
        return std::unexpected(genuine.error());
    auto statement = evidence::read_statement(report.evidence.statement);
    if (!statement) return statement;
    const std::string unit = unit_text(device.kind, device.index, report.start, report.size);
    if (statement->node != node.object.metadata.name || statement->unit != unit)
        return fail(Code::invalid, fmt::format("the statement is about {} {}, the report about {} {}", statement->node,
                                               statement->unit, node.object.metadata.name, unit));
    const Unit& ordered = device.units[report.start];
    if (statement->ticket != report.ticket)
        return fail(Code::invalid, "the statement is about another wipe of it, under another ticket");
    // Agents that were told before nodes heard of tenants by pseudonym alone sign their names.
    const bool same_tenants =
        statement->tenants == pseudonyms(state, ordered.tenants) || statement->tenants == ordered.tenants;
    if (!same_tenants || statement->lease != (ordered.lease == 0 ? std::string{} : state.lease_name(ordered.lease)))
        return fail(Code::invalid, "the statement names another lease or other tenants than the order did");
    // What is quarantined gets its burn-in by the next order.
    if (ordered.burn_in && ordered.state == UnitState::sanitizing && report.verified &&
        statement->method.find("burn-in") == std::string::npos)
        return fail(Code::invalid, "a burn-in was ordered, and the statement says nothing of one");
    // A number is a place; what was wiped is a drive.
    if (device.kind == UnitKind::drive && report.verified) {
        const std::vector<NodeDrive>& drives = node.object.status.drives;
        const std::string known = device.index < drives.size() ? drives[device.index].serial : "";
        if (statement->device != known)
            return fail(Code::invalid, fmt::format("the statement is about drive {}, and {} of {} is {}",
                                                   statement->device, unit, node.object.metadata.name, known));
    }
    // Its drives may be a software machine's, behind a real kernel's driver.
    const bool may_be_emulated = device.kind == UnitKind::drive || device.kind == UnitKind::vf;
    const bool by_emulation = may_be_emulated && statement->grade == Grade::emulated;
    if (state.settings.simulated_fleet && statement->grade != Grade::simulated && !by_emulation)
        return fail(Code::invalid, "a simulated node cannot show more than a simulation");
    if ((statement->result == evidence::WipeResult::verified) != report.verified)
        return fail(Code::invalid, "the statement and the report do not agree on the result");
    return statement;
}

// What broke before its node had answered: now it has. What is left of it is held, where that is called for.
void settle_broken(Turn& turn, NodeRun& node, Device& device, const WipeReport& report) {
    device.changed = true;
    turn.changed_nodes.insert(node.key);
    if (under_hold(turn.state, device.units[report.start].tenants))
        return hold_run(turn, node, device, report.start, report.size);
    if (take_up_reboot(turn, node)) send_orders(turn, node);
}

}  // namespace

void on_wipe_report(Turn& turn, NodeRun& node, const WipeReport& report) {
    Device* device = node.device(report.kind, report.device);
    if (device == nullptr || report.size == 0 || std::size_t{report.start} + report.size > device->units.size()) return;
    const auto awaited = [&](const Unit& unit) {
        return may_yet_be_wiped(unit) && unit.state == device->units[report.start].state &&
               unit.ticket == report.ticket;
    };
    const std::span units = std::span{device->units}.subspan(report.start, report.size);
    if (!std::ranges::all_of(units, awaited)) return;  // an old ticket: whatever it says, it is not about this wipe
    const bool is_broken = units.front().state == UnitState::quarantined;  // which it stays, whatever was done
    if (report.stale) {
        // Nothing of it is done any more; nor of any before it, if that was an answer to a withdrawal.
        const bool settled =
            is_broken || is_in_the_way_of_a_hold(turn.state, *device, units.front(), keeps_for_hold(turn.state, node));
        for (Unit& unit : units) unit.told = false, unit.unsettled = unit.unsettled && !settled;
        if (is_broken) return settle_broken(turn, node, *device, report);
        // The new ticket goes out when orders are next given again: a node that says this every time is not asked at
        // once. Where a hold has come over it, there is none.
        const Key lease = units.front().lease;
        for (std::size_t i = report.start; i < std::size_t{report.start} + report.size; ++i)
            change_unit(turn, node, *device, i, UnitEvent::doubt);
        sort_out_dirt(turn, node, *device, report.start, report.size);
        return settle_lease(turn, lease);
    }

    const auto statement = check_evidence(turn.state, node, *device, report);
    const bool clean =
        (report.verified && statement.has_value()) || turn.state.settings.planted == Planted::believe_failed_wipes;
    const Key lease = units.front().lease;
    evidence::Record record{.kind = clean ? evidence::RecordKind::wiped : evidence::RecordKind::wipe_failed,
                            .actor = "node:" + node.object.metadata.name,
                            .node = node.object.metadata.name,
                            .lease = lease == 0 ? std::string{} : turn.state.lease_name(lease),
                            .unit = unit_text(device->kind, device->index, report.start, report.size)};
    if (statement) {
        record.grade = statement->grade;
        record.evidence = report.evidence;
    } else {
        record.detail["evidence"] = statement.error().what;
    }
    if (!clean) {
        record.detail["why"] = report.verified ? "the evidence does not hold" : report.why;
        remember_why(turn, node, *device, record.detail["why"]);
    }
    // One entry for each whose dirt it was: each can show that its own is gone.
    const std::int64_t leaf = turn.state.log_size;
    if (units.front().tenants.empty()) turn.log(record);
    for (const std::string& tenant : units.front().tenants) {
        // As the statement has it: what is proven to one tenant must not name the others.
        const bool by_name = statement && statement->tenants == units.front().tenants;
        record.tenant =
            by_name ? tenant : evidence::pseudonym(evidence::opening_of(turn.state.settings.secret, tenant));
        turn.log(record);
    }
    if (is_broken) {
        for (Unit& unit : units) {
            unit.unsettled = false;
            if (clean) unit.tenants.clear(), unit.lease = 0, unit.leaf = leaf;
        }
        return settle_broken(turn, node, *device, report);
    }
    const bool burnt_in = units.front().burn_in, too_late_for_hold = under_hold(turn.state, units.front().tenants);
    for (std::size_t i = report.start; i < std::size_t{report.start} + report.size; ++i) {
        change_unit(turn, node, *device, i, clean ? UnitEvent::wiped : UnitEvent::wipe_failed);
        device->units[i].leaf = leaf;
    }
    if (clean) settle_drain(turn, node, *device, {report.start, report.size, burnt_in});
    if (clean && device->kind == UnitKind::host) node.host_used_by.clear();
    if (clean && device->kind == UnitKind::vf) function_wiped(turn, node, device->index);
    if (too_late_for_hold && take_up_reboot(turn, node)) send_orders(turn, node);
    turn.state.cycle_wanted = true;
    settle_lease(turn, lease);
}

namespace {

void end_leases_on(Turn& turn, NodeRun& node, const Device& device, const std::set<Key>& holders,
                   const std::string& why) {
    // Whoever shares the device is on it too, though no unit names it.
    for (const Key key : std::set<Key>{node.leases}) {
        const auto found = turn.state.leases.find(key);
        if (found == turn.state.leases.end()) continue;
        const Part* part = part_on(found->second, node.key);
        const bool on_it =
            device.kind == UnitKind::memory &&
            std::ranges::any_of(part->prepare.gpus, [&](const GpuPart& gpu) { return gpu.gpu == device.index; });
        if (on_it || holders.contains(key)) end_lease(turn, found->second, fmt::format("a device failed: {}", why));
    }
    for (const Key key : holders) settle_lease(turn, key);
}

}  // namespace

void on_fault_report(Turn& turn, NodeRun& node, const FaultReport& report) {
    Device* device = node.device(report.kind, report.device);
    if (device == nullptr) return;
    if (report.drain) return begin_drain(turn, node, *device, report.why);
    std::set<Key> holders;
    bool news = false;
    for (std::size_t i = 0; i < device->units.size(); ++i) {
        Unit& unit = device->units[i];
        if (unit.state == UnitState::quarantined || unit.out_of_use) continue;
        news = true;
        if (unit.state == UnitState::held) {  // which it stays: the hold is on what it has, in whatever state
            unit.out_of_use = true;
            device->changed = true;
            turn.changed_nodes.insert(node.key);
            continue;
        }
        holders.insert(unit.lease);
        change_unit(turn, node, *device, i, UnitEvent::fault);
    }
    remember_why(turn, node, *device, report.why);  // also the newest of one that is out of use already
    if (!news) return;
    turn.log({.kind = evidence::RecordKind::quarantined,
              .actor = "node:" + node.object.metadata.name,
              .node = node.object.metadata.name,
              .unit = unit_text(device->kind, device->index, 0, static_cast<unsigned>(device->units.size())),
              .detail = {{"why", report.why}}});
    end_leases_on(turn, node, *device, holders, report.why);
}

// What is known of the index was about the one that is gone. No wipe of this one shows anything of what was on that: so
// whose it was goes into the log, and what is wiped here, after a repair, is nobody's.
void replace_device(Turn& turn, NodeRun& node, Device& device, const std::string& by) {
    const std::string why = fmt::format("{} is in the place of {}", by.substr(0, 64), device.identity.substr(0, 64));
    std::set<Key> holders;
    for (std::size_t i = 0; i < device.units.size(); ++i) {
        const Unit was = device.units[i];
        Unit& unit = device.units[i];
        const bool anybodys = was.state == UnitState::reserved || was.state == UnitState::in_use ||
                              (was.state != UnitState::available && !was.tenants.empty());
        if (anybodys && was.state == UnitState::held) change_unit(turn, node, device, i, UnitEvent::put_back);
        if (anybodys && unit.state != UnitState::quarantined) change_unit(turn, node, device, i, UnitEvent::fault);
        if (anybodys) remember_why(turn, node, device, why);
        if (unit.state == UnitState::available || unit.state == UnitState::sanitizing)
            change_unit(turn, node, device, i, UnitEvent::doubt);
        if (anybodys)
            for (const std::string& tenant : was.tenants)
                turn.log({.kind = evidence::RecordKind::quarantined,
                          .actor = "node:" + node.object.metadata.name,
                          .tenant = tenant,
                          .node = node.object.metadata.name,
                          .lease = was.lease == 0 ? std::string{} : turn.state.lease_name(was.lease),
                          .unit = run_text(device, i, 1),
                          .detail = {{"why", why}, {"gone", device.identity.substr(0, 64)}}});
        if (was.state != UnitState::available) holders.insert(was.lease);
        unit.tenants.clear();
        unit.lease = 0;
        unit.unsettled = false;
        device.changed = true;
        turn.changed_nodes.insert(node.key);
    }
    end_leases_on(turn, node, device, holders, why);
}

}  // namespace bulkhead
