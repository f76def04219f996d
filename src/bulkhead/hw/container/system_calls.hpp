// Which system calls a tenant may make: one list for both tiers. Everything the kernel had when we read its table, less
// what administers machines, looks into other processes, or has been a way out of containers before. What came to the
// kernel later is answered "not implemented", so that libraries fall back, until somebody has read about it and raised
// `last_considered`. Numbers from 424 on are the same on every architecture.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::container {

constexpr int last_considered = 450;  // set_mempolicy_home_node, Linux 5.17

struct Denied {
    std::string_view name;
    int error;  // what the caller is told; ENOSYS where libraries know another way
    std::string_view why;
};
std::span<const Denied> denied_calls();

// Calls that depend on their arguments; `allowed_calls` does not name them.
constexpr unsigned long namespace_flags =
    0x7E02'0080;  // CLONE_NEWTIME NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET
std::span<const int> allowed_socket_families();
std::span<const unsigned> allowed_personalities();

// By name, in order, for this machine's architecture.
std::vector<std::string> allowed_calls();
// Loads the filter into the calling process; it is inherited by all it starts, and never lifted.
Result<> filter_system_calls();

}  // namespace bulkhead::container
