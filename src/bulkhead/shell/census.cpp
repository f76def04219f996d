#include "bulkhead/shell/census.hpp"

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/model/node.hpp"
#include "bulkhead/model/workload.hpp"
#include "bulkhead/sched/statement.hpp"

namespace bulkhead::shell {

namespace {

NodeFacts facts_of(const GpuNode& node) {
    NodeFacts facts{.name = node.metadata.name,
                    .phase = node.status.phase.value_or(NodePhase::enrolled),
                    .unschedulable = node.spec.unschedulable};
    const auto count = [&](CleanState state) { ++facts.units.at(static_cast<std::size_t>(state)); };
    for (const NodeGpus& gpus : node.status.gpus) {
        facts.gpus += gpus.count;
        if (!gpus.draining.empty()) facts.gpus_draining += gpus.count;
        for (const GpuSlice& slice : gpus.slices) count(slice.state);
    }
    for (const NodeDrive& drive : node.status.drives) count(drive.state);
    for (const NodeFunction& function : node.status.functions) count(function.state);
    if (node.status.host) count(node.status.host->state);
    for (const NodeFabricTest& test : node.status.fabricTests) ++facts.fences.at(static_cast<std::size_t>(test.found));
    return facts;
}

WorkloadFacts facts_of(const GpuWorkload& workload) {
    WorkloadFacts facts{.tenant = workload.spec.tenant};
    if (!workload.status) return facts;
    facts.phase = workload.status->phase;
    facts.since = workload.status->since;
    if (facts.phase == WorkloadPhase::pending)
        for (const std::string& reason : workload.status->reasons)
            facts.causes.emplace(sched::cause_of(sched::code_of(reason)));
    return facts;
}

// What the core wrote can be read; what could not would be missed by everybody else first.
template <class Whole, class Facts>
void put_or_take(std::map<std::string, std::shared_ptr<const Facts>>& known, const Object& object, bool gone) {
    auto read = gone ? Result<Whole>{fail(Code::not_found, "it is gone", "")}
                     : from_json<Whole>("an object", object.body, own_text);
    if (!read) {
        known.erase(object.place());
        return;
    }
    if constexpr (std::is_same_v<Whole, Facts>)
        known[object.place()] = std::make_shared<const Facts>(*std::move(read));
    else
        known[object.place()] = std::make_shared<const Facts>(facts_of(*read));
}

template <class Facts>
std::vector<std::shared_ptr<const Facts>> in_order(const std::map<std::string, std::shared_ptr<const Facts>>& known) {
    std::vector<std::shared_ptr<const Facts>> out;
    out.reserve(known.size());
    for (const auto& [name, facts] : known) out.push_back(facts);
    return out;
}

}  // namespace

void Census::note(const Object& object, bool gone) {
    switch (object.kind) {
        case ObjectKind::lease:
            return put_or_take<GpuLease>(leases_, object, gone);
        case ObjectKind::tenant:
            return put_or_take<Tenant>(tenants_, object, gone);
        case ObjectKind::node:
            return put_or_take<GpuNode>(nodes_, object, gone);
        case ObjectKind::workload:
            return put_or_take<GpuWorkload>(workloads_, object, gone);
        case ObjectKind::policy:
        case ObjectKind::tenant_class:
            return;
    }
}

void Census::begin_anew(const Catalog& catalog) {
    leases_.clear();
    tenants_.clear();
    nodes_.clear();
    workloads_.clear();
    const Catalog::Page all = catalog.everything();
    for (const ObjectPtr& object : all.objects) note(*object, false);
    number_ = all.number;
}

std::shared_ptr<const Census::Taken> Census::take(const Catalog& catalog) {
    constexpr std::size_t at_once = 512;
    const std::lock_guard lock{mutex_};
    bool moved = !taken_;
    for (bool more = true; more;) {
        const auto changes = number_ ? catalog.changes_after(*number_, at_once) : std::nullopt;
        if (!changes) {  // the first look, or so far behind that they are forgotten
            begin_anew(catalog);
            moved = true;
            continue;
        }
        for (const Change& change : *changes) {
            note(change.object(), change.after == nullptr);
            number_ = change.number;
            moved = true;
        }
        more = changes->size() == at_once;
    }
    if (moved)
        taken_ = std::make_shared<const Taken>(
            Taken{in_order(leases_), in_order(tenants_), in_order(nodes_), in_order(workloads_)});
    return taken_;
}

}  // namespace bulkhead::shell
