#include "bulkhead/sched/relations.hpp"

namespace bulkhead::sched {

TenantNo Relations::number(std::string_view tenant) {
    if (const auto found = numbers_.find(tenant); found != numbers_.end()) return found->second;
    const auto fresh = static_cast<TenantNo>(names_.size());
    numbers_.emplace(tenant, fresh);
    names_.emplace_back(tenant);
    domain_.push_back(0);
    lines_.push_back({fresh});
    return fresh;
}

void Relations::update(const Snapshot& snapshot) {
    for (const Tenant& tenant : snapshot.tenants) number(tenant.metadata.name);
    domain_.assign(names_.size(), 0);
    if (!snapshot.policies.empty()) {
        std::uint32_t domain = 0;
        for (const TrustDomain& declared : snapshot.policies.front().spec.trustDomains) {
            ++domain;
            for (const std::string& member : declared.members) {
                const Tenant* tenant = snapshot.find<Tenant>(member);
                // Both sides must say so: the domain lists it, and it names the domain and consents.
                if (tenant != nullptr && tenant->spec.trustDomain && tenant->spec.trustDomain->name == declared.name &&
                    tenant->spec.trustDomain->consent)
                    domain_[number(member)] = domain;
            }
        }
    }
    for (TenantNo tenant = 0; tenant < names_.size(); ++tenant) lines_[tenant] = {tenant};
    for (const Tenant& tenant : snapshot.tenants) {
        std::vector<TenantNo>& line = lines_[number(tenant.metadata.name)];
        for (const Tenant* above = snapshot.find<Tenant>(tenant.spec.parent); above != nullptr;
             above = snapshot.find<Tenant>(above->spec.parent))
            line.push_back(number(above->metadata.name));
    }
}

}  // namespace bulkhead::sched
