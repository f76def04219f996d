// Backups on real files; power cuts in the middle of one are in sim/disk/company_test.cpp.
#include "bulkhead/store/backup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "bulkhead/store/scratch_test.hpp"

namespace bulkhead::store {
namespace {

namespace fs = std::filesystem;

Store filled(const Options& options, std::int64_t leaves) {
    Store store = Store::open(options).value();
    Batch batch{.epoch = store.raise_epoch().value()};
    for (std::int64_t i = 0; i < leaves; ++i) batch.leaves.push_back(leaf_number(i));
    EXPECT_TRUE(store.commit(batch));
    return store;
}

TEST(Backup, is_one_private_file_that_opens) {
    const Scratch scratch;
    const Store store = filled(scratch.options(), 300);
    const std::string target = scratch.path("backup.db");
    EXPECT_EQ(store.backup(target).value(), store.position().value());
    struct stat status{};
    ASSERT_EQ(::stat(target.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    for (const char* ending : {"-wal", "-shm", "-journal", ".part", ".part-wal", ".part-journal"})
        EXPECT_FALSE(fs::exists(target + ending)) << ending;
    const auto copy = Store::open({.path = target});
    ASSERT_TRUE(copy) << copy.error().what;
    EXPECT_EQ(copy->leaves(0, 1000).value(), store.leaves(0, 1000).value());
    EXPECT_EQ(copy->secret(), store.secret());
}

TEST(Backup, goes_on_beside_commits_of_another_thread) {
    const Scratch scratch;
    Options options = scratch.options();
    options.busy = {5000};
    Store store = filled(options, 2000);
    const Position before = store.position().value();
    auto backup = Backup::start(options, scratch.path("backup.db"));
    ASSERT_TRUE(backup) << backup.error().what;
    std::string wrong;
    std::thread copying{[&] {
        for (;;) {
            const auto progress = backup->step(1);
            if (!progress) wrong = progress.error().what;
            if (!progress || progress->done) return;
        }
    }};
    for (std::int64_t i = 2000; i < 2300; ++i)
        ASSERT_TRUE(store.commit({.epoch = before.epoch, .leaves = {leaf_number(i)}}));
    copying.join();
    EXPECT_EQ(wrong, "");
    EXPECT_EQ(Store::open({.path = scratch.path("backup.db")}).value().position().value(), before);
    EXPECT_EQ(store.position().value().log_size, 2300);
}

TEST(Backup, abandoned_leaves_nothing_behind) {
    const Scratch scratch;
    const Store store = filled(scratch.options(), 1000);
    {
        auto backup = Backup::start(scratch.options(), scratch.path("backup.db"));
        ASSERT_TRUE(backup);
        EXPECT_FALSE(backup->step(2).value().done);
        EXPECT_TRUE(fs::exists(scratch.path("backup.db.part")));
    }
    EXPECT_FALSE(fs::exists(scratch.path("backup.db.part")));
    EXPECT_FALSE(fs::exists(scratch.path("backup.db")));
}

TEST(Backup, to_where_nothing_can_be_written_is_refused) {
    const Scratch scratch;
    const Store store = filled(scratch.options(), 10);
    const auto refused = store.backup(scratch.path("no/such/directory/backup.db"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::unavailable) << refused.error().what;
}

TEST(Restore, brings_back_the_moment_of_the_backup) {
    const Scratch scratch;
    Position then;
    {
        Store store = filled(scratch.options(), 100);
        then = store.backup(scratch.path("backup.db")).value();
        ASSERT_TRUE(store.commit({.epoch = then.epoch, .leaves = {leaf_number(100)}}));
        EXPECT_EQ(Store::copy_from(scratch.path("backup.db"), scratch.options()).error().code, Code::conflict);
        EXPECT_EQ(Store::copy_from(scratch.path("backup.db"), scratch.options(), Store::Existing::replace).error().code,
                  Code::conflict)
            << "while it is open";
        EXPECT_EQ(store.position().value().log_size, 101) << "and it is none the worse for the attempt";
    }
    const auto restored = Store::copy_from(scratch.path("backup.db"), scratch.options(), Store::Existing::replace);
    ASSERT_TRUE(restored) << restored.error().what;
    EXPECT_EQ(*restored, then);
    Store store = Store::open(scratch.options()).value();
    EXPECT_EQ(store.position().value(), then);

    // What others still hold of the log comes back without its payload, and the epoch rises above what they saw.
    ASSERT_TRUE(store.import_lost_leaves(100, std::vector{leaf_number(100).entry}));
    EXPECT_EQ(store.raise_epoch(50).value(), 51);
    EXPECT_TRUE(store.commit({.epoch = 51, .leaves = {leaf_number(101)}}));
}

TEST(Restore, refuses_a_damaged_backup_and_touches_nothing) {
    const Scratch scratch;
    {
        ASSERT_TRUE(filled(scratch.options(), 100).backup(scratch.path("backup.db")));
    }
    {
        std::fstream file{scratch.path("backup.db"), std::ios::in | std::ios::out | std::ios::binary};
        std::string bytes(static_cast<std::size_t>(fs::file_size(scratch.path("backup.db"))), '\0');
        file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        file.seekp(static_cast<std::streamoff>(bytes.find("payload 50")));
        file << 'P';
    }
    const auto refused = Store::copy_from(scratch.path("backup.db"), scratch.options(), Store::Existing::replace);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::corrupt);
    EXPECT_THAT(refused.error().what, testing::HasSubstr("leaf 50"));
    EXPECT_EQ(Store::open(scratch.options()).value().position().value().log_size, 100);
    EXPECT_EQ(Store::copy_from(scratch.path("none.db"), scratch.options("new.db")).error().code, Code::not_found);
}

}  // namespace
}  // namespace bulkhead::store
