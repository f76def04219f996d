#include "bulkhead/hw/vm/machine_files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "bulkhead/hw/program/program.hpp"
#include "bulkhead/hw/vm/presence.hpp"

namespace bulkhead::vm {

namespace {

namespace fs = std::filesystem;

class MachineFiles : public ::testing::Test {
protected:
    void SetUp() override {
        fs::remove_all(root_);
        fs::create_directories(root_ / "images/small");
        put("images/small/disk", std::string(100'000, 'i'));
    }
    void TearDown() override { fs::remove_all(root_); }
    void put(const std::string& at, const std::string& text) {
        fs::create_directories((root_ / at).parent_path());
        std::ofstream{root_ / at} << text;
        ::chmod((root_ / at).c_str(), 0644);
    }
    std::string get(const std::string& at) {
        std::ifstream file{root_ / at};
        return {std::istreambuf_iterator<char>{file}, {}};
    }
    const fs::path root_ = fs::temp_directory_path() / fmt::format("bulkhead-machine-{}", ::getpid());
};

}  // namespace

TEST(Seed, any_shell_reads_back_exactly_the_words_and_values_that_were_written) {
    const auto folder = fs::temp_directory_path() / fmt::format("bulkhead-seed-{}", ::getpid());
    fs::create_directories(folder);
    EXPECT_TRUE(rc::check([&] {
        // Bytes of all kinds but the one that no argument can hold.
        const auto byte = rc::gen::map(rc::gen::inRange(1, 256), [](int value) { return static_cast<char>(value); });
        const auto text = *rc::gen::container<std::string>(byte), value = *rc::gen::container<std::string>(byte);
        const std::string disk = seed_disk(
            {.words = {"/usr/bin/printf", "%s|%s", text, "end"}, .environment = {"A=" + value, "no name=x", "B"}});
        RC_ASSERT(disk.size() % 4096 == 0);
        std::ofstream{folder / "disk", std::ios::binary} << disk;
        const auto unpacked = program::run({"tar", "-xf", (folder / "disk").string(), "-C", folder.string()},
                                           {{"PATH", "/usr/bin:/bin"}}, "", std::chrono::seconds{30});
        RC_ASSERT(unpacked && unpacked->status == 0);
        const auto ran = program::run({"/bin/sh", (folder / "run").string()}, {{"PATH", "/usr/bin:/bin"}}, "",
                                      std::chrono::seconds{30});
        RC_ASSERT(ran && ran->output == text + "|end");
        std::ofstream{folder / "run", std::ios::binary}
            << seed_script({.words = {"/usr/bin/printenv", "A"}, .environment = {"A=" + value}});
        const auto said = program::run({"/bin/sh", (folder / "run").string()}, {}, "", std::chrono::seconds{30});
        RC_ASSERT(said && said->output == value + "\n");
    }));
    fs::remove_all(folder);
}

TEST_F(MachineFiles, an_image_is_found_by_its_name_and_by_no_path) {
    EXPECT_EQ(find_image(root_ / "images", "small")->disk, (root_ / "images/small/disk").string());
    for (const char* name : {"none", "../images/small", "", ".", "small/disk"})
        EXPECT_EQ(find_image(root_ / "images", name).error().code, Code::not_found) << name;
    EXPECT_NE(find_image(root_ / "images", "none").error().remedy.find("small"), std::string::npos);
    put("images/small/kernel", "k");
    EXPECT_EQ(find_image(root_ / "images", "small").error().code, Code::invalid) << "two things to boot";
}

TEST_F(MachineFiles, an_image_that_others_could_have_written_is_refused) {
    ::chmod((root_ / "images/small/disk").c_str(), 0666);
    EXPECT_EQ(find_image(root_ / "images", "small").error().code, Code::denied);
    fs::remove(root_ / "images/small/disk");
    fs::create_symlink("/etc/passwd", root_ / "images/small/disk");
    EXPECT_EQ(find_image(root_ / "images", "small").error().code, Code::denied);
}

TEST_F(MachineFiles, a_machine_writes_to_a_copy_that_is_overwritten_before_it_goes) {
    const auto image = find_image(root_ / "images", "small");
    const MachineFolder folder{root_ / "m"};
    ASSERT_TRUE(make_machine(folder, *image, {.words = {"true"}}));
    EXPECT_EQ(get("m/disk"), get("images/small/disk"));
    put("m/disk", std::string(50'000, 's'));
    fs::create_hard_link(folder.disk(), root_ / "kept");  // what lies where the file lay
    const auto wiped = wipe_machine(folder);
    ASSERT_TRUE(wiped) << wiped.error().what;
    EXPECT_EQ(wiped->bytes, 50'000 + 4096);
    EXPECT_EQ(get("kept"), std::string(50'000, '\0'));
    EXPECT_EQ(get("images/small/disk"), std::string(100'000, 'i'));
    EXPECT_FALSE(fs::exists(folder.disk()));
    EXPECT_TRUE(wipe_machine(folder)) << "again is fine";
    ASSERT_TRUE(remove_machine(folder));
    EXPECT_FALSE(fs::exists(folder.path));
}

TEST_F(MachineFiles, huge_pages_left_in_files_go_back_to_the_kernel_and_those_of_others_stay) {
    put("huge/libvirt/qemu/3-bulkhead-7/ram", std::string(4096, 's'));
    put("huge/libvirt/qemu/4-bulkhead-77/ram", std::string(4096, 's'));
    const std::string mounts =
        fmt::format("proc /proc proc rw 0 0\nhugetlbfs {} hugetlbfs rw 0 0\n", (root_ / "huge").string());
    EXPECT_EQ(*free_huge_pages(mounts, "bulkhead-7"), 4096);
    EXPECT_FALSE(fs::exists(root_ / "huge/libvirt/qemu/3-bulkhead-7"));
    EXPECT_TRUE(fs::exists(root_ / "huge/libvirt/qemu/4-bulkhead-77/ram"));
    EXPECT_EQ(*free_huge_pages(mounts, "bulkhead-7"), 0);
    EXPECT_EQ(*free_huge_pages(mounts, "bulkhead-777"), 0) << "its name begins like another's";
}

TEST_F(MachineFiles, what_is_left_of_a_machine_is_seen_by_the_kernels_own_lists) {
    put("proc/17/cmdline", std::string{"qemu\0-name\0guest=bulkhead-7,debug-threads=on\0", 44});
    put("proc/18/cmdline", std::string{"qemu\0-name\0guest=bulkhead-77,debug-threads=on\0", 45});
    put("proc/self/cmdline", std::string{"qemu\0-name\0guest=bulkhead-7,debug-threads=on\0", 44});
    put("cgroup/machine.slice/machine-qemu\\x2d3\\x2dbulkhead\\x2d7.scope/cgroup.procs", "17\n");
    put("cgroup/machine/qemu-4-bulkhead-77.libvirt-qemu/cgroup.procs", "18\n");
    const auto present = presence_of("bulkhead-7", root_ / "proc", root_ / "cgroup");
    ASSERT_TRUE(present) << present.error().what;
    EXPECT_EQ(present->processes, std::vector<pid_t>{17});
    ASSERT_EQ(present->groups.size(), 1U);
    EXPECT_TRUE(present->groups.front().contains("machine.slice"));
    EXPECT_EQ(presence_of("bulkhead-77", root_ / "proc", root_ / "cgroup")->groups.size(), 1U);
    EXPECT_FALSE(presence_of("bulkhead-8", root_ / "proc", root_ / "cgroup")->any());
    // libvirt puts QEMU into groups below the machine's own.
    put("cgroup/machine.slice/machine-qemu\\x2d5\\x2dbulkhead\\x2d9.scope/cgroup.procs", "");
    put("cgroup/machine.slice/machine-qemu\\x2d5\\x2dbulkhead\\x2d9.scope/cgroup.events", "populated 1\nfrozen 0\n");
    EXPECT_EQ(presence_of("bulkhead-9", root_ / "proc", root_ / "cgroup")->groups.size(), 1U);
    put("cgroup/machine.slice/machine-qemu\\x2d5\\x2dbulkhead\\x2d9.scope/cgroup.events", "populated 0\nfrozen 0\n");
    EXPECT_FALSE(presence_of("bulkhead-9", root_ / "proc", root_ / "cgroup")->any());
}

}  // namespace bulkhead::vm
