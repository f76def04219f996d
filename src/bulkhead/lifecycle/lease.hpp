// A lease is a whole gang: one lease, all its parts on all its nodes, or none.
#pragma once

#include <array>

#include "bulkhead/lifecycle/table.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::lifecycle {

using bulkhead::LeasePhase;

enum class LeaseEvent : std::uint8_t {
    all_prepared,  // every node verified its part: now, and not before, tenant code may start
    end,           // asked to end: deleted, frozen, drained, a part failed or went silent
    all_settled,   // every part is gone and every unit wiped, quarantined or held
};
constexpr auto words(LeaseEvent) { return std::to_array<Words>({"all-prepared", "end", "all-settled"}); }

using LeaseEdge = Edge<LeasePhase, LeaseEvent>;
inline constexpr std::array lease_edges{
    LeaseEdge{LeasePhase::preparing, LeaseEvent::all_prepared, LeasePhase::active},
    LeaseEdge{LeasePhase::preparing, LeaseEvent::end, LeasePhase::ending},
    LeaseEdge{LeasePhase::active, LeaseEvent::end, LeasePhase::ending},
    LeaseEdge{LeasePhase::ending, LeaseEvent::all_settled, LeasePhase::closed},
};
static_assert(deterministic(lease_edges));
static_assert(only_reached_from(lease_edges, LeasePhase::active, LeasePhase::preparing),
              "a gang starts whole, from preparing");
static_assert(only_reached_from(lease_edges, LeasePhase::closed, LeasePhase::ending), "nothing closes without reclaim");
static_assert(always_recoverable(lease_edges, LeasePhase::closed));

}  // namespace bulkhead::lifecycle
