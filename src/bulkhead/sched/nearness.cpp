#include "bulkhead/sched/nearness.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <ranges>
#include <string_view>
#include <tuple>
#include <utility>

namespace bulkhead::sched {

namespace {

constexpr std::size_t most_gpus = 64;     // as many as the engine looks at, and bits of a mask
constexpr std::size_t most_bridges = 32;  // above one device: deeper than any machine

// What is said of each GPU, first word only: which are on a NUMA node, and which below a bridge.
struct Places {
    std::map<std::int64_t, std::uint64_t> on_numa;
    std::map<std::string_view, std::uint64_t> below;
};

Places places_of(const GpuNodeStatus& node, std::size_t gpus) {
    Places all;
    std::uint64_t seen = 0;
    for (const GpuPosition& position : node.topology) {
        if (position.gpu < 0 || std::cmp_greater_equal(position.gpu, gpus)) continue;
        const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(position.gpu);
        if ((std::exchange(seen, seen | bit) & bit) != 0) continue;
        if (position.numaNode) all.on_numa[*position.numaNode] |= bit;
        for (const std::string& bridge : position.bridges | std::views::take(most_bridges)) all.below[bridge] |= bit;
    }
    return all;
}

void count(std::span<std::uint8_t> row, std::uint64_t gpus) {
    for (; gpus != 0; gpus &= gpus - 1) ++row[static_cast<std::size_t>(std::countr_zero(gpus))];
}

}  // namespace

// A node writes both lists, and this runs where every other node waits: by bridge, not each list against each.
std::vector<std::uint8_t> closeness_of(const GpuNodeStatus& node, std::size_t gpus) {
    gpus = std::min(gpus, most_gpus);
    const Places places = places_of(node, gpus);
    if (places.on_numa.empty() && places.below.empty()) return {};
    std::vector<std::uint8_t> all(node.functions.size() * gpus);
    for (std::size_t i = 0; i < node.functions.size(); ++i) {
        const NodeFunction& function = node.functions[i];
        const std::span row = std::span{all}.subspan(i * gpus, gpus);
        std::uint64_t switched = 0;
        for (const std::string& bridge : function.bridges | std::views::take(most_bridges))
            if (const auto found = places.below.find(bridge); found != places.below.end()) {
                count(row, found->second);
                switched |= found->second;
            }
        if (function.numaNode)
            if (const auto found = places.on_numa.find(*function.numaNode); found != places.on_numa.end())
                count(row, found->second & ~switched);
        count(row, switched);  // from 2 on
    }
    if (std::ranges::all_of(all, [](std::uint8_t how) { return how == 0; })) all.clear();
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
