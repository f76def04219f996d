// What udev on the host is told of tenants' drives: leave them alone. A tenant may make an array or a volume group of
// its drives, and a host that boots while they lie there would put it together as its own: then a holder keeps them
// from being wiped, and root's tools work on what a tenant wrote. Without a look at what is on a drive no rule of
// mdadm, LVM or btrfs starts anything, and bcache, which looks for itself, heeds a flag; without a watch, closing it
// after a wipe makes nobody look.
//
// By serial number, for each drive that the agent has taken in, and never by model: the machine's own may be of the
// same. Written where udev reads rules of this boot, and kept in the agent's folder for the next one, at whose start
// udev is before us (packaging/systemd/bulkhead-gpu-agent.service links it).
#pragma once

#include <span>
#include <string>

#include "bulkhead/base/result.hpp"

namespace bulkhead::agent {

// Behind 60-block.rules, which watches all disks, and before 60-persistent-storage.rules, which looks into them.
inline constexpr std::string_view drive_rules_file = "/60-bulkhead-drives.rules";
inline constexpr std::string_view udev_rules_of_this_boot = "/run/udev/rules.d";

std::string drive_rules(std::span<const std::string> serials);
// In both folders; in neither where there are no such drives (any more). A machine without the folder above `udev` has
// no udev, and is told nothing.
Result<> keep_drive_rules(const std::string& udev, const std::string& folder, std::span<const std::string> serials);

}  // namespace bulkhead::agent
