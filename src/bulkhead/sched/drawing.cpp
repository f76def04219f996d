#include "bulkhead/sched/drawing.hpp"

#include <algorithm>

#include "bulkhead/gpu/amd.hpp"
#include "bulkhead/policy/slice.hpp"

namespace bulkhead::sched {

Gpu clean_gpu(const std::string& model) {
    Gpu gpu{.model = model};
    const Silicon silicon = silicon_of(model);
    gpu.board = silicon.nvidia;
    if (silicon.nvidia != nullptr) gpu.slices = static_cast<std::uint8_t>(silicon.nvidia->memory_slices);
    if (silicon.amd != nullptr) gpu.slices = 8;
    gpu.available = gpu.all();
    return gpu;
}

Gpus counted(const GpuRequest& asked, const Contract& contract, std::int64_t tasks) {
    Gpus most;
    for (const Slice& slice : contract.slices)
        if (const auto facts = slice_on(silicon_of(slice.model), asked, contract.mechanism))
            most = std::max(most, Gpus{facts->units(tasks)});
    return most;
}

}  // namespace bulkhead::sched
