#include "bulkhead/policy/owed.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "bulkhead/gpu/profile_name.hpp"
#include "bulkhead/policy/mig_cover.hpp"
#include "bulkhead/policy/rules.hpp"
#include "bulkhead/policy/slice.hpp"

namespace bulkhead {

namespace {

using What = GuaranteeUnit::What;

std::int64_t whole_gpus(std::int64_t units) { return (units + gpu_unit - 1) / gpu_unit; }

bool names(const std::vector<std::string>& allowed, const std::string& name) {
    return allowed.empty() || std::ranges::find(allowed, name) != allowed.end();
}

// Nobody is put beside strangers on a kernel by a guarantee: an exception ends, a guarantee does not.
Circumstances without_exception(Circumstances c) {
    c.exception.reset();
    return c;
}

// Whether nodes of this pool may serve the guarantee while tenants of such trust are on the same node.
bool serves(const Owed& owed, const Circumstances& c, const Pool& pool, PeerTrust beside) {
    static constexpr std::array whole{Mechanism::whole};
    static constexpr std::array instances{Mechanism::mig, Mechanism::mig_vgpu, Mechanism::mps_in_mig};
    const bool profile = owed.unit.what == What::profile;
    const Tier weakest = required_tier(beside, c);
    for (const Mechanism mechanism : profile ? std::span<const Mechanism>{instances} : std::span{whole}) {
        if (profile && !slice_on(pool.silicon, GpuRequest{.profile = owed.tenant->spec.quota.guaranteeUnit}, mechanism))
            continue;
        for (const Tier tier : every<Tier>()) {
            // The confidential tier counts only for those who need it: it changes what work can do.
            if (tier < weakest || (tier == Tier::confidential_vm && weakest != tier)) continue;
            for (const std::int64_t gpus : {std::int64_t{1}, pool.gpus}) {
                if (gpus != 1 && (profile || beside != PeerTrust::same_tenant)) continue;
                const Ask ask{.form = profile ? Form::profile : Form::count,
                              .mechanism = mechanism,
                              .tier = tier,
                              .share_node = beside,
                              .preemptible = c.preemption == Preemption::always,
                              .gpus_per_task = gpus};
                if (!objections_on(ask, c, pool.traits).empty()) continue;
                if (!profile || objections_to(ask, c).empty()) return true;
            }
        }
    }
    return false;
}

// Instances of the profile on one GPU of the pool.
std::int64_t instances_on(const Pool& pool, const std::string& profile) {
    const auto slice = slice_on(pool.silicon, GpuRequest{.profile = profile}, Mechanism::mig);
    return slice ? slice->per_gpu : 0;
}

// By an index into Board::profiles; nothing for a part of an instance, which is counted alone.
std::optional<std::size_t> profile_on(const gpu::Board& board, const std::string& name) {
    const auto choice = gpu::find_profile(board, name);
    if (!choice || choice->compute < board.profiles[choice->index].slices) return std::nullopt;
    return choice->index;
}

bool bears_its_domain(const Owed& owed) {
    return owed.unit.what != What::node && owed.shares_gpus && std::ranges::all_of(owed.bears, [](const auto& bears) {
               return !bears || *bears != PeerTrust::same_tenant;
           });
}

}  // namespace

// Nodes of the same pools whose host can pass to the same tenants.
struct OwedFleet::Place {
    std::vector<std::size_t> pools;
    bool bound = false;                 // cannot show a verified reboot, and has had users
    std::optional<std::size_t> domain;  // if bound: of all its users; nothing: they do not trust each other
    std::int64_t nodes = 0, gpus = 0;
    friend auto operator<=>(const Place& a, const Place& b) {
        return std::tie(a.pools, a.bound, a.domain) <=> std::tie(b.pools, b.bound, b.domain);
    }
};

OwedFleet::OwedFleet(const Snapshot& snapshot, Instant now) : fleet_{snapshot, now} {
    for (const Tenant& tenant : snapshot.tenants) domains_.try_emplace(trust_group(tenant), domains_.size());
    list_owed();
    list_kinds();
}

void OwedFleet::list_owed() {
    const auto own_of = own_guarantees(fleet_.snapshot);
    for (const Tenant& tenant : fleet_.snapshot.tenants) {
        const Gpus own = own_of.at(tenant.metadata.name);
        const std::int64_t each = gpus_each(tenant, fleet_.snapshot).units;
        const bool unknown = each == 0 && tenant.spec.quota.guarantee > Gpus{};  // nodes, and none where it may run
        if (own.units <= 0 && !unknown) continue;
        const Circumstances c = fleet_.circumstances_of(tenant, *fleet_.find_class(tenant.spec.tenantClass));
        Owed owed{.tenant = &tenant,
                  .unit = *parse_guarantee_unit(tenant.spec.quota.guaranteeUnit),
                  .amount = own.units,
                  .gpus = own,
                  .tier = required_tier(PeerTrust::same_tenant, c),
                  .domain = domains_.at(trust_group(tenant)),
                  .shares_gpus = c.class_gpu != PeerTrust::same_tenant && c.compliance == Compliance::off,
                  .bears = {}};
        if (owed.unit.what == What::gpu) {
            owed_.push_back(std::move(owed));
            continue;
        }
        if (unknown) {
            owed.amount = tenant.spec.quota.guarantee.units / gpu_unit;
            owed_.push_back(std::move(owed));
            continue;
        }
        Owed rest = owed;
        rest.unit = {};
        rest.amount = own.units % each;
        rest.gpus = {rest.amount};
        owed.amount = own.units / each;
        owed.gpus = {owed.amount * each};
        if (owed.amount > 0) owed_.push_back(std::move(owed));
        if (rest.amount > 0) owed_.push_back(std::move(rest));
    }
}

std::vector<OwedFleet::Place> OwedFleet::places() const {
    std::map<std::string_view, std::vector<std::size_t>> pools_of;
    for (std::size_t p = 0; p < fleet_.pools.size(); ++p)
        for (const std::string& node : fleet_.pools[p].nodes) pools_of[node].push_back(p);
    std::map<Place, std::pair<std::int64_t, std::int64_t>> found;
    for (const GpuNode& node : fleet_.snapshot.nodes) {
        const auto pools = pools_of.find(node.metadata.name);
        if (pools == pools_of.end()) continue;
        Place place{.pools = pools->second, .domain = std::nullopt};
        std::int64_t gpus = 0;
        bool can_reboot = true;
        for (const std::size_t p : place.pools) {
            gpus += fleet_.pools[p].gpus;
            can_reboot = can_reboot && fleet_.pools[p].traits.has.contains(Capability::verified_reboot);
        }
        std::set<std::optional<std::size_t>> users;
        if (node.status.host)
            for (const std::string& name : node.status.host->usedBy) {
                const Tenant* user = fleet_.snapshot.find<Tenant>(name);
                users.insert(user == nullptr ? std::nullopt : std::optional{domains_.at(trust_group(*user))});
                // A reboot would take along what a legal hold keeps.
                if (user != nullptr && user->status && user->status->legalHold) can_reboot = false;
            }
        place.bound = !can_reboot && !users.empty();
        if (place.bound && users.size() == 1) place.domain = *users.begin();
        auto& [nodes, size] = found[std::move(place)];
        ++nodes;
        size = gpus;
    }
    std::vector<Place> out;
    for (const auto& [place, counts] : found) {
        out.push_back(place);
        std::tie(out.back().nodes, out.back().gpus) = counts;
    }
    return out;
}

std::optional<PeerTrust> OwedFleet::bears(const Owed& owed, const Pool& pool) const {
    if (pool.closed) return std::nullopt;
    const Whereabouts& where = owed.tenant->spec.placement;
    if (!names(where.sites, pool.site) || !names(where.jurisdictions, pool.jurisdiction)) return std::nullopt;
    const Circumstances c =
        without_exception(fleet_.circumstances_of(*owed.tenant, *fleet_.find_class(owed.tenant->spec.tenantClass)));
    if (!serves(owed, c, pool, PeerTrust::same_tenant)) return std::nullopt;
    if (c.class_node == PeerTrust::same_tenant || c.compliance == Compliance::dedicated) return PeerTrust::same_tenant;
    // Work that may run on the host's kernel keeps strangers off the node. Inside one organisation no work is put
    // beside strangers unasked.
    if (owed.tier >= Tier::vm && c.class_node == PeerTrust::distrusting && c.threat != ThreatModel::internal &&
        serves(owed, c, pool, PeerTrust::distrusting))
        return PeerTrust::distrusting;
    return serves(owed, c, pool, PeerTrust::same_domain) ? PeerTrust::same_domain : PeerTrust::same_tenant;
}

void OwedFleet::list_kinds() {
    // Pools differ by when their evidence was verified; what they can do is often the same.
    std::vector<std::size_t> alike(fleet_.pools.size());
    for (std::size_t p = 0; p < alike.size(); ++p)
        for (alike[p] = 0; alike[p] < p; ++alike[p]) {
            const Pool &a = fleet_.pools[alike[p]], &b = fleet_.pools[p];
            if (a.model == b.model && a.gpus == b.gpus && a.site == b.site && a.closed == b.closed &&
                a.traits == b.traits)
                break;
        }
    std::vector<std::vector<std::optional<PeerTrust>>> on_pool(fleet_.pools.size());
    for (std::size_t p = 0; p < alike.size(); ++p) {
        if (alike[p] != p) {
            on_pool[p] = on_pool[alike[p]];
            continue;
        }
        for (const Owed& owed : owed_) on_pool[p].push_back(bears(owed, fleet_.pools[p]));
    }
    std::vector<std::set<std::string_view>> models(owed_.size());
    std::map<std::pair<std::int64_t, std::vector<std::optional<PeerTrust>>>, std::int64_t> kinds;
    for (const Place& place : places()) {
        std::vector<std::optional<PeerTrust>> row(owed_.size());
        for (std::size_t i = 0; i < owed_.size(); ++i) {
            Owed& owed = owed_[i];
            row[i] = on_pool[place.pools.front()][i];
            for (const std::size_t p : place.pools)  // a node with several models serves it with all of them, or not
                row[i] = on_pool[p][i] && row[i] ? std::min(row[i], on_pool[p][i]) : std::nullopt;
            if (place.bound && place.domain != owed.domain) row[i].reset();
            if (owed.unit.what == What::node && place.gpus < std::max<std::int64_t>(owed.unit.node_gpus, 1))
                row[i].reset();
            if (!row[i] || owed.unit.what != What::profile) continue;
            for (const std::size_t p : place.pools) {
                const std::int64_t here = instances_on(fleet_.pools[p], owed.tenant->spec.quota.guaranteeUnit);
                owed.per_gpu = models[i].empty() ? here : std::min(owed.per_gpu, here);
                models[i].insert(fleet_.pools[p].model);
                owed.board = fleet_.pools[p].silicon.nvidia;
            }
        }
        kinds[{place.gpus, std::move(row)}] += place.nodes;
    }
    for (const auto& [kind, nodes] : kinds) {
        kinds_.push_back({.nodes = nodes, .gpus = kind.first});
        for (std::size_t i = 0; i < owed_.size(); ++i) owed_[i].bears.push_back(kind.second[i]);
    }
    for (std::size_t i = 0; i < owed_.size(); ++i)
        if (models[i].size() != 1) owed_[i].board = nullptr;
}

Keepable OwedFleet::keepable(const std::vector<Owed>& owed, std::int64_t budget) const {
    return assign_nodes(kinds_, claims_of(owed), budget).keepable;
}

std::vector<NodeClaim> claims_of(const std::vector<Owed>& owed) {
    std::vector<NodeClaim> claims;
    const auto add = [&](const Owed& of, std::int64_t amount) {
        claims.push_back(
            {.domain = of.domain, .whole_nodes = of.unit.what == What::node, .amount = amount, .bears = of.bears});
    };
    // Those that share GPUs on the same nodes are counted together: by what they ask, and on which nodes.
    std::map<std::tuple<std::size_t, What, const gpu::Board*, std::vector<std::optional<PeerTrust>>>,
             std::vector<const Owed*>>
        shared;
    for (const Owed& each : owed) {
        if (each.amount <= 0) continue;
        if (bears_its_domain(each))
            shared[{each.domain, each.unit.what, each.board, each.bears}].push_back(&each);
        else if (each.unit.what == What::gpu)
            add(each, whole_gpus(each.amount));
        else if (each.unit.what == What::node)
            add(each, each.amount);
        else
            add(each, (each.amount + each.per_gpu - 1) / std::max<std::int64_t>(each.per_gpu, 1));
    }
    for (const auto& [key, members] : shared) {
        const Owed& first = *members.front();
        if (first.unit.what == What::gpu) {
            std::int64_t units = 0;
            for (const Owed* each : members) units += each->amount;
            add(first, whole_gpus(units));
            continue;
        }
        std::map<std::string_view, std::pair<std::int64_t, std::int64_t>>
            by_profile;  // instances, and how many on a GPU
        for (const Owed* each : members) {
            auto& [count, per_gpu] = by_profile[each->tenant->spec.quota.guaranteeUnit];
            count += each->amount;
            per_gpu = each->per_gpu;
        }
        std::int64_t apart = 0;
        std::vector<InstanceCount> mixed;
        for (const auto& [profile, counts] : by_profile) {
            apart += (counts.first + counts.second - 1) / std::max<std::int64_t>(counts.second, 1);
            if (first.board == nullptr) continue;
            if (const auto index = profile_on(*first.board, std::string{profile}))
                mixed.push_back({*index, counts.first});
        }
        const bool may_mix = by_profile.size() > 1 && mixed.size() == by_profile.size();
        add(first, may_mix ? std::min(apart, gpus_for_instances(*first.board, mixed)) : apart);
    }
    return claims;
}

}  // namespace bulkhead
