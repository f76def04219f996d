#include "bulkhead/agent/machine_users.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "bulkhead/agent/machine_records.hpp"

namespace bulkhead::agent {
namespace {

struct UsersFolder {
    std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("vm-users-{}", ::getpid());
    UsersFolder() { std::filesystem::create_directories(path); }
    ~UsersFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
};

TEST(MachineUsers, two_agents_of_one_host_never_have_the_same_ones) {
    const UsersFolder folder;
    {
        const auto first = hold_users(folder.path / "locks", {900'000, 4'096});
        ASSERT_TRUE(first) << first.error().what;
        for (const std::uint32_t from : {900'000U, 897'000U, 904'095U}) {
            const auto second = hold_users(folder.path / "locks", {from, 4'096});
            ASSERT_FALSE(second) << from;
            EXPECT_EQ(second.error().code, Code::conflict) << second.error().what;
        }
        EXPECT_TRUE(hold_users(folder.path / "locks", {910'000, 4'096}));
    }
    EXPECT_TRUE(hold_users(folder.path / "locks", {900'000, 4'096})) << "whoever had them has ended";
}

TEST(MachineUsers, are_nobody_whom_the_host_knows) {
    EXPECT_TRUE(is_account(0));
    EXPECT_FALSE(is_account(900'000)) << "this computer has an account 900000";
    const UsersFolder folder;
    const MachineRecords records{folder.path};
    std::filesystem::create_directories(records.folder_of(7).path);
    EXPECT_EQ(records.user_of(7, 0, 1).error().code, Code::exhausted) << "the only one there would be is root";
}

TEST(MachineUsers, need_a_kvm_that_anybody_may_open) {
    const UsersFolder folder;
    const std::string kvm = folder.path / "kvm";
    std::ofstream{kvm};
    struct Row {
        mode_t mode;
        bool may;
    };
    for (const Row row : {Row{0666, true}, Row{0660, false}, Row{0600, false}, Row{0664, false}}) {
        ASSERT_EQ(::chmod(kvm.c_str(), row.mode), 0);
        const auto may = anybody_may_open(kvm);
        EXPECT_EQ(may.has_value(), row.may) << fmt::format("{:o}", row.mode);
        if (!may) {
            EXPECT_NE(may.error().what.find(fmt::format("{:04o}", row.mode)), std::string::npos);
        }
    }
    EXPECT_FALSE(anybody_may_open(folder.path / "none"));
}

}  // namespace
}  // namespace bulkhead::agent
