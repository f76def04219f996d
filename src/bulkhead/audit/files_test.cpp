#include "bulkhead/audit/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "bulkhead/audit/publisher.hpp"
#include "bulkhead/audit/small_log_test.hpp"
#include "bulkhead/audit/tile_reader.hpp"

namespace bulkhead::audit {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

struct Scratch {
    fs::path path;
    Scratch() {
        std::string name = (fs::temp_directory_path() / "bulkhead-audit-XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { fs::remove_all(path); }
    std::string operator/(const char* name) const { return (path / name).string(); }
};

TEST(Files, are_read_as_they_were_put) {
    const Scratch scratch;
    const auto files = hold_directory(scratch / "log").value();
    const NewFile some[] = {{"a", std::string("\0x", 2)}, {"deep/er/b", ""}, {"deep/er/c", std::string(100'000, 'c')}};
    ASSERT_TRUE(files->put(some));
    for (const NewFile& file : some) EXPECT_EQ(files->read(file.path).value(), file.bytes);
    EXPECT_EQ(files->read("nothing").value(), std::nullopt);
    EXPECT_EQ(files->read("a/below").value(), std::nullopt);
    EXPECT_THAT(files->list("deep/er").value(), ElementsAre("b", "c"));
    EXPECT_THAT(files->list("nothing").value(), ElementsAre());

    ASSERT_TRUE(files->put(std::vector<NewFile>{{"a", "replaced"}}));
    EXPECT_EQ(files->read("a").value(), "replaced");
    ASSERT_TRUE(files->remove("deep"));
    ASSERT_TRUE(files->remove("nothing"));
    EXPECT_EQ(files->read("deep/er/b").value(), std::nullopt);
}

TEST(Files, have_one_writer_and_any_number_of_readers) {
    const Scratch scratch;
    auto writer = hold_directory(scratch / "log");
    ASSERT_TRUE(writer);
    EXPECT_EQ(hold_directory(scratch / "log").error().code, Code::conflict);
    const auto reader = open_directory(scratch / "log").value();
    ASSERT_TRUE((*writer)->put(std::vector<NewFile>{{"a", "x"}}));
    EXPECT_EQ(reader->read("a").value(), "x");
    EXPECT_EQ(reader->put({}).error().code, Code::denied);
    EXPECT_EQ(reader->remove("a").error().code, Code::denied);
    writer->reset();
    EXPECT_TRUE(hold_directory(scratch / "log"));
    EXPECT_EQ(open_directory(scratch / "nowhere").error().code, Code::not_found);
    EXPECT_FALSE(fs::exists(scratch / "nowhere"));
}

TEST(Files, what_a_crash_left_unfinished_is_swept_away) {
    const Scratch scratch;
    ASSERT_TRUE(hold_directory(scratch / "log"));
    std::ofstream{scratch / "log/.unfinished/7"} << "half a ti";
    const auto files = hold_directory(scratch / "log").value();
    EXPECT_TRUE(fs::is_empty(scratch / "log/.unfinished"));
}

TEST(Files, say_what_cannot_be_written) {
    const Scratch scratch;
    std::ofstream{scratch / "file"} << "not a directory";
    EXPECT_EQ(hold_directory(scratch / "file/log").error().code, Code::unavailable);
    const auto files = hold_directory(scratch / "log").value();
    ASSERT_TRUE(files->put(std::vector<NewFile>{{"a", "x"}}));
    const auto refused = files->put(std::vector<NewFile>{{"a/b", "y"}});
    EXPECT_THAT(refused.error().what, HasSubstr("Not a directory"));
    EXPECT_EQ(files->read("a").value(), "x");
}

TEST(FilesStory, a_killed_publisher_leaves_a_log_that_verifies_and_goes_on) {
    const Scratch scratch;
    const std::string directory = scratch / "log";
    const auto key = evidence::SigningKey::from_seed(std::string(32, 'L')).value();
    const evidence::VerifierKey log{"log.example/fleet", key.public_key()};
    std::optional<std::string> older;
    std::uint64_t size = 0;
    for (unsigned round = 0; round < 12; ++round) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            auto publisher = Publisher::open(directory, log.name, key);
            if (!publisher || !publisher->catch_up(publisher->size(), store)) ::_exit(1);
            while (true) {
                for (unsigned i = 0; i < 37 + round; ++i) publisher->append(entry(publisher->size()));
                if (!publisher->publish()) ::_exit(2);
            }
        }
        ::usleep(20'000 + round * 3'777);
        ASSERT_EQ(::kill(child, SIGKILL), 0);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status)) << "the publisher stopped by itself: " << status;

        const TileReader reader = TileReader::open(directory).value();
        if (!reader.note()) continue;  // killed before its first checkpoint
        const auto audit = reader.verify_all(log, older);
        ASSERT_TRUE(audit) << audit.error().what;
        EXPECT_GE(audit->checkpoint.size, size);
        size = audit->checkpoint.size;
        older = reader.note().value();
    }
    Publisher last = Publisher::open(directory, log.name, key).value();
    ASSERT_TRUE(last.catch_up(size + 1000, store));
    ASSERT_TRUE(last.publish());
    EXPECT_EQ(TileReader::open(directory)->verify_all(log, older)->checkpoint.size, size + 1000);
}

}  // namespace
}  // namespace bulkhead::audit
