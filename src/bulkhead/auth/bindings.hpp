// From who somebody is to what they may do: the bindings that FleetPolicy and Tenants declare, looked up by what the
// identity provider says. Every comparison is to the letter: "/acme" is neither "/ACME" nor the beginning of
// "/acme-evil".
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/auth/identity.hpp"
#include "bulkhead/auth/token.hpp"
#include "bulkhead/model/policy.hpp"
#include "bulkhead/model/tenant.hpp"

namespace bulkhead::auth {

class Bindings {
public:
    void add(const FleetPolicySpec& policy);
    void add(const std::string& tenant, const TenantSpec& spec);

    std::vector<Grant> grants_of(const Identity& identity) const;  // in order, each once

private:
    enum class Claim : std::uint8_t { group, client_role, subject };
    using Key = std::pair<Claim, std::string>;
    void add(const RoleBinding& binding, const std::string& tenant);

    std::map<Key, std::vector<Grant>> grants_;
};

// `denied` for somebody to whom nothing is bound, or whose duties exclude each other.
Result<Caller> caller_of(const Identity& identity, const Bindings& bindings);

}  // namespace bulkhead::auth
