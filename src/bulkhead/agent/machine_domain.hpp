// The machine of a StartTenant as a domain: the same function that `bulkhead render libvirt` calls, with this node's
// own word on itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/agent/drives.hpp"
#include "bulkhead/hw/vm/machine_files.hpp"
#include "bulkhead/model/node.hpp"
#include "bulkhead/node/operation.hpp"
#include "bulkhead/render/libvirt_domain.hpp"

namespace bulkhead::agent {

// libvirt cuts names after 20 characters where it makes others of them; these are shorter, whatever the lease.
inline constexpr std::string_view machine_prefix = "bh-";
std::string machine_name(Key lease);

// As the kernel writes a PCI address; NVML writes it longer.
std::string kernel_address(const std::string& bus_id);

// The image its work names, by a variable that only the control plane sets; or the node's default.
std::string image_of(const Program& program);

struct MachineParts {
    vm::MachineFolder folder;
    vm::Image image;
    bool emulated = false;
    std::int64_t huge_page_bytes = 0;
    std::uint32_t user = 0;             // whose process it is; 0: libvirt's own for all
    std::string nodes;                  // the folder of its block devices
    std::vector<LentNamespace> drives;  // as they were found
};
// What the command in the guest is told of its drives: paths as udev makes them of virtio disks' serial numbers.
std::string guest_drives(const std::vector<LentNamespace>& drives);
// What it is told of its functions: who each is, `BULKHEAD_PORTS=MAC=ADDRESS/LENGTH,...` (on InfiniBand by the port's
// GUID), for a link of the guest's is known by its hardware address alone; and what NCCL goes by. Nothing without any.
std::vector<std::string> guest_fabric(const StartTenant& what);
Result<render::DomainSpec> machine_domain(const StartTenant& what, const GpuNodeStatus& node,
                                          const MachineParts& parts);

}  // namespace bulkhead::agent
