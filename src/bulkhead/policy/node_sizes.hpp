// How many GPUs a guarantee closes at least, where work closes whole nodes.
#pragma once

#include <cstdint>
#include <map>

namespace bulkhead {

// `nodes`: how many there are, by GPUs. The GPUs of the smallest set of nodes that has so many. Above 4,096 GPUs, and
// where all nodes together have fewer, the amount rounded up to whole nodes of the largest size.
std::int64_t gpus_of_fewest_nodes(const std::map<std::int64_t, std::int64_t>& nodes, std::int64_t gpus);

}  // namespace bulkhead
