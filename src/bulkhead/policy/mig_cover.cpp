#include "bulkhead/policy/mig_cover.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "bulkhead/gpu/layout.hpp"

namespace bulkhead {

namespace {

using Instances = std::vector<std::int64_t>;  // by what is wanted

// Every number of the wanted instances that one GPU holds together and to which none of the wanted can be added.
std::vector<Instances> layouts_of(const gpu::Board& board, std::span<const InstanceCount> wanted) {
    std::set<Instances> found;
    for (const gpu::Multiset& set : gpu::maximal_sets(board, gpu::Include::all)) {
        Instances here;
        for (const InstanceCount& each : wanted) here.push_back(set[each.profile]);
        found.insert(std::move(here));
    }
    const auto holds_no_more = [](const Instances& a, const Instances& b) {
        return a != b && std::ranges::equal(a, b, std::ranges::less_equal{});
    };
    std::vector<Instances> out;
    for (const Instances& each : found)
        if (std::ranges::none_of(found, [&](const Instances& other) { return holds_no_more(each, other); }))
            out.push_back(each);
    return out;
}

Instances without(Instances left, const Instances& layout) {
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = std::max<std::int64_t>(left[i] - layout[i], 0);
    return left;
}
bool is_nothing(const Instances& left) {
    return std::ranges::all_of(left, [](std::int64_t count) { return count == 0; });
}

class Covering {
public:
    explicit Covering(std::vector<Instances> layouts) : layouts_{std::move(layouts)} {}

    std::int64_t fewest(const Instances& left) {
        if (is_nothing(left)) return 0;
        if (const auto known = known_.find(left); known != known_.end()) return known->second;
        std::int64_t best = std::numeric_limits<std::int64_t>::max();
        for (const Instances& layout : layouts_)
            if (Instances next = without(left, layout); next != left) best = std::min(best, 1 + fewest(next));
        return known_[left] = best;
    }

    // Takes at each step the layout that holds most of what is left.
    std::int64_t enough(Instances left) const {
        std::int64_t gpus = 0;
        while (!is_nothing(left)) {
            const auto held = [&](const Instances& layout) {
                std::int64_t sum = 0;
                for (std::size_t i = 0; i < left.size(); ++i) sum += std::min(left[i], layout[i]);
                return sum;
            };
            const Instances& best = *std::ranges::max_element(layouts_, {}, held);
            std::int64_t times = std::numeric_limits<std::int64_t>::max();
            for (std::size_t i = 0; i < left.size(); ++i)
                if (best[i] > 0 && left[i] > 0) times = std::min(times, std::max<std::int64_t>(left[i] / best[i], 1));
            for (std::int64_t n = 0; n < times; ++n) left = without(std::move(left), best);
            gpus += times;
        }
        return gpus;
    }

private:
    std::vector<Instances> layouts_;
    std::map<Instances, std::int64_t> known_;
};

}  // namespace

std::int64_t gpus_for_instances(const gpu::Board& board, std::span<const InstanceCount> wanted) {
    Instances counts;
    std::int64_t combinations = 1;
    for (const InstanceCount& each : wanted) {
        counts.push_back(each.count);
        combinations = each.count > 20'000 ? 20'001 : std::min<std::int64_t>(combinations * (each.count + 1), 20'001);
    }
    Covering covering{layouts_of(board, wanted)};
    return combinations <= 20'000 ? covering.fewest(counts) : covering.enough(counts);
}

}  // namespace bulkhead
