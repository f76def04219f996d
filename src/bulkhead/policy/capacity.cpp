#include "bulkhead/policy/capacity.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <queue>

#include "bulkhead/policy/fleet.hpp"
#include "bulkhead/policy/rules.hpp"

namespace bulkhead {

namespace {

// What a tenant is owed beyond what its children are: a parent's guarantee covers theirs.
struct Demand {
    const Tenant* tenant;
    Tier tier;
    std::int64_t units;  // Gpus::units
};

std::vector<Demand> demands_of(const FleetView& fleet) {
    std::vector<Demand> demands;
    for (const Tenant& tenant : fleet.snapshot.tenants) {
        std::int64_t own = tenant.spec.quota.guarantee.units;
        for (const Tenant& child : fleet.snapshot.tenants)
            if (child.spec.parent == tenant.metadata.name) own -= child.spec.quota.guarantee.units;
        if (own <= 0) continue;
        const Circumstances c = fleet.circumstances_of(tenant, *fleet.find_class(tenant.spec.tenantClass));
        demands.push_back({&tenant, required_tier(PeerTrust::same_tenant, c), own});
    }
    return demands;
}

bool allowed(const std::vector<std::string>& names, const std::string& name) {
    return names.empty() || std::ranges::find(names, name) != names.end();
}

// Whether a pool's GPUs can be given whole to the tenant, on a node of its own, in its tier or a stronger one. The
// confidential tier counts only for those who need it: it changes what work can do (RDMA, number of GPUs).
bool can_serve(const Pool& pool, const Demand& demand, const FleetView& fleet) {
    if (pool.closed) return false;
    const Whereabouts& where = demand.tenant->spec.placement;
    if (!allowed(where.sites, pool.site) || !allowed(where.jurisdictions, pool.jurisdiction)) return false;
    const Circumstances c = fleet.circumstances_of(*demand.tenant, *fleet.find_class(demand.tenant->spec.tenantClass));
    for (const Tier tier : every<Tier>()) {
        if (tier < demand.tier || (tier == Tier::confidential_vm && demand.tier != tier)) continue;
        for (const std::int64_t gpus : {std::int64_t{1}, pool.gpus})
            if (objections_on({.tier = tier, .gpus_per_task = gpus}, c, pool.traits).empty()) return true;
    }
    return false;
}

// Augmenting paths, shortest first, over a small dense graph: source, demands, pools, sink.
class Flow {
public:
    Flow(const std::vector<Demand>& demands, const FleetView& fleet)
        : demands_(demands), size_(demands.size() + fleet.pools.size() + 2), left_(size_ * size_) {
        for (std::size_t d = 0; d < demands.size(); ++d) {
            edge(source, demand(d)) = demands[d].units;
            for (std::size_t p = 0; p < fleet.pools.size(); ++p)
                if (can_serve(fleet.pools[p], demands[d], fleet)) edge(demand(d), pool(p)) = demands[d].units;
        }
        for (std::size_t p = 0; p < fleet.pools.size(); ++p) {
            const Pool& each = fleet.pools[p];
            edge(pool(p), sink()) = gpu_unit * each.gpus * static_cast<std::int64_t>(each.nodes.size());
        }
        while (augment()) {
        }
    }

    bool satisfied(std::size_t d) const { return left_[source * size_ + demand(d)] == 0; }
    // The demands that compete for the same too little: still reachable from the source.
    bool competes(std::size_t d) const { return before_[demand(d)] != nowhere; }
    bool wanted(std::size_t p) const { return before_[pool(p)] != nowhere; }

private:
    static constexpr std::size_t source = 0, nowhere = static_cast<std::size_t>(-1);
    std::size_t demand(std::size_t d) const { return 1 + d; }
    std::size_t pool(std::size_t p) const { return 1 + demands_.size() + p; }
    std::size_t sink() const { return size_ - 1; }
    std::int64_t& edge(std::size_t from, std::size_t to) { return left_[from * size_ + to]; }

    bool augment() {
        before_.assign(size_, nowhere);
        before_[source] = source;
        std::queue<std::size_t> next{{source}};
        while (!next.empty() && before_[sink()] == nowhere) {
            const std::size_t at = next.front();
            next.pop();
            for (std::size_t to = 0; to < size_; ++to)
                if (before_[to] == nowhere && edge(at, to) > 0) {
                    before_[to] = at;
                    next.push(to);
                }
        }
        if (before_[sink()] == nowhere) return false;
        std::int64_t amount = std::numeric_limits<std::int64_t>::max();
        for (std::size_t at = sink(); at != source; at = before_[at]) amount = std::min(amount, edge(before_[at], at));
        for (std::size_t at = sink(); at != source; at = before_[at]) {
            edge(before_[at], at) -= amount;
            edge(at, before_[at]) += amount;
        }
        return true;
    }

    const std::vector<Demand>& demands_;
    std::size_t size_;
    std::vector<std::int64_t> left_;   // residual capacity, from x to
    std::vector<std::size_t> before_;  // of the last search
};

}  // namespace

std::vector<Finding> unkeepable_guarantees(const Snapshot& snapshot, Instant now) {
    if (snapshot.nodes.empty()) return {};  // a policy without its fleet: nothing to hold it against yet
    const FleetView fleet{snapshot, now};
    const std::vector<Demand> demands = demands_of(fleet);
    const Flow flow{demands, fleet};

    std::string names;
    std::int64_t wanted = 0, there = 0;
    for (std::size_t d = 0; d < demands.size(); ++d) {
        if (!flow.competes(d)) continue;
        names += (names.empty() ? "" : ", ") + demands[d].tenant->metadata.name;
        wanted += demands[d].units;
    }
    for (std::size_t p = 0; p < fleet.pools.size(); ++p)
        if (flow.wanted(p))
            there += gpu_unit * fleet.pools[p].gpus * static_cast<std::int64_t>(fleet.pools[p].nodes.size());

    std::vector<Finding> findings;
    for (std::size_t d = 0; d < demands.size(); ++d) {
        if (flow.satisfied(d)) continue;
        const Tenant& tenant = *demands[d].tenant;
        findings.push_back(
            {.kind = Tenant::kind,
             .name = tenant.metadata.name,
             .path = "/spec/quota/guarantee",
             .what = fmt::format("the guarantee of {} GPUs in tier {} cannot be kept: {} together are guaranteed {} "
                                 "GPUs, and the nodes that may serve them have {}",
                                 print(tenant.spec.quota.guarantee), word(demands[d].tier), names, print(Gpus{wanted}),
                                 print(Gpus{there})),
             .remedy = fmt::format("lower guarantees by {} GPUs in all, or add nodes that can serve tier {} where the "
                                   "tenant may run",
                                   print(Gpus{wanted - there}), word(demands[d].tier))});
    }
    return findings;
}

}  // namespace bulkhead
