// The nearest request that would be accepted: the fewest changed fields, tried in a fixed order; never a weaker tier,
// wider sharing, another place or less compliance. What it proposes was judged, not guessed.
#pragma once

#include <optional>

#include "bulkhead/policy/contract.hpp"
#include "bulkhead/policy/verdict.hpp"

namespace bulkhead {

struct Search {
    std::optional<Proposal> proposal;
    bool budget_spent = false;  // the search stopped early: there may be a proposal that it did not see
};

// The verdict on the workload must be a refusal.
Search nearest_acceptable(const GpuWorkload& workload, const Asker& asker, const FleetView& fleet,
                          const Verdict& verdict);

}  // namespace bulkhead
