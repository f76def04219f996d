// Who machines are on their host: each a user of a range that is nobody's account and no other agent's, so that one
// that breaks out into QEMU meets files and devices of others that it cannot open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/durable.hpp"

namespace bulkhead::agent {

struct UserRange {
    std::uint32_t first = 0, count = 0;
};

inline constexpr std::uint32_t machine_users_least = 65'536;  // below are the host's accounts
constexpr bool are_machine_users(std::uint32_t first) { return first == 0 || first >= machine_users_least; }

// Held as long as the answer is. `conflict`: another agent of this host has some of them.
Result<std::vector<container::Fd>> hold_users(const std::string& locks, UserRange range);

bool is_account(std::uint32_t user);

// Such a user is in no group, and libvirt hands out disks and VFIO groups, not this device. The group that may open it
// is no way in: what libvirt makes for a machine is open to the group it runs as, and would be to every machine.
Result<> anybody_may_open(const std::string& kvm);

}  // namespace bulkhead::agent
