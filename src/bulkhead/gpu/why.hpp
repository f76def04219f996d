// Why a layout or a plan is refused, and what to know about one that is not: stable codes, and the sentence for each.
#pragma once

#include <string>

#include "bulkhead/base/reason.hpp"

namespace bulkhead::gpu {

// The sentence, without a final stop. Nothing in geometry is secret from a tenant: it is about one GPU's slices.
std::string explain(const Reason& reason);

}  // namespace bulkhead::gpu
