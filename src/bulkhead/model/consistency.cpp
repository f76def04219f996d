#include "bulkhead/model/consistency.hpp"

#include <fmt/core.h>

#include <utility>

#include "bulkhead/base/nearest.hpp"
#include "bulkhead/model/findings.hpp"

namespace bulkhead {

Findings::Findings(const Snapshot& from) : snapshot{from} {
    const auto fill = [&]<class T>(Index<T>& index) {
        for (const T& object : snapshot.list<T>()) index.try_emplace(object.metadata.name, &object);
    };
    std::apply([&](auto&... index) { (fill(index), ...); }, indexes_);
    for (const GpuWorkload& workload : snapshot.workloads)
        work_.try_emplace({workload.spec.tenant, workload.metadata.name}, &workload);
    if (snapshot.policies.empty()) return;
    policy = &snapshot.policies.front();
    for (const Site& site : policy->spec.sites) {
        sites.insert(site.name);
        jurisdictions.insert(site.jurisdiction);
    }
}

void Findings::add(const Subject& subject, std::string path, std::string what, std::string remedy) {
    list.push_back({subject.kind, std::string{subject.name}, subject.occurrence, std::move(path),
                    fmt::format("{} {}: {}", subject.kind, subject.name, what), std::move(remedy)});
}

std::string Findings::remedy(std::string_view typed, std::span<const std::string_view> known,
                             std::string otherwise) const {
    const std::string_view near = nearest(typed, known);
    return near.empty() ? otherwise : fmt::format("{}, or {}", near, otherwise);
}

namespace {

// Whoever trusts, is owed or stands somewhere needs the policy that says what that means; classes alone do not.
void check_one_policy(Findings& findings) {
    const Snapshot& all = findings.snapshot;
    if (!findings.policy) {
        if (all.tenants.empty() && all.workloads.empty() && all.nodes.empty() && all.leases.empty()) return;
        findings.list.push_back(
            {FleetPolicy::kind, "", 0, "",
             fmt::format("there is no FleetPolicy, and {} tenants, {} workloads, {} nodes and {} leases need one",
                         all.tenants.size(), all.workloads.size(), all.nodes.size(), all.leases.size()),
             "add an object of kind FleetPolicy; its name alone is enough to begin with"});
        return;
    }
    findings.for_each<FleetPolicy>([&](const FleetPolicy& policy, const Subject& subject) {
        if (&policy != findings.policy)
            findings.add(subject, "/metadata/name",
                         fmt::format("a fleet has one FleetPolicy, and this is one of {}; the first is {}",
                                     all.policies.size(), findings.policy->metadata.name),
                         "keep one of them");
    });
}

void add_taken_name(Findings& findings, const Subject& subject, std::size_t number) {
    findings.add(subject, "/metadata/name", fmt::format("the name is taken; this is number {} of that name", number),
                 "give each object of a kind a name of its own");
}

template <class T>
void check_names(Findings& findings) {
    findings.for_each<T>([&](const T&, const Subject& subject) {
        if (subject.occurrence > 0) add_taken_name(findings, subject, subject.occurrence + 1);
    });
}

template <>
void check_names<GpuWorkload>(Findings& findings) {
    std::map<std::pair<std::string_view, std::string_view>, std::size_t> seen;
    findings.for_each<GpuWorkload>([&](const GpuWorkload& workload, const Subject& subject) {
        const std::size_t number = ++seen[{workload.spec.tenant, workload.metadata.name}];
        if (number > 1) add_taken_name(findings, subject, number);
    });
}

}  // namespace

void check_placement(Findings& findings, const Subject& subject, const Whereabouts& placement) {
    if (!findings.policy) return;
    const auto check = [&](const std::vector<std::string>& names, const std::set<std::string_view>& known,
                           std::string_view list, std::string_view what) {
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (known.contains(names[i])) continue;
            const std::vector<std::string_view> all(known.begin(), known.end());
            findings.add(
                subject, fmt::format("/spec/placement/{}/{}", list, i),
                fmt::format("no site of FleetPolicy {} {} \"{}\"; it declares {} sites", findings.policy->metadata.name,
                            what, names[i], findings.policy->spec.sites.size()),
                findings.remedy(names[i], all, "declare the site in spec.sites of the FleetPolicy"));
        }
    };
    check(placement.sites, findings.sites, "sites", "is called");
    check(placement.jurisdictions, findings.jurisdictions, "jurisdictions", "is under the jurisdiction");
}

std::vector<Finding> inconsistencies(const Snapshot& snapshot) {
    Findings findings{snapshot};
    check_one_policy(findings);
    check_policy(findings);
    check_names<TenantClass>(findings);
    check_classes(findings);
    check_names<Tenant>(findings);
    check_tenants(findings);
    check_names<GpuWorkload>(findings);
    check_workloads(findings);
    check_names<GpuNode>(findings);
    check_nodes(findings);
    check_names<GpuLease>(findings);
    check_leases(findings);
    return std::move(findings.list);
}

WorkCheck::WorkCheck(const Snapshot& fleet) : findings_{std::make_unique<Findings>(fleet)} {
    invariant(fleet.workloads.empty() && fleet.leases.empty(), "the fleet is looked at without its work");
    sound_ = bulkhead::inconsistencies(fleet).empty();
}
WorkCheck::~WorkCheck() = default;
WorkCheck::WorkCheck(WorkCheck&&) noexcept = default;
WorkCheck& WorkCheck::operator=(WorkCheck&&) noexcept = default;

std::vector<Finding> WorkCheck::inconsistencies() {
    if (!sound_) return bulkhead::inconsistencies(findings_->snapshot);
    check_one_policy(*findings_);
    check_names<GpuWorkload>(*findings_);
    check_workloads(*findings_);
    return std::exchange(findings_->list, {});
}

}  // namespace bulkhead
