#include "bulkhead/hw/nvme/virtual_machine.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <string_view>

#include "bulkhead/hw/nvme/sysfs.hpp"

namespace bulkhead::nvme {

namespace {

// Firmware of virtual machines, by the beginning of its maker's or its product's name. Only asked where the processor
// does not tell: clouds have their names in the firmware of bare machines, too.
constexpr auto made_up = std::to_array<std::string_view>(
    {"QEMU", "KVM", "VMware", "VirtualBox", "innotek", "Xen", "Bochs", "Parallels", "Virtual Machine"});

bool processor_says_so(const std::string& cpuinfo) {
    for (const auto line : std::views::split(cpuinfo, '\n')) {
        const std::string_view text{line.begin(), line.end()};
        if (!text.starts_with("flags")) continue;
        return std::ranges::any_of(std::views::split(text, ' '), [](const auto& word) {
            return std::string_view{word.begin(), word.end()} == "hypervisor";
        });
    }
    return false;
}

}  // namespace

std::string virtual_machine(const Tree& tree) {
    const std::string dmi = tree.sys + "/class/dmi/id/";
    const std::string maker = first_line_of(dmi + "sys_vendor"), product = first_line_of(dmi + "product_name");
    const std::string kind = first_line_of(tree.sys + "/hypervisor/type");
    const std::string called = maker.empty() || product.empty() ? maker + product : maker + " " + product;
    if (!kind.empty()) return called.empty() ? kind : called;
    const std::string cpuinfo = text_of(tree.proc + "/cpuinfo");
    if (processor_says_so(cpuinfo)) return called.empty() ? "a hypervisor that has no name" : called;
    const bool by_name = std::ranges::any_of(
        made_up, [&](std::string_view name) { return maker.starts_with(name) || product.starts_with(name); });
    return by_name && !cpuinfo.contains("\nflags") ? called : "";
}

}  // namespace bulkhead::nvme
