#include "bulkhead/sched/forest.hpp"

#include "bulkhead/base/result.hpp"

namespace bulkhead::sched {

Forest forest_of(std::span<const Parent> parents) {
    Forest forest;
    forest.children.resize(parents.size());
    for (std::size_t i = 0; i < parents.size(); ++i) {
        if (!parents[i]) {
            forest.roots.push_back(i);
            continue;
        }
        invariant(*parents[i] < parents.size(), "a parent is one of the list");
        forest.children[*parents[i]].push_back(i);
    }
    forest.down = forest.roots;
    forest.down.reserve(parents.size());
    for (std::size_t next = 0; next < forest.down.size(); ++next)
        for (const std::size_t child : forest.children[forest.down[next]]) forest.down.push_back(child);
    invariant(forest.down.size() == parents.size(), "parents form no circle");
    return forest;
}

std::vector<Visit> reading_order(const Forest& forest) {
    std::vector<Visit> out, ahead;  // the next to be read last
    const auto put_ahead = [&](const std::vector<std::size_t>& siblings, std::size_t depth) {
        for (std::size_t i = siblings.size(); i-- > 0;) ahead.push_back({siblings[i], depth});
    };
    put_ahead(forest.roots, 0);
    while (!ahead.empty()) {
        out.push_back(ahead.back());
        ahead.pop_back();
        put_ahead(forest.children[out.back().at], out.back().depth + 1);
    }
    return out;
}

}  // namespace bulkhead::sched
