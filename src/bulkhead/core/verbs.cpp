// What whoever runs the fleet commands: drain, freeze, hold, repair, enrol, revoke.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/commands.hpp"
#include "bulkhead/core/state.hpp"

namespace bulkhead {

using lifecycle::UnitEvent;
using lifecycle::UnitState;

void on_drain(Turn& turn, const command::Drain& wanted, Answer& answer) {
    NodeRun* node = turn.state.find_node(wanted.node);
    if (node == nullptr) return missing(answer, "GpuNode", wanted.node);
    if (node->object.spec.unschedulable != wanted.on) {
        node->object.spec.unschedulable = wanted.on;
        ++node->object.metadata.generation;
        turn.changed_nodes.insert(node->key);
        turn.state.declared_stale = true;
        turn.state.fleet_stale.insert(node->key);
        turn.log({.kind = evidence::RecordKind::node_drained,
                  .object = "GpuNode/" + wanted.node,
                  .node = wanted.node,
                  .detail = {{"drained", wanted.on ? "true" : "false"}}});
    }
    if (!wanted.on && !node->unfit.empty()) {
        turn.log({.kind = evidence::RecordKind::node_drained,
                  .object = "GpuNode/" + wanted.node,
                  .node = wanted.node,
                  .detail = {{"drained", "false"}, {"was", node->unfit}}});
        node->unfit.clear();
        turn.changed_nodes.insert(node->key);
        turn.state.fleet_stale.insert(node->key);
    }
    if (wanted.on)
        for (const Key lease : std::set<Key>{node->leases})
            if (const auto found = turn.state.leases.find(lease); found != turn.state.leases.end())
                end_lease(turn, found->second, "its node is drained");
    turn.state.cycle_wanted = true;
}

void on_freeze(Turn& turn, const command::Freeze& wanted, Answer& answer) {
    const auto found = turn.state.tenants.find(wanted.tenant);
    if (found == turn.state.tenants.end()) return missing(answer, "Tenant", wanted.tenant);
    Tenant& tenant = found->second.object;
    const auto to = lifecycle::next(lifecycle::tenant_edges, tenant.status->phase,
                                    wanted.on ? lifecycle::TenantEvent::freeze : lifecycle::TenantEvent::thaw);
    if (!to) return;  // it is so already
    tenant.status->phase = *to;
    tenant.status->why = wanted.on ? wanted.why : std::string{};
    turn.touch(tenant, found->second.key);
    turn.rows.push_back({Table::tenant, found->second.key, to_compact_json(tenant), false});
    turn.state.declared_stale = true;
    turn.log({.kind = wanted.on ? evidence::RecordKind::tenant_frozen : evidence::RecordKind::tenant_thawed,
              .tenant = wanted.tenant,
              .object = "Tenant/" + wanted.tenant,
              .detail = {{"why", wanted.why}}});
    if (wanted.on) {
        std::vector<Key> leases;
        for (const auto& [key, lease] : turn.state.leases)
            if (lease.object.spec.tenant == wanted.tenant) leases.push_back(key);
        for (const Key key : leases) end_lease(turn, turn.state.leases.at(key), "its tenant is frozen");
    }
    turn.state.cycle_wanted = true;
}

void on_hold(Turn& turn, const command::Hold& wanted, Answer& answer) {
    const auto found = turn.state.tenants.find(wanted.tenant);
    if (found == turn.state.tenants.end()) return missing(answer, "Tenant", wanted.tenant);
    Tenant& tenant = found->second.object;
    if (tenant.status->legalHold == wanted.on) return;
    tenant.status->legalHold = wanted.on;
    turn.touch(tenant, found->second.key);
    turn.rows.push_back({Table::tenant, found->second.key, to_compact_json(tenant), false});
    turn.state.declared_stale = true;
    turn.log({.kind = wanted.on ? evidence::RecordKind::held : evidence::RecordKind::hold_lifted,
              .tenant = wanted.tenant,
              .object = "Tenant/" + wanted.tenant,
              .detail = {{"why", wanted.why}}});
    if (!wanted.on) return lift_hold(turn, tenant);
    const std::vector<std::string> ordered = hold_tenant(turn, tenant);
    if (ordered.empty()) return;
    constexpr std::size_t most_named = 8;
    const auto first = ordered.begin();
    answer.note = fmt::format(
        "{} wipes of {} were ordered before and may have begun: {}{}; their nodes are asked not to, and the log says "
        "of "
        "each whether it was held or wiped",
        ordered.size(), wanted.tenant,
        fmt::join(first, first + static_cast<std::ptrdiff_t>(std::min(ordered.size(), most_named)), ", "),
        ordered.size() > most_named ? ", ..." : "");
}

void on_repair(Turn& turn, const command::Repair& wanted, Answer& answer) {
    NodeRun* node = turn.state.find_node(wanted.node);
    if (node == nullptr) return missing(answer, "GpuNode", wanted.node);
    Device* device = wanted.device < 0 ? nullptr : node->device(wanted.kind, static_cast<std::size_t>(wanted.device));
    if (device == nullptr)
        return refuse(answer, Code::not_found, fmt::format("node {} has no such device", wanted.node),
                      "bulkhead describe node " + wanted.node);
    bool any = false;
    for (std::size_t i = 0; i < device->units.size(); ++i)
        if (device->units[i].state == UnitState::quarantined) {
            change_unit(turn, *node, *device, i, UnitEvent::repair);
            any = true;
        }
    if (!any)
        return refuse(answer, Code::conflict, fmt::format("nothing of it is quarantined on node {}", wanted.node),
                      "bulkhead fleet shows what is");
    turn.log({.kind = evidence::RecordKind::released_from_quarantine,
              .node = wanted.node,
              .unit = unit_text(device->kind, device->index, 0, static_cast<unsigned>(device->units.size())),
              .detail = {{"why", wanted.why}}});
    sort_out_dirt(turn, *node, *device, 0, device->units.size());
    send_orders(turn, *node);
}

void on_enrol(Turn& turn, const command::Enrol& wanted, Answer& answer) {
    Core::State& state = turn.state;
    refresh_declared(turn);
    const auto key = evidence::parse_public_key(wanted.evidence_key);
    if (!key) {
        answer.outcome = std::unexpected(key.error());
        return;
    }
    if (!is_valid(Format::name, wanted.node))
        return refuse(answer, Code::invalid, "the node's name is not a DNS label",
                      std::string{explanation(Format::name)});
    NodeRun* node = state.find_node(wanted.node);
    if (node == nullptr) {
        Snapshot candidate = state.declared;
        GpuNode object;
        object.metadata.name = wanted.node;
        object.metadata.generation = 1;
        object.spec = wanted.spec;
        candidate.nodes.push_back(object);
        answer.findings = inconsistencies(candidate);
        if (!answer.findings.empty()) {
            const Finding& first = answer.findings.front();
            return refuse(answer, Code::invalid,
                          fmt::format("{} {}{}: {}", first.kind, first.name, first.path, first.what), first.remedy);
        }
        const Key row = state.fresh_key();
        node = &state.nodes[row];
        node->key = row;
        node->object = std::move(object);
        node->heard = turn.now;
        state.node_names[wanted.node] = row;
        state.declared_stale = true;
        turn.log(
            {.kind = evidence::RecordKind::node_enrolled, .object = "GpuNode/" + wanted.node, .node = wanted.node});
    }
    turn.changed_nodes.insert(node->key);
    if (node->session != 0) {  // whoever speaks for it now has yet to show the new certificate
        turn.effects.closes.push_back({wanted.node, node->session, "this node was enrolled anew"});
        node->session = 0;
        state.fleet_stale.insert(node->key);
    }
    if (node->key_row != 0 && node->signing.publicKey == wanted.evidence_key && !node->signing.retired) {
        node->signing.certificate = wanted.certificate;
        node->signing.renewed.clear();
        turn.rows.push_back({Table::key, node->key_row, to_compact_json(node->signing), false});
        return;
    }
    if (node->key_row != 0 && !node->signing.retired) {
        node->signing.retired = true;
        turn.rows.push_back({Table::key, node->key_row, to_compact_json(node->signing), false});
        turn.log({.kind = evidence::RecordKind::key_retired,
                  .node = wanted.node,
                  .detail = {{"key", evidence::key_id(*node->public_key)}}});
    }
    node->key_row = state.fresh_key();
    node->signing = {.node = node->key, .publicKey = wanted.evidence_key, .certificate = wanted.certificate};
    node->signing.leaf = turn.log(evidence::key_added(turn.now, turn.actor, wanted.node, *key));
    node->public_key = *key;
    turn.rows.push_back({Table::key, node->key_row, to_compact_json(node->signing), false});
}

void on_revoke(Turn& turn, const command::Revoke& wanted, Answer& answer) {
    NodeRun* node = turn.state.find_node(wanted.node);
    if (node == nullptr) return missing(answer, "GpuNode", wanted.node);
    if (node->key_row == 0 || node->signing.retired) return;
    node->signing.retired = true;
    turn.rows.push_back({Table::key, node->key_row, to_compact_json(node->signing), false});
    turn.log({.kind = evidence::RecordKind::key_retired, .node = wanted.node, .detail = {{"why", wanted.why}}});
    if (node->session != 0) turn.effects.closes.push_back({wanted.node, node->session, "this node was revoked"});
    node->session = 0;
    turn.state.fleet_stale.insert(node->key);
}

}  // namespace bulkhead
