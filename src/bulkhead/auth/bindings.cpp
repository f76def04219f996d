#include "bulkhead/auth/bindings.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace bulkhead::auth {

void Bindings::add(const RoleBinding& binding, const std::string& tenant) {
    const Grant grant{binding.role, tenant};
    if (!binding.group.empty()) grants_[{Claim::group, binding.group}].push_back(grant);
    if (!binding.clientRole.empty()) grants_[{Claim::client_role, binding.clientRole}].push_back(grant);
    if (!binding.subject.empty()) grants_[{Claim::subject, binding.subject}].push_back(grant);
}

// What was stored by an older version, or slipped past a check, gives nobody a role of the other kind.
void Bindings::add(const FleetPolicySpec& policy) {
    for (const RoleBinding& binding : policy.bindings)
        if (may_be_bound_in_policy(binding.role)) add(binding, {});
}
void Bindings::add(const std::string& tenant, const TenantSpec& spec) {
    for (const RoleBinding& binding : spec.bindings)
        if (may_be_bound_in_tenant(binding.role)) add(binding, tenant);
}

std::vector<Grant> Bindings::grants_of(const Identity& identity) const {
    std::vector<Grant> out;
    const auto take = [&](Claim claim, const std::string& value) {
        const auto found = grants_.find(Key{claim, value});
        if (found != grants_.end()) out.insert(out.end(), found->second.begin(), found->second.end());
    };
    for (const std::string& group : identity.groups) take(Claim::group, group);
    for (const std::string& role : identity.roles) take(Claim::client_role, role);
    take(Claim::subject, identity.subject);
    std::ranges::sort(out);
    const auto twice = std::ranges::unique(out);
    out.erase(twice.begin(), twice.end());
    return out;
}

Result<Caller> caller_of(const Identity& identity, const Bindings& bindings) {
    std::vector<Grant> grants = bindings.grants_of(identity);
    // A tenant that binds an auditor does not thereby keep the auditor out.
    if (std::ranges::any_of(grants, [](const Grant& grant) { return grant.role == Role::auditor; }))
        std::erase_if(grants, [](const Grant& grant) { return is_tenants(grant.role); });
    if (grants.empty())
        return fail(Code::denied, "nothing here is bound to you",
                    "ask a tenant-admin of your tenant, or a security-admin of the fleet, for a binding");
    auto rights = Rights::of(grants);
    if (!rights) return std::unexpected(rights.error());
    const bool one_tenant =
        std::ranges::all_of(grants, [&](const Grant& grant) { return grant.tenant == grants.front().tenant; });
    // Subjects of two issuers are two people, also in the log.
    return Caller{.rights = *std::move(rights),
                  .role = grants.front().role,
                  .subject = fmt::format("{}#{}", identity.issuer, identity.subject),
                  .tenant = one_tenant ? grants.front().tenant : std::string{},
                  .token_id = identity.token_id,
                  .until = identity.expires};
}

}  // namespace bulkhead::auth
