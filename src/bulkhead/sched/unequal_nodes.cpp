// Where guaranteed work starts in fleets whose nodes differ in size.
//
// Work that keeps its node to one trust domain may take the only node that is large enough for another guarantee, and
// within its own guarantee it does not give way. So before such work opens a node, nodes are given to trust domains so
// that every guarantee is kept, beside the nodes that guaranteed work has already, and it starts on those of its own
// domain. Where no such assignment is known it starts where there is room.
#include <algorithm>
#include <map>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

namespace {

constexpr std::size_t most_nodes = 256;  // larger fleets have room to choose from, and the assignment would take long

}  // namespace

bool Engine::State::has_unequal_nodes() const {
    for (NodeNo node = 1; node < fleet.nodes(); ++node)
        if (fleet.gpus(node) != fleet.gpus(0) || sites[node] != sites[0]) return true;
    return false;
}

// By node: the trust domain whose guarantee keeps it; 0: none. What a domain leases beyond its guarantees may be taken
// back, so only the nodes on which it leases most count, as many as its guarantees need.
std::vector<DomainKey> Engine::State::nodes_kept() const {
    std::map<DomainKey, std::int64_t> left;
    for (TenantNo tenant = 0; tenant < tenants.size(); ++tenant)
        if (const std::int64_t own = own_guarantee(tenant); own > 0) left[domain_key(tenant)] += own;
    struct Used {
        bool fixed = false;
        std::int64_t leased = 0;
        NodeNo node = 0;
        DomainKey domain = 0;
    };
    std::vector<Used> used;
    for (NodeNo node = 0; node < fleet.nodes(); ++node)
        for (SeatNo s = fleet.first_seat(node); s != nil; s = fleet.seat(s).next_here) {
            const SeatRec& seat = fleet.seat(s);
            if (seat.job == nil || seat.ending) continue;
            const DomainKey key = domain_key(seat.tenant);
            if (used.empty() || used.back().node != node || used.back().domain != key)
                used.push_back({.node = node, .domain = key});
            used.back().fixed = used.back().fixed || seat.pinned;
            used.back().leased += jobs[seat.job].job.counted(1);
        }
    std::ranges::stable_sort(
        used, [](const Used& a, const Used& b) { return a.fixed != b.fixed ? a.fixed : a.leased > b.leased; });
    std::vector<DomainKey> kept(fleet.nodes());
    for (const Used& each : used) {
        const auto its = left.find(each.domain);
        if (kept[each.node] != 0 || its == left.end() || (its->second <= 0 && !each.fixed)) continue;
        kept[each.node] = each.domain;
        its->second -= fleet.gpus(each.node) * counted_whole_gpu;
    }
    return kept;
}

// The domain's own nodes, and those that it is given so that every guarantee is kept; nothing: no such assignment is
// known.
std::vector<NodeNo> Engine::State::nodes_for_guarantee(const Job& job) const {
    const DomainKey key = domain_key(job.tenant);
    const std::vector<DomainKey> kept = nodes_kept();
    std::vector<std::optional<NodeSort>> sort_at(fleet.nodes());
    std::map<NodeSort, std::int64_t> sorts;
    for (NodeNo node = 0; node < fleet.nodes(); ++node) {
        NodeSort sort{.gpus = fleet.gpus(node), .site = sites[node], .fixed = false, .domain = kept[node]};
        if (kept[node] == 0) {
            const auto free = sort_of(node, std::nullopt);
            if (!free) continue;
            sort = *free;
        }
        sort_at[node] = sort;
        ++sorts[sort];
    }
    const NodesGiven found = give_nodes(sorts, guaranteed_parts());
    if (found.keepable != Keepable::yes) return {};
    std::map<NodeSort, std::int64_t> left;
    for (const auto& [whose, nodes] : found.given)
        if (whose.first == key) left[whose.second] += nodes;
    std::vector<NodeNo> out;
    for (const NodeNo node : nodes_with_room(job)) {
        if (!sort_at[node]) continue;
        if (kept[node] == key) {
            out.push_back(node);
            continue;
        }
        const auto its = left.find(*sort_at[node]);
        if (its == left.end() || its->second == 0) continue;
        --its->second;
        out.push_back(node);
    }
    return out;
}

std::vector<FleetIndex::Portion> Engine::State::on_given_nodes(JobNo number, std::int32_t tasks,
                                                               std::vector<FleetIndex::Portion> where) {
    const Job& job = jobs[number].job;
    if (where.empty() || fleet.nodes() > most_nodes || jobs[number].grows != nil || !may_be_guaranteed(number) ||
        !fleet.closes_node(job.shape) || !has_unequal_nodes())
        return where;
    const DomainKey key = domain_key(job.tenant);
    const auto is_own = [&](const FleetIndex::Portion& portion) {
        for (SeatNo s = fleet.first_seat(portion.node); s != nil; s = fleet.seat(s).next_here)
            if (const SeatRec& seat = fleet.seat(s); seat.job != nil && domain_key(seat.tenant) == key) return true;
        return false;
    };
    if (std::ranges::all_of(where, is_own)) return where;
    const std::vector<NodeNo> nodes = nodes_for_guarantee(job);
    if (auto better = arranged(job, tasks, nodes); !better.empty() && stays_entitled(job, better)) return better;
    return where;
}

}  // namespace bulkhead::sched
