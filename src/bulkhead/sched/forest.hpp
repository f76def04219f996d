// Who is below whom, from a list in which everyone names its parent by index. Walked by loops, never by recursion: a
// chain of ten thousand is as good as a wide tree.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace bulkhead::sched {

struct Forest {
    std::vector<std::size_t> roots;                  // in the order of the list, as are children
    std::vector<std::vector<std::size_t>> children;  // by index
    std::vector<std::size_t> down;                   // everyone, each after its parent; backwards: after its children

    bool is_leaf(std::size_t index) const { return children[index].empty(); }
};

using Parent = std::optional<std::size_t>;  // none: a root

// The parents form trees: whoever reads them from outside has refused circles and strangers.
Forest forest_of(std::span<const Parent> parents);

// As people read a tree: each followed by everything below it.
struct Visit {
    std::size_t at = 0;
    std::size_t depth = 0;  // 0: a root
};
std::vector<Visit> reading_order(const Forest& forest);

// Of records that have a `parent`.
template <class T>
Forest forest_of(std::span<const T> records) {
    std::vector<Parent> parents;
    parents.reserve(records.size());
    for (const T& record : records) parents.push_back(record.parent);
    return forest_of(std::span<const Parent>{parents});
}

}  // namespace bulkhead::sched
