#include "bulkhead/hw/nvme/discover.hpp"

#include <gmock/gmock.h>

#include "bulkhead/hw/nvme/in_use.hpp"
#include "bulkhead/hw/nvme/tree_test.hpp"

namespace bulkhead::nvme {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Drive drive_named(const UnpackedTree& machine, std::string_view serial) {
    const auto found = discover(machine.tree());
    for (const Drive& drive : found->drives)
        if (drive.serial == serial) return drive;
    ADD_FAILURE() << "no " << serial;
    return {};
}

TEST(Discover, drives_are_known_by_serial_and_namespaces_by_id_whatever_their_names) {
    const UnpackedTree machine{"server"};
    const auto found = discover(machine.tree());
    ASSERT_TRUE(found);
    ASSERT_EQ(found->drives.size(), 3u);
    EXPECT_EQ(found->drives[0].serial, "SYSTEM-A");
    EXPECT_EQ(found->drives[1].serial, "TENANT-A");
    const Drive& b = found->drives[2];
    EXPECT_EQ(b.serial, "TENANT-B") << "padding is not part of it";
    EXPECT_EQ(b.model, "Example 7.68TB");
    EXPECT_EQ(b.firmware, "EX01");
    EXPECT_EQ(b.controller, "nvme0");
    ASSERT_EQ(b.namespaces.size(), 2u);
    EXPECT_EQ(b.namespaces[0].nsid, 1u);
    EXPECT_EQ(b.namespaces[0].device, (BlockDevice{"nvme0n2", 259, 1}));
    EXPECT_EQ(b.namespaces[0].partitions, (std::vector<BlockDevice>{{"nvme0n2p1", 259, 2}}));
    EXPECT_EQ(b.namespaces[1].device.name, "nvme0n1");
    EXPECT_EQ(b.bytes(), (4096u + 2048u) * 512u);
    EXPECT_EQ(b.grade(), Grade::silicon);
}

TEST(Discover, a_path_of_several_leads_to_its_head) {
    const UnpackedTree machine{"server"};
    const Drive drive = drive_named(machine, "TENANT-A");
    ASSERT_EQ(drive.namespaces.size(), 1u);
    EXPECT_EQ(drive.namespaces[0].device, (BlockDevice{"nvme5n1", 259, 6}));
}

TEST(Discover, what_the_machine_runs_from_is_found_by_what_is_mounted_through_lvm) {
    const UnpackedTree machine{"server"};
    EXPECT_TRUE(drive_named(machine, "SYSTEM-A").is_system);
    EXPECT_FALSE(drive_named(machine, "TENANT-A").is_system);
    EXPECT_FALSE(drive_named(machine, "TENANT-B").is_system);
}

TEST(Discover, a_controller_that_a_virtual_machine_has_is_named) {
    const UnpackedTree machine{"server"};
    EXPECT_THAT(discover(machine.tree())->without, ElementsAre(AbsentDriver{"0000:05:00.0", "vfio-pci"}));
}

TEST(Discover, emulated_controllers_are_told_from_silicon) {
    UnpackedTree machine{"lab"};
    EXPECT_EQ(drive_named(machine, "LAB-NVME-0").grade(), Grade::emulated);
    machine.put("sys/class/nvme/nvme1/model", "Renamed");
    EXPECT_EQ(drive_named(machine, "LAB-NVME-0").grade(), Grade::emulated) << "by its maker at the bus";
}

TEST(Discover, what_is_behind_a_network_or_a_clouds_controller_is_not_called_silicon) {
    struct Row {
        std::string vendor, transport;
        Grade grade;
    };
    for (const Row& row :
         {Row{"0x144d", "pcie", Grade::silicon}, Row{"0x15ad", "pcie", Grade::emulated},
          Row{"0x80ee", "pcie", Grade::emulated}, Row{"0x1d0f", "pcie", Grade::assumed},
          Row{"0x1ae0", "pcie", Grade::assumed}, Row{"0x1414", "pcie", Grade::assumed},
          Row{"0x144d", "tcp", Grade::assumed}, Row{"", "pcie", Grade::assumed}, Row{"0x144d", "", Grade::assumed}}) {
        UnpackedTree machine{"server"};
        machine.put("sys/class/nvme/nvme2/device/vendor", row.vendor);
        machine.put("sys/class/nvme/nvme2/transport", row.transport);
        EXPECT_EQ(drive_named(machine, "TENANT-A").grade(), row.grade) << row.vendor << " " << row.transport;
    }
}

TEST(Discover, a_machine_without_drives_has_none) {
    const auto found = discover({"/nowhere", "/nowhere", "/nowhere"});
    ASSERT_TRUE(found);
    EXPECT_THAT(found->drives, IsEmpty());
}

TEST(InUse, a_mount_in_any_mount_namespace_is_seen) {
    const UnpackedTree machine{"server"};
    EXPECT_THAT(users_of(machine.tree(), drive_named(machine, "TENANT-B")),
                ElementsAre("nvme0n2p1 is mounted on /data (of process 812)"));
    EXPECT_THAT(users_of(machine.tree(), drive_named(machine, "TENANT-A")), IsEmpty());
    EXPECT_THAT(users_of(machine.tree(), drive_named(machine, "SYSTEM-A")),
                ::testing::Contains("nvme1n1p2 is part of dm-0"));
}

TEST(InUse, every_way_of_using_a_drive_is_seen) {
    struct Row {
        std::string path, content;
        bool is_link;
        std::string says;
    };
    const Row rows[] = {
        {"sys/block/nvme5n1/holders/md127", "", false, "nvme5n1 is part of md127"},
        {"proc/swaps", "Filename Type\n/dev/nvme5n1 partition 1 0 -2", false, "nvme5n1 is swap"},
        {"sys/block/loop3/loop/backing_file", "/dev/nvme5n1", false, "nvme5n1 is what loop3 reads"},
        {"proc/77/fd/3", "/dev/nvme5n1", true, "nvme5n1 is open in process 77"},
        {"proc/77/fd/4", "/dev/ng5n1", true, "nvme5n1 is open in process 77"},
        {"proc/77/mountinfo", "1 1 0:44 / /pool rw - btrfs /dev/nvme5n1 rw", false, "nvme5n1 is mounted on /pool"},
    };
    for (const Row& row : rows) {
        UnpackedTree machine{"server"};
        if (row.is_link)
            machine.link(row.path, row.content);
        else
            machine.put(row.path, row.content);
        const auto users = users_of(machine.tree(), drive_named(machine, "TENANT-A"));
        ASSERT_EQ(users.size(), 1u) << row.says;
        EXPECT_THAT(users[0], HasSubstr(row.says));
    }
}

}  // namespace
}  // namespace bulkhead::nvme
