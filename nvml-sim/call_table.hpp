// How we know what each exported call answers. One row per call; a test holds the rows, the list in calls.hpp and the
// symbols of the built library to be the same set. A call of NVML that the model knows nothing about has no row and is
// not exported: a client then finds it missing, as with an older driver, instead of being told something made up.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace bulkhead::nvml_sim {

enum class CallBasis : std::uint8_t {
    captured,    // an H200 answered so (testdata/nvml/); the test compares field by field
    documented,  // NVIDIA's documents or published listings say so
    assumed,     // our best idea of what a driver does
};
std::string_view print(CallBasis basis);

struct CallRow {
    std::string_view symbol;
    CallBasis basis{};
    std::string_view note;
};
std::span<const CallRow> call_table();       // of libnvidia-ml.so.1
std::span<const CallRow> cuda_call_table();  // of libcuda.so.1

}  // namespace bulkhead::nvml_sim
