#include "bulkhead/sched/nearness.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

namespace bulkhead::sched {

namespace {

constexpr std::int64_t most_bridges = 100;  // deeper than any machine

std::uint8_t closeness(const NodeFunction& function, const GpuPosition& gpu) {
    const auto shared = std::ranges::count_if(function.bridges, [&](const std::string& bridge) {
        return std::ranges::find(gpu.bridges, bridge) != gpu.bridges.end();
    });
    if (shared > 0) return static_cast<std::uint8_t>(1 + std::min<std::int64_t>(shared, most_bridges));
    return function.numaNode && function.numaNode == gpu.numaNode ? 1 : 0;
}

}  // namespace

std::vector<std::uint8_t> closeness_of(const GpuNodeStatus& node, std::size_t gpus) {
    std::vector<std::uint8_t> all(node.functions.size() * gpus);
    bool says = false;
    for (const GpuPosition& position : node.topology) {
        if (position.gpu < 0 || std::cmp_greater_equal(position.gpu, gpus)) continue;
        for (std::size_t i = 0; i < node.functions.size(); ++i) {
            const std::uint8_t how = closeness(node.functions[i], position);
            all[i * gpus + static_cast<std::size_t>(position.gpu)] = how;
            says = says || how > 0;
        }
    }
    if (!says) all.clear();
    return all;
}

std::size_t nearest(std::span<const std::uint16_t> functions, std::uint64_t task_gpus,
                    std::span<const std::uint8_t> closeness, std::size_t gpus) {
    std::size_t best = 0;
    std::tuple<unsigned, unsigned> best_how{};
    for (std::size_t i = 0; i < functions.size(); ++i) {
        const std::size_t row = functions[i] * gpus;
        if (row + gpus > closeness.size()) continue;
        unsigned nearest_one = 0, sum = 0;
        for (std::uint64_t bits = task_gpus; bits != 0; bits &= bits - 1) {
            const auto gpu = static_cast<std::size_t>(std::countr_zero(bits));
            if (gpu >= gpus) break;
            nearest_one = std::max<unsigned>(nearest_one, closeness[row + gpu]);
            sum += closeness[row + gpu];
        }
        if (const std::tuple how{nearest_one, sum}; how > best_how) {
            best = i;
            best_how = how;
        }
    }
    return best;
}

}  // namespace bulkhead::sched
