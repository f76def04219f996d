// Whether nodes can be assigned to claims so that all claims are served at the same time. A node serves only claims
// that may sit on it together: claims of one tenant, claims of one trust domain that bear each other, or claims that
// bear any neighbour. The search is exact until its budget is spent; it never accepts without an assignment in hand.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bulkhead/model/terms.hpp"

namespace bulkhead {

// Nodes that are alike: the same number of GPUs, and the same claims may use them.
struct NodeKind {
    std::int64_t nodes = 0, gpus = 0;
};

struct NodeClaim {
    std::size_t domain = 0;    // claims with the same number trust each other
    bool whole_nodes = false;  // the amount counts nodes, and no other claim is on them
    std::int64_t amount = 0;   // whole GPUs, in any division over nodes, or whole nodes
    // By kind: the least trusted neighbour that this claim bears on such a node; nothing: the node cannot serve it.
    std::vector<std::optional<PeerTrust>> bears;
};

// Nodes of one kind that are given to claims which share them.
struct AssignedNodes {
    struct Part {
        std::size_t claim = 0;
        std::int64_t gpus = 0;
    };
    std::size_t kind = 0;
    std::int64_t nodes = 0;
    std::vector<Part> parts;
};

enum class Keepable : std::uint8_t {
    yes,
    no,
    undecided,  // the budget was spent before an assignment or a proof of its absence was found
};

struct Assignment {
    Keepable keepable = Keepable::undecided;
    std::vector<AssignedNodes> given;  // when keepable: one assignment that serves every claim
};

// Steps of the search. A step takes some nanoseconds, so that a decision takes at most some seconds.
inline constexpr std::int64_t assignment_budget = 20'000'000;

Assignment assign_nodes(std::span<const NodeKind> kinds, std::span<const NodeClaim> claims,
                        std::int64_t budget = assignment_budget);

}  // namespace bulkhead
