#include "bulkhead/sched/cluster_tree.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "bulkhead/policy/guarantee.hpp"
#include "bulkhead/policy/slice.hpp"

namespace bulkhead::sched {

namespace {

std::vector<Parent> parents_of(const Cluster& cluster) {
    std::map<std::string_view, std::size_t> by_name;
    for (std::size_t i = 0; i < cluster.tenants.size(); ++i) by_name.emplace(cluster.tenants[i].name, i);
    std::vector<Parent> out;
    out.reserve(cluster.tenants.size());
    for (const ClusterTenant& tenant : cluster.tenants)
        out.push_back(tenant.parent.empty() ? Parent{} : by_name.at(tenant.parent));
    return out;
}

// 0 for the oldest. Who says since when comes before who does not; these are all of one age, and go by name.
std::vector<std::int64_t> seniority_of(const Cluster& cluster) {
    std::set<Instant> moments;
    for (const ClusterTenant& tenant : cluster.tenants)
        if (tenant.since) moments.insert(*tenant.since);
    std::map<Instant, std::int64_t> place;
    for (const Instant moment : moments) place.emplace(moment, static_cast<std::int64_t>(place.size()));
    std::vector<std::int64_t> out;
    out.reserve(cluster.tenants.size());
    const auto youngest = static_cast<std::int64_t>(moments.size());
    for (const ClusterTenant& tenant : cluster.tenants) out.push_back(tenant.since ? place[*tenant.since] : youngest);
    return out;
}

// What quota counts for a workload on the first model that can give it; a whole GPU for each task where none can.
Gpus asked_by(const GpuWorkloadSpec& spec, const std::vector<std::string>& models) {
    const GpuRequest& gpu = spec.gpu;
    if (gpu.count) return Gpus::whole(*gpu.count * spec.tasks);
    if (gpu.fraction) return {gpu.fraction->units * spec.tasks};
    for (const std::string& model : gpu.models.empty() ? models : gpu.models)
        for (const Mechanism mechanism : every<Mechanism>()) {
            if (gpu.mechanism.value_or(mechanism) != mechanism) continue;
            if (const auto slice = slice_on(silicon_of(model), gpu, mechanism)) return {slice->units(spec.tasks)};
        }
    return Gpus::whole(spec.tasks);
}

bool asks(const GpuWorkload& workload) {
    return !workload.status || (workload.status->phase != WorkloadPhase::refused && !workload.status->deleting);
}

}  // namespace

Cluster cluster_of(const Snapshot& snapshot) {
    Cluster cluster;
    Gpus all;
    std::vector<std::string> models;
    for (const GpuNode& node : snapshot.nodes)
        for (const NodeGpus& gpus : node.status.gpus) {  // of silent nodes too: they come back
            all = all + Gpus::whole(gpus.count);
            if (std::ranges::find(models, gpus.model) == models.end()) models.push_back(gpus.model);
        }
    cluster.gpus = all;
    std::map<std::string_view, Gpus> asked;
    for (const GpuWorkload& workload : snapshot.workloads)
        if (asks(workload)) asked[workload.spec.tenant] = asked[workload.spec.tenant] + asked_by(workload.spec, models);
    for (const Tenant& tenant : snapshot.tenants) {
        const Quota& quota = tenant.spec.quota;
        cluster.tenants.push_back({.name = tenant.metadata.name,
                                   .parent = tenant.spec.parent,
                                   .guarantee = guaranteed_gpus(tenant, snapshot),
                                   .limit = quota.limit,
                                   .weight = quota.weight,
                                   .overQuotaPriority = quota.overQuotaPriority,
                                   .request = asked[tenant.metadata.name]});
    }
    return cluster;
}

std::vector<Queue> queues_of(const Cluster& cluster) {
    const std::vector<Parent> parents = parents_of(cluster);
    const std::vector<std::int64_t> seniority = seniority_of(cluster);
    std::vector<Queue> out;
    out.reserve(cluster.tenants.size());
    for (std::size_t i = 0; i < cluster.tenants.size(); ++i) {
        const ClusterTenant& tenant = cluster.tenants[i];
        out.push_back({tenant.name, parents[i], tenant.guarantee, tenant.limit, tenant.weight, tenant.overQuotaPriority,
                       tenant.request, seniority[i], tenant.hard});
    }
    return out;
}

FairTable fair_table(const Cluster& cluster) {
    const std::vector<Parent> parents = parents_of(cluster);
    const Forest forest = forest_of(std::span{parents});
    FairTable table;
    std::vector<Association> associations;
    std::vector<std::size_t> row_of(cluster.tenants.size());
    for (const Visit visit : reading_order(forest)) {
        const ClusterTenant& tenant = cluster.tenants[visit.at];
        const bool is_user = forest.is_leaf(visit.at);
        const std::int64_t shares = tenant.shares.value_or(tenant.weight);
        const Parent above = parents[visit.at] ? Parent{row_of[*parents[visit.at]]} : Parent{};
        row_of[visit.at] = associations.size();
        associations.push_back({above, shares, is_user ? tenant.usage : 0});
        const std::string below = tenant.parent.empty() ? "root" : tenant.parent;
        table.rows.push_back({is_user ? below : tenant.name, is_user ? tenant.name : "", visit.depth, shares});
        if (is_user || (tenant.usage == 0 && tenant.request == Gpus{})) continue;
        associations.push_back({row_of[visit.at], 1, tenant.usage});
        table.rows.push_back({tenant.name, tenant.name, visit.depth + 1, 1});
    }
    table.tree = fair_tree(associations);
    return table;
}

}  // namespace bulkhead::sched
