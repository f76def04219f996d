#include "bulkhead/hw/vm/disk_nodes.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>

namespace bulkhead::vm {

TEST(DiskNodes, are_made_by_number_replaced_and_removed) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root makes device nodes";
    const std::string base = fmt::format("/dev/bulkhead-test-{}", ::getpid()), folder = base + "/bh-9";
    struct Cleanup {
        const std::string& path;
        ~Cleanup() { std::filesystem::remove_all(path); }
    } const cleanup{base};
    const auto number_of = [&](const char* name) {
        struct stat found{};
        return ::lstat((folder + "/" + name).c_str(), &found) == 0 && S_ISBLK(found.st_mode) ? found.st_rdev : dev_t{};
    };
    const auto made = make_disk_nodes(folder, {{"drive0n1", 259, 3}, {"drive1n1", 259, 4}});
    if (!made) GTEST_SKIP() << made.error().what;
    EXPECT_EQ(number_of("drive0n1"), ::makedev(259, 3));
    EXPECT_EQ(number_of("drive1n1"), ::makedev(259, 4));
    struct stat found{};
    ::stat((folder + "/drive0n1").c_str(), &found);
    EXPECT_EQ(found.st_mode & 0777, 0600U);
    ASSERT_TRUE(make_disk_nodes(folder, {{"drive0n1", 259, 7}}));
    EXPECT_EQ(number_of("drive0n1"), ::makedev(259, 7)) << "what is there and means another is made anew";
    ASSERT_TRUE(remove_disk_nodes(folder));
    EXPECT_FALSE(std::filesystem::exists(folder));
    ASSERT_TRUE(remove_disk_nodes(folder)) << "again is fine";

    // A folder that somebody else can write in, or a link to one, is not used.
    ::chmod(base.c_str(), 0777);
    EXPECT_EQ(make_disk_nodes(folder, {{"drive0n1", 259, 3}}).error().code, Code::denied);
    ::chmod(base.c_str(), 0711);
    ASSERT_EQ(::symlink("/tmp", folder.c_str()), 0);
    EXPECT_EQ(make_disk_nodes(folder, {{"drive0n1", 259, 3}}).error().code, Code::denied);
    EXPECT_TRUE(make_disk_nodes("/nowhere/at/all", {})) << "nothing to make";
}

}  // namespace bulkhead::vm
