// Who uses a drive now. The kernel stops no erase of a drive that is mounted or open: somebody has to look. Every mount
// namespace is asked, by device number; what sits on top of the drive, its partitions, swap, loop devices, exports and
// open files too. Never by a name that a tenant can give: who could make a drive look used could keep it from
// everybody. An exclusive open of every namespace (Transport::hold) then keeps mounts and other exclusive opens away;
// it keeps nobody away who opens without asking for that, so that it is looked once more after it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "bulkhead/hw/nvme/discover.hpp"

namespace bulkhead::nvme {

// "nvme0n1p1 is mounted on /data (of process 812)"; none: nobody.
std::vector<std::string> users_of(const Tree& tree, const Drive& drive);
// Whether whoever asks is shown what every process has open; without root, `users_of` does not see all of them.
bool sees_all_processes(const Tree& tree);

// Names of the disks that the machine runs from: that of the root, /usr, /boot, /var and swap, through whatever lies
// between. By what is mounted, not by a name that a disk has at one boot.
std::set<std::string> system_disks(const Tree& tree);

}  // namespace bulkhead::nvme
