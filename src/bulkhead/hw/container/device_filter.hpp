// Which device numbers a control group may open, on version 2, where the kernel asks a small program: assembled here by
// hand, a few instructions per device, so that no compiler and no library is needed on a node.
#pragma once

#include <linux/bpf.h>

#include <span>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/spec.hpp"

namespace bulkhead::container {

// Answers 1 for the devices listed, whatever is to be done with them, and 0 for everything else.
std::vector<bpf_insn> device_program(std::span<const DeviceNode> devices);

// Loads it and attaches it to the control group at that path, in place of one attached by us before. It stays while the
// group does, whoever dies.
Result<> allow_only(const std::string& cgroup, std::span<const DeviceNode> devices);

}  // namespace bulkhead::container
