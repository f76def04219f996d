// Which CPUs a tenant's processes are begun on: those beside its GPUs. A hint, and no wall: the scheduler of the kernel
// heeds it, and a tenant may ask for others.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace bulkhead::container {

// "0-15,64-79" as hwloc and the kernel write it. Nothing: it is no such list, or names a CPU above 4095.
std::optional<std::vector<unsigned>> parse_cpus(std::string_view list);

// Of the calling process and all it starts from now on. CPUs that this machine does not have are passed over; without
// any that it has, everything stays as it is.
void stay_near(std::string_view cpus);

}  // namespace bulkhead::container
