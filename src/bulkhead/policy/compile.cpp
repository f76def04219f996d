#include "bulkhead/policy/compile.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/policy/explain.hpp"
#include "bulkhead/policy/proposal.hpp"
#include "bulkhead/policy/terms.hpp"
#include "bulkhead/policy/verdict.hpp"

namespace bulkhead {

struct Compiler::Fleet : FleetView {
    using FleetView::FleetView;
};

Compiler::Compiler(const Snapshot& snapshot, Instant now) : fleet_(std::make_unique<Fleet>(snapshot, now)) {}
Compiler::~Compiler() = default;
Compiler::Compiler(Compiler&&) noexcept = default;
Compiler& Compiler::operator=(Compiler&&) noexcept = default;

namespace {

Refusal write_refusal(const GpuWorkload& workload, const Asker& asker, const FleetView& fleet, const Verdict& verdict,
                      Audience reader) {
    const Explainer explainer{workload.spec, asker, fleet, verdict, reader};
    Refusal refusal{.workload = workload.metadata.name,
                    .tenant = asker.tenant->metadata.name,
                    .tenantClass = asker.tenant_class->metadata.name,
                    .threatModel = fleet.policy.threatModel,
                    .asOf = fleet.now,
                    .objections = explainer.objections(),
                    .excluded = explainer.excluded()};
    Search search = nearest_acceptable(workload, asker, fleet, verdict);
    refusal.proposal = std::move(search.proposal);
    if (refusal.proposal) return refusal;
    refusal.without_proposal = search.budget_spent
                                   ? "the search for the nearest acceptable request spent its budget; there may be one"
                                   : "nothing this tenant could ask for would be accepted on this fleet without a "
                                     "weaker tier, wider sharing or "
                                     "less compliance: the operator must change a node, the class or the policy";
    return refusal;
}

}  // namespace

Decision Compiler::compile(const GpuWorkload& workload, Audience reader, Written written,
                           std::span<const std::string> placed) const {
    const FleetView& fleet = *fleet_;
    Asker asker{.tenant = fleet.snapshot.find<Tenant>(workload.spec.tenant)};
    invariant(asker.tenant != nullptr, "consistency was checked: every workload's tenant exists");
    asker.tenant_class = fleet.find_class(asker.tenant->spec.tenantClass);
    invariant(asker.tenant_class != nullptr, "consistency was checked: every tenant's class exists");
    asker.circumstances = fleet.circumstances_of(*asker.tenant, *asker.tenant_class);
    const Verdict verdict = judge(workload.spec, asker, fleet);
    if (verdict.accepted()) return write_contract(workload, asker, fleet, verdict, {reader, written, placed});
    return write_refusal(workload, asker, fleet, verdict, reader);
}

std::vector<Decision> compile_all(const Snapshot& snapshot, Instant now) {
    const Compiler compiler{snapshot, now};
    std::vector<Decision> decisions;
    decisions.reserve(snapshot.workloads.size());
    for (const GpuWorkload& workload : snapshot.workloads) decisions.push_back(compiler.compile(workload));
    return decisions;
}

std::optional<Instant> observed_at(const Snapshot& snapshot) {
    std::optional<Instant> latest;
    for (const GpuNode& node : snapshot.nodes)
        if (node.status.observedAt)
            latest = std::max(latest.value_or(*node.status.observedAt), *node.status.observedAt);
    return latest;
}

}  // namespace bulkhead
