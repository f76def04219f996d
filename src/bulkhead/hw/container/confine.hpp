// Giving up, step by step and for good, what root can do: the last thing our own code does before a tenant's runs, and
// what an agent does before it speaks to a network.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/spec.hpp"

namespace bulkhead::container {

// Into the network namespace that a file keeps, for good: whoever gives up root afterwards cannot leave it.
Result<> enter_network(const std::string& space);
Result<> raise_loopback();  // of the network namespace the caller is in

struct UserAndGroup {
    std::uint32_t user = 0, group = 0;
};
// Becomes that user, without capabilities and without a way to any: of the calling thread, so call it while it is the
// only one.
Result<> give_up_root(UserAndGroup ids);

// Limits, ids, capabilities, no_new_privs and the filter of system calls, of the calling process and all it starts.
Result<> confine(const TenantSpec& spec);

// Closes every descriptor from 3 on, but those; `kept` is in order.
void close_all_but(std::span<const int> kept);

}  // namespace bulkhead::container
