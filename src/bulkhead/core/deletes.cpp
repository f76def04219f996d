// What callers take away: only what nothing else refers to, and work by ending its lease first.
#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/core/commands.hpp"
#include "bulkhead/core/state.hpp"

namespace bulkhead {

using lifecycle::UnitState;

namespace {

// Would anything still refer to it?
bool still_needed(Turn& turn, const command::Delete& wanted, Answer& answer) {
    Core::State& state = turn.state;
    if (wanted.kind == ObjectKind::tenant)
        for (const auto& [key, workload] : state.workloads)
            if (workload.object.spec.tenant == wanted.name) {
                refuse(answer, Code::conflict,
                       fmt::format("Tenant {} still has work: {}", wanted.name, workload.object.metadata.name),
                       "delete its workloads first");
                return true;
            }
    if (wanted.kind == ObjectKind::tenant)
        for (const auto& [key, lease] : state.leases)
            if (lease.object.spec.tenant == wanted.name) {
                refuse(answer, Code::conflict,
                       fmt::format("Tenant {} still has a lease that is being reclaimed", wanted.name),
                       "wait until it is closed");
                return true;
            }
    if (wanted.kind == ObjectKind::tenant)
        if (const auto found = state.tenants.find(wanted.name);
            found != state.tenants.end() && found->second.object.status && found->second.object.status->legalHold) {
            refuse(answer, Code::denied, fmt::format("Tenant {} is under legal hold", wanted.name),
                   "lift the hold first");
            return true;
        }
    if (wanted.kind == ObjectKind::policy || wanted.kind == ObjectKind::tenant_class ||
        wanted.kind == ObjectKind::tenant) {
        Snapshot without = state.declared;
        if (wanted.kind == ObjectKind::policy) without.policies.clear();
        std::erase_if(without.classes, [&](const TenantClass& one) {
            return wanted.kind == ObjectKind::tenant_class && one.metadata.name == wanted.name;
        });
        std::erase_if(without.tenants, [&](const Tenant& one) {
            return wanted.kind == ObjectKind::tenant && one.metadata.name == wanted.name;
        });
        answer.findings = inconsistencies(without);
        if (!answer.findings.empty()) {
            const Finding& first = answer.findings.front();
            refuse(answer, Code::conflict,
                   fmt::format("without it: {} {}{}: {}", first.kind, first.name, first.path, first.what),
                   first.remedy);
            return true;
        }
    }
    return false;
}

template <class Map>
void erase_stored(Turn& turn, Map& map, const std::string& name, Table table) {
    turn.rows.push_back({.table = table, .key = map.at(name).key, .erased = true});
    map.erase(name);
    turn.state.declared_stale = true;
}

void delete_workload(Turn& turn, WorkloadRun& workload) {
    turn.log(about("GpuWorkload", workload.object.metadata.name, evidence::RecordKind::deleted,
                   workload.object.spec.tenant));
    if (workload.lease != 0) {
        workload.object.status->deleting = true;
        turn.changed_workloads.insert(workload.key);
        end_lease(turn, turn.state.leases.at(workload.lease), "its workload was deleted");
        return;
    }
    erase_workload(turn, workload);
}

}  // namespace

void on_delete(Turn& turn, const command::Delete& wanted, Answer& answer) {
    Core::State& state = turn.state;
    refresh_declared(turn);
    if (auto allowed = permitted_to_delete(state, turn.rights, wanted); !allowed) {
        answer.forbidden = allowed.error().code == Code::denied;
        answer.outcome = std::move(allowed);
        return;
    }
    const auto gone = [&](std::string_view kind, const std::string& tenant = {}) {
        turn.log(about(kind, wanted.name, evidence::RecordKind::deleted, tenant));
    };
    switch (wanted.kind) {
        case ObjectKind::policy:
            if (!state.policy || state.policy->object.metadata.name != wanted.name)
                return missing(answer, "FleetPolicy", wanted.name);
            if (!at_version(state.policy->object.metadata, wanted.if_version, "FleetPolicy", answer) ||
                still_needed(turn, wanted, answer))
                return;
            if (!state.policy->object.spec.pricing.lists.empty() && !state.leases.empty())
                return refuse(answer, Code::conflict,
                              fmt::format("{} leases will be billed by the prices in it", state.leases.size()),
                              "wait until they are closed, or change it instead");
            turn.rows.push_back({.table = Table::policy, .key = state.policy->key, .erased = true});
            state.policy.reset();
            state.declared_stale = true;
            return gone("FleetPolicy");
        case ObjectKind::tenant_class: {
            const TenantClass* found = stored<TenantClass>(state, wanted.name);
            if (found == nullptr) return missing(answer, "TenantClass", wanted.name);
            if (!at_version(found->metadata, wanted.if_version, "TenantClass", answer) ||
                still_needed(turn, wanted, answer))
                return;
            erase_stored(turn, state.classes, wanted.name, Table::tenant_class);
            return gone("TenantClass");
        }
        case ObjectKind::tenant: {
            const Tenant* found = stored<Tenant>(state, wanted.name);
            if (found == nullptr) return missing(answer, "Tenant", wanted.name);
            if (!at_version(found->metadata, wanted.if_version, "Tenant", answer) || still_needed(turn, wanted, answer))
                return;
            erase_stored(turn, state.tenants, wanted.name, Table::tenant);
            tenant_gone(turn, wanted.name);
            return gone("Tenant", wanted.name);
        }
        case ObjectKind::workload: {
            const auto named = meant(turn, Permission::submit, wanted.tenant, wanted.name);
            if (!named) {
                answer.outcome = std::unexpected(named.error());
                return;
            }
            WorkloadRun& found = **named;
            if (!at_version(found.object.metadata, wanted.if_version, "GpuWorkload", answer)) return;
            if (found.object.status->deleting) return;  // asked twice: the same answer
            return delete_workload(turn, found);
        }
        case ObjectKind::node: {
            NodeRun* found = state.find_node(wanted.name);
            if (found == nullptr) return missing(answer, "GpuNode", wanted.name);
            if (!at_version(found->object.metadata, wanted.if_version, "GpuNode", answer)) return;
            if (found->phase == NodePhase::ready && !found->leases.empty())
                return refuse(answer, Code::conflict,
                              fmt::format("GpuNode {} still has {} leases", wanted.name, found->leases.size()),
                              fmt::format("drain it first: bulkhead drain {}", wanted.name));
            // Whoever removes a node forgets what was wrong with its devices, and what was kept on them.
            // When it is enrolled again, all of it is wiped as nobody's: so what a hold is on counts in whatever state.
            for (const Device* device : found->devices())
                for (const Unit& unit : device->units) {
                    const bool held = keeps_for_hold(state, *found, *device, unit);
                    if (!held && unit.state != UnitState::quarantined) continue;
                    const Permission needed = held ? Permission::lift_hold : Permission::lift_quarantine;
                    if (!turn.rights.may(needed))
                        return refuse(
                            answer, Code::denied,
                            fmt::format("GpuNode {} has what is {}; removing it takes the permission {}", wanted.name,
                                        held ? "kept for a legal hold" : "quarantined", word(needed)),
                            "ask a security-admin");
                }
            gone("GpuNode");
            return remove_node(turn, *found);
        }
        case ObjectKind::lease: {
            const auto found = state.lease_names.find(wanted.name);
            if (found == state.lease_names.end()) return missing(answer, "GpuLease", wanted.name);
            return refuse(answer, Code::denied, fmt::format("GpuLease {} is written by the system", wanted.name),
                          fmt::format("delete its workload: {}", state.leases.at(found->second).object.spec.workload));
        }
    }
}

}  // namespace bulkhead
