// What must hold between the nodes and jobs of a cluster before anybody is placed.
#pragma once

#include <vector>

#include "bulkhead/sched/cluster_file.hpp"

namespace bulkhead::sched {

// Every misfit, not only the first.
std::vector<Misfit> misfits_of(const Cluster& cluster);

}  // namespace bulkhead::sched
