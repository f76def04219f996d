#include "bulkhead/policy/node_sizes.hpp"

#include <vector>

namespace bulkhead {

std::int64_t gpus_of_fewest_nodes(const std::map<std::int64_t, std::int64_t>& nodes, std::int64_t gpus) {
    constexpr std::int64_t summed_up_to = 4'096;
    if (nodes.empty() || nodes.rbegin()->first <= 0 || gpus <= 0) return gpus;
    const std::int64_t largest = nodes.rbegin()->first, rounded = (gpus + largest - 1) / largest * largest;
    if (nodes.size() == 1 || rounded > summed_up_to) return rounded;
    // For each sum that some nodes have: how many nodes of the size at hand it takes at least. The smallest sum that is
    // enough is less than one node of the largest size beyond the amount.
    constexpr std::int64_t never = -1;
    std::vector<std::int64_t> used(static_cast<std::size_t>(gpus + largest), never);
    used[0] = 0;
    for (const auto& [size, count] : nodes) {
        if (size <= 0) continue;
        for (std::int64_t& each : used)
            if (each != never) each = 0;
        for (auto sum = static_cast<std::size_t>(size); sum < used.size(); ++sum) {
            const std::int64_t before = used[sum - static_cast<std::size_t>(size)];
            if (used[sum] == never && before != never && before < count) used[sum] = before + 1;
        }
    }
    for (auto sum = static_cast<std::size_t>(gpus); sum < used.size(); ++sum)
        if (used[sum] != never) return static_cast<std::int64_t>(sum);
    return rounded;
}

}  // namespace bulkhead
