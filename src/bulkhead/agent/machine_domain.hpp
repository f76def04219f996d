// The machine of a StartTenant as a domain: the same function that `bulkhead render libvirt` calls, with this node's
// own word on itself.
#pragma once

#include <string>
#include <string_view>

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
};
Result<render::DomainSpec> machine_domain(const StartTenant& what, const GpuNodeStatus& node,
                                          const MachineParts& parts);

}  // namespace bulkhead::agent
