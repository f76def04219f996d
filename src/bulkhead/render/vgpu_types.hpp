// vGPU types as the driver lists them, and what a name of one says. The lists are the driver's own word on what can be
// made now: what is not listed is not made, whatever a table says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::render {

struct VgpuType {
    std::string id;    // 1056, or nvidia-468 where mediated devices are made
    std::string name;  // NVIDIA H100-3-40C
    friend bool operator==(const VgpuType&, const VgpuType&) = default;
};

// Of creatable_vgpu_types of a virtual function: a heading, then "1056  : NVIDIA H100-3-40C".
Result<std::vector<VgpuType>> parse_creatable_types(std::string_view text);

// A MIG-backed type carries the instance it stands on: H100-3-40C is 3g with 40 GB, H100-1-10CME is 1g.10gb+me.
struct VgpuShape {
    unsigned slices = 0, gigabytes = 0;
    bool media = false;
    friend bool operator==(const VgpuShape&, const VgpuShape&) = default;
};
std::optional<VgpuShape> shape_of(std::string_view type_name);  // nothing: time-sliced, or no compute type

}  // namespace bulkhead::render
