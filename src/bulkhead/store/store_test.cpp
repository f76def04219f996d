#include "bulkhead/store/store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "bulkhead/store/migrations.hpp"
#include "bulkhead/store/reader.hpp"
#include "bulkhead/store/scratch_test.hpp"
#include "bulkhead/store/sqlite.hpp"

namespace bulkhead::store {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

Store opened(const Options& options) {
    Result<Store> store = Store::open(options);
    EXPECT_TRUE(store) << store.error().what;
    return std::move(store.value());
}

std::vector<Row> rows_of(const Store& store) {
    std::vector<Row> rows;
    const auto position = store.load([&](Row&& row) -> Result<> {
        rows.push_back(std::move(row));
        return {};
    });
    EXPECT_TRUE(position) << position.error().what;
    return rows;
}

void run_sql(const std::string& path, const char* sql) {
    const Database database = Database::open(path, "", {SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE}).value();
    const auto done = database.run(sql, "edit");
    ASSERT_TRUE(done) << done.error().what;
}

TEST(Store, begins_with_nothing_but_a_secret_in_a_private_file) {
    const Scratch scratch;
    const Store store = opened(scratch.options());
    EXPECT_EQ(store.position().value(), Position{});
    EXPECT_TRUE(rows_of(store).empty());
    EXPECT_TRUE(store.leaves(0, 10).value().empty());
    EXPECT_EQ(store.secret().size(), 32u);
    EXPECT_NE(store.secret(), opened(scratch.options("other.db")).secret());
    for (const char* ending : {"", "-wal", "-shm"}) {
        struct stat status{};
        ASSERT_EQ(::stat((scratch.path() + ending).c_str(), &status), 0) << ending;
        EXPECT_EQ(status.st_mode & 0777, 0600u) << ending;
    }
}

TEST(Store, keeps_what_was_committed) {
    const Scratch scratch;
    std::string secret;
    {
        Store store = opened(scratch.options());
        secret = store.secret();
        const std::int64_t epoch = store.raise_epoch().value();
        ASSERT_TRUE(store.commit({.epoch = epoch,
                                  .clock = {10},
                                  .rows = {{Table::lease, 2, "two"},
                                           {Table::tenant, 9, "nine"},
                                           {Table::lease, 1, "one"},
                                           {Table::lease, -1, std::string{"\0zero\0", 6}},
                                           {Table::lease, 2, "two again"},
                                           {Table::node, 5, "five"},
                                           {Table::node, 5, "", true},
                                           {Table::node, 6, ""}},
                                  .leaves = {leaf_number(0), leaf_number(1)}}));
        ASSERT_TRUE(store.commit({.epoch = epoch, .clock = {10}, .rows = {{Table::lease, 1, "", true}}}));
    }
    const Store store = opened(scratch.options());
    EXPECT_EQ(store.secret(), secret);
    EXPECT_EQ(store.position().value(), (Position{1, {10}, 2}));
    EXPECT_THAT(rows_of(store), testing::ElementsAre(Row{Table::tenant, 9, "nine"}, Row{Table::node, 6, ""},
                                                     Row{Table::lease, -1, std::string{"\0zero\0", 6}},
                                                     Row{Table::lease, 2, "two again"}))
        << "by table, then by key; an empty body is not an erased row";
    EXPECT_EQ(store.leaf(1).value(), leaf_number(1));
    EXPECT_EQ(store.leaf(2).error().code, Code::not_found);
    EXPECT_EQ(store.leaf(-1).error().code, Code::not_found);
    EXPECT_EQ(store.leaves(1, 5).value(), std::vector{leaf_number(1)});
    EXPECT_TRUE(store.leaves(0, 0).value().empty());
    EXPECT_TRUE(store.check().value().empty());
}

TEST(Store, refuses_what_does_not_follow_and_can_be_used_on) {
    const Scratch scratch;
    Store store = opened(scratch.options());
    ASSERT_EQ(store.raise_epoch(41).value(), 42);
    ASSERT_TRUE(
        store.commit({.epoch = 42, .clock = {100}, .rows = {{Table::tenant, 1, "a"}}, .leaves = {leaf_number(0)}}));
    const Position before = store.position().value();
    struct Case {
        std::string_view says;
        Batch batch;
        std::string_view words;
    };
    const std::vector<Row> rows{{Table::tenant, 1, "b"}, {Table::tenant, 2, "c"}};
    const Case cases[] = {
        {"an older epoch", {41, {100}, rows, {leaf_number(1)}}, "epoch 42 has taken over"},
        {"an epoch nobody was given", {43, {100}, rows, {leaf_number(1)}}, "epoch 43 may not commit"},
        {"a clock that runs back", {42, {99}, rows, {leaf_number(1)}}, "run back"},
        {"a leaf that is there already", {42, {100}, rows, {leaf_number(0)}}, "does not continue"},
        {"a gap in the log", {42, {100}, rows, {leaf_number(1), leaf_number(3)}}, "leaf 3 does not continue"},
    };
    for (const Case& one : cases) {
        SCOPED_TRACE(one.says);
        const auto refused = store.commit(one.batch);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Code::conflict);
        EXPECT_THAT(refused.error().what, HasSubstr(one.words));
        EXPECT_THAT(refused.error().what, HasSubstr(scratch.path()));
        EXPECT_FALSE(refused.error().remedy.empty());
        EXPECT_EQ(store.position().value(), before);
        EXPECT_EQ(rows_of(store), (std::vector{Row{Table::tenant, 1, "a"}}));
        EXPECT_FALSE(store.must_be_reopened());
    }
    EXPECT_TRUE(store.commit({42, {100}, rows, {leaf_number(1)}}));
}

TEST(Store, takes_several_batches_as_one_or_not_at_all) {
    const Scratch scratch;
    Store store = opened(scratch.options());
    const std::int64_t epoch = store.raise_epoch().value();
    std::vector<Batch> group;
    group.reserve(5);
    for (std::int64_t i = 0; i < 5; ++i)
        group.push_back(
            {epoch, {i}, {{Table::workload, i, "w"}, {Table::usage, 0, std::to_string(i)}}, {leaf_number(i)}});
    std::vector<Batch> broken = group;
    broken.back().leaves[0].index = 9;
    EXPECT_FALSE(store.commit(broken));
    EXPECT_TRUE(rows_of(store).empty());
    ASSERT_TRUE(store.commit(group));
    EXPECT_EQ(store.position().value(), (Position{epoch, {4}, 5}));
    EXPECT_EQ(rows_of(store).back(), (Row{Table::usage, 0, "4"}));
}

TEST(Store, raises_the_epoch_above_every_other) {
    const Scratch scratch;
    Store store = opened(scratch.options());
    EXPECT_EQ(store.raise_epoch().value(), 1);
    EXPECT_EQ(store.raise_epoch().value(), 2);
    EXPECT_EQ(store.raise_epoch(1).value(), 3);
    EXPECT_EQ(store.raise_epoch(1000).value(), 1001);
    EXPECT_EQ(store.raise_epoch(std::numeric_limits<std::int64_t>::max()).error().code, Code::invalid);
    EXPECT_EQ(store.raise_epoch(-5).value(), 1002);
    EXPECT_EQ(opened(scratch.options()).position().value().epoch, 1002);
}

TEST(Store, takes_back_entries_whose_payload_was_lost) {
    const Scratch scratch;
    Store store = opened(scratch.options());
    const std::int64_t epoch = store.raise_epoch().value();
    ASSERT_TRUE(store.commit({.epoch = epoch, .leaves = {leaf_number(0)}}));
    const std::vector<Hash> entries{leaf_number(1).entry, leaf_number(2).entry};
    EXPECT_EQ(store.import_lost_leaves(0, entries).error().code, Code::conflict);
    EXPECT_EQ(store.import_lost_leaves(2, entries).error().code, Code::conflict);
    ASSERT_TRUE(store.import_lost_leaves(1, entries));
    EXPECT_EQ(store.leaf(2).value(), (Leaf{2, "", "", leaf_number(2).entry}));
    EXPECT_TRUE(store.commit({.epoch = epoch, .leaves = {leaf_number(3)}}));
    EXPECT_TRUE(store.check().value().empty());
}

TEST(Store, is_not_made_where_it_cannot_or_may_not_be) {
    const Scratch scratch;
    Options options = scratch.options();
    options.create = false;
    EXPECT_EQ(Store::open(options).error().code, Code::not_found);
    EXPECT_FALSE(fs::exists(options.path));
    EXPECT_EQ(Reader::open(options).error().code, Code::not_found);
    const auto nowhere = Store::open({.path = scratch.path("no/such/directory/state.db")});
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().code, Code::unavailable) << nowhere.error().what;
    EXPECT_THAT(nowhere.error().remedy, HasSubstr("directory"));
    EXPECT_FALSE(Store::open({.path = scratch.path(), .vfs = "nobody registered this"}));
}

TEST(Store, refuses_files_that_are_not_its_own) {
    const Scratch scratch;
    {
        std::ofstream{scratch.path("letter.txt")} << std::string(5000, 'x');
        const auto store = Store::open(scratch.options("letter.txt"));
        ASSERT_FALSE(store);
        EXPECT_EQ(store.error().code, Code::corrupt) << store.error().what;
    }
    for (const char* sql : {"CREATE TABLE songs(a)", "PRAGMA application_id = 7", "PRAGMA user_version = 3"}) {
        SCOPED_TRACE(sql);
        run_sql(scratch.path("music.db"), sql);
        const auto store = Store::open(scratch.options("music.db"));
        ASSERT_FALSE(store);
        EXPECT_EQ(store.error().code, Code::invalid);
        EXPECT_THAT(store.error().what, HasSubstr("another application"));
        fs::remove(scratch.path("music.db"));
    }
    opened(scratch.options());
    run_sql(scratch.path(), "PRAGMA user_version = 99");
    const auto newer = Store::open(scratch.options());
    ASSERT_FALSE(newer);
    EXPECT_EQ(newer.error().code, Code::invalid);
    EXPECT_THAT(newer.error().what, HasSubstr("version 99"));
    EXPECT_THAT(newer.error().remedy, HasSubstr("newer program"));
}

TEST(Store, refuses_a_schema_that_somebody_changed) {
    for (const char* sql : {"CREATE TABLE extra(a)", "DROP TABLE gate", "CREATE INDEX i ON lease(body)",
                            "CREATE TRIGGER t AFTER INSERT ON lease BEGIN DELETE FROM lease; END"}) {
        SCOPED_TRACE(sql);
        const Scratch scratch;
        opened(scratch.options());
        run_sql(scratch.path(), sql);
        EXPECT_EQ(Store::open(scratch.options()).error().code, Code::corrupt);
    }
}

TEST(Store, notices_edits_behind_its_back) {
    struct Case {
        const char* sql;
        bool at_open;
    };
    for (const Case& one :
         {Case{"UPDATE lease SET body = x'00'", false}, Case{"UPDATE lease SET key = 7", false},
          Case{"UPDATE meta SET epoch = 1", true}, Case{"UPDATE secret SET body = x'00'", true},
          Case{"DELETE FROM meta", true}, Case{"UPDATE leaf SET salt = x'00'", false},
          Case{"DELETE FROM leaf WHERE idx = 1", false}, Case{"DELETE FROM leaf WHERE idx = 2", true}}) {
        SCOPED_TRACE(one.sql);
        const Scratch scratch;
        {
            Store store = opened(scratch.options());
            ASSERT_TRUE(store.raise_epoch(4));
            ASSERT_TRUE(store.commit({.epoch = 5,
                                      .rows = {{Table::lease, 1, "body"}},
                                      .leaves = {leaf_number(0), leaf_number(1), leaf_number(2)}}));
        }
        run_sql(scratch.path(), one.sql);
        const auto store = Store::open(scratch.options());
        EXPECT_EQ(store.has_value(), !one.at_open);
        if (!store) {
            EXPECT_EQ(store.error().code, Code::corrupt);
            continue;
        }
        EXPECT_FALSE(store->check().value().empty());
        const bool rows = store->load([](Row&&) { return Result<>{}; }).has_value();
        EXPECT_FALSE(rows && store->leaves(0, 10).has_value());
    }
}

TEST(Store, checks_rows_at_every_open_and_the_log_while_it_is_small) {
    const Scratch scratch;
    Options options = scratch.options();
    {
        Store store = opened(options);
        const std::int64_t epoch = store.raise_epoch().value();
        for (std::int64_t i = 0; i < 50; ++i)
            ASSERT_TRUE(store.commit({epoch, {i}, {{Table::lease, i, std::string(500, 'l')}}, {leaf_number(i)}}));
        EXPECT_TRUE(store.checked_whole());
    }
    options.check_whole_up_to = {1000};
    EXPECT_FALSE(opened(options).checked_whole());
    // The row table's root page: of many, so damage in it is sure to be met.
    const auto root = Database::open(options.path, "", {SQLITE_OPEN_READWRITE})
                          .value()
                          .integer("SELECT rootpage FROM sqlite_schema WHERE name = 'lease'", "read")
                          .value();
    {
        std::fstream file{options.path, std::ios::in | std::ios::out | std::ios::binary};
        file.seekp((root - 1) * 4096);
        file << std::string(64, '\x7f');
    }
    EXPECT_EQ(Store::open(options).error().code, Code::corrupt);
}

TEST(Store, is_busy_while_another_process_writes_and_free_after) {
    const Scratch scratch;
    Store store = opened(scratch.options());
    const std::int64_t epoch = store.raise_epoch().value();
    {
        const Database other = Database::open(scratch.path(), "", {SQLITE_OPEN_READWRITE}).value();
        ASSERT_TRUE(other.run("BEGIN IMMEDIATE", "block"));
        EXPECT_EQ(store.commit({.epoch = epoch}).error().code, Code::conflict);
        EXPECT_EQ(Store::open(scratch.options()).error().code, Code::conflict);
    }
    EXPECT_FALSE(store.must_be_reopened());
    EXPECT_TRUE(store.commit({.epoch = epoch}));
}

TEST(Store, opened_to_be_read_only_reads_only) {
    const Scratch scratch;
    Store writer = opened(scratch.options());
    const std::int64_t epoch = writer.raise_epoch().value();
    ASSERT_TRUE(writer.commit({.epoch = epoch, .rows = {{Table::token, 1, "t"}}, .leaves = {leaf_number(0)}}));
    Options options = scratch.options();
    options.read_only = true;
    Store reader = opened(options);
    EXPECT_EQ(rows_of(reader), rows_of(writer));
    EXPECT_EQ(reader.commit({.epoch = epoch}).error().code, Code::unavailable);
    EXPECT_EQ(reader.raise_epoch().error().code, Code::unavailable);
    EXPECT_FALSE(reader.must_be_reopened());
}

TEST(Store, stops_loading_when_the_visitor_does) {
    const Scratch scratch;
    Store store = opened(scratch.options());
    const std::int64_t epoch = store.raise_epoch().value();
    ASSERT_TRUE(store.commit({.epoch = epoch, .rows = {{Table::token, 1, "t"}, {Table::token, 2, "t"}}}));
    int seen = 0;
    const auto stopped = store.load([&](Row&&) -> Result<> {
        ++seen;
        return fail(Code::corrupt, "not a token");
    });
    EXPECT_EQ(stopped.error().what, "not a token");
    EXPECT_EQ(seen, 1);
    EXPECT_TRUE(store.commit({.epoch = epoch})) << "and can be used on";
}

TEST(Store, takes_any_path) {
    const Scratch scratch;
    for (const char* name : {"file:x?mode=memory", "with space %41#frag.db", "ünïcode.db", "-wal"}) {
        SCOPED_TRACE(name);
        {
            Store store = opened(scratch.options(name));
            ASSERT_TRUE(store.raise_epoch());
            ASSERT_TRUE(store.backup(scratch.path(std::string{name} + ".backup"))) << "whose name goes into a URI";
        }
        EXPECT_TRUE(fs::exists(scratch.path(name)));
        EXPECT_EQ(opened(scratch.options(name)).position().value().epoch, 1);
    }
}

TEST(Store, takes_a_relative_path_that_begins_like_a_uri) {
    const Scratch scratch;
    const fs::path before = fs::current_path();
    fs::current_path(scratch.path(""));
    {
        ASSERT_TRUE(opened({.path = "file:memory?mode=memory"}).raise_epoch());
    }
    fs::current_path(before);
    EXPECT_TRUE(fs::exists(scratch.path("file:memory?mode=memory")));
}

TEST(Reader, follows_the_log_from_another_thread) {
    const Scratch scratch;
    Options options = scratch.options();
    options.sync = Sync::off;
    options.checkpoint_pages = 50;
    options.busy = {5000};
    Store store = opened(options);
    const std::int64_t epoch = store.raise_epoch().value();
    constexpr std::int64_t leaves = 2000;
    std::vector<std::string> wrong;
    std::thread reading{[&] {
        Result<Reader> reader = Reader::open(options);
        if (!reader) return wrong.push_back(reader.error().what);
        for (std::int64_t next = 0; next < leaves && wrong.empty();) {
            const auto found = reader->leaves(next, 64);
            if (!found) return wrong.push_back(found.error().what);
            for (const Leaf& leaf : *found)
                if (leaf != leaf_number(next++)) wrong.push_back("leaf " + std::to_string(leaf.index));
        }
    }};
    for (std::int64_t i = 0; i < leaves; ++i) ASSERT_TRUE(store.commit({.epoch = epoch, .leaves = {leaf_number(i)}}));
    reading.join();
    EXPECT_THAT(wrong, testing::IsEmpty());
}

TEST(Migrations, a_later_step_keeps_what_is_there) {
    const Scratch scratch;
    {
        Store store = opened(scratch.options());
        const std::int64_t epoch = store.raise_epoch().value();
        ASSERT_TRUE(store.commit({.epoch = epoch, .rows = {{Table::tenant, 1, "t"}}}));
    }
    std::vector<Migration> steps{shipped_migrations().begin(), shipped_migrations().end()};
    const std::string_view more[] = {"made_up"};
    const std::int64_t next = steps.back().to + 1;
    steps.push_back({next, more, {}, "INSERT INTO made_up(key, body, sum) SELECT key, body, 0 FROM tenant"});
    const Database database = Database::open(scratch.path(), "", {SQLITE_OPEN_READWRITE}).value();
    ASSERT_TRUE(database.run("BEGIN IMMEDIATE", "test"));
    ASSERT_TRUE(migrate(database, steps));
    ASSERT_TRUE(database.run("COMMIT", "test"));
    EXPECT_EQ(database.integer("PRAGMA user_version", "test").value(), next);
    EXPECT_EQ(database.integer("SELECT count(*) FROM made_up", "test").value(), 1);
    EXPECT_EQ(schema_of(steps, next).size(), schema_of(steps, next - 1).size() + 1);
}

}  // namespace
}  // namespace bulkhead::store
