// Whether the machine that looks at a drive is itself virtual. A drive that a hypervisor passes through is as real as
// any other, and one that it makes up can have any maker's number: what a drive is called does not tell. So this
// changes no grade; it is said wherever something is believed because it was read.
#pragma once

#include <string>

#include "bulkhead/hw/nvme/discover.hpp"

namespace bulkhead::nvme {

// By what it is called; empty: nothing here says that it is. A hypervisor that hides is not found.
std::string virtual_machine(const Tree& tree);

}  // namespace bulkhead::nvme
