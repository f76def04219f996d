// One database per schema version ever shipped, in testdata/store/: each must open for ever, with all it holds.
#include <gtest/gtest.h>

#include <filesystem>

#include "bulkhead/store/migrations.hpp"
#include "bulkhead/store/scratch_test.hpp"

namespace bulkhead::store {
namespace {

namespace fs = std::filesystem;

const std::string golden_secret = "the golden secret of 32 bytes...";

std::string golden_path(std::int64_t version) {
    return std::string{BULKHEAD_SOURCE_DIR} + "/testdata/store/v" + std::to_string(version) + ".db";
}

// What every golden file holds in the tables that its version has.
Batch golden_batch() {
    Batch batch{.epoch = 7, .clock = {1'794'733'200'000}};
    std::int64_t key = 0;
    for (const std::string_view word : words(Table{})) {
        batch.rows.push_back({static_cast<Table>(key), 100 + key, "golden " + std::string{word}});
        ++key;
    }
    for (std::int64_t i = 0; i < 3; ++i) batch.leaves.push_back(leaf_number(i));
    return batch;
}

// A version that has no file yet gets one here, once; from then on it is held to it.
void write_golden_file(const std::string& path) {
    fs::create_directories(fs::path{path}.parent_path());
    const Scratch scratch;
    Options options = scratch.options();
    options.secret_if_new = golden_secret;
    auto store = Store::open(options);
    ASSERT_TRUE(store) << store.error().what;
    ASSERT_EQ(store->raise_epoch(6).value(), 7);
    ASSERT_TRUE(store->commit(golden_batch()));
    ASSERT_TRUE(store->import_lost_leaves(3, std::vector{leaf_number(3).entry}));
    ASSERT_TRUE(store->backup(path));
    fs::permissions(path, fs::perms::group_read | fs::perms::others_read, fs::perm_options::add);
}

TEST(Golden, the_newest_version_has_its_file) {
    const std::string path = golden_path(shipped_migrations().back().to);
    if (fs::exists(path)) return;
    write_golden_file(path);
    FAIL() << path << " was missing and has been written now: commit it with the migration it belongs to";
}

TEST(Golden, every_shipped_version_opens_with_all_it_holds) {
    for (const Migration& migration : shipped_migrations()) {
        SCOPED_TRACE(golden_path(migration.to));
        const Scratch scratch;
        fs::copy_file(golden_path(migration.to), scratch.path());
        const auto store = Store::open(scratch.options());
        ASSERT_TRUE(store) << store.error().what;
        EXPECT_EQ(store->position().value(), (Position{7, {1'794'733'200'000}, 4}));
        EXPECT_EQ(store->secret(), golden_secret);
        EXPECT_EQ(store->leaf(2).value(), leaf_number(2));
        EXPECT_EQ(store->leaf(3).value(), (Leaf{3, "", "", leaf_number(3).entry}));
        std::vector<Row> found;
        ASSERT_TRUE(store->load([&](Row&& row) -> Result<> {
            found.push_back(std::move(row));
            return {};
        }));
        // A version has the tables of its migrations, which come first in the list of today.
        std::vector<Row> expected = golden_batch().rows;
        expected.resize(found.size());
        EXPECT_EQ(found, expected);
        EXPECT_GE(found.size(), migration.tables.size());
        EXPECT_TRUE(store->check().value().empty());
    }
}

}  // namespace
}  // namespace bulkhead::store
