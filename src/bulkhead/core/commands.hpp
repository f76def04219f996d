// What the files that carry out commands share: refusing one, and finding what it is about.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "bulkhead/core/state.hpp"

namespace bulkhead {

evidence::Record about(std::string_view kind, const std::string& name, evidence::RecordKind what,
                       const std::string& tenant);
void refuse(Answer& answer, Code code, std::string what, std::string remedy);
void missing(Answer& answer, std::string_view kind, const std::string& name);
// Refused, where somebody expects another version than it is at.
bool at_version(const Metadata& metadata, const std::string& version, std::string_view kind, Answer& answer);

// deletes.cpp
void on_delete(Turn& turn, const command::Delete& wanted, Answer& answer);

// verbs.cpp
void on_drain(Turn& turn, const command::Drain& wanted, Answer& answer);
void on_freeze(Turn& turn, const command::Freeze& wanted, Answer& answer);
void on_hold(Turn& turn, const command::Hold& wanted, Answer& answer);
void on_repair(Turn& turn, const command::Repair& wanted, Answer& answer);
void on_enrol(Turn& turn, const command::Enrol& wanted, Answer& answer);
void on_revoke(Turn& turn, const command::Revoke& wanted, Answer& answer);

// The stored object of that name; null: there is none. Workloads are called what their tenant calls them.
template <class T>
const T* stored(Core::State& state, const std::string& name, const std::string& tenant = {}) {
    if constexpr (std::same_as<T, FleetPolicy>) {
        return state.policy && state.policy->object.metadata.name == name ? &state.policy->object : nullptr;
    } else if constexpr (std::same_as<T, TenantClass>) {
        const auto found = state.classes.find(name);
        return found == state.classes.end() ? nullptr : &found->second.object;
    } else if constexpr (std::same_as<T, Tenant>) {
        const auto found = state.tenants.find(name);
        return found == state.tenants.end() ? nullptr : &found->second.object;
    } else if constexpr (std::same_as<T, GpuWorkload>) {
        const WorkloadRun* found = state.find_workload(tenant, name);
        return found == nullptr ? nullptr : &found->object;
    } else if constexpr (std::same_as<T, GpuNode>) {
        const NodeRun* found = state.find_node(name);
        return found == nullptr ? nullptr : &found->object;
    } else {
        const auto found = state.lease_names.find(name);
        return found == state.lease_names.end() ? nullptr : &state.leases.at(found->second).object;
    }
}

// What is stored under the identity of an object that somebody sends.
template <class T>
const T* stored_as(Core::State& state, const T& object) {
    if constexpr (std::same_as<T, GpuWorkload>)
        return stored<T>(state, object.metadata.name, object.spec.tenant);
    else
        return stored<T>(state, object.metadata.name);
}

}  // namespace bulkhead
