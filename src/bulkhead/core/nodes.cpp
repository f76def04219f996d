// Nodes: sessions, what they report, and what their silence means.
#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "bulkhead/core/state.hpp"
#include "bulkhead/gpu/amd.hpp"
#include "bulkhead/gpu/board.hpp"
#include "bulkhead/policy/ask.hpp"

namespace bulkhead {

using lifecycle::NodeEvent;
using lifecycle::UnitEvent;
using lifecycle::UnitState;

namespace {

// Devices of one node, at most: a hello that claims more is no node.
constexpr std::size_t most_gpus_of_node = 64, most_drives = 256, most_functions = 1024;
// More are not told apart.
constexpr std::size_t most_users_of_host = 1024;

// No tenant can be called so, and nobody trusts it.
const std::string unknown_tenant = "(unknown)";

void advance(NodeRun& node, NodeEvent event) {
    if (const auto to = lifecycle::next(lifecycle::node_edges, node.phase, event)) node.phase = *to;
}

void close_session(Turn& turn, const std::string& node, std::uint64_t session, std::string why) {
    turn.effects.closes.push_back({node, session, std::move(why)});
}

std::size_t slices_of(const std::string& model) {
    if (const auto board = gpu::find_board(model); board && (*board)->id == model) return (*board)->memory_slices;
    if (const auto amd = gpu::find_amd_board(model); amd && (*amd)->id == model) return 8;
    return 1;
}

// A drive by its serial number, a function by its address: where another one answers to the same index, what we know is
// about the one that was there. What was clean is wiped again; where somebody's dirt was, it went with the other, and
// no wipe of this one shows that it is gone: it stays out of use until a person has looked.
void doubt_who_is_another(Turn& turn, NodeRun& node, std::vector<Device>& list, const std::vector<std::string>& before,
                          const std::vector<std::string>& now) {
    for (std::size_t i = 0; i < list.size() && i < now.size(); ++i) {
        Device& device = list[i];
        const bool known = !device.identity.empty() || i < before.size();
        const std::string row = device.identity;
        if (row.empty() && known) device.identity = before[i];  // of a row from before it was kept there
        if (known && device.identity != now[i]) replace_device(turn, node, device, now[i]);
        device.identity = now[i];
        if (row == now[i]) continue;
        device.changed = true;
        turn.changed_nodes.insert(node.key);
    }
}

std::vector<std::string> names_of(const std::vector<NodeDrive>& drives) {
    std::vector<std::string> names;
    names.reserve(drives.size());
    for (const NodeDrive& drive : drives) names.push_back(drive.serial);
    return names;
}
std::vector<std::string> names_of(const std::vector<NodeFunction>& functions) {
    std::vector<std::string> names;
    names.reserve(functions.size());
    for (const NodeFunction& function : functions) names.push_back(function.address);
    return names;
}

void fit_devices(Turn& turn, NodeRun& node, std::vector<Device>& list, UnitKind kind,
                 const std::vector<std::size_t>& sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (i == list.size())
            list.push_back({.row = turn.state.fresh_key(),
                            .kind = kind,
                            .index = static_cast<std::uint16_t>(i),
                            .units = {},
                            .changed = true,
                            .draining = {}});
        if (list[i].units.size() != sizes[i]) {  // another device in its place: nobody knows what is on it
            for (const Unit& unit : list[i].units)
                if (const auto lease = turn.state.leases.find(unit.lease);
                    lease != turn.state.leases.end() && part_on(lease->second, node.key) != nullptr)
                    end_lease(turn, lease->second, "a device was replaced by another");
            list[i].units.assign(sizes[i], Unit{});
            list[i].draining.clear();
            list[i].changed = true;
        }
    }
    // What the node no longer has keeps its units: they are broken until it comes back.
    for (std::size_t i = sizes.size(); i < list.size(); ++i)
        on_fault_report(turn, node,
                        {.kind = kind, .device = static_cast<std::uint16_t>(i), .why = "the node no longer has it"});
}

void take_inventory(Turn& turn, NodeRun& node, GpuNodeStatus inventory) {
    std::vector<std::size_t> gpus;
    for (const NodeGpus& group : inventory.gpus)
        gpus.insert(gpus.end(), static_cast<std::size_t>(group.count), slices_of(group.model));
    fit_devices(turn, node, node.gpus, UnitKind::memory, gpus);
    fit_devices(turn, node, node.drives, UnitKind::drive, std::vector<std::size_t>(inventory.drives.size(), 1));
    fit_devices(turn, node, node.functions, UnitKind::vf, std::vector<std::size_t>(inventory.functions.size(), 1));
    const GpuNodeStatus& known = node.object.status;
    doubt_who_is_another(turn, node, node.drives, names_of(known.drives), names_of(inventory.drives));
    doubt_who_is_another(turn, node, node.functions, names_of(known.functions), names_of(inventory.functions));
    if (node.host.units.empty()) {
        node.host.row = turn.state.fresh_key();
        node.host.units.assign(1, Unit{});
        node.host.changed = true;
    }
    // What the node remembers of its kernel counts as much as what we do: a backup may have forgotten.
    if (inventory.host)
        for (const std::string& tenant : inventory.host->usedBy)
            if (is_valid(Format::name, tenant) &&
                node.host_used_by.insert(node.host_used_by.size() < most_users_of_host ? tenant : unknown_tenant)
                    .second) {
                node.host.changed = true;
                turn.changed_nodes.insert(node.key);
            }
    inventory.host.reset();
    inventory.phase.reset();
    inventory.unfit.clear();
    for (NodeDrive& drive : inventory.drives) drive.state = CleanState{}, drive.lease.clear(), drive.why.clear();
    for (NodeFunction& function : inventory.functions) function.state = CleanState{}, function.lease.clear();
    inventory.observedAt = node.object.status.observedAt;
    for (DetectedCapability& capability : inventory.capabilities) {
        // A capability that raises trust counts by evidence, not by the node's word. A simulated fleet has no silicon
        // to take evidence from; there, and only there, the word stands, graded as what it is.
        const bool by_word = turn.state.settings.simulated_fleet && capability.grade == Grade::simulated;
        capability.verifiedAt =
            by_word && trust_raising.contains(capability.name) ? std::optional{turn.now} : std::nullopt;
    }
    for (NodeGpus& group : inventory.gpus) group.slices.clear(), group.draining.clear();
    keep_fabric_tests(node, inventory);
    GpuNodeStatus before = node.object.status;
    for (DetectedCapability& capability : before.capabilities)
        if (capability.verifiedAt) capability.verifiedAt = turn.now;
    if (before == inventory) return;
    inventory.observedAt = turn.now;
    node.object.status = std::move(inventory);
    node.measure_closeness();
    turn.changed_nodes.insert(node.key);
    turn.state.declared_stale = true;
}

// A wipe is of all its units or of none: where one of them is another matter now, the rest wants another ticket too.
void doubt_wipe(Turn& turn, NodeRun& node, Device& device, Key ticket) {
    for (std::size_t i = 0; i < device.units.size(); ++i)
        if (device.units[i].state == UnitState::sanitizing && device.units[i].ticket == ticket)
            change_unit(turn, node, device, i, UnitEvent::doubt);
}

// What the node says is clean must be what we say is clean, by the same ticket.
void doubt_what_it_forgot(Turn& turn, NodeRun& node, const Hello& hello) {
    std::map<UnitId, Key> clean;
    for (const KnownUnit& known : hello.units)
        if (known.clean) clean[known.unit] = known.ticket;
    // A host that was rebooted under a ticket we do not remember was used, then, by somebody we do not remember either.
    if (!node.host.units.empty() && node.host.units[0].state == UnitState::in_use)
        for (const KnownUnit& known : hello.units)
            if (known.unit.kind == UnitKind::host && known.ticket != node.host.units[0].ticket &&
                node.host_used_by.insert(unknown_tenant).second) {
                node.host.changed = true;
                turn.changed_nodes.insert(node.key);
            }
    for (Device* device : node.devices())
        for (std::size_t i = 0; i < device->units.size(); ++i) {
            const Unit& unit = device->units[i];
            if (unit.state != UnitState::available) continue;
            const auto known = clean.find({device->kind, device->index, static_cast<std::uint8_t>(i)});
            if (known == clean.end() || known->second != unit.ticket)
                change_unit(turn, node, *device, i, UnitEvent::doubt);
        }
    // A wipe we wait for, and the node has gone beyond it: a backup has forgotten what came after.
    std::map<UnitId, Key> last;
    for (const KnownUnit& known : hello.units) last[known.unit] = known.ticket;
    for (Device* device : node.devices())
        for (std::size_t i = 0; i < device->units.size(); ++i) {
            const auto known = last.find({device->kind, device->index, static_cast<std::uint8_t>(i)});
            if (device->units[i].state == UnitState::sanitizing && known != last.end() &&
                known->second > device->units[i].ticket)
                doubt_wipe(turn, node, *device, device->units[i].ticket);
        }
}

// A lease the node runs and we do not know: from before a restore. Its silicon is dirty, whatever our rows say.
void take_in_stray(Turn& turn, NodeRun& node, const KnownLease& known) {
    std::set<Key> before;  // leases that waited for these wipes, and need not any more
    node.strays.insert(known.lease);
    for (const UnitId& id : known.units) {
        Device* device = node.device(id.kind, id.device);
        if (device == nullptr || id.slice >= device->units.size()) continue;
        Unit& unit = device->units[id.slice];
        if (unit.state == UnitState::available) change_unit(turn, node, *device, id.slice, UnitEvent::doubt);
        if (unit.state == UnitState::reserved || unit.state == UnitState::in_use) {
            if (const auto ours = turn.state.leases.find(unit.lease); ours != turn.state.leases.end())
                end_lease(turn, ours->second, "the node says that the slice is another lease's");
        }
        if (unit.state == UnitState::dirty || unit.state == UnitState::sanitizing) {
            // A wipe that is under way was ordered before the stray was known: what is on it now is the stray's.
            if (unit.state == UnitState::sanitizing) doubt_wipe(turn, node, *device, unit.ticket);
            before.insert(unit.lease);
            unit.lease = known.lease;
            add_tenant(unit, known.tenant);
            device->changed = true;
        }
    }
    for (const Key lease : before) settle_lease(turn, lease);
}

void reconcile_leases(Turn& turn, NodeRun& node, const Hello& hello) {
    std::set<Key> told;
    for (const KnownLease& known : hello.leases) {
        told.insert(known.lease);
        const auto ours = turn.state.leases.find(known.lease);
        // Why it failed, and by whose fault, is in a report that follows, or comes when its order is given again.
        if (known.phase == PartPhase::failed && node.protocol >= agent_protocol_fault &&
            ours != turn.state.leases.end() && ours->second.object.status->phase != LeasePhase::ending &&
            part_on(ours->second, node.key) != nullptr)
            continue;
        if (ours != turn.state.leases.end() && part_on(ours->second, node.key) != nullptr)
            on_lease_report(turn, node,
                            {.lease = known.lease, .phase = known.phase, .why = "as told when it came back"});
        else if (known.phase != PartPhase::stopped && known.phase != PartPhase::refused)
            take_in_stray(turn, node, known);
    }
    for (const Key key : std::set<Key>{node.leases}) {
        if (told.contains(key)) continue;
        const auto ours = turn.state.leases.find(key);
        if (ours == turn.state.leases.end()) continue;
        Part& part = *part_on(ours->second, node.key);
        if (ours->second.object.status->phase == LeasePhase::active)
            end_lease(turn, ours->second,
                      fmt::format("node {} knows nothing of it any more", node.object.metadata.name));
        else if (part.phase != PartPhase::stopped)
            part.phase = PartPhase::preparing;
    }
}

// An agent that was replaced by an older one does not know how to set a function for its tenant.
void end_what_it_cannot_set(Turn& turn, NodeRun& node) {
    if (node.protocol >= agent_protocol_fabric) return;
    for (const Key key : std::set<Key>{node.leases}) {
        LeaseRun& lease = turn.state.leases.at(key);
        if (lease.object.status->phase == LeasePhase::preparing && !part_on(lease, node.key)->prepare.ports.empty())
            end_lease(turn, lease,
                      fmt::format("the agent of node {} is too old for the fabric", node.object.metadata.name));
    }
}

bool is_plausible(const Hello& hello) {
    std::size_t gpus = 0;
    for (const NodeGpus& group : hello.inventory.gpus) {
        if (group.count < 1 || group.count > 64) return false;
        gpus += static_cast<std::size_t>(group.count);
    }
    return gpus <= most_gpus_of_node && hello.inventory.drives.size() <= most_drives &&
           hello.inventory.functions.size() <= most_functions;
}

// One that was enrolled and had not joined when the backup was made may have joined since, and work with it. One that
// is enrolled in this very life has nothing to tell.
bool all_heard_of(const Core::State& state) {
    return std::ranges::all_of(state.nodes, [&](const auto& entry) {
        return entry.second.phase == NodePhase::ready ||
               (entry.second.phase == NodePhase::enrolled && entry.first >= key_of(state.epoch, 0));
    });
}

// From here on it may know these tickets.
void remember_told(NodeRun& node, const std::vector<WipeTask>& wipes) {
    for (const WipeTask& task : wipes)
        for (Unit& unit : std::span{node.device(task.kind, task.device)->units}.subspan(task.start, task.size))
            unit.told = true;
}

}  // namespace

void send(Turn& turn, NodeRun& node, decltype(Order::what) what) {
    if (node.session == 0) return;
    node.sent = turn.now;
    if (const auto* release = std::get_if<Release>(&what)) remember_told(node, release->wipes);
    if (const auto* sanitize = std::get_if<Sanitize>(&what)) remember_told(node, sanitize->wipes);
    turn.effects.orders.push_back({node.object.metadata.name, node.session, {turn.state.epoch, std::move(what)}});
}

void send_orders(Turn& turn, NodeRun& node) {
    if (node.session == 0) return;
    // Before anything that could make their turn come. An agent that does not know how to do so is told of them no
    // more: what it has not heard of it does not do.
    if (Withdraw withdraw = withdrawal_for(turn.state, node);
        !withdraw.wipes.empty() && node.protocol >= agent_protocol_withdraw)
        send(turn, node, std::move(withdraw));
    for (const Key key : node.leases) {
        LeaseRun& lease = turn.state.leases.at(key);
        const Part& part = *part_on(lease, node.key);
        switch (lease.object.status->phase) {
            case LeasePhase::preparing:
                // Before every node was heard of, what a backup says that it shall be on the fabric may be another's.
                if (part.phase == PartPhase::preparing && (!turn.state.restoring || part.prepare.ports.empty()))
                    send(turn, node, part.prepare);
                break;
            case LeasePhase::active:
                if (part.phase != PartPhase::running && part.phase != PartPhase::exited)
                    send(turn, node, Start{.lease = key});
                break;
            case LeasePhase::ending:
            case LeasePhase::closed: {
                Release release = release_of(turn.state, node, key);
                if (part.phase != PartPhase::stopped || !release.wipes.empty()) send(turn, node, std::move(release));
                break;
            }
        }
    }
    for (const Key key : node.strays) send(turn, node, release_of(turn.state, node, key));
    // What no lease here answers for: unknown silicon, repaired devices, the host.
    Sanitize others{.wipes = wipes_under_way(turn.state, node, [&](const Device& device, const Unit& unit) {
                        return device.kind == UnitKind::host ||
                               (!node.leases.contains(unit.lease) && !node.strays.contains(unit.lease));
                    })};
    if (!others.wipes.empty()) send(turn, node, std::move(others));
    if (const auto& request = node.object.status.fabricTestRequest; request && !request->answered &&
                                                                    node.protocol >= agent_protocol_fabric_test &&
                                                                    !node.object.status.functions.empty())
        send(turn, node, TestFabric{request->ticket});
}

void on_hello(Turn& turn, const AgentHello& event) {
    Core::State& state = turn.state;
    NodeRun* node = state.find_node(event.node);
    if (node == nullptr)
        return close_session(turn, event.node, event.session, "this node is not enrolled here; enrol it");
    if (node->signing.retired) return close_session(turn, event.node, event.session, "this node was revoked");
    if (event.hello.protocol < agent_protocol_oldest || event.hello.protocol > agent_protocol)
        return close_session(turn, event.node, event.session,
                             fmt::format("protocol {} is not spoken here; {} to {} are", event.hello.protocol,
                                         agent_protocol_oldest, agent_protocol));
    if (!is_plausible(event.hello))
        return close_session(turn, event.node, event.session, "no node has that many devices");
    // An epoch is one life of one control plane. A node that obeyed ours before we ever spoke to it, or a later one,
    // has obeyed another's.
    if (event.hello.epoch_seen > state.epoch || (event.hello.epoch_seen == state.epoch && !node->welcomed)) {
        turn.effects.epoch_seen = event.hello.epoch_seen;
        return close_session(
            turn, event.node, event.session,
            fmt::format("this node has obeyed a control plane of epoch {}, and this one is of epoch {}",
                        event.hello.epoch_seen, state.epoch));
    }
    if (!take_certificate(turn, *node, event.certificate))
        return close_session(turn, event.node, event.session, "this node has a newer certificate");
    node->welcomed = true;
    if (node->session != 0 && node->session != event.session)
        close_session(turn, event.node, node->session, "a newer session has taken its place");
    const NodePhase before = node->phase;
    node->session = event.session;
    node->heard = turn.now;
    node->unheard_since.reset();
    node->reports_seen = 0;
    node->protocol = event.hello.protocol;
    turn.effects.welcomes.push_back({event.node, event.session});
    advance(*node, NodeEvent::hello);
    const std::int64_t first_leaf = state.log_size;
    node->boot = event.hello.boot_id;
    take_inventory(turn, *node, event.hello.inventory);
    doubt_what_it_forgot(turn, *node, event.hello);
    node->strays.clear();
    take_ports(turn, *node, event.hello.ports);
    reconcile_leases(turn, *node, event.hello);
    hear_of_drains(turn, *node, event.hello.inventory);
    end_what_it_cannot_set(turn, *node);
    order_wipe_of_all_dirt(turn, *node);
    advance(*node, NodeEvent::reconciled);
    if (before != NodePhase::ready || state.log_size != first_leaf || turn.changed_nodes.contains(node->key)) {
        turn.changed_nodes.insert(node->key);
        turn.log({.kind = before == NodePhase::enrolled ? evidence::RecordKind::node_joined
                                                        : evidence::RecordKind::node_returned,
                  .actor = "node:" + event.node,
                  .node = event.node,
                  .detail = {{"agent", event.hello.agent_version.substr(0, 64)}}});
    }
    if (state.restoring && all_heard_of(state)) {
        state.restoring = false;
        state.standing_changed = true;
        for (const auto& [key, other] : state.nodes) state.fleet_stale.insert(key);
    }
    state.fleet_stale.insert(node->key);
    state.cycle_wanted = true;
    send_orders(turn, *node);
}

void on_report(Turn& turn, const AgentReport& event) {
    NodeRun* node = turn.state.find_node(event.node);
    if (node == nullptr || node->session != event.session)
        return;  // an old session's: it will be told again in the new one
    node->heard = turn.now;
    turn.effects.acknowledgements.push_back({event.node, event.session, event.report.number});
    if (event.report.number <= node->reports_seen) return;
    node->reports_seen = event.report.number;
    std::visit(
        [&]<class T>(const T& what) {
            if constexpr (std::same_as<T, LeaseReport>)
                on_lease_report(turn, *node, what);
            else if constexpr (std::same_as<T, WipeReport>)
                on_wipe_report(turn, *node, what);
            else if constexpr (std::same_as<T, FabricTestReport>)
                on_fabric_report(turn, *node, what);
            else
                on_fault_report(turn, *node, what);
        },
        event.report.what);
}

void on_heartbeat(Turn& turn, const AgentHeartbeat& event) {
    NodeRun* node = turn.state.find_node(event.node);
    if (node == nullptr || node->session != event.session)
        return close_session(turn, event.node, event.session, "this session is not open; say hello");
    node->heard = turn.now;
}

void on_gone(Turn& turn, const AgentGone& event) {
    if (NodeRun* node = turn.state.find_node(event.node); node != nullptr && node->session == event.session) {
        node->session = 0;  // silence counts from the last thing heard
        turn.state.fleet_stale.insert(node->key);
    }
}

void watch_silence(Turn& turn) {
    Core::State& state = turn.state;
    for (auto& [key, node] : state.nodes) {
        const Duration silence = turn.now - node.heard;
        if (node.phase == NodePhase::ready && silence > state.settings.silent_after) {
            advance(node, NodeEvent::silent);
            if (node.session != 0)
                close_session(turn, node.object.metadata.name, node.session, "nothing was heard for too long");
            node.session = 0;
            turn.changed_nodes.insert(key);
            state.fleet_stale.insert(key);
            turn.log({.kind = evidence::RecordKind::node_fenced,
                      .actor = "core",
                      .node = node.object.metadata.name,
                      .detail = {{"silent-ms", std::to_string(silence.ms)}}});
        }
        if (node.phase == NodePhase::fenced && silence > state.settings.lost_after)
            for (const Key lease : std::set<Key>{node.leases})
                // What has left the node, which may be silent because it reboots, ends where it still runs.
                if (const auto found = state.leases.find(lease);
                    found != state.leases.end() && !has_left(node, found->second))
                    abandon_lease(
                        turn, found->second,
                        fmt::format("node {} has been silent for {}", node.object.metadata.name, print(silence)));
        if (node.session != 0 && turn.now - node.sent > state.settings.resend_after) {
            node.sent = turn.now;
            send_orders(turn, node);
        }
    }
}

void remove_node(Turn& turn, NodeRun& node) {
    for (const Key key : std::set<Key>{node.leases}) {
        const auto found = turn.state.leases.find(key);
        if (found == turn.state.leases.end()) continue;
        Part& part = *part_on(found->second, node.key);
        part.gone = true;
        abandon_lease(turn, found->second, fmt::format("node {} was removed", node.object.metadata.name));
    }
    const std::set<Key> leases = node.leases;
    if (node.session != 0) close_session(turn, node.object.metadata.name, node.session, "this node was removed");
    for (const Device* device : node.devices())
        if (device->row != 0) turn.rows.push_back({.table = Table::gate, .key = device->row, .erased = true});
    if (node.key_row != 0) {
        turn.rows.push_back({.table = Table::key, .key = node.key_row, .erased = true});
        if (node.public_key && !node.signing.retired)
            turn.log({.kind = evidence::RecordKind::key_retired,
                      .node = node.object.metadata.name,
                      .detail = {{"key", evidence::key_id(*node.public_key)}, {"why", "the node was removed"}}});
    }
    turn.rows.push_back({.table = Table::node, .key = node.key, .erased = true});
    const Key key = node.key;
    turn.changed_nodes.erase(key);
    turn.state.fleet_stale.erase(key);
    turn.state.node_names.erase(node.object.metadata.name);
    turn.state.nodes.erase(key);
    turn.state.declared_stale = true;
    turn.state.fleet_index.clear();
    for (const Key lease : leases) settle_lease(turn, lease);
    if (turn.state.restoring && all_heard_of(turn.state)) {
        turn.state.restoring = false;
        turn.state.standing_changed = true;
    }
}

}  // namespace bulkhead
