#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bulkhead/cli/command.hpp"
#include "bulkhead/cli/said_test.hpp"
#include "bulkhead/hw/nvme/tree_test.hpp"

namespace bulkhead::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Said drives(std::vector<std::string> words) {
    std::ostringstream out, err;
    CLI::App app{"", "bulkhead"};
    Context context{out, err, false};
    add_drives(Command{app}, context);
    words.insert(words.begin(), "drives");
    std::ranges::reverse(words);
    app.parse(words);
    return {context.status, out.str(), err.str()};
}

TEST(DrivesCommand, lists_what_is_there_and_who_uses_it) {
    const nvme::UnpackedTree machine{"server"};
    const Said said = drives({"--sysfs", machine.folder()});
    EXPECT_EQ(said.status, done) << said.err;
    EXPECT_THAT(said.out, HasSubstr("TENANT-B"));
    EXPECT_THAT(said.out, HasSubstr("the machine's own"));
    EXPECT_THAT(said.out, HasSubstr("nvme0n2p1 is mounted on /data (of process 812)"));
    EXPECT_THAT(said.out, HasSubstr("controller at 0000:05:00.0 is bound to vfio-pci"));
    EXPECT_THAT(drives({"--sysfs", "/nowhere"}).out, HasSubstr("no NVMe drive"));
}

TEST(DrivesCommand, calls_nothing_free_where_it_was_not_shown_who_has_what_open) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to do without it";
    const nvme::UnpackedTree machine{"server"};
    std::filesystem::create_directories(machine.folder() / "proc/77/fd");
    std::filesystem::permissions(machine.folder() / "proc/77/fd", std::filesystem::perms::none);
    EXPECT_EQ(drives({"--sysfs", machine.folder()}).status, done) << "root is shown everything";
    ASSERT_EQ(::seteuid(65'534), 0);
    const Said said = drives({"--sysfs", machine.folder()});
    ASSERT_EQ(::seteuid(0), 0);
    EXPECT_NE(said.status, done);
    EXPECT_THAT(said.out, HasSubstr("unknown"));
    EXPECT_THAT(said.out, Not(HasSubstr("free")));
    EXPECT_THAT(said.err, HasSubstr("run as root"));
}

TEST(DrivesCommand, says_the_same_to_programs) {
    const nvme::UnpackedTree machine{"lab"};
    const Said said = drives({"--sysfs", machine.folder(), "--json"});
    const auto all = boost::json::parse(said.out).at("drives").as_array();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[1].at("serial").as_string(), "LAB-NVME-1");
    EXPECT_EQ(all[1].at("grade").as_string(), "emulated");
    EXPECT_EQ(all[1].at("namespaces").as_array().size(), 2u);
}

TEST(DrivesCommand, refuses_methods_it_does_not_know) {
    const Said said = drives({"--erase", "shred"});
    EXPECT_EQ(said.status, bad_input);
    EXPECT_THAT(said.err, HasSubstr("\"shred\" is no list of methods"));
}

TEST(EraseDriveCommand, is_of_one_drive_by_its_own_serial_number) {
    for (const std::string several : {"model:*", "@/etc/hostname"}) {
        std::ostringstream out, err;
        CLI::App app{"", "bulkhead"};
        Context context{out, err, false};
        add_erase_drive(Command{app}, context);
        std::vector<std::string> words{"--yes", several, "--serial", "erase-drive"};
        app.parse(words);
        EXPECT_EQ(context.status, bad_input) << several;
        EXPECT_THAT(err.str(), HasSubstr("is no serial number"));
    }
}

}  // namespace
}  // namespace bulkhead::cli
