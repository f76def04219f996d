// What the disk itself must keep to be worth testing on.
#include "sim/disk/disk.hpp"

#include <sqlite3.h>

#include <ctime>

#include "sim/disk/life_test.hpp"

namespace bulkhead::sim {
namespace {

// What the store never does and SQLite may: the rollback journal, with its own ladder of locks.
TEST(TheDisk, locks_as_sqlite_expects) {
    Disk disk;
    sqlite3 *a = nullptr, *b = nullptr;
    for (sqlite3** one : {&a, &b})
        ASSERT_EQ(sqlite3_open_v2("/locks.db", one, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, disk.vfs().c_str()),
                  SQLITE_OK);
    const auto run = [](sqlite3* who, const char* sql) { return sqlite3_exec(who, sql, nullptr, nullptr, nullptr); };
    struct Step {
        sqlite3* who;
        const char* sql;
        int answer;
    };
    const Step steps[] = {
        {a, "CREATE TABLE t(x); INSERT INTO t VALUES(1)", SQLITE_OK},
        {a, "BEGIN; SELECT * FROM t", SQLITE_OK},     // a reads
        {b, "BEGIN; SELECT * FROM t", SQLITE_OK},     // so may b
        {b, "INSERT INTO t VALUES(2)", SQLITE_OK},    // b means to write
        {a, "INSERT INTO t VALUES(3)", SQLITE_BUSY},  // only one may
        {b, "COMMIT", SQLITE_BUSY},                   // not while a reads; from now on nobody new comes in
        {a, "COMMIT", SQLITE_OK},
        {a, "SELECT * FROM t", SQLITE_BUSY},
        {b, "COMMIT", SQLITE_OK},
        {a, "SELECT * FROM t", SQLITE_OK},
        {a, "BEGIN EXCLUSIVE", SQLITE_OK},
        {b, "SELECT * FROM t", SQLITE_BUSY},
        {a, "ROLLBACK", SQLITE_OK},
        {b, "PRAGMA journal_mode = WAL; BEGIN; SELECT * FROM t", SQLITE_OK},
        {a, "INSERT INTO t VALUES(4)", SQLITE_OK},  // with a write-ahead log readers are in nobody's way
        {b, "INSERT INTO t VALUES(5)", SQLITE_BUSY_SNAPSHOT & 0xFF},  // but write only what follows from what they read
        {b, "ROLLBACK; BEGIN IMMEDIATE", SQLITE_OK},
        {a, "BEGIN IMMEDIATE", SQLITE_BUSY},
        {b, "ROLLBACK", SQLITE_OK},
    };
    for (const Step& step : steps)
        EXPECT_EQ(run(step.who, step.sql), step.answer) << (step.who == a ? "a: " : "b: ") << step.sql;
    sqlite3_close(a);
    sqlite3_close(b);
    EXPECT_EQ(disk.files(), std::vector<std::string>{"/locks.db"});
}

TEST(TheDisk, brings_a_hot_journal_back_to_the_state_before) {
    int rolled_back = 0, kept = 0;
    for (std::uint64_t n = 1; n < 80; ++n) {
        Disk disk;
        Rng rng{n};
        const auto open = [&] {
            sqlite3* database = nullptr;
            EXPECT_EQ(
                sqlite3_open_v2("/j.db", &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, disk.vfs().c_str()),
                SQLITE_OK);
            return database;
        };
        sqlite3* database = open();
        ASSERT_EQ(sqlite3_exec(database, "PRAGMA synchronous = EXTRA; CREATE TABLE t(x); INSERT INTO t VALUES(1),(1)",
                               nullptr, nullptr, nullptr),
                  SQLITE_OK);
        disk.crash_at_write(disk.writes() + n);
        const bool done = sqlite3_exec(database, "UPDATE t SET x = 2", nullptr, nullptr, nullptr) == SQLITE_OK;
        sqlite3_close(database);
        disk.crash(rng);
        database = open();
        std::string sum;
        const auto keep = [](void* to, int, char** values, char**) {
            *static_cast<std::string*>(to) = values[0];
            return 0;
        };
        ASSERT_EQ(sqlite3_exec(database, "SELECT sum(x) FROM t", keep, &sum, nullptr), SQLITE_OK) << n;
        EXPECT_TRUE(sum == "4" || (!done && sum == "2")) << n << ": " << sum;
        ++(sum == "4" ? kept : rolled_back);
        sqlite3_close(database);
    }
    EXPECT_GT(rolled_back, 3);
    EXPECT_GT(kept, 3);
}

TEST(TheDisk, gives_the_same_bytes_for_the_same_seed) {
    const auto run = [](std::uint64_t seed) {
        Disk::seed_sqlite(77);
        Disk disk;
        Rng rng{seed};
        Life life;
        for (int round = 0; round < 3; ++round) {
            disk.crash_at_write(disk.writes() + 100 + rng.below(50));
            if (auto store = Store::open(on(disk)); store) {
                life.must_be_in(*store);
                life.work(*store, rng, 30);
            }
            disk.crash(rng);
        }
        std::string all = fmt::format("{} ", disk.writes());
        for (const std::string& file : disk.files()) all += file + disk.snapshot(file);
        return all;
    };
    EXPECT_EQ(run(1), run(1));
    EXPECT_NE(run(1), run(2));
}

TEST(TheDisk, really_loses_and_tears_what_was_not_synced) {
    int kept = 0, dropped = 0, torn = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        Disk disk;
        Rng rng{seed};
        Life life;
        auto store = Store::open(on(disk, 0));
        ASSERT_TRUE(store);
        ASSERT_TRUE(life.work(*store, rng, 1));
        const std::string log = path + "-wal", before = disk.snapshot(log);
        disk.fail_sync();
        EXPECT_FALSE(store->commit(random_batch(rng, life.acknowledged)));
        const std::string written = disk.snapshot(log);
        disk.crash(rng);
        const std::string after = disk.snapshot(log);
        ASSERT_EQ(after.substr(0, before.size()), before) << "what was synced stays";
        ++(after == written ? kept : after == before ? dropped : torn);
    }
    EXPECT_GT(kept, 30);
    EXPECT_GT(dropped, 30);
    EXPECT_GT(torn, 30);
}

TEST(TheDisk, tells_how_fast_it_is) {
    Disk disk;
    Rng rng{1};
    auto store = Store::open(on(disk, 1000));
    ASSERT_TRUE(store);
    Batch batch{.epoch = store->raise_epoch().value(), .clock = {1}};
    constexpr int commits = 5000;
    const std::string body = random_bytes(rng, 600), payload = random_bytes(rng, 500), salt = random_bytes(rng, 16);
    const std::clock_t begin = std::clock();
    for (int i = 0; i < commits; ++i) {
        batch.rows = {{Table::workload, i % 500, body}, {Table::lease, i % 500, body}};
        batch.leaves = {{i, salt, payload}};
        ASSERT_TRUE(store->commit(batch));
    }
    const double us = 1e6 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / commits;
    fmt::print("a commit of two rows and a leaf on the simulated disk: {:.1f} us of CPU\n", us);
    RecordProperty("commit_us", fmt::format("{:.1f}", us));
}

}  // namespace
}  // namespace bulkhead::sim
