// Everything this library exports, declared from the list in calls.hpp: a definition of another type does not compile,
// and what is not in the list is not visible outside.
#pragma once

#include "bulkhead/hw/nvml/calls.hpp"

namespace bulkhead::nvml {

#define BULKHEAD_EXPORT(symbol, type) extern "C" __attribute__((visibility("default"))) call::symbol symbol;
BULKHEAD_NVML_CALLS(BULKHEAD_EXPORT)
#undef BULKHEAD_EXPORT

}  // namespace bulkhead::nvml
