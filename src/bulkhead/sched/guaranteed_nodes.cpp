#include "bulkhead/sched/guaranteed_nodes.hpp"

#include <algorithm>
#include <tuple>

namespace bulkhead::sched {

bool GuaranteedPart::served_by(const NodeSort& node) const {
    if (node.gpus <= 0 || (node.domain != 0 && node.domain != domain)) return false;
    if (least > 0 && (node.fixed || node.gpus < least)) return false;
    return !sites || std::ranges::find(*sites, node.site) != sites->end();
}

namespace {

// Nodes that serve only the part's domain first. Of the others the smallest that is enough, else the largest there is.
class QuickWay {
public:
    QuickWay(const std::map<NodeSort, std::int64_t>& nodes, const std::vector<GuaranteedPart>& parts) {
        out_.spare = nodes;
        for (auto& [sort, count] : out_.spare) of_[sort.domain].emplace_back(&sort, &count);
        std::vector<const GuaranteedPart*> order;
        order.reserve(parts.size());
        for (const GuaranteedPart& part : parts) order.push_back(&part);
        // Whole nodes take what no other part uses; those with few sites to choose from come before the rest.
        std::ranges::stable_sort(order, {}, [](const GuaranteedPart* part) {
            return std::tuple{part->least == 0, !part->sites.has_value(), part->sites ? part->sites->size() : 0,
                              -part->amount};
        });
        for (const GuaranteedPart* part : order) serve(*part);
        if (out_.missing == 0) out_.keepable = Keepable::yes;
    }
    NodesGiven result() && { return std::move(out_); }

private:
    void serve(const GuaranteedPart& part) {
        std::int64_t left = part.amount;
        if (part.least == 0)
            for (auto& [sort, gpus] : rests_[part.domain]) {
                if (!part.served_by(sort)) continue;
                const std::int64_t used = std::min(gpus, left);
                gpus -= used;
                left -= used;
            }
        while (left > 0) {
            const NodeSort* best = nullptr;
            std::int64_t* nodes_of_best = nullptr;
            for (const DomainKey domain : {part.domain, DomainKey{0}}) {
                const auto its = of_.find(domain);
                if (its == of_.end()) continue;
                for (const auto& [sort, nodes] : its->second) {
                    if (*nodes <= 0 || !part.served_by(*sort)) continue;
                    if (best != nullptr && !goes_before(part, left, *sort, *best)) continue;
                    best = sort;
                    nodes_of_best = nodes;
                }
            }
            if (best == nullptr) break;
            std::int64_t& there = *nodes_of_best;
            const std::int64_t each = part.least > 0 ? 1 : best->gpus;
            const std::int64_t nodes = std::clamp<std::int64_t>(left / each, 1, there);
            there -= nodes;
            out_.given[{part.domain, *best}] += nodes;
            left -= nodes * each;
            if (left < 0) rests_[part.domain].emplace_back(*best, -left);
        }
        out_.missing += std::max<std::int64_t>(left, 0) * std::max<std::int64_t>(part.least, 1);
    }
    static bool goes_before(const GuaranteedPart& part, std::int64_t left, const NodeSort& a, const NodeSort& b) {
        if ((a.domain == 0) != (b.domain == 0)) return a.domain != 0;
        if (a.fixed != b.fixed) return a.fixed;
        if (part.least > 0) return a.gpus < b.gpus;
        const bool a_is_enough = a.gpus >= left, b_is_enough = b.gpus >= left;
        if (a_is_enough != b_is_enough) return a_is_enough;
        return a_is_enough ? a.gpus < b.gpus : a.gpus > b.gpus;
    }

    NodesGiven out_;
    // The entries of `out_.spare` by the domain that they serve, 0: any. There are many domains, and few sorts in each.
    std::map<DomainKey, std::vector<std::pair<const NodeSort*, std::int64_t*>>> of_;
    std::map<DomainKey, std::vector<std::pair<NodeSort, std::int64_t>>> rests_;  // of nodes given: GPUs not used
};

NodesGiven search(const std::map<NodeSort, std::int64_t>& nodes, const std::vector<GuaranteedPart>& parts) {
    NodesGiven out{.spare = nodes};
    std::vector<NodeKind> kinds;
    std::vector<const NodeSort*> sorts;
    std::map<DomainKey, std::size_t> domains;
    for (const auto& [sort, count] : nodes) {
        if (sort.gpus <= 0 || count <= 0) continue;
        kinds.push_back({.nodes = count, .gpus = sort.gpus});
        sorts.push_back(&sort);
    }
    std::vector<NodeClaim> claims;
    for (const GuaranteedPart& part : parts) {
        NodeClaim claim{.domain = domains.try_emplace(part.domain, domains.size()).first->second,
                        .whole_nodes = part.least > 0,
                        .amount = part.amount,
                        .bears = {}};
        for (const NodeSort* sort : sorts)
            claim.bears.push_back(part.served_by(*sort) ? std::optional{PeerTrust::same_domain} : std::nullopt);
        claims.push_back(std::move(claim));
    }
    Assignment found = assign_nodes(kinds, claims, search_steps);
    out.keepable = found.keepable;
    for (const AssignedNodes& each : found.given) {
        if (each.parts.empty()) continue;
        const NodeSort& sort = *sorts[each.kind];
        out.given[{parts[each.parts.front().claim].domain, sort}] += each.nodes;
        out.spare[sort] -= each.nodes;
    }
    return out;
}

}  // namespace

NodesGiven give_nodes(const std::map<NodeSort, std::int64_t>& nodes, std::vector<GuaranteedPart> parts) {
    std::erase_if(parts, [](const GuaranteedPart& part) { return part.amount <= 0; });
    NodesGiven quick = QuickWay{nodes, parts}.result();
    if (quick.keepable == Keepable::yes || parts.size() > most_parts || nodes.size() > most_sorts) return quick;
    NodesGiven found = search(nodes, parts);
    found.missing = quick.missing;
    return found;
}

}  // namespace bulkhead::sched
