#include "bulkhead/policy/fleet.hpp"

#include <algorithm>

#include "bulkhead/policy/guarantee.hpp"
#include "bulkhead/policy/shipped_classes.hpp"

namespace bulkhead {

namespace {

bool is_fresh(const DetectedCapability& detected, Instant now, Duration max_age) {
    // Evidence from the future is no evidence: some clock is wrong, and we do not know which.
    return detected.verifiedAt && *detected.verifiedAt <= now && now - *detected.verifiedAt <= max_age;
}

NodeTraits traits_of(const GpuNode& node, const FleetPolicySpec& policy, Instant now, Pool& pool) {
    NodeTraits traits;
    for (const DetectedCapability& detected : node.status.capabilities) {
        const bool counts = !trust_raising.contains(detected.name) || is_fresh(detected, now, policy.evidenceMaxAge);
        (counts ? traits.has : traits.unverified).insert(detected.name);
    }
    for (const NodeFabricTest& test : node.status.fabricTests)
        for (const Tier tier : every<Tier>())
            traits.fabric_open.insert_if(
                fence_of(tier) == test.fence &&
                    std::ranges::any_of(test.through,
                                        [&](const std::string& name) { return is_promised_closed(tier, name); }),
                tier);
    traits.nvlink = node.status.nvlink;
    traits.confidential = node.status.confidentialMode;
    for (const NodeGpus& gpus : node.status.gpus) traits.gpus += gpus.count;
    pool.advisories = open_advisories(node, policy, now);
    for (const OpenAdvisory& open : pool.advisories) {
        traits.escape_open |= open.advisory.escape;
        if (!open.overdue) continue;
        for (const Tier tier : every<Tier>())
            for (const Mechanism mechanism : every<Mechanism>())
                traits.closed[static_cast<std::size_t>(tier)].insert_if(closes(open, tier, mechanism), mechanism);
    }
    return traits;
}

std::string jurisdiction_of(const std::string& site, const FleetPolicySpec& policy) {
    const auto found = std::ranges::find(policy.sites, site, &Site::name);
    return found == policy.sites.end() ? std::string{} : found->jurisdiction;
}

bool in_same_state(const Pool& a, const Pool& b) {
    const auto advisories_equal = [](const OpenAdvisory& x, const OpenAdvisory& y) {
        return x.advisory.id == y.advisory.id && x.advisory.component == y.advisory.component &&
               x.installed == y.installed && x.overdue == y.overdue;
    };
    return a.model == b.model && a.gpus == b.gpus && a.site == b.site && a.closed == b.closed && a.cpu == b.cpu &&
           a.memory == b.memory && a.traits == b.traits && a.capabilities == b.capabilities &&
           std::ranges::equal(a.advisories, b.advisories, advisories_equal);
}

}  // namespace

FleetView::FleetView(const Snapshot& from, Instant at) : snapshot(from), now(at) {
    if (!snapshot.policies.empty()) policy = snapshot.policies.front().spec;
    for (const Tenant& tenant : snapshot.tenants) {
        const Quota& quota = tenant.spec.quota;
        longest_min_runtime = std::max(longest_min_runtime, quota.reclaimMinRuntime.value_or(Duration{}));
        if (quota.guaranteeUnit != "gpu") guarantees.emplace(tenant.metadata.name, guaranteed_gpus(tenant, snapshot));
    }
    for (const GpuNode& node : snapshot.nodes) {
        std::map<std::string_view, std::int64_t> models;
        for (const NodeGpus& gpus : node.status.gpus) models[gpus.model] += gpus.count;
        for (const auto& [model, count] : models) {
            Pool pool{.nodes = {node.metadata.name},
                      .model = model,
                      .silicon = silicon_of(model),
                      .gpus = count,
                      .site = node.spec.site,
                      .jurisdiction = jurisdiction_of(node.spec.site, policy),
                      .closed = node.spec.unschedulable,
                      .cpu = node.status.cpu,
                      .memory = node.status.memory,
                      .capabilities = node.status.capabilities};
            pool.traits = traits_of(node, policy, now, pool);
            pool.traits.vendor = pool.silicon.vendor();
            pool.traits.confidential_silicon = pool.silicon.confidential;
            const auto same =
                std::ranges::find_if(pools, [&](const Pool& other) { return in_same_state(other, pool); });
            if (same == pools.end())
                pools.push_back(std::move(pool));
            else
                same->nodes.push_back(node.metadata.name);
        }
    }
}

const TenantClass* FleetView::find_class(std::string_view name) const {
    if (const auto* declared = snapshot.find<TenantClass>(name)) return declared;
    for (const TenantClass& shipped : shipped_tenant_classes())
        if (shipped.metadata.name == name) return &shipped;
    return nullptr;
}

const TierException* FleetView::exception_of(const std::string& tenant) const {
    const auto is_partner = [&](const std::string& name) {  // compliance mode voids it for whoever is in it
        const Tenant* other = snapshot.find<Tenant>(name);
        return name != tenant && other != nullptr && other->spec.compliance == Compliance::off;
    };
    const TierException* weakest = nullptr;
    for (const TierException& exception : policy.exceptions) {
        if (exception.expires <= now || std::ranges::find(exception.tenants, tenant) == exception.tenants.end())
            continue;
        if (std::ranges::none_of(exception.tenants, is_partner)) continue;
        if (std::ranges::any_of(exception.consents, [&](const TenantConsent& consent) { return consent.at > now; }))
            continue;
        if (weakest == nullptr || exception.tier < weakest->tier) weakest = &exception;
    }
    return weakest;
}

Circumstances FleetView::circumstances_of(const Tenant& tenant, const TenantClass& tenant_class) const {
    const TenantSpec& spec = tenant.spec;
    const TenantClassSpec& sells = tenant_class.spec;
    Circumstances c{.threat = policy.threatModel,
                    .operator_trust = spec.operatorTrust,
                    .compliance = spec.compliance,
                    .class_fractions = sells.fractions,
                    .class_slo = sells.slo,
                    .class_tier = sells.tier,
                    .class_node = sells.sharing.node,
                    .class_gpu = sells.sharing.gpu,
                    .preemption = sells.preemption,
                    .class_priority = sells.priority.highest,
                    .priority_grant = spec.priorityGrant,
                    .guarantee = spec.quota.guarantee.units};
    if (const auto counted = guarantees.find(tenant.metadata.name); counted != guarantees.end())
        c.guarantee = counted->second.units;
    for (const Mechanism mechanism : sells.mechanisms) c.class_mechanisms.insert(mechanism);
    for (const AcceptedRisk& accepted : spec.accepts)
        if (accepted.at <= now) c.accepts.insert(accepted.risk);  // nobody has accepted what is dated tomorrow
    const auto at_most = [&](std::int64_t limit) { c.limit = std::min(c.limit.value_or(limit), limit); };
    // A hard quota is never exceeded, whatever the limit says; and nobody holds more than those above may.
    if (sells.quota == QuotaModel::hard) at_most(c.guarantee);
    for (const Tenant* above = &tenant; above != nullptr; above = snapshot.find<Tenant>(above->spec.parent))
        if (above->spec.quota.limit) at_most(above->spec.quota.limit->units);
    if (const TierException* exception = exception_of(tenant.metadata.name)) c.exception = exception->tier;
    return c;
}

}  // namespace bulkhead
