#include "bulkhead/model/role.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace bulkhead {

namespace {

// The three duties that the separation is about, and the two groups they must not mix with.
bool is_operators(Role role) {
    return role == Role::platform_admin || role == Role::security_admin || role == Role::auditor;
}

}  // namespace

Result<Rights> Rights::of(std::span<const Grant> grants) {
    Rights rights;
    for (const Grant& grant : grants) {
        for (const Grant& other : grants) {
            const bool two_duties = is_operators(grant.role) && is_operators(other.role) && grant.role < other.role;
            const bool audits_itself = grant.role == Role::auditor && is_tenants(other.role);
            if (two_duties || audits_itself)
                return fail(Code::denied,
                            fmt::format("one person may not be {} and {}", word(grant.role), word(other.role)),
                            "have one of the two bindings taken away");
        }
        Permissions& place = is_tenants(grant.role) ? rights.tenants_[grant.tenant] : rights.fleet_;
        place = place | permissions_of(grant.role);
    }
    return rights;
}

Rights Rights::everything() {
    Rights rights;
    for (const Permission permission : every<Permission>()) rights.fleet_.insert(permission);
    return rights;
}

Rights Rights::narrowed_to(Permissions scope) const {
    Rights narrow = *this;
    narrow.fleet_ = fleet_ & scope;
    for (auto& [tenant, permissions] : narrow.tenants_) permissions = permissions & scope;
    return narrow;
}

bool Rights::may(Permission permission, std::string_view tenant) const {
    if (may(permission)) return true;
    const auto found = tenants_.find(tenant);
    return found != tenants_.end() && found->second.contains(permission);
}

bool Rights::may_somewhere(Permission permission) const {
    return may(permission) ||
           std::ranges::any_of(tenants_, [&](const auto& each) { return each.second.contains(permission); });
}

std::vector<std::string> Rights::tenants() const {
    std::vector<std::string> out;
    for (const auto& [tenant, permissions] : tenants_)
        if (!permissions.empty()) out.push_back(tenant);
    return out;
}

std::vector<std::string_view> Rights::where(Permission permission) const {
    std::vector<std::string_view> out;
    for (const auto& [tenant, permissions] : tenants_)
        if (permissions.contains(permission)) out.push_back(tenant);
    return out;
}

}  // namespace bulkhead
