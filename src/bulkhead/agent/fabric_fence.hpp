// Which fences of a function are up. Tenants get all of them; the others are for tests of the fences.
#pragma once

#include <cstdint>

#include "bulkhead/model/terms.hpp"

namespace bulkhead::agent {

// on: all of it. nic: what the NIC itself does, as for a VM whose kernel is the tenant's. off: nothing, to see that the
// attempts are attempts.
enum class FabricFence : std::uint8_t { on, nic, off };
constexpr auto words(FabricFence) { return std::to_array<Words>({"on", "nic", "off"}); }

}  // namespace bulkhead::agent
