// What a task's request means on one GPU model: which slice, what comes with it, how much of a GPU that is for quota,
// how many such slices a GPU gives. Read from the boards of gpu/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/model/workload.hpp"
#include "bulkhead/policy/ask.hpp"

namespace bulkhead {

namespace gpu {
struct AmdBoard;
struct Board;
}  // namespace gpu

// A GPU model looked up once: at most one of the two boards is known; for a model of neither table both are null.
struct Silicon {
    std::string_view model;
    const gpu::Board* nvidia = nullptr;
    const gpu::AmdBoard* amd = nullptr;

    bool confidential = false;  // Hopper and newer have a confidential mode; nothing unknown does

    Vendor vendor() const { return amd != nullptr ? Vendor::amd : Vendor::nvidia; }
};
Silicon silicon_of(std::string_view model);  // the model's text must outlive it

struct SliceFacts {
    std::int64_t parts = 1, of = 1;  // of a GPU, per task: exact, so that seven sevenths are one
    std::int64_t per_gpu = 1;        // how many tasks one GPU serves; for whole GPUs, one per `count`
    Grade grade = Grade::documented;
    bool part_of_instance = false;  // a compute instance: memory, cache and engines are shared inside the GPU instance

    // What quota counts for so many tasks, in Gpus::units. Slices come out exact; only requests in bytes are rounded,
    // up.
    constexpr std::int64_t units(std::int64_t tasks) const { return (gpu_unit * parts * tasks + of - 1) / of; }
};

// Nothing when the model cannot give it: no such profile, too little memory, no MIG at all. Asked hundreds of times for
// one decision, so it makes no text.
std::optional<SliceFacts> slice_on(const Silicon& silicon, const GpuRequest& request, Mechanism mechanism);

// The same in words, where slice_on has an answer.
struct SliceText {
    std::string slice;    // "3g.40gb", "8 GPUs", "0.5 GPU"
    std::string engines;  // "60 SMs, 3 copy, 3 decode, ..."; empty: the whole GPU's
};
SliceText slice_text(const Silicon& silicon, const GpuRequest& request, Mechanism mechanism);

// Slices of this model that come nearest to a profile named for another: the same compute slices, then larger ones.
std::vector<std::string> profiles_like(const Silicon& silicon, std::string_view typed);

}  // namespace bulkhead
