#include "bulkhead/cli/export_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/cli/said_test.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/evidence/ocsf.hpp"

namespace bulkhead::cli {
namespace {

using testing::HasSubstr;

std::string event_line(std::int64_t index) {
    evidence::Record record{.kind = evidence::RecordKind::usage, .at = {index}, .actor = "core"};
    return evidence::ocsf_event({.log = "log.example/fleet", .index = index, .entry = {}}, record);
}

class Exported : public testing::Test {
protected:
    Exported() { std::filesystem::create_directories(folder_); }
    ~Exported() override { std::filesystem::remove_all(folder_); }

    std::string out() const { return folder_ / "events"; }
    std::string state() const { return folder_ / "events.state"; }
    Result<ExportFile> open(const std::string& log = "log.example/fleet") const {
        return ExportFile::open({.out = out(), .state = state(), .log = log, .from = 0});
    }
    // From where it is to there, a few at a time.
    static void write_up_to(ExportFile& file, std::int64_t end, std::int64_t at_once = 3) {
        while (file.next() < end) {
            std::vector<std::string> lines;
            for (std::int64_t i = file.next(); i < std::min(end, file.next() + at_once); ++i)
                lines.push_back(event_line(i));
            ASSERT_TRUE(file.append(lines));
        }
    }
    void expect_each_once(std::int64_t count) const {
        std::ifstream file{out()};
        std::int64_t next = 0;
        for (std::string line; std::getline(file, line); ++next) EXPECT_EQ(line, event_line(next));
        EXPECT_EQ(next, count);
    }

    const std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("bulkhead-export-" + std::to_string(getpid()));
};

TEST_F(Exported, goes_on_where_it_was) {
    for (const std::int64_t end : {5, 5, 9, 20}) {
        auto file = open();
        ASSERT_TRUE(file) << file.error().what;
        write_up_to(*file, end);
    }
    expect_each_once(20);
}

// Whatever of lines and state had reached the disk when the program was stopped.
TEST_F(Exported, takes_what_came_after_the_state_for_what_it_is) {
    {
        auto file = open();
        write_up_to(*file, 6);
    }
    const std::string early_state = slurp(state());
    {
        auto file = open();
        write_up_to(*file, 9);
    }
    const std::string late = slurp(out());
    struct Row {
        std::string_view says;
        std::string bytes, state;
        std::int64_t next;
    };
    const std::size_t six = late.find(event_line(6));
    const Row rows[] = {
        {"nothing is missing", late, slurp(state()), 9},
        {"the lines are there, the state is not", late, early_state, 9},
        {"half a line", late.substr(0, six + 40), early_state, 6},
        {"one whole line and half another", late.substr(0, late.find(event_line(7)) + 1), early_state, 7},
        {"a line without its end", late.substr(0, late.size() - 1), early_state, 8},
        {"the state was never written", late, "", 9},
        {"nor was more than half a line", late.substr(0, 30), "", 0},
        {"the file was moved away", "", slurp(state()), 9},
    };
    for (const Row& row : rows) {
        std::ofstream{out(), std::ios::binary} << row.bytes;
        std::filesystem::remove(state());
        if (!row.state.empty()) {
            ASSERT_TRUE(auth::write_secret(state(), row.state));
        }
        auto file = open();
        ASSERT_TRUE(file) << row.says << ": " << file.error().what;
        EXPECT_EQ(file->next(), row.next) << row.says;
        if (row.bytes.empty()) continue;
        write_up_to(*file, 12);
        expect_each_once(12);
    }
}

TEST_F(Exported, writes_into_no_file_that_is_not_its_own) {
    {
        auto file = open();
        write_up_to(*file, 6);
    }
    EXPECT_EQ(open("other.example").error().code, Code::conflict);
    std::ofstream{out(), std::ios::app} << "somebody else's line\n";
    EXPECT_THAT(open().error().what, HasSubstr("a line that is not of leaf 6"));
    std::filesystem::resize_file(out(), 10);
    EXPECT_THAT(open().error().what, HasSubstr("has 10 bytes, and"));
    ASSERT_TRUE(auth::write_secret(state(), "nonsense"));
    EXPECT_EQ(open().error().code, Code::corrupt);
    EXPECT_FALSE(read_export_state(to_json(ExportState{.version = "v2", .log = "x"})));
}

TEST_F(Exported, follows_whoever_rotates_its_file) {
    {
        auto file = open();
        write_up_to(*file, 6);
        std::filesystem::rename(out(), out() + ".1");
        write_up_to(*file, 9);
        EXPECT_EQ(evidence::ocsf_sequence(slurp(out()).substr(0, slurp(out()).find('\n'))), 6);
        EXPECT_EQ(open().error().code, Code::conflict) << "one at a time";
    }
    auto again = open();
    ASSERT_TRUE(again) << again.error().what;
    EXPECT_EQ(again->next(), 9);
}

// Killed at any moment, by somebody who does not look.
TEST_F(Exported, survives_being_killed) {
    std::mt19937_64 random{7};
    for (int kill = 0; kill < 25; ++kill) {
        const pid_t child = ::fork();
        if (child == 0) {
            auto file = open();
            if (!file) ::_exit(1);
            for (;;) {
                const std::vector<std::string> lines{event_line(file->next()), event_line(file->next() + 1)};
                if (!file->append(lines)) ::_exit(2);
            }
        }
        ::usleep(static_cast<useconds_t>(2000 + random() % 20'000));
        ::kill(child, SIGKILL);
        int status = 0;
        ::waitpid(child, &status, 0);
        ASSERT_TRUE(WIFSIGNALED(status)) << "it could not go on: " << status;
    }
    auto file = open();
    ASSERT_TRUE(file) << file.error().what;
    EXPECT_GT(file->next(), 0);
    expect_each_once(file->next());
}

}  // namespace
}  // namespace bulkhead::cli
