#include "bulkhead/sched/guarantee_facts.hpp"

#include <algorithm>

#include "bulkhead/policy/guarantee.hpp"

namespace bulkhead::sched {

void tell_guarantee(const Tenant& tenant, const Snapshot& snapshot, TenantFacts& facts) {
    facts.guarantee = guaranteed_gpus(tenant, snapshot);
    const auto unit = parse_guarantee_unit(tenant.spec.quota.guaranteeUnit);
    if (unit && unit->what == GuaranteeUnit::What::node) {
        facts.node_gpus = gpus_each(tenant, snapshot).units / gpu_unit;
        facts.least_node = std::max<std::int64_t>(unit->node_gpus, 1);
    }
    const Whereabouts& where = tenant.spec.placement;
    if (where.sites.empty() && where.jurisdictions.empty()) return;
    facts.sites.emplace();
    const auto allows = [](const std::vector<std::string>& names, const std::string& name) {
        return names.empty() || std::ranges::find(names, name) != names.end();
    };
    if (where.jurisdictions.empty()) {
        *facts.sites = where.sites;
    } else if (!snapshot.policies.empty()) {
        for (const Site& site : snapshot.policies.front().spec.sites)
            if (allows(where.sites, site.name) && allows(where.jurisdictions, site.jurisdiction))
                facts.sites->push_back(site.name);
    }
    std::ranges::sort(*facts.sites);
}

}  // namespace bulkhead::sched
