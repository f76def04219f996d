// Block devices that one machine gets, as nodes of its own: a domain names a disk by a path, and the names below /dev
// are given anew at every boot and by whoever runs there. These are made by number for this machine alone, in a folder
// that only root writes, and libvirt gives them and not the host's own to QEMU's user.
//
// Below /dev, because /run takes no device nodes on most hosts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::vm {

struct DiskNode {
    std::string name;  // drive0n1
    std::uint32_t major = 0, minor = 0;
};

// Safe to repeat: what is there and means another device is made anew.
Result<> make_disk_nodes(const std::string& folder, const std::vector<DiskNode>& nodes);
Result<> remove_disk_nodes(const std::string& folder);  // and the folder; not being there is fine

}  // namespace bulkhead::vm
