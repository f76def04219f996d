// Who may do what to whose objects, where the answer depends on the object: on its tenant, or on which of its fields
// would change. What depends on the verb alone is here too, so that a door which forgets to ask opens nothing.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "bulkhead/core/state.hpp"

namespace bulkhead {

namespace {

std::unexpected<Error> not_allowed(Permission permission, std::string_view what) {
    std::vector<std::string_view> roles;
    for (const Role role : every<Role>())
        if (permissions_of(role).contains(permission)) roles.push_back(word(role));
    return fail(Code::denied, fmt::format("{} takes the permission {}", what, word(permission)),
                fmt::format("ask a {}", fmt::join(roles, " or a ")));
}

Result<> needs(const Rights& rights, Permission permission, std::string_view what) {
    if (rights.may(permission)) return {};
    return not_allowed(permission, what);
}

Result<> needs(const Rights& rights, Permission permission, std::string_view tenant, std::string_view what) {
    if (rights.may(permission, tenant)) return {};
    return not_allowed(permission, what);
}

// Whether the caller may know that there is such a tenant.
bool knows(const Rights& rights, std::string_view tenant) { return rights.may(Permission::read_tenant, tenant); }

bool cuts_gpus(Mechanism mechanism) {
    return mechanism == Mechanism::mig || mechanism == Mechanism::mig_vgpu || mechanism == Mechanism::mps_in_mig ||
           mechanism == Mechanism::amd_partition;
}

// What is security's to decide in a policy is compared by itself.
FleetPolicySpec without_what_security_decides(FleetPolicySpec spec) {
    spec.exceptions.clear();
    spec.bindings.clear();
    return spec;
}

// What is a tenant's own to decide.
TenantSpec without_what_the_tenant_decides(TenantSpec spec) {
    spec.accepts.clear();
    spec.bindings.clear();
    spec.trustDomain.reset();  // counts only where the policy lists the tenant as well
    spec.compliance = Compliance::off;
    return spec;
}

}  // namespace

std::unexpected<Error> there_is_no(std::string_view kind, std::string_view name) {
    return fail(Code::not_found, fmt::format("there is no {} {}", kind, name),
                fmt::format("list them: bulkhead get {}", kind));
}

Result<> permitted(const Rights& rights, const FleetPolicy* old, const FleetPolicy& wanted) {
    // Who may change nothing of it is told nothing of what would.
    if (!rights.may(Permission::manage_fleet) && !rights.may(Permission::grant_exceptions) &&
        !rights.may(Permission::bind_roles))
        return not_allowed(Permission::manage_fleet, "a FleetPolicy");
    const FleetPolicySpec before = old == nullptr ? FleetPolicySpec{} : old->spec;
    if (before.exceptions != wanted.spec.exceptions)
        if (auto allowed = needs(rights, Permission::grant_exceptions, "an exception from a tier"); !allowed)
            return allowed;
    if (before.bindings != wanted.spec.bindings)
        if (auto allowed = needs(rights, Permission::bind_roles, "a binding of an operator's role"); !allowed)
            return allowed;
    const bool rest = old == nullptr || old->metadata.labels != wanted.metadata.labels ||
                      old->metadata.annotations != wanted.metadata.annotations ||
                      without_what_security_decides(before) != without_what_security_decides(wanted.spec);
    if (rest) return needs(rights, Permission::manage_fleet, "a FleetPolicy");
    return {};
}

Result<> permitted(const Rights& rights, const TenantClass*, const TenantClass&) {
    return needs(rights, Permission::manage_fleet, "a TenantClass");
}

Result<> permitted(const Rights& rights, const Tenant* old, const Tenant& wanted) {
    const std::string& name = wanted.metadata.name;
    if (!rights.may(Permission::manage_fleet) && !knows(rights, name)) return there_is_no("Tenant", name);
    if (old == nullptr) return needs(rights, Permission::manage_fleet, "a new Tenant");
    // Whoever runs the fleet may raise it for a tenant; that it is taken away is for the tenant or security to say.
    const bool raised = old->spec.compliance == Compliance::off;
    if (old->spec.compliance != wanted.spec.compliance && !(raised && rights.may(Permission::manage_fleet)))
        if (auto allowed = needs(rights, Permission::switch_compliance, name, "the compliance mode of a tenant");
            !allowed)
            return allowed;
    // Somebody has to name a tenant's first people; from then on the tenant does.
    if (!old->spec.bindings.empty() && old->spec.bindings != wanted.spec.bindings)
        if (auto allowed = needs(rights, Permission::manage_tenant, name, "who a tenant's people are"); !allowed)
            return allowed;
    if (rights.may(Permission::manage_fleet)) return {};
    if (old->metadata.labels != wanted.metadata.labels || old->metadata.annotations != wanted.metadata.annotations ||
        without_what_the_tenant_decides(old->spec) != without_what_the_tenant_decides(wanted.spec))
        return not_allowed(Permission::manage_fleet,
                           "more of a Tenant than accepts, bindings, trustDomain and compliance");
    if (old->spec.accepts == wanted.spec.accepts && old->spec.bindings == wanted.spec.bindings &&
        old->spec.trustDomain == wanted.spec.trustDomain) {
        if (old->spec.compliance != wanted.spec.compliance) return {};
        if (rights.may(Permission::switch_compliance, name)) return {};  // nothing changes
    }
    return needs(rights, Permission::manage_tenant, name, "what a tenant accepts, and who its people are");
}

Result<> permitted(const Rights& rights, const GpuWorkload*, const GpuWorkload& wanted) {
    if (!knows(rights, wanted.spec.tenant) && !rights.may(Permission::submit, wanted.spec.tenant))
        return there_is_no("Tenant", wanted.spec.tenant);
    return needs(rights, Permission::submit, wanted.spec.tenant, "a GpuWorkload");
}

Result<> permitted(const Rights& rights, const GpuNode*, const GpuNode&) {
    return needs(rights, Permission::manage_nodes, "a GpuNode");
}

Result<> permitted(const Rights&, const GpuLease*, const GpuLease&) { return {}; }  // nobody writes them: said later

Result<> permitted_to_cut(const Rights& rights, const GpuWorkload& workload, const Contract& contract) {
    if (!cuts_gpus(contract.mechanism)) return {};
    return needs(rights, Permission::reconfigure_gpus, workload.spec.tenant,
                 fmt::format("GpuWorkload {}: cutting GPUs ({})", workload.metadata.name, word(contract.mechanism)));
}

Result<> permitted_to_delete(const Core::State& state, const Rights& rights, const command::Delete& wanted) {
    switch (wanted.kind) {
        case ObjectKind::policy:
            if (!rights.may(Permission::manage_fleet))
                return not_allowed(Permission::manage_fleet, "deleting a FleetPolicy");
            if (state.policy && state.policy->object.metadata.name == wanted.name)
                // As if it were emptied first.
                return permitted(rights, &state.policy->object, FleetPolicy{.metadata = {.name = wanted.name}});
            return {};
        case ObjectKind::tenant_class:
            return needs(rights, Permission::manage_fleet, "deleting a TenantClass");
        case ObjectKind::tenant:
            if (!rights.may(Permission::manage_fleet) && !knows(rights, wanted.name))
                return there_is_no("Tenant", wanted.name);
            return needs(rights, Permission::manage_fleet, "deleting a Tenant");
        case ObjectKind::node:
            return needs(rights, Permission::manage_nodes, "deleting a GpuNode");
        case ObjectKind::workload:
            if (rights.may_somewhere(Permission::submit)) return {};  // which one: meant()
            return not_allowed(Permission::submit, "deleting a GpuWorkload");
        case ObjectKind::lease: {
            const auto found = state.lease_names.find(wanted.name);
            if (found != state.lease_names.end() && knows(rights, state.leases.at(found->second).object.spec.tenant))
                return {};
            return there_is_no("GpuLease", wanted.name);
        }
    }
    return not_allowed(Permission::manage_fleet, "deleting this");
}

Result<> permitted(const Rights& rights, const decltype(Command::what)& what) {
    if (std::holds_alternative<command::Drain>(what)) return needs(rights, Permission::manage_nodes, "draining a node");
    if (std::holds_alternative<command::TestFabric>(what))
        return needs(rights, Permission::manage_nodes, "testing a node's fences");
    if (std::holds_alternative<command::Repair>(what))
        return needs(rights, Permission::lift_quarantine, "lifting a quarantine");
    if (std::holds_alternative<command::RotateLogKey>(what))
        return needs(rights, Permission::rotate_log_keys, "another key for the log");
    if (std::holds_alternative<command::CorrectUsage>(what))
        return needs(rights, Permission::correct_usage, "correcting usage");
    if (std::holds_alternative<command::Revoke>(what))
        return needs(rights, Permission::revoke_nodes, "revoking a node");
    if (std::holds_alternative<command::Freeze>(what)) return needs(rights, Permission::freeze, "freezing a tenant");
    if (const auto* hold = std::get_if<command::Hold>(&what))
        return hold->on ? needs(rights, Permission::hold, "a legal hold")
                        : needs(rights, Permission::lift_hold, "lifting a legal hold");
    return {};
}

Result<WorkloadRun*> meant(Turn& turn, Permission permission, const std::string& tenant, const std::string& name) {
    Core::State& state = turn.state;
    std::vector<WorkloadRun*> found;
    for (auto it = state.workload_names.lower_bound({name, tenant});
         it != state.workload_names.end() && it->first.first == name; ++it)
        if ((tenant.empty() || it->first.second == tenant) && turn.rights.may(permission, it->first.second))
            found.push_back(&state.workloads.at(it->second));
    if (found.empty()) return there_is_no("GpuWorkload", name);
    if (found.size() == 1) return found.front();
    std::vector<std::string> whose;
    whose.reserve(found.size());
    for (const WorkloadRun* each : found) whose.push_back(each->object.spec.tenant + "/" + name);
    return fail(Code::conflict, fmt::format("{} tenants have a GpuWorkload {}", found.size(), name),
                fmt::format("say whose: {}", fmt::join(whose, ", ")));
}

}  // namespace bulkhead
