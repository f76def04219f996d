#include "bulkhead/hw/nvme/virtual_machine.hpp"

#include <gtest/gtest.h>

#include "bulkhead/hw/nvme/tree_test.hpp"

namespace bulkhead::nvme {
namespace {

TEST(VirtualMachine, is_told_by_the_processor_the_kernel_or_the_firmware) {
    struct Row {
        std::string_view says, cpuinfo, maker, product, hypervisor, expected;
    };
    const std::string bare = "processor : 0\nflags\t\t: fpu vme sse4_2", guest = bare + " hypervisor lahf_lm";
    const std::string arm = "processor\t: 0\nFeatures\t: fp asimd";
    const Row rows[] = {
        {"a machine of metal", bare, "Dell Inc.", "PowerEdge R760xa", "", ""},
        {"a guest, by its processor", guest, "QEMU", "Standard PC (Q35 + ICH9, 2009)", "",
         "QEMU Standard PC (Q35 + ICH9, 2009)"},
        {"a guest with another maker's name", guest, "Dell Inc.", "PowerEdge R760xa", "", "Dell Inc. PowerEdge R760xa"},
        {"a guest without a name", guest, "", "", "", "a hypervisor that has no name"},
        {"a cloud's bare machine", bare, "Amazon EC2", "m7i.metal-24xl", "", ""},
        {"metal that calls itself QEMU: the processor knows better", bare, "QEMU", "oddity", "", ""},
        {"Xen, by the kernel", bare, "Xen", "HVM domU", "xen", "Xen HVM domU"},
        {"Xen without firmware", bare, "", "", "xen", "xen"},
        {"a guest of another processor, by its firmware", arm, "QEMU", "KVM Virtual Machine", "",
         "QEMU KVM Virtual Machine"},
        {"Hyper-V on another processor", arm, "Microsoft Corporation", "Virtual Machine", "",
         "Microsoft Corporation Virtual Machine"},
        {"another processor of metal", arm, "Supermicro", "ARS-221GL", "", ""},
        {"nothing to read", "", "", "", "", ""},
    };
    for (const Row& row : rows) {
        UnpackedTree machine{"server"};
        for (const char* path : {"proc/cpuinfo", "sys/class/dmi", "sys/hypervisor"}) machine.remove(path);
        if (!row.cpuinfo.empty()) machine.put("proc/cpuinfo", std::string{row.cpuinfo});
        if (!row.maker.empty()) machine.put("sys/class/dmi/id/sys_vendor", std::string{row.maker});
        if (!row.product.empty()) machine.put("sys/class/dmi/id/product_name", std::string{row.product});
        if (!row.hypervisor.empty()) machine.put("sys/hypervisor/type", std::string{row.hypervisor});
        EXPECT_EQ(virtual_machine(machine.tree()), row.expected) << row.says;
    }
}

}  // namespace
}  // namespace bulkhead::nvme
