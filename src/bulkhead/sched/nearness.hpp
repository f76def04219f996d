// How near a node's virtual functions are to its GPUs, and which of them a task should have: one that moves data to a
// GPU below its own PCIe switch spares the host's links and memory, one of the other socket pays for both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bulkhead/model/node.hpp"

namespace bulkhead::sched {

// Of each function to each of the first so many GPUs, function by function: 0 anywhere, 1 on the same NUMA node, and
// from 2 on below one PCIe switch, more where they have more bridges in common. Empty: the node says nothing of it.
// Of at most 64 GPUs; of what a node says more than once or at greater length than any machine is, the first counts.
std::vector<std::uint8_t> closeness_of(const GpuNodeStatus& node, std::size_t gpus);

// Which of these functions, by its place in the list: nearest to any GPU of the task (the others reach that one over
// NVLink), then to all of them, then the lowest number. The list has one at least, in the order of their numbers.
std::size_t nearest(std::span<const std::uint16_t> functions, std::uint64_t task_gpus,
                    std::span<const std::uint8_t> closeness, std::size_t gpus);

}  // namespace bulkhead::sched
