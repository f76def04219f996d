#include "bulkhead/hw/nvme/discover.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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
        {"proc/77/fd/4", "/dev/null", true, "nvme5n1 is open in process 77"},  // 1:3, as its generic device here
        {"proc/77/mountinfo", "1 1 0:44 / /pool rw - btrfs /dev/nvme5n1 rw", false, "nvme5n1 is mounted on /pool"},
    };
    for (const Row& row : rows) {
        UnpackedTree machine{"server"};
        machine.put("sys/class/nvme-generic/ng5n1/dev", "1:3");
        machine.put("proc/filesystems", "nodev\ttmpfs\n\tbtrfs");
        if (row.is_link)
            machine.link(row.path, row.content);
        else
            machine.put(row.path, row.content);
        const auto users = users_of(machine.tree(), drive_named(machine, "TENANT-A"));
        ASSERT_EQ(users.size(), 1u) << row.says;
        EXPECT_THAT(users[0], HasSubstr(row.says));
    }
}

TEST(InUse, what_the_machine_exports_to_others_is_in_use_while_that_is_enabled) {
    struct Row {
        std::string says, folder, path, enable, user;
    };
    const Row rows[] = {
        {"a namespace", "namespaces/1", "/dev/nvme5n1", "1", "nvme5n1 is exported by nvmet as nqn.x"},
        {"by a link of udev's", "namespaces/7", "/dev/disk/by-id/a", "1", "nvme5n1 is exported by nvmet as nqn.x"},
        {"the whole controller", "passthru", "/dev/nvme2", "1", "nvme2 is exported by nvmet as nqn.x"},
        {"not enabled", "namespaces/1", "/dev/nvme5n1", "0", ""},
        {"another drive", "namespaces/1", "/dev/nvme0n1", "1", ""},
        {"a file", "namespaces/1", "/srv/nvme5n1", "1", ""},
        {"a link that leads nowhere", "namespaces/1", "/dev/disk/by-id/b", "1", ""},
    };
    for (const Row& row : rows) {
        UnpackedTree machine{"server"};
        machine.put("dev/nvme5n1", "");
        machine.put("dev/nvme2", "");
        machine.link("dev/disk/by-id/a", "../../nvme5n1");
        const std::string folder = "sys/kernel/config/nvmet/subsystems/nqn.x/" + row.folder;
        machine.put(folder + "/device_path", row.path);
        machine.put(folder + "/enable", row.enable);
        const auto users = users_of(machine.tree(), drive_named(machine, "TENANT-A"));
        if (row.user.empty())
            EXPECT_THAT(users, IsEmpty()) << row.says;
        else
            EXPECT_THAT(users, ElementsAre(row.user)) << row.says;
    }
}

TEST(InUse, an_open_block_device_is_known_by_its_number_whatever_its_name) {
    UnpackedTree machine{"server"};
    const std::string node = machine.folder() / "any-name";
    if (::mknod(node.c_str(), S_IFBLK | 0600, ::makedev(259, 6)) != 0)
        GTEST_SKIP() << "a device node needs root: " << std::strerror(errno);
    machine.link("proc/77/fd/3", node);
    machine.put("proc/77/comm", "dd");
    EXPECT_THAT(users_of(machine.tree(), drive_named(machine, "TENANT-A")),
                ElementsAre("nvme5n1 is open in process 77 (dd)"));
    EXPECT_THAT(users_of(machine.tree(), drive_named(machine, "TENANT-B")),
                ::testing::Not(::testing::Contains(HasSubstr("77"))));
}

// Else one tenant keeps the drives of all others from being wiped or lent.
TEST(InUse, nobody_makes_a_drive_look_used_by_giving_something_its_name) {
    struct Row {
        std::string says, path, content;
        bool is_link;
    };
    UnpackedTree machine{"server"};
    const std::string file = machine.folder() / "dev/shm/nvme5n1", generic = machine.folder() / "dev/shm/ng5n1";
    machine.put("dev/shm/nvme5n1", "a regular file");
    machine.put("dev/shm/ng5n1", "a regular file");
    machine.put("sys/class/nvme-generic/ng5n1/dev", "1:3");
    machine.put("proc/filesystems", "nodev\ttmpfs\nnodev\tfuse\n\tbtrfs\n\tfuseblk");
    const Row rows[] = {
        {"a file of that name", "proc/77/fd/3", file, true},
        {"one named as its generic device", "proc/77/fd/4", generic, true},
        {"a file that is in another mount namespace's /dev/shm", "proc/77/fd/5", "/dev/shm/nvme5n1", true},
        {"a name in /dev behind which there is no device", "proc/77/fd/6", "/dev/nvme5n1", true},
        {"another character device", "proc/77/fd/7", "/dev/zero", true},
        {"tmpfs has any source", "proc/77/mountinfo", "1 1 0:44 / /x rw - tmpfs /dev/nvme5n1 rw", false},
        {"a fuse too", "proc/78/mountinfo", "1 1 0:45 / /x rw - fuse.btrfs /dev/nvme5n1 rw", false},
        {"a name below /dev", "proc/79/mountinfo", "1 1 0:46 / /x rw - btrfs /dev/shm/nvme5n1 rw", false},
        {"swap in a file of that name", "proc/swaps", "Filename Type\n/dev/shm/nvme5n1 file 1 0 -2", false},
        {"a loop device over such a file", "sys/block/loop3/loop/backing_file", "/dev/shm/nvme5n1", false},
    };
    for (const Row& row : rows) {
        if (row.is_link)
            machine.link(row.path, row.content);
        else
            machine.put(row.path, row.content);
        EXPECT_THAT(users_of(machine.tree(), drive_named(machine, "TENANT-A")), IsEmpty()) << row.says;
    }
}

TEST(InUse, a_file_in_shared_memory_with_a_drives_name_that_a_process_holds_open_is_no_user) {
    UnpackedTree machine{"server"};
    const std::string named = "/dev/shm/nvme5n1";  // as a tenant would; taken only where nobody has it
    const int file = ::open(named.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) GTEST_SKIP() << named << ": " << std::strerror(errno);
    Tree tree = machine.tree();
    tree.proc = "/proc";  // this machine's processes, with this one among them
    const auto users = users_of(tree, drive_named(machine, "TENANT-A"));
    ::close(file);
    ::unlink(named.c_str());
    EXPECT_THAT(users, ::testing::Not(::testing::Contains(HasSubstr(fmt::format("process {} ", ::getpid())))));
}

}  // namespace
}  // namespace bulkhead::nvme
