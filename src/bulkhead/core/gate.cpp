// The clean gate: what each unit holds, and how it gets clean again.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "bulkhead/core/state.hpp"
#include "bulkhead/evidence/pseudonym.hpp"
#include "bulkhead/evidence/statement.hpp"
#include "bulkhead/gpu/profile_name.hpp"

namespace bulkhead {

using lifecycle::UnitEvent;
using lifecycle::UnitState;

namespace {

// As nodes hear of tenants, whose statements others get to read.
std::vector<std::string> pseudonyms(const Core::State& state, const std::vector<std::string>& tenants) {
    std::vector<std::string> out;
    out.reserve(tenants.size());
    for (const std::string& tenant : tenants)
        out.push_back(evidence::pseudonym(evidence::opening_of(state.settings.secret, tenant)));
    return out;
}

}  // namespace

std::vector<Device*> NodeRun::devices() {
    std::vector<Device*> all;
    for (auto* list : {&gpus, &drives, &functions})
        for (Device& device : *list) all.push_back(&device);
    all.push_back(&host);
    return all;
}

Device* NodeRun::device(UnitKind kind, std::size_t index) {
    if (kind == UnitKind::host) return index == 0 ? &host : nullptr;
    std::vector<Device>& list = kind == UnitKind::memory ? gpus : kind == UnitKind::drive ? drives : functions;
    return index < list.size() ? &list[index] : nullptr;
}

void change_unit(Turn& turn, NodeRun& node, Device& device, std::size_t slice, UnitEvent event) {
    Unit& unit = device.units[slice];
    const auto to = lifecycle::next(lifecycle::unit_edges, unit.state, event);
    invariant(to.has_value(), "the gate's table has an edge for what the core does");
    const bool was_quarantined = unit.state == UnitState::quarantined;
    // Proven to be gone: nothing that befalls it from here on is that tenant's, or that lease's.
    if (unit.state == UnitState::available) unit.tenants.clear(), unit.lease = 0;
    // An order that has left is not called back by what the device does meanwhile.
    if (unit.state == UnitState::sanitizing && unit.told && (event == UnitEvent::fault || event == UnitEvent::doubt))
        unit.unsettled = true;
    if (event == UnitEvent::wiped || event == UnitEvent::wipe_failed || event == UnitEvent::hold)
        unit.unsettled = false;
    unit.state = *to;
    unit.out_of_use = event == UnitEvent::hold && was_quarantined;
    if (*to == UnitState::quarantined || event == UnitEvent::repair) unit.burn_in = device.kind == UnitKind::memory;
    if (event == UnitEvent::wiped) unit.burn_in = false, device.why.clear();
    if (*to == UnitState::dirty) unit.ticket = 0;  // no wipe it had counts any more
    device.changed = true;
    turn.changed_nodes.insert(node.key);
    turn.state.fleet_stale.insert(node.key);
}

void order_wipe(Turn& turn, NodeRun& node, Device& device, std::size_t first, std::size_t count) {
    // Of this node alone: certificates carry them, and how much is wiped elsewhere is nobody's business.
    const Key ticket = key_of(turn.state.epoch, ++node.tickets);
    for (std::size_t i = first; i < first + count; ++i) {
        change_unit(turn, node, device, i, UnitEvent::order_wipe);
        device.units[i].ticket = ticket;
        device.units[i].told = device.units[i].unsettled;  // who asks for this one asks for those before it
    }
}

bool under_hold(const Core::State& state, const std::vector<std::string>& tenants) {
    return std::ranges::any_of(tenants, [&](const std::string& tenant) {
        const auto found = state.tenants.find(tenant);
        return found != state.tenants.end() && found->second.object.status && found->second.object.status->legalHold;
    });
}

bool keeps_for_hold(const Core::State& state, const NodeRun& node, const Device& device, const Unit& unit) {
    if (unit.state == UnitState::held) return true;
    if (unit.state == UnitState::available) return false;
    return under_hold(state, unit.tenants) ||
           (device.kind == UnitKind::host && under_hold(state, {node.host_used_by.begin(), node.host_used_by.end()}));
}

bool keeps_for_hold(const Core::State& state, NodeRun& node) {
    const std::vector<Device*> devices = node.devices();
    return std::ranges::any_of(devices, [&](const Device* device) {
        return std::ranges::any_of(device->units,
                                   [&](const Unit& unit) { return keeps_for_hold(state, node, *device, unit); });
    });
}

// The node's word that it can is not enough.
bool has_verified_reboot(const NodeRun& node) {
    return std::ranges::any_of(node.object.status.capabilities, [](const DetectedCapability& one) {
        return one.name == Capability::verified_reboot && one.verifiedAt;
    });
}

void add_tenant(Unit& unit, const std::string& tenant) {
    constexpr std::size_t most = 64;  // of one trust domain, in turns, without a pause: nobody sells that
    std::erase(unit.tenants, tenant);
    if (unit.tenants.size() < most) unit.tenants.push_back(tenant);
}

namespace {

// Runs of neighbouring units that belong together: the same state, the same lease and tenants.
void for_each_run(const Device& device, std::size_t first, std::size_t count, auto&& visit) {
    for (std::size_t i = first; i < first + count;) {
        std::size_t end = i + 1;
        while (end < first + count && device.units[end].state == device.units[i].state &&
               device.units[end].lease == device.units[i].lease && device.units[end].ticket == device.units[i].ticket &&
               device.units[end].tenants == device.units[i].tenants &&
               device.units[end].burn_in == device.units[i].burn_in &&
               device.units[end].out_of_use == device.units[i].out_of_use &&
               device.units[end].unsettled == device.units[i].unsettled)
            ++end;
        visit(i, end - i);
        i = end;
    }
}

std::string run_text(const Device& device, std::size_t at, std::size_t size) {
    return unit_text(device.kind, device.index, static_cast<unsigned>(at), static_cast<unsigned>(size));
}

void hold_run(Turn& turn, NodeRun& node, Device& device, std::size_t at, std::size_t size) {
    for (std::size_t i = at; i < at + size; ++i) change_unit(turn, node, device, i, UnitEvent::hold);
    // For those who are under hold, and nobody else who was there.
    for (const std::string& tenant : device.units[at].tenants)
        if (under_hold(turn.state, {tenant}))
            turn.log({.kind = evidence::RecordKind::held,
                      .actor = "core",
                      .tenant = tenant,
                      .node = node.object.metadata.name,
                      .unit = run_text(device, at, size)});
}

}  // namespace

void sort_out_dirt(Turn& turn, NodeRun& node, Device& device, std::size_t first, std::size_t count) {
    for_each_run(device, first, count, [&](std::size_t at, std::size_t size) {
        if (device.units[at].state != UnitState::dirty) return;
        // A host that cannot prove what it booted is never clean; it stays with whoever used it.
        if (device.kind == UnitKind::host && !has_verified_reboot(node)) return;
        if (device.kind == UnitKind::host)
            for (const std::string& user : node.host_used_by)
                if (under_hold(turn.state, {user})) add_tenant(device.units[at], user);
        // Where an older order may still be carried out, the node is asked first, by way of a ticket to withdraw.
        if (device.units[at].unsettled) return order_wipe(turn, node, device, at, size);
        if (under_hold(turn.state, device.units[at].tenants)) return hold_run(turn, node, device, at, size);
        // A reboot would take GPU memory along. It stays dirty, and its turn comes when nothing is kept any more.
        if (device.kind == UnitKind::host && keeps_for_hold(turn.state, node)) return;
        order_wipe(turn, node, device, at, size);
    });
}

namespace {

// One that waited because something on its node was kept for a hold. Whether there is an order to be sent now.
bool take_up_reboot(Turn& turn, NodeRun& node) {
    for (std::size_t i = 0; i < node.host.units.size(); ++i) sort_out_dirt(turn, node, node.host, i, 1);
    return std::ranges::any_of(node.host.units, [](const Unit& unit) { return unit.state == UnitState::sanitizing; });
}

}  // namespace

void order_wipe_of_all_dirt(Turn& turn, NodeRun& node) {
    for (Device* device : node.devices()) sort_out_dirt(turn, node, *device, 0, device->units.size());
}

namespace {

// Under its ticket: somebody waits for that, or nobody any more since it broke.
bool may_yet_be_wiped(const Unit& unit) {
    return unit.state == UnitState::sanitizing || (unit.state == UnitState::quarantined && unit.unsettled);
}

// A wipe of what is under hold, or a reboot under it.
bool is_in_the_way_of_a_hold(const Core::State& state, const Device& device, const Unit& unit, bool node_keeps) {
    return under_hold(state, unit.tenants) || (device.kind == UnitKind::host && node_keeps);
}

bool is_rebooted_under_a_hold(const Core::State& state, NodeRun& node) {
    return std::ranges::any_of(node.host.units, may_yet_be_wiped) && keeps_for_hold(state, node);
}

std::vector<WipeTask> wipes_of(const Core::State& state, NodeRun& node, const auto& wanted) {
    std::vector<WipeTask> tasks;
    for (const Device* device : node.devices())
        for_each_run(*device, 0, device->units.size(), [&](std::size_t at, std::size_t size) {
            const Unit& unit = device->units[at];
            if (!wanted(*device, unit)) return;
            tasks.push_back({.kind = device->kind,
                             .device = device->index,
                             .start = static_cast<std::uint8_t>(at),
                             .size = static_cast<std::uint8_t>(size),
                             .ticket = unit.ticket,
                             .lease = unit.lease == 0 ? std::string{} : state.lease_name(unit.lease),
                             .tenants = pseudonyms(state, unit.tenants),
                             .burn_in = unit.burn_in});
        });
    return tasks;
}

}  // namespace

std::vector<WipeTask> wipes_under_way(const Core::State& state, NodeRun& node,
                                      const std::function<bool(const Device&, const Unit&)>& wanted) {
    const bool keeps = is_rebooted_under_a_hold(state, node);
    return wipes_of(state, node, [&](const Device& device, const Unit& unit) {
        return unit.state == UnitState::sanitizing && !is_in_the_way_of_a_hold(state, device, unit, keeps) &&
               wanted(device, unit);
    });
}

Withdraw withdrawal_for(const Core::State& state, NodeRun& node) {
    const bool keeps = is_rebooted_under_a_hold(state, node);
    return {wipes_of(state, node, [&](const Device& device, const Unit& unit) {
        return may_yet_be_wiped(unit) && is_in_the_way_of_a_hold(state, device, unit, keeps);
    })};
}

Release release_of(const Core::State& state, NodeRun& node, Key lease) {
    const auto run = state.leases.find(lease);
    return {.lease = lease,
            .wipes = wipes_under_way(state, node, [&](const Device&, const Unit& unit) { return unit.lease == lease; }),
            .save = run != state.leases.end() && comes_back(state, run->second)};
}

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

namespace {

void for_each_run_of(Turn& turn, const Tenant& tenant, auto&& visit) {
    for (auto& [key, node] : turn.state.nodes)
        for (Device* device : node.devices())
            for_each_run(*device, 0, device->units.size(), [&](std::size_t at, std::size_t size) {
                const std::vector<std::string>& tenants = device->units[at].tenants;
                if (std::ranges::find(tenants, tenant.metadata.name) != tenants.end()) visit(node, *device, at, size);
            });
}

}  // namespace

std::vector<std::string> hold_tenant(Turn& turn, const Tenant& tenant) {
    std::set<Key> asked, leases, nodes;
    std::vector<std::string> too_late;
    for_each_run_of(turn, tenant, [&](NodeRun& node, Device& device, std::size_t at, std::size_t size) {
        const Unit& unit = device.units[at];
        nodes.insert(node.key);
        if (unit.state == UnitState::quarantined && !unit.unsettled) return hold_run(turn, node, device, at, size);
        if (!may_yet_be_wiped(unit)) return;
        if (unit.told || unit.unsettled) {
            asked.insert(node.key);
            too_late.push_back(node.object.metadata.name + "/" + run_text(device, at, size));
            return;
        }
        leases.insert(unit.lease);
        for (std::size_t i = at; i < at + size; ++i) change_unit(turn, node, device, i, UnitEvent::doubt);
        sort_out_dirt(turn, node, device, at, size);
    });
    // A reboot for others' sake, ordered before, would take along what is held now.
    for (const Key key : nodes) {
        NodeRun& node = turn.state.nodes.at(key);
        if (node.host.units.empty() || !keeps_for_hold(turn.state, node)) continue;
        const Unit& host = node.host.units[0];
        if (!may_yet_be_wiped(host) || under_hold(turn.state, host.tenants)) continue;
        if (host.told || host.unsettled) {
            asked.insert(key);
            too_late.push_back(node.object.metadata.name + "/host");
        } else {
            change_unit(turn, node, node.host, 0, UnitEvent::doubt);
        }
    }
    for (const Key key : asked) send_orders(turn, turn.state.nodes.at(key));
    for (const Key lease : leases) settle_lease(turn, lease);
    return too_late;
}

void lift_hold(Turn& turn, const Tenant& tenant) {
    std::set<Key> told, nodes;
    for_each_run_of(turn, tenant, [&](NodeRun& node, Device& device, std::size_t at, std::size_t size) {
        const Unit& unit = device.units[at];
        nodes.insert(node.key);
        if (under_hold(turn.state, unit.tenants)) return;
        if (unit.state == UnitState::sanitizing) told.insert(node.key);  // it was neither wiped nor given up meanwhile
        if (unit.state != UnitState::held) return;
        const UnitEvent event = unit.out_of_use ? UnitEvent::put_back : UnitEvent::lift;
        for (std::size_t i = at; i < at + size; ++i) change_unit(turn, node, device, i, event);
        sort_out_dirt(turn, node, device, at, size);
        told.insert(node.key);
    });
    for (auto& [key, node] : turn.state.nodes)
        if (nodes.contains(key) || node.host_used_by.contains(tenant.metadata.name))
            if (take_up_reboot(turn, node)) told.insert(key);
    for (const Key key : told) send_orders(turn, turn.state.nodes.at(key));
}

GpuNode shown(const Core::State& state, const NodeRun& node) {
    GpuNode object = node.object;
    object.status.phase = node.phase;
    const auto lease_name = [&](const Unit& unit) -> std::string {
        if (unit.state != UnitState::in_use && unit.state != UnitState::reserved) return {};
        const auto found = state.leases.find(unit.lease);
        return found == state.leases.end() ? std::string{} : found->second.object.metadata.name;
    };
    std::vector<NodeGpus> gpus;
    std::size_t index = 0;
    for (const NodeGpus& group : object.status.gpus)
        for (std::int64_t i = 0; i < group.count && index < node.gpus.size(); ++i, ++index) {
            const Device& device = node.gpus[index];
            NodeGpus one{.model = group.model, .slices = {}, .draining = device.draining};
            for_each_run(device, 0, device.units.size(), [&](std::size_t at, std::size_t) {
                one.slices.push_back({.start = static_cast<std::int64_t>(at),
                                      .state = clean_state(device.units[at].state),
                                      .lease = lease_name(device.units[at])});
            });
            gpus.push_back(std::move(one));
        }
    for (const Key key : node.leases) {
        const auto lease = state.leases.find(key);
        if (lease == state.leases.end()) continue;
        for (const LeasedSlice& slice : lease->second.object.spec.slices)
            if (slice.node == object.metadata.name && slice.gpu >= 0 && std::cmp_less(slice.gpu, gpus.size()))
                for (GpuSlice& piece : gpus[static_cast<std::size_t>(slice.gpu)].slices)
                    if (piece.start == slice.start && piece.state == CleanState::in_use) piece.profile = slice.profile;
    }
    object.status.gpus = std::move(gpus);
    for (std::size_t i = 0; i < object.status.drives.size() && i < node.drives.size(); ++i) {
        object.status.drives[i].state = clean_state(node.drives[i].units[0].state);
        object.status.drives[i].lease = lease_name(node.drives[i].units[0]);
        object.status.drives[i].why = why_out_of_use(node, node.drives[i]);
    }
    for (std::size_t i = 0; i < object.status.functions.size() && i < node.functions.size(); ++i) {
        object.status.functions[i].state = clean_state(node.functions[i].units[0].state);
        object.status.functions[i].lease = lease_name(node.functions[i].units[0]);
    }
    if (!node.host.units.empty())
        object.status.host = NodeHost{.state = clean_state(node.host.units[0].state),
                                      .usedBy = {node.host_used_by.begin(), node.host_used_by.end()}};
    return object;
}

}  // namespace bulkhead
