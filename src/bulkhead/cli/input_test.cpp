#include "bulkhead/cli/input.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "bulkhead/cli/said_test.hpp"

namespace bulkhead::cli {
namespace {

using testing::HasSubstr;

TEST(Input, what_is_no_readable_file_is_an_error_that_names_it) {
    struct Row {
        std::string path, says;
    };
    const Row rows[] = {
        {"/proc/self", "/proc/self: is a folder, not a file"},
        {"/proc/self/mem", "/proc/self/mem: cannot be read: Input/output error"},
        {"/nowhere/at-all", "/nowhere/at-all: cannot be read: No such file or directory"},
    };
    for (const Row& row : rows) {
        const auto text = read_file(row.path);
        ASSERT_FALSE(text) << row.path;
        EXPECT_EQ(text.error().what, row.says);
        EXPECT_FALSE(text.error().remedy.empty()) << row.path;
    }
}

TEST(Input, a_file_without_a_size_is_read_to_its_end) {
    const auto text = read_file("/proc/self/status");
    ASSERT_TRUE(text) << text.error().what;
    EXPECT_THAT(*text, HasSubstr("Name:"));
}

// Each command that reads a file ended by SIGABRT when the read failed in the middle.
TEST(Input, every_command_that_reads_a_file_answers_when_it_cannot) {
    const std::vector<std::vector<const char*>> commands = {
        {"contract", "-f"},     {"schedule", "-f"},      {"shares", "-f"},      {"verify", "--key"},
        {"mig", "check", "-f"}, {"simulate", "--trace"}, {"simulate", "--mix"},
    };
    for (const char* path : {"/proc/self/mem", "/proc/self/task"})
        for (std::vector<const char*> words : commands) {
            if (std::string_view{words[0]} == "verify") words.insert(words.begin() + 1, path);
            words.insert(words.begin(), "bulkhead");
            words.push_back(path);
            std::ostringstream out, err;
            const int status = run(static_cast<int>(words.size()), words.data(), out, err, false);
            EXPECT_THAT(status, testing::AnyOf(could_not, bad_input)) << words[1] << ' ' << path << '\n' << err.str();
            EXPECT_THAT(err.str(), HasSubstr(path)) << words[1];
        }
}

}  // namespace
}  // namespace bulkhead::cli
