#include "bulkhead/policy/guarantee.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/gpu/board.hpp"
#include "bulkhead/policy/node_sizes.hpp"
#include "bulkhead/policy/slice.hpp"

namespace bulkhead {

namespace {

__extension__ using WideUnits = unsigned __int128;  // a guarantee times an entitlement

bool may_stand_at(const Tenant& tenant, const GpuNode& node, const Snapshot& snapshot) {
    const Whereabouts& where = tenant.spec.placement;
    const auto allowed = [](const std::vector<std::string>& names, const std::string& name) {
        return names.empty() || std::ranges::find(names, name) != names.end();
    };
    if (!allowed(where.sites, node.spec.site)) return false;
    if (where.jurisdictions.empty() || snapshot.policies.empty()) return where.jurisdictions.empty();
    const auto& sites = snapshot.policies.front().spec.sites;
    const auto site = std::ranges::find(sites, node.spec.site, &Site::name);
    return site != sites.end() && allowed(where.jurisdictions, site->jurisdiction);
}

std::int64_t gpus_of(const GpuNode& node) {
    std::int64_t gpus = 0;
    for (const NodeGpus& group : node.status.gpus) gpus += group.count;
    return gpus;
}

std::int64_t units_on(std::string_view model, const std::string& profile) {
    const auto slice = slice_on(silicon_of(model), GpuRequest{.profile = profile}, Mechanism::mig);
    return slice ? slice->units(1) : 0;
}

bool is_on_some_board(const std::string& profile) {
    return std::ranges::any_of(gpu::boards(), [&](const gpu::Board& board) { return units_on(board.id, profile) > 0; });
}

}  // namespace

Gpus gpus_each(const Tenant& tenant, const Snapshot& snapshot) {
    const Quota& quota = tenant.spec.quota;
    const auto unit = parse_guarantee_unit(quota.guaranteeUnit);
    if (!unit || unit->what == GuaranteeUnit::What::gpu) return Gpus::whole(1);
    if (unit->what == GuaranteeUnit::What::node) {
        if (unit->node_gpus > 0) return Gpus::whole(unit->node_gpus);
        std::int64_t smallest = 0;
        for (const GpuNode& node : snapshot.nodes)
            if (const std::int64_t gpus = gpus_of(node); gpus > 0 && may_stand_at(tenant, node, snapshot))
                smallest = smallest == 0 ? gpus : std::min(smallest, gpus);
        return Gpus::whole(smallest);
    }
    std::int64_t largest = 0;
    for (const GpuNode& node : snapshot.nodes)
        if (may_stand_at(tenant, node, snapshot))
            for (const NodeGpus& group : node.status.gpus)
                largest = std::max(largest, units_on(group.model, quota.guaranteeUnit));
    if (largest == 0)
        for (const gpu::Board& board : gpu::boards())
            largest = std::max(largest, units_on(board.id, quota.guaranteeUnit));
    return {largest};
}

Gpus guaranteed_gpus(const Tenant& tenant, const Snapshot& snapshot) {
    const Quota& quota = tenant.spec.quota;
    if (quota.guaranteeUnit == "gpu") return quota.guarantee;
    return {quota.guarantee.units / gpu_unit * gpus_each(tenant, snapshot).units};
}

std::map<std::string_view, Gpus> own_guarantees(const Snapshot& snapshot) {
    std::map<std::string_view, Gpus> own, below;
    for (const Tenant& tenant : snapshot.tenants) {
        const Gpus guarantee = guaranteed_gpus(tenant, snapshot);
        own[tenant.metadata.name] = guarantee;
        if (!tenant.spec.parent.empty()) below[tenant.spec.parent].units += guarantee.units;
    }
    for (auto& [name, gpus] : own)
        if (const auto children = below.find(name); children != below.end())
            gpus.units = std::max<std::int64_t>(gpus.units - children->second.units, 0);
    return own;
}

std::string trust_group(const Tenant& tenant) {
    const auto& membership = tenant.spec.trustDomain;
    return membership && membership->consent ? "domain " + membership->name : "tenant " + tenant.metadata.name;
}

std::map<std::string, Gpus, std::less<>> entitlements(const Snapshot& snapshot) {
    std::map<std::int64_t, std::int64_t> sizes;
    for (const GpuNode& node : snapshot.nodes)
        if (const std::int64_t gpus = gpus_of(node); gpus > 0) ++sizes[gpus];
    const auto own_of = own_guarantees(snapshot);
    std::map<std::string, std::int64_t> guaranteed;
    for (const Tenant& tenant : snapshot.tenants)
        guaranteed[trust_group(tenant)] += own_of.at(tenant.metadata.name).units;
    std::map<std::string, Gpus, std::less<>> out;
    for (const Tenant& tenant : snapshot.tenants) out[tenant.metadata.name];
    for (const Tenant& tenant : snapshot.tenants) {
        const std::int64_t own = own_of.at(tenant.metadata.name).units, all = guaranteed[trust_group(tenant)];
        if (own == 0) continue;
        const std::int64_t reserved =
            sizes.empty() ? all : gpu_unit * gpus_of_fewest_nodes(sizes, (all + gpu_unit - 1) / gpu_unit);
        const auto wide_all = static_cast<WideUnits>(all);
        const auto part = static_cast<std::int64_t>(
            (static_cast<WideUnits>(own) * static_cast<WideUnits>(reserved) + wide_all - 1) / wide_all);
        for (const Tenant* holder = &tenant; holder != nullptr; holder = snapshot.find<Tenant>(holder->spec.parent))
            out[holder->metadata.name].units += part;
    }
    return out;
}

std::vector<Finding> misfit_guarantees(const Snapshot& snapshot) {
    std::vector<Finding> findings;
    struct Below {
        Gpus owed;
        std::size_t count = 0;
        bool in_other_units = false;
    };
    std::map<std::string_view, Below> below;
    for (const Tenant& tenant : snapshot.tenants) {
        const Quota& quota = tenant.spec.quota;
        const auto add = [&](std::string path, std::string what, std::string remedy) {
            findings.push_back({.kind = Tenant::kind,
                                .name = tenant.metadata.name,
                                .path = "/spec/quota/" + std::move(path),
                                .what = std::move(what),
                                .remedy = std::move(remedy)});
        };
        const bool other_unit = quota.guaranteeUnit != "gpu";
        if (other_unit && parse_guarantee_unit(quota.guaranteeUnit)->what == GuaranteeUnit::What::profile &&
            !is_on_some_board(quota.guaranteeUnit)) {
            add("guaranteeUnit", fmt::format("no board has the MIG profile {}", quota.guaranteeUnit),
                "choose a profile of `bulkhead mig profiles`");
            continue;
        }
        const Gpus guarantee = guaranteed_gpus(tenant, snapshot);
        if (other_unit && quota.limit && *quota.limit < guarantee)
            add("limit",
                fmt::format("its limit of {} GPUs is below its guarantee of {}, which are {} GPUs", print(*quota.limit),
                            print_guarantee(quota), print(guarantee)),
                fmt::format("a limit of at least {}, or a smaller guarantee", print(guarantee)));
        if (tenant.spec.parent.empty()) continue;
        Below& siblings = below[tenant.spec.parent];
        siblings.owed = siblings.owed + guarantee;
        siblings.in_other_units |= other_unit;
        ++siblings.count;
    }
    for (const Tenant& tenant : snapshot.tenants) {
        const auto children = below.find(tenant.metadata.name);
        if (children == below.end()) continue;
        const Quota& quota = tenant.spec.quota;
        const Gpus guarantee = guaranteed_gpus(tenant, snapshot);
        if (children->second.owed <= guarantee || (quota.guaranteeUnit == "gpu" && !children->second.in_other_units))
            continue;
        findings.push_back(
            {.kind = Tenant::kind,
             .name = tenant.metadata.name,
             .path = "/spec/quota/guarantee",
             .what = fmt::format(
                 "its {} children are guaranteed {} GPUs together, and its own guarantee of {} is {} GPUs",
                 children->second.count, print(children->second.owed), print_guarantee(quota), print(guarantee)),
             .remedy = fmt::format("a guarantee of at least {} GPUs, or less for the children",
                                   print(children->second.owed))});
    }
    return findings;
}

}  // namespace bulkhead
