// A drive behind the kernel's own driver: admin commands by ioctl on its controller's node, blocks by O_DIRECT on its
// namespaces' nodes. Needs root.
#pragma once

#include <memory>

#include "bulkhead/hw/nvme/discover.hpp"
#include "bulkhead/hw/nvme/transport.hpp"

namespace bulkhead::nvme {

// Looks that what it opened is that very drive, by the serial number that the drive itself tells.
Result<std::unique_ptr<Transport>> open_drive(const Tree& tree, const Drive& drive);

}  // namespace bulkhead::nvme
