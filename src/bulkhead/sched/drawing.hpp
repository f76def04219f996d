// How a scene's GPUs and jobs are drawn, whichever document they come from.
#pragma once

#include <string>

#include "bulkhead/model/workload.hpp"
#include "bulkhead/policy/contract.hpp"
#include "bulkhead/sched/fleet.hpp"

namespace bulkhead::sched {

// A GPU that is clean and nobody's.
Gpu clean_gpu(const std::string& model);

// What quota counts for so many tasks, on the model where that is most.
Gpus counted(const GpuRequest& asked, const Contract& contract, std::int64_t tasks);

inline std::uint8_t bits_of(const Seat& seat) { return gpu::Placement{seat.start, seat.size}.mask(); }

}  // namespace bulkhead::sched
