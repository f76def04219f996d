// A legal hold keeps what its tenant left, and whatever would take that along: wipes that nobody has begun are not
// made, and no host is rebooted (decision 0040).
#include <algorithm>

#include "bulkhead/core/state.hpp"
#include "bulkhead/core/unit_runs.hpp"

namespace bulkhead {

using lifecycle::UnitEvent;
using lifecycle::UnitState;

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

bool take_up_reboot(Turn& turn, NodeRun& node) {
    for (std::size_t i = 0; i < node.host.units.size(); ++i) sort_out_dirt(turn, node, node.host, i, 1);
    return std::ranges::any_of(node.host.units, [](const Unit& unit) { return unit.state == UnitState::sanitizing; });
}

bool may_yet_be_wiped(const Unit& unit) {
    return unit.state == UnitState::sanitizing || (unit.state == UnitState::quarantined && unit.unsettled);
}

bool is_in_the_way_of_a_hold(const Core::State& state, const Device& device, const Unit& unit, bool node_keeps) {
    return under_hold(state, unit.tenants) || (device.kind == UnitKind::host && node_keeps);
}

bool is_rebooted_under_a_hold(const Core::State& state, NodeRun& node) {
    return std::ranges::any_of(node.host.units, may_yet_be_wiped) && keeps_for_hold(state, node);
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

}  // namespace bulkhead
