// A node, as far as the control plane trusts it with new leases.
#pragma once

#include <array>

#include "bulkhead/lifecycle/table.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::lifecycle {

using bulkhead::NodePhase;

enum class NodeEvent : std::uint8_t {
    hello,       // its agent opened a session and told its journal
    reconciled,  // what it told and what we hold agree, or orders are out that will make them agree
    silent,      // nothing was heard for too long
    restarted,   // the control plane started, or was restored: what we believe of it is hearsay
};
constexpr auto words(NodeEvent) { return std::to_array<Words>({"hello", "reconciled", "silent", "restarted"}); }

using NodeEdge = Edge<NodePhase, NodeEvent>;
inline constexpr std::array node_edges{
    NodeEdge{NodePhase::enrolled, NodeEvent::hello, NodePhase::reconciling},
    NodeEdge{NodePhase::reconciling, NodeEvent::hello, NodePhase::reconciling},
    NodeEdge{NodePhase::reconciling, NodeEvent::reconciled, NodePhase::ready},
    NodeEdge{NodePhase::reconciling, NodeEvent::silent, NodePhase::fenced},
    NodeEdge{NodePhase::ready, NodeEvent::hello, NodePhase::reconciling},
    NodeEdge{NodePhase::ready, NodeEvent::silent, NodePhase::fenced},
    NodeEdge{NodePhase::fenced, NodeEvent::hello, NodePhase::reconciling},
    NodeEdge{NodePhase::ready, NodeEvent::restarted, NodePhase::fenced},
    NodeEdge{NodePhase::reconciling, NodeEvent::restarted, NodePhase::fenced},
};
static_assert(deterministic(node_edges));
static_assert(only_reached_from(node_edges, NodePhase::ready, NodePhase::reconciling),
              "a node is leased only after its journal was reconciled");
static_assert(always_recoverable(node_edges, NodePhase::ready));

}  // namespace bulkhead::lifecycle
