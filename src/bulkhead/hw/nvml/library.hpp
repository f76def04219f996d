// libnvidia-ml.so.1 as it was loaded: one pointer for each call of calls.hpp, null where the driver lacks it.
#pragma once

#include <string>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/nvml/calls.hpp"

namespace bulkhead::nvml {

struct Library {
    void* handle = nullptr;
    bool started = false;  // nvmlInit_v2 has succeeded
#define BULKHEAD_NVML_POINTER(symbol, type) call::symbol* symbol = nullptr;
    BULKHEAD_NVML_CALLS(BULKHEAD_NVML_POINTER)
#undef BULKHEAD_NVML_POINTER

    Library() = default;
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    ~Library();

    // `doing` as in "could not ...".
    Result<> check(Return code, const std::string& doing) const;
};

}  // namespace bulkhead::nvml
