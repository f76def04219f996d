// Whether anything of a machine is left on the host, whatever libvirt says: a process of QEMU's with its name, or a
// control group of its own. The kernel is asked, not the one who was told to clean up.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::vm {

struct Presence {
    std::vector<pid_t> processes;
    std::vector<std::string> groups;  // control groups that still hold processes
    bool any() const { return !processes.empty() || !groups.empty(); }
};

// `proc` and `cgroups` are the kernel's, or trees like them.
Result<Presence> presence_of(const std::string& machine, const std::string& proc = "/proc",
                             const std::string& cgroups = "/sys/fs/cgroup");

}  // namespace bulkhead::vm
