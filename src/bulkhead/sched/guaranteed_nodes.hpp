// Whether nodes can be given to trust domains so that all guarantees are kept at once, beside work that may not be
// preempted. Nodes on which a domain has such work serve that domain only, with the GPUs that the work leaves.
//
// Nodes that are alike are counted, not listed. First a quick way is tried, which is right wherever all nodes are of
// one size; then the search that admission uses (policy/node_assignment.hpp), up to a stated size.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "bulkhead/policy/node_assignment.hpp"

namespace bulkhead::sched {

using DomainKey = std::uint64_t;  // never 0

// What a node can do for guarantees.
struct NodeSort {
    std::int64_t gpus = 0;  // that no work which may not be preempted touches
    std::uint32_t site = 0;
    bool fixed = false;    // such work is on it: it is no whole node for a guarantee that counts nodes
    DomainKey domain = 0;  // the only one that it serves; 0: any
    friend auto operator<=>(const NodeSort&, const NodeSort&) = default;
};

// What is left of guarantees, of one trust domain.
struct GuaranteedPart {
    DomainKey domain = 0;
    std::optional<std::vector<std::uint32_t>> sites;  // where it is kept; nothing: anywhere
    std::int64_t least = 0;                           // of whole nodes: each has at least so many GPUs; 0: not of nodes
    std::int64_t amount = 0;                          // GPUs, or nodes
    bool served_by(const NodeSort& node) const;
};

struct NodesGiven {
    Keepable keepable = Keepable::undecided;
    std::int64_t missing = 0;  // GPUs that the quick way did not find, where no assignment is known
    std::map<std::pair<DomainKey, NodeSort>, std::int64_t> given;
    std::map<NodeSort, std::int64_t> spare;
};

// Larger questions are left to the quick way alone.
inline constexpr std::size_t most_parts = 48, most_sorts = 48;
inline constexpr std::int64_t search_steps = 200'000;

NodesGiven give_nodes(const std::map<NodeSort, std::int64_t>& nodes, std::vector<GuaranteedPart> parts);

}  // namespace bulkhead::sched
