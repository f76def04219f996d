// How many GPUs each queue of a tree is due now. At every level, from the top down:
//
//   1. every queue gets min(request, guarantee, limit);
//   2. the surplus goes to those who still ask: strictly by over-quota priority, inside one priority in proportion to
//      weight, bounded by limit and request; weight 0 gets none of it;
//   3. what nobody may take stays unallocated.
//
// A queue with children asks for what they ask, each within its limit, and for its own work; its share is divided by
// the same rule among its children and its own work, which stands among them as the oldest, with weight 1, priority 0,
// and what the queue is guaranteed beyond its children. It gets no more than those below it may take: what a child of
// weight 0 asks beyond its guarantee is of no use to its parent, and goes to whoever can use it.
//
// Where guarantees exceed what is there (children's beyond what their parent got), step 1 honours them whole, one after
// the other: hard partitions first, then higher over-quota priority, then the older, then by name. The first that does
// not fit gets the rest, those after it nothing, and step 2 has nothing left. Nothing is scaled down: of gangs of 5 and
// 6 GPUs that are guaranteed 5 and 6, one runs on 8 GPUs; on parts of 3.6 and 4.4 neither would.
//
// Integers throughout; how fractions become whole steps is water_fill.hpp's rule. More of anything that speaks for a
// queue (request, guarantee, weight, the total) never costs it more than the one unit that rounding may move.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/sched/forest.hpp"

namespace bulkhead::sched {

struct Queue {
    std::string name;
    Parent parent;  // into the same list
    Gpus guarantee;
    std::optional<Gpus> limit;
    std::int64_t weight = 1;
    std::int64_t over_quota_priority = 0;
    Gpus request;                // of its own work, without its children's
    std::int64_t seniority = 0;  // smaller: older; of equals, the first by name
    bool hard = false;           // a hard partition
};

// In which steps shares are given. Fine: thousandths of a GPU where the total and every number of a queue is a whole
// number of them, else units of 1/21,000. In whole GPUs a request counts up to the next, a limit and the total down;
// each level is divided exactly, and then made whole: everyone its floor, then one GPU each to the largest remainders,
// ties to the older queue, then by name.
enum class Grain : std::uint8_t { fine, whole };

struct QueueShare {
    Gpus request;  // its own work and its children's, each within its limit
    Gpus share;
    Gpus own;  // of the share, what is for its own work; all of it where there are no children
    friend bool operator==(const QueueShare&, const QueueShare&) = default;
};

struct Division {
    std::vector<QueueShare> queues;  // in the order given
    Gpus unallocated;                // the total less the roots' shares
};

// The parents form trees, no number is negative, and no two siblings share a name.
Division divide(std::span<const Queue> queues, Gpus total, Grain grain = Grain::fine);

}  // namespace bulkhead::sched
