#include "bulkhead/auth/secret_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

namespace bulkhead::auth {
namespace {

namespace fs = std::filesystem;

struct SecretFile : testing::Test {
    SecretFile() { folder = ::mkdtemp(pattern); }
    ~SecretFile() override { fs::remove_all(folder); }
    char pattern[32] = "/tmp/bulkhead-secret-XXXXXX";
    std::string folder;
};

mode_t mode_of(const std::string& path) {
    struct stat facts{};
    ::stat(path.c_str(), &facts);
    return facts.st_mode & 07777;
}

TEST_F(SecretFile, is_for_its_owner_alone_and_replaced_whole) {
    const std::string path = folder + "/key";
    const mode_t before = ::umask(0);
    ASSERT_TRUE(write_secret(path, "one"));
    ::umask(before);
    EXPECT_EQ(mode_of(path), 0600u);
    EXPECT_EQ(*read_secret(path), "one");
    ASSERT_TRUE(write_secret(path, std::string("t\0wo", 4)));
    EXPECT_EQ(*read_secret(path), std::string("t\0wo", 4));
    EXPECT_EQ(std::distance(fs::directory_iterator{folder}, {}), 1) << "no temporary file stays behind";
}

TEST_F(SecretFile, is_not_believed_when_others_could_have_touched_it) {
    const std::string path = folder + "/key";
    ASSERT_TRUE(write_secret(path, "secret"));
    for (const mode_t mode : {0640u, 0604u, 0620u, 0602u, 0666u}) {
        ::chmod(path.c_str(), mode);
        const auto read = read_secret(path);
        ASSERT_FALSE(read) << mode;
        EXPECT_EQ(read.error().code, Code::denied);
        EXPECT_NE(read.error().remedy.find("chmod 600"), std::string::npos);
    }
    ::chmod(path.c_str(), 0400);
    EXPECT_TRUE(read_secret(path));
}

TEST_F(SecretFile, is_a_plain_file_of_bounded_size) {
    EXPECT_EQ(read_secret(folder + "/none").error().code, Code::not_found);
    EXPECT_FALSE(read_secret(folder)) << "a folder";
    ::mkfifo((folder + "/pipe").c_str(), 0600);
    EXPECT_FALSE(read_secret(folder + "/pipe"));
    ASSERT_TRUE(write_secret(folder + "/key", "12345"));
    fs::create_symlink(folder + "/key", folder + "/link");
    EXPECT_FALSE(read_secret(folder + "/link"));
    EXPECT_FALSE(read_secret(folder + "/key", 4));
    EXPECT_TRUE(read_secret(folder + "/key", 5));
    EXPECT_FALSE(write_secret(folder + "/nowhere/key", "x"));
}

}  // namespace
}  // namespace bulkhead::auth
