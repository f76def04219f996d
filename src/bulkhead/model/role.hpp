// Who may do what: roles, the permissions they stand for, and the rights of one caller, which are permissions over the
// whole fleet and over single tenants. Duties are separated: who operates the fleet can neither lift what security has
// decided nor touch what is proven, and who audits can change nothing.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/enum_set.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead {

// Written to disk by these words: append, never rename.
enum class Role : std::uint8_t {
    platform_admin,  // runs the fleet
    security_admin,  // decides exceptions, quarantines, holds, who is who
    auditor,         // reads everything but content, changes nothing
    tenant_admin,    // of one tenant: its people, its consents, its work
    tenant_user,     // of one tenant: its work
    node,            // proves itself by certificate; no door of the API is for it
    break_glass,     // somebody of the operator's inside one tenant, for a while, seen by the tenant
};
constexpr auto words(Role) {
    return std::to_array<Words>(
        {"platform-admin", "security-admin", "auditor", "tenant-admin", "tenant-user", "node", "break-glass"});
}
constexpr bool is_tenants(Role role) {
    return role == Role::tenant_admin || role == Role::tenant_user || role == Role::break_glass;
}

// Also the words by which a token is narrowed: append, never rename.
enum class Permission : std::uint8_t {
    read_fleet,        // nodes, policy, classes, the snapshot
    read_tenant,       // a tenant, its workloads and leases, why they wait, their certificates
    read_output,       // what a tenant's commands print: content, and so nobody's of the operator's
    read_log,          // the records behind the log's entries
    read_usage,        // what was used, and what it costs
    read_metrics,      // figures
    submit,            // apply and delete workloads
    reconfigure_gpus,  // have GPUs cut for them
    manage_tenant,     // a tenant's consents, accepted risks and people
    manage_fleet,      // policy, classes, tenants
    manage_nodes,      // admit, change, drain and remove nodes
    manage_tokens,     // of tenants: make and take back
    freeze,            // stop a tenant, and let it run again
    hold,              // keep what a tenant leaves
    lift_hold,
    lift_quarantine,
    grant_exceptions,   // departures from a tier
    bind_roles,         // who has an operator's role
    revoke_nodes,       // believe a node's keys no longer
    switch_compliance,  // a tenant's mode
    rotate_log_keys,
    back_up,        // a copy of the store
    break_glass,    // enter a tenant, for a while
    correct_usage,  // post a correction
};
constexpr auto words(Permission) {
    return std::to_array<Words>({"read-fleet",       "read-tenant",  "read-output",  "read-log",
                                 "read-usage",       "read-metrics", "submit",       "reconfigure-gpus",
                                 "manage-tenant",    "manage-fleet", "manage-nodes", "manage-tokens",
                                 "freeze",           "hold",         "lift-hold",    "lift-quarantine",
                                 "grant-exceptions", "bind-roles",   "revoke-nodes", "switch-compliance",
                                 "rotate-log-keys",  "back-up",      "break-glass",  "correct-usage"});
}
using Permissions = EnumSet<Permission>;

// The one table of duties.
constexpr Permissions permissions_of(Role role) {
    using enum Permission;
    switch (role) {
        case Role::platform_admin:
            return {read_fleet,       read_tenant,  read_log,     read_usage,    read_metrics, submit,
                    reconfigure_gpus, manage_fleet, manage_nodes, manage_tokens, freeze,       hold,
                    back_up,          revoke_nodes, break_glass,  correct_usage};
        case Role::security_admin:
            return {read_fleet,   read_tenant, read_log,        read_usage,       read_metrics,     manage_tokens,
                    freeze,       hold,        lift_hold,       lift_quarantine,  grant_exceptions, bind_roles,
                    revoke_nodes, break_glass, rotate_log_keys, switch_compliance};
        case Role::auditor:
            return {read_fleet, read_tenant, read_log, read_usage, read_metrics};
        case Role::tenant_admin:
            return {read_tenant, read_output,      read_log,      read_usage,    read_metrics,
                    submit,      reconfigure_gpus, manage_tenant, manage_tokens, switch_compliance};
        case Role::tenant_user:
            return {read_tenant, read_output, read_usage, read_metrics, submit, reconfigure_gpus};
        case Role::break_glass:
            return {read_tenant, read_output, read_log, read_usage, read_metrics, submit};
        case Role::node:
            return {};
    }
    return {};
}
static_assert(!permissions_of(Role::platform_admin).contains(Permission::rotate_log_keys),
              "who operates cannot touch the log's keys");
static_assert((permissions_of(Role::platform_admin) & Permissions{Permission::grant_exceptions,
                                                                  Permission::lift_quarantine, Permission::lift_hold,
                                                                  Permission::bind_roles})
                  .empty(),
              "only security lifts what security decided");
static_assert((permissions_of(Role::auditor) - Permissions{Permission::read_fleet, Permission::read_tenant,
                                                           Permission::read_log, Permission::read_usage,
                                                           Permission::read_metrics})
                  .empty(),
              "who audits changes nothing");

constexpr bool may_be_bound_in_policy(Role role) {
    return role == Role::platform_admin || role == Role::security_admin || role == Role::auditor;
}
constexpr bool may_be_bound_in_tenant(Role role) { return role == Role::tenant_admin || role == Role::tenant_user; }

// A role, and of a tenant's role the tenant.
struct Grant {
    Role role{};
    std::string tenant;
    friend auto operator<=>(const Grant&, const Grant&) = default;
};

// What one caller may do. Made from grants; what is not in it is denied.
class Rights {
public:
    Rights() = default;
    // `denied` for duties that one person may not hold together.
    static Result<Rights> of(std::span<const Grant> grants);
    static Rights everything();  // the control plane's own, and of simulations

    Rights narrowed_to(Permissions scope) const;

    bool may(Permission permission) const { return fleet_.contains(permission); }  // everywhere
    bool may(Permission permission, std::string_view tenant) const;
    bool may_somewhere(Permission permission) const;
    // The tenants of a caller who may not do it everywhere.
    std::vector<std::string_view> where(Permission permission) const;
    std::vector<std::string> tenants() const;             // in which it may do anything
    bool is_a_tenants() const { return fleet_.empty(); }  // nothing of anybody else's may be told

    friend bool operator==(const Rights&, const Rights&) = default;

private:
    Permissions fleet_;
    std::map<std::string, Permissions, std::less<>> tenants_;
};

inline constexpr std::size_t most_bindings = 256;  // of one Tenant or FleetPolicy

// Whom the identity provider's word makes what. One of the three claims, compared to the letter.
struct RoleBinding {
    Role role{};
    std::string group, clientRole, subject;

    static constexpr void describe(auto&& field) {
        field("role", &RoleBinding::role, "The role it gives.", Rule{.required = true});
        field("group", &RoleBinding::group,
              "To members of this group, as the token's groups claim writes it: /acme/ml.",
              Rule{.format = Format::line});
        field("clientRole", &RoleBinding::clientRole,
              "To holders of this role of our own client: resource_access.CLIENT.roles.", Rule{.format = Format::line});
        field("subject", &RoleBinding::subject, "To this one subject.", Rule{.format = Format::line});
    }
    friend bool operator==(const RoleBinding&, const RoleBinding&) = default;
};

}  // namespace bulkhead
