// Capacity of one node that no lease holds and that work keeps from others because it asked for more isolation than the
// rules demand. It counts against the limit of that work's tenant and is metered; dues, guarantees and turns ignore it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bulkhead::sched {

// What one lease or job holds of a node, and what it asked to have alone beyond the rules.
struct NodeTenure {
    std::vector<std::int64_t> leased;  // by GPU, in Gpus::units
    bool keeps_node = false, keeps_gpu = false;
};

// By tenure and GPU, in Gpus::units: its part of what is kept. `sound` is the capacity of each GPU that is not lost.
// The free capacity of a node is split among those that keep the node, by what each leases there; where none does, the
// rest of a GPU is split among those on it that keep the GPU. Parts add up to the whole exactly.
std::vector<std::vector<std::int64_t>> kept_parts(std::span<const NodeTenure> tenures,
                                                  std::span<const std::int64_t> sound);

}  // namespace bulkhead::sched
