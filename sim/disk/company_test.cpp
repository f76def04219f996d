// Several at one database: control planes that replace each other, readers, backups.
#include <algorithm>

#include "bulkhead/store/backup.hpp"
#include "bulkhead/store/reader.hpp"
#include "sim/disk/life_test.hpp"

namespace bulkhead::sim {
namespace {

using store::Backup;
using store::Reader;

TEST(Fencing, the_older_of_two_control_planes_cannot_commit) {
    Disk disk;
    Rng rng{3};
    Life first;
    auto older = Store::open(on(disk));
    ASSERT_TRUE(older);
    ASSERT_TRUE(first.work(*older, rng, 4));

    auto newer = Store::open(on(disk));
    ASSERT_TRUE(newer) << words_of(newer.error());
    Life second{first.acknowledged, {}};
    ASSERT_TRUE(second.work(*newer, rng, 4));

    const auto refused = older->commit(random_batch(rng, first.acknowledged));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::conflict);
    EXPECT_FALSE(older->must_be_reopened());
    second.must_be_in(*newer);
    EXPECT_EQ(older->raise_epoch(100).value(), 101);
    EXPECT_EQ(newer->commit(random_batch(rng, second.acknowledged)).error().code, Code::conflict);
}

TEST(Readers, see_whole_commits_and_do_not_stop_the_writer) {
    Disk disk;
    Rng rng{4};
    Life life;
    auto store = Store::open(on(disk));
    ASSERT_TRUE(store);
    ASSERT_TRUE(life.work(*store, rng, 3));
    const auto reader = Reader::open(on(disk));
    ASSERT_TRUE(reader) << words_of(reader.error());
    for (int round = 0; round < 50; ++round) {
        const Batch batch = random_batch(rng, life.acknowledged);
        ASSERT_TRUE(store->commit(batch));
        life.acknowledged.apply(batch);
        EXPECT_EQ(reader->position().value(), life.acknowledged.position);
        EXPECT_EQ(reader->leaves(0, 1'000'000).value(), life.acknowledged.leaves);
    }
}

TEST(Backups, taken_in_steps_hold_the_moment_they_began_while_commits_go_on) {
    Disk disk;
    Rng rng{5};
    Life life;
    auto store = Store::open(on(disk));
    ASSERT_TRUE(store);
    ASSERT_TRUE(life.work(*store, rng, 40));
    const Model then = life.acknowledged;
    auto backup = Backup::start(on(disk), "/backup/monday.db");
    ASSERT_TRUE(backup) << words_of(backup.error());
    EXPECT_EQ(backup->position(), then.position);
    int steps = 0;
    for (bool done = false; !done; ++steps) {
        const Batch batch = random_batch(rng, life.acknowledged);
        ASSERT_TRUE(store->commit(batch));
        life.acknowledged.apply(batch);
        EXPECT_FALSE(disk.exists("/backup/monday.db"));
        const auto progress = backup->step(2);
        ASSERT_TRUE(progress) << words_of(progress.error());
        done = progress->done;
    }
    EXPECT_GT(steps, 10);
    disk.crash(rng);  // it was synced before it took its name

    Options elsewhere = on(disk);
    elsewhere.path = "/restored.db";
    const auto copied = Store::copy_from("/backup/monday.db", elsewhere);
    ASSERT_TRUE(copied) << words_of(copied.error());
    EXPECT_EQ(*copied, then.position);
    const auto restored = Store::open(elsewhere);
    ASSERT_TRUE(restored) << words_of(restored.error());
    EXPECT_TRUE(read_back(*restored).value() == then);
    EXPECT_EQ(restored->secret(), on(disk).secret_if_new);
}

TEST(Backups, cut_short_by_power_leave_the_last_good_one) {
    Rng rng{6};
    for (std::uint64_t n = 1;; ++n) {
        SCOPED_TRACE(fmt::format("power goes at write {} of the backup", n));
        Disk disk;
        Life life;
        Rng work{11};
        auto store = Store::open(on(disk));
        ASSERT_TRUE(store);
        ASSERT_TRUE(life.work(*store, work, 8));
        const Model monday = life.acknowledged;
        ASSERT_TRUE(store->backup("/backup.db"));
        ASSERT_TRUE(life.work(*store, work, 8));
        disk.crash_at_write(disk.writes() + n);
        const bool done = store->backup("/backup.db").has_value();
        const bool lost = disk.power_lost();
        disk.crash(rng);
        Options backup = on(disk);
        backup.path = "/backup.db";
        const auto found = Store::open(backup);
        ASSERT_TRUE(found) << words_of(found.error());
        const Model held = read_back(*found).value();
        EXPECT_TRUE(held == life.acknowledged || (!done && held == monday));
        if (!lost) break;
    }
}

TEST(Backups, replace_a_database_only_when_told_and_not_while_it_is_open) {
    Disk disk;
    Rng rng{8};
    Life life;
    auto store = Store::open(on(disk));
    ASSERT_TRUE(store);
    ASSERT_TRUE(life.work(*store, rng, 5));
    const Model then = life.acknowledged;
    ASSERT_TRUE(store->backup("/backup.db"));
    ASSERT_TRUE(life.work(*store, rng, 5));

    EXPECT_EQ(Store::copy_from("/backup.db", on(disk)).error().code, Code::conflict);
    EXPECT_EQ(Store::copy_from("/backup.db", on(disk), Store::Existing::replace).error().code, Code::conflict)
        << "it is open";
    disk.kill_processes();  // leaves a write-ahead log beside the database
    ASSERT_GT(disk.size(path + "-wal"), 0u);
    const auto copied = Store::copy_from("/backup.db", on(disk), Store::Existing::replace);
    ASSERT_TRUE(copied) << words_of(copied.error());
    const auto again = Store::open(on(disk));
    ASSERT_TRUE(again) << words_of(again.error());
    EXPECT_TRUE(read_back(*again).value() == then) << "nothing of the old log was replayed";

    const auto row = std::ranges::find_if(then.rows, [](const auto& entry) {
        return entry.second.size() > 20 && entry.second.size() < 900;  // in one piece on its page
    });
    ASSERT_NE(row, then.rows.end());
    const std::size_t body = disk.snapshot("/backup.db").find(row->second);
    ASSERT_NE(body, std::string::npos);
    disk.flip_bit("/backup.db", 8 * (body + 10));
    Options other = on(disk);
    other.path = "/other.db";
    EXPECT_EQ(Store::copy_from("/backup.db", other).error().code, Code::corrupt);
    EXPECT_FALSE(disk.exists("/other.db"));
    EXPECT_FALSE(disk.exists("/other.db.part"));
}

}  // namespace
}  // namespace bulkhead::sim
