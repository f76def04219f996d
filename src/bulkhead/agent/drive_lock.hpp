// Who answers for a drive on this machine: one agent, or one person who erases it by hand. A lock for each serial
// number in one folder of the host, held as long as whoever took it lives, also while no tenant has the drive.
#pragma once

#include <string>

#include "bulkhead/hw/container/durable.hpp"

namespace bulkhead::agent {

inline constexpr std::string_view drive_locks = "/run/bulkhead/drive-locks";

// `conflict`: somebody else has it.
Result<container::Fd> take_drive_lock(const std::string& folder, const std::string& serial);
// Asks, and takes nothing. False also where nobody may ask.
bool is_drive_taken(const std::string& folder, const std::string& serial);

}  // namespace bulkhead::agent
