// Saving a tenant's work before it is stopped: its own command for that, run once beside it, in the same world, under
// the same limits, for a bounded time. A program of its own (`bulkhead-tenant save`), which outlives the agent as the
// keeper does and leaves its word in the lease's directory.
#pragma once

#include <string>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/keeper.hpp"

namespace bulkhead::container {

// What the tenant's command may print for its next run; more is a mistake, and nothing is saved then.
constexpr std::size_t checkpoint_bytes_max = 2'048;

int save_work(const KeeperPlace& place, Duration within);  // the program's exit status: 0 when the word is written

}  // namespace bulkhead::container
