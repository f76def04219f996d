// The clean gate: what each unit holds, and how it gets clean again.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "bulkhead/core/state.hpp"
#include "bulkhead/core/unit_runs.hpp"
#include "bulkhead/evidence/pseudonym.hpp"
#include "bulkhead/gpu/profile_name.hpp"

namespace bulkhead {

using lifecycle::UnitEvent;
using lifecycle::UnitState;

std::vector<std::string> pseudonyms(const Core::State& state, const std::vector<std::string>& tenants) {
    std::vector<std::string> out;
    out.reserve(tenants.size());
    for (const std::string& tenant : tenants)
        out.push_back(evidence::pseudonym(evidence::opening_of(state.settings.secret, tenant)));
    return out;
}

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

void order_wipe_of_all_dirt(Turn& turn, NodeRun& node) {
    for (Device* device : node.devices()) sort_out_dirt(turn, node, *device, 0, device->units.size());
}

namespace {

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

GpuNode shown(const Core::State& state, const NodeRun& node) {
    GpuNode object = node.object;
    object.status.phase = node.phase;
    object.status.unfit = node.unfit;
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
