// How a host's port treats packets by their marks: which priority each mark is, which one priority is lossless, and
// what share of a congested link each gets. As commands of iproute2's dcb, to be run on hosts and to be told, in its
// own words, to each switch. A tenant can mark its packets as it likes, so marks are set on the host's side of its
// function, and rates there as well; the plan lists them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/model/fabric.hpp"

namespace bulkhead::render {

struct TrafficClass {
    unsigned priority = 0;
    std::vector<unsigned> marks;  // DSCPs
    unsigned share = 0;           // percent; 0: strict, before all others
    bool lossless = false;
    friend bool operator==(const TrafficClass&, const TrafficClass&) = default;
};

// The classes of the policy, with the one for what is unmarked and the one for control. `exhausted`: more marks than
// priorities.
Result<std::vector<TrafficClass>> plan_traffic(const FabricPolicy& policy);
Result<std::string> qos_plan(const FabricPolicy& policy, std::string_view interface);

}  // namespace bulkhead::render
