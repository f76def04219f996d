// Tenants form a tree, belong to a class, trust on both sides, and are owed no more than their parent is.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bulkhead/model/findings.hpp"
#include "bulkhead/model/guarantee_unit.hpp"

namespace bulkhead {

namespace {

void check_parent(Findings& findings, const Tenant& tenant, const Subject& subject) {
    const std::string& parent = tenant.spec.parent;
    if (parent.empty() || findings.find<Tenant>(parent)) return;
    findings.add(subject, "/spec/parent", fmt::format("its parent \"{}\" does not exist", parent),
                 findings.remedy<Tenant>(parent, "declare that tenant, or leave parent out to make this a root"));
}

using Circle = std::vector<std::string_view>;

// Each circle of parents once, by its member that comes first in the alphabet. Every tenant is walked through once, so
// that a long chain costs no more than a wide tree.
std::map<std::string_view, Circle> circles(const Findings& findings) {
    std::map<std::string_view, Circle> out;
    std::map<std::string_view, const Tenant*> walked_from;
    for (const Tenant& start : findings.snapshot.tenants) {
        Circle way;
        const Tenant* at = &start;
        while (at && walked_from.try_emplace(at->metadata.name, &start).second) {
            way.push_back(at->metadata.name);
            at = at->spec.parent.empty() ? nullptr : findings.find<Tenant>(at->spec.parent);
        }
        if (!at || walked_from[at->metadata.name] != &start) continue;
        way.erase(way.begin(), std::ranges::find(way, at->metadata.name));  // what only leads into the circle
        std::ranges::rotate(way, std::ranges::min_element(way));
        out.emplace(way.front(), way);
    }
    return out;
}

void check_circle(Findings& findings, const Subject& subject, const Circle& circle) {
    findings.add(subject, "/spec/parent",
                 fmt::format("its parents form a circle of {}: {} -> {}", circle.size(), fmt::join(circle, " -> "),
                             circle.front()),
                 "make one of them a root by leaving its parent out");
}

void check_class(Findings& findings, const Tenant& tenant, const Subject& subject) {
    const std::string& name = tenant.spec.tenantClass;
    if (findings.find<TenantClass>(name) || std::ranges::find(shipped_classes, name) != shipped_classes.end()) return;
    std::vector<std::string_view> known(shipped_classes.begin(), shipped_classes.end());
    for (const TenantClass& declared : findings.snapshot.classes) known.push_back(declared.metadata.name);
    findings.add(subject, "/spec/class",
                 fmt::format("there is no class \"{}\"; there are {}", name, fmt::join(known, ", ")),
                 findings.remedy(name, known, "declare it as a TenantClass"));
}

void check_membership(Findings& findings, const Tenant& tenant, const Subject& subject) {
    const auto& membership = tenant.spec.trustDomain;
    if (!membership) return;
    if (!membership->consent || membership->consent->by.empty())
        findings.add(subject, "/spec/trustDomain",
                     fmt::format("it names trust domain {} without its consent", membership->name),
                     "add consent: who consents (by) and when (at)");
    if (!findings.policy) return;
    const auto& domains = findings.policy->spec.trustDomains;
    const auto domain = std::ranges::find(domains, membership->name, &TrustDomain::name);
    if (domain == domains.end()) {
        std::vector<std::string_view> known;
        known.reserve(domains.size());
        for (const TrustDomain& each : domains) known.push_back(each.name);
        findings.add(subject, "/spec/trustDomain/name",
                     fmt::format("FleetPolicy {} declares no trust domain \"{}\"; it declares {}",
                                 findings.policy->metadata.name, membership->name, domains.size()),
                     findings.remedy(membership->name, known, "declare it in spec.trustDomains of the FleetPolicy"));
    } else if (std::ranges::find(domain->members, tenant.metadata.name) == domain->members.end()) {
        findings.add(subject, "/spec/trustDomain/name",
                     fmt::format("trust domain {} does not list it among its {} members; trust takes both sides",
                                 domain->name, domain->members.size()),
                     fmt::format("add {} to the domain's members, or leave trustDomain out", tenant.metadata.name));
    }
}

bool counts_gpus(const Tenant& tenant) {
    return parse_guarantee_unit(tenant.spec.quota.guaranteeUnit) == GuaranteeUnit{};
}

void check_unit(Findings& findings, const Quota& quota, const Subject& subject) {
    const auto unit = parse_guarantee_unit(quota.guaranteeUnit);
    if (!unit)
        findings.add(
            subject, "/spec/quota/guaranteeUnit",
            fmt::format("\"{}\" is no unit of a guarantee; units are gpu, node, a node with its least number of "
                        "GPUs such as 8-gpu-node, and MIG profiles such as 1g.10gb",
                        quota.guaranteeUnit),
            quota.guaranteeUnit.starts_with("node") ? "node" : "gpu, or leave guaranteeUnit out");
    else if (unit->what != GuaranteeUnit::What::gpu && quota.guarantee.units % gpu_unit != 0)
        findings.add(subject, "/spec/quota/guarantee",
                     fmt::format("a guarantee in units of {} is a whole number, not {}", quota.guaranteeUnit,
                                 print(quota.guarantee)),
                     fmt::format("guarantee: {}", quota.guarantee.units / gpu_unit + 1));
}

// Guarantees in other units than GPUs are held against limits and parents in policy/, which knows the nodes and boards.
void check_quota(Findings& findings, const Tenant& tenant, const Subject& subject) {
    const Quota& quota = tenant.spec.quota;
    check_unit(findings, quota, subject);
    if (quota.limit && counts_gpus(tenant) && *quota.limit < quota.guarantee)
        findings.add(subject, "/spec/quota/limit",
                     fmt::format("its limit of {} GPUs is below its guarantee of {}", print(*quota.limit),
                                 print(quota.guarantee)),
                     fmt::format("a limit of at least {}, or a smaller guarantee", print(quota.guarantee)));
    const Tenant* parent = tenant.spec.parent.empty() ? nullptr : findings.find<Tenant>(tenant.spec.parent);
    if (!parent || !parent->spec.quota.limit || !quota.limit || *quota.limit <= *parent->spec.quota.limit) return;
    findings.add(subject, "/spec/quota/limit",
                 fmt::format("its limit of {} GPUs is above the {} of its parent {}", print(*quota.limit),
                             print(*parent->spec.quota.limit), parent->metadata.name),
                 fmt::format("a limit of at most {}", print(*parent->spec.quota.limit)));
}

// Thousandths of GPUs, stopping at the largest number instead of wrapping round to a small one.
Gpus sum(Gpus a, Gpus b) {
    Gpus out;
    if (__builtin_add_overflow(a.units, b.units, &out.units)) return {std::numeric_limits<std::int64_t>::max()};
    return out;
}

struct Children {
    Gpus owed;
    std::size_t count = 0;
    bool all_in_gpus = true;
};

void check_shares(Findings& findings, const Tenant& tenant, const Subject& subject, const Children& children) {
    const Gpus guarantee = tenant.spec.quota.guarantee;
    if (children.owed <= guarantee || !children.all_in_gpus || !counts_gpus(tenant)) return;
    const std::string own = guarantee == Gpus{} ? "it is guaranteed nothing itself"
                                                : fmt::format("it is guaranteed {} itself", print(guarantee));
    findings.add(subject, "/spec/quota/guarantee",
                 fmt::format("its {} children are guaranteed {} GPUs together, and {}", children.count,
                             print(children.owed), own),
                 fmt::format("a guarantee of at least {}, or less for the children", print(children.owed)));
}

}  // namespace

void check_tenants(Findings& findings) {
    std::map<std::string_view, Children> children;
    for (const Tenant& tenant : findings.snapshot.tenants) {
        if (tenant.spec.parent.empty()) continue;
        Children& siblings = children[tenant.spec.parent];
        siblings.owed = sum(siblings.owed, tenant.spec.quota.guarantee);
        siblings.all_in_gpus &= counts_gpus(tenant);
        ++siblings.count;
    }
    const auto in_circle = circles(findings);
    findings.for_each<Tenant>([&](const Tenant& tenant, const Subject& subject) {
        check_parent(findings, tenant, subject);
        check_class(findings, tenant, subject);
        check_membership(findings, tenant, subject);
        check_quota(findings, tenant, subject);
        if (subject.occurrence == 0) {
            const auto circle = in_circle.find(tenant.metadata.name);
            if (circle != in_circle.end()) check_circle(findings, subject, circle->second);
            check_shares(findings, tenant, subject, children[tenant.metadata.name]);
        }
        check_placement(findings, subject, tenant.spec.placement);
        check_bindings(findings, subject, tenant.spec.bindings, may_be_bound_in_tenant);
    });
}

}  // namespace bulkhead
