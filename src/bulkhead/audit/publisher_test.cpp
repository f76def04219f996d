#include "bulkhead/audit/publisher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <random>

#include "bulkhead/audit/memory_files_test.hpp"
#include "bulkhead/audit/small_log_test.hpp"
#include "bulkhead/audit/tile_reader.hpp"

namespace bulkhead::audit {
namespace {

using evidence::SigningKey;
using testing::HasSubstr;
using Content = MemoryFiles::Content;

Result<Publisher> open(std::shared_ptr<Content> content) {
    return Publisher::open(std::make_unique<MemoryFiles>(std::move(content)), origin, key_of_seed('L'));
}

Result<TileReader::Audit> audit(std::shared_ptr<Content> content, std::optional<std::string> older = {}) {
    return TileReader{std::make_shared<MemoryFiles>(std::move(content))}.verify_all(vkey(), older);
}

// A log that was published at each of these sizes.
std::shared_ptr<Content> published_at(std::initializer_list<std::uint64_t> sizes) {
    auto content = std::make_shared<Content>();
    Publisher publisher = open(content).value();
    for (const std::uint64_t size : sizes) {
        while (publisher.size() < size) publisher.append(entry(publisher.size()));
        EXPECT_TRUE(publisher.publish());
    }
    return content;
}

std::size_t stray_partials(const Content& content) {
    std::size_t strays = 0;
    for (const auto& [path, bytes] : content) {
        const std::size_t p = path.find(".p/");
        if (p != std::string::npos && content.contains(path.substr(0, p))) ++strays;
    }
    return strays;
}

TEST(Publisher, writes_the_files_of_the_format_and_no_others) {
    const auto content = published_at({0, 3, 300});
    std::vector<std::string> paths;
    for (const auto& [path, bytes] : *content) paths.push_back(path);
    EXPECT_THAT(paths, testing::ElementsAre("checkpoint", "tile/0/000", "tile/0/001.p/44", "tile/1/000.p/1",
                                            "tile/entries/000", "tile/entries/001.p/44"));
    EXPECT_EQ(content->at("tile/0/000").size(), 8192u);
    EXPECT_EQ(content->at("tile/entries/001.p/44").size(), 44u * 34);
    EXPECT_EQ(content->at("tile/entries/001.p/44").substr(0, 34),
              std::string("\0\x20", 2) + std::string{bytes_of(entry(256))});
    evidence::Frontier frontier;
    for (std::uint64_t i = 0; i < 300; ++i) frontier.append(evidence::leaf_hash(bytes_of(entry(i))));
    const auto checkpoint = evidence::open_checkpoint(content->at("checkpoint"), vkey()).value();
    EXPECT_EQ(checkpoint, (evidence::Checkpoint{origin, 300, frontier.root(), {}}));
}

TEST(Publisher, an_empty_log_has_a_checkpoint_and_nothing_else) {
    const auto content = published_at({0});
    EXPECT_EQ(content->size(), 1u);
    EXPECT_TRUE(audit(content));
    EXPECT_EQ(open(content)->published(), 0u);
}

TEST(Publisher, what_is_published_does_not_depend_on_when) {
    for (const std::uint64_t size : {255u, 256u, 257u, 600u, 65536u, 66000u}) {
        const auto at_once = published_at({size}), by_parts = published_at({1, size / 3, size / 2, size - 1, size});
        for (const auto& [path, bytes] : *at_once) EXPECT_EQ(by_parts->at(path), bytes) << path;
        EXPECT_EQ(stray_partials(*by_parts), 0u);
        EXPECT_EQ(audit(by_parts)->checkpoint.size, size);
    }
}

TEST(Publisher, goes_on_after_a_restart_at_any_size) {
    for (const std::uint64_t size : {1u, 255u, 256u, 511u, 512u, 700u, 65536u, 65537u}) {
        const auto content = published_at({size});
        const std::string older = content->at("checkpoint");
        Publisher again = open(content).value();
        EXPECT_EQ(again.size(), size);
        EXPECT_EQ(again.checkpoint(), older);
        ASSERT_TRUE(again.catch_up(size + 300, store));
        EXPECT_EQ(again.published(), size);
        ASSERT_TRUE(again.publish());
        const auto whole = published_at({size + 300});
        for (const auto& [path, bytes] : *whole) EXPECT_EQ(content->at(path), bytes) << path;
        EXPECT_TRUE(audit(content, older)->continues_older);
    }
}

TEST(Publisher, publishing_nothing_new_changes_nothing) {
    const auto content = published_at({300});
    const Content before = *content;
    Publisher again = open(content).value();
    ASSERT_TRUE(again.publish());
    EXPECT_EQ(*content, before);
}

TEST(Publisher, catching_up_writes_tiles_as_it_goes_and_signs_only_when_told) {
    const auto content = std::make_shared<Content>();
    Publisher publisher = open(content).value();
    ASSERT_TRUE(publisher.catch_up(150'000, store));
    EXPECT_TRUE(content->contains("tile/0/511"));
    EXPECT_FALSE(content->contains("checkpoint"));
    ASSERT_TRUE(publisher.publish());
    EXPECT_EQ(audit(content)->checkpoint.size, 150'000u);
    EXPECT_EQ(stray_partials(*content), 0u);
}

TEST(Publisher, refuses_a_store_that_has_less_than_was_signed_for) {
    Publisher publisher = open(published_at({300})).value();
    const auto refused = publisher.catch_up(299, store);
    EXPECT_EQ(refused.error().code, Code::conflict);
    EXPECT_EQ(refused.error().what,
              "the store has 299 entries, and 300 were signed for: it was restored from an older copy");
    EXPECT_THAT(refused.error().remedy, HasSubstr("read entries 299 to 299 back"));
}

TEST(Publisher, refuses_the_store_of_another_log) {
    for (const std::uint64_t size : {300u, 512u}) {
        Publisher publisher = open(published_at({size})).value();
        const auto refused = publisher.catch_up(
            size + 1, [&](std::uint64_t i) -> Result<Hash> { return i == size - 1 ? sha256("another") : entry(i); });
        EXPECT_EQ(refused.error().code, Code::conflict);
        EXPECT_THAT(refused.error().what, HasSubstr("entry " + std::to_string(size - 1) + " is"));
    }
}

TEST(Publisher, passes_on_what_the_store_cannot_read) {
    Publisher publisher = open(std::make_shared<Content>()).value();
    const auto refused =
        publisher.catch_up(5, [](std::uint64_t) -> Result<Hash> { return fail(Code::unavailable, "no"); });
    EXPECT_EQ(refused.error().what, "no");
}

TEST(Publisher, refuses_a_directory_that_is_not_its_own) {
    struct Row {
        std::string_view says;
        std::function<void(Content&)> spoil;
        std::string_view what;
    };
    const Row rows[] = {
        {"another key", [](Content& c) { c["checkpoint"] = sign_checkpoint({origin, 300, {}, {}}, key_of_seed('x')); },
         "the checkpoint on disk is not one of this log"},
        {"another log",
         [](Content& c) { c["checkpoint"] = sign_checkpoint({"b.example", 300, {}, {}}, key_of_seed('L')); },
         "the checkpoint on disk is not one of this log"},
        {"a damaged checkpoint", [](Content& c) { c["checkpoint"].resize(20); },
         "the checkpoint on disk is not one of this log: not a signed note"},
        {"a changed tile", [](Content& c) { c["tile/0/001.p/44"][0] ^= 1; }, "the tiles on disk give root"},
        {"a tile cut short", [](Content& c) { c["tile/0/001.p/44"].pop_back(); },
         "tile/0/001.p/44: a tile of 44 hashes"},
        {"a missing tile", [](Content& c) { c.erase("tile/1/000.p/1"); }, "tile/1/000.p/1 is missing"},
        {"a changed entry", [](Content& c) { c["tile/entries/001.p/44"][40] ^= 1; },
         "entry 257 in tile/entries/001.p/44"},
        {"a missing bundle", [](Content& c) { c.erase("tile/entries/001.p/44"); }, "tile/entries/001.p/44 is missing"},
    };
    for (const Row& row : rows) {
        const auto content = published_at({300});
        row.spoil(*content);
        const auto opened = open(content);
        ASSERT_FALSE(opened) << row.says;
        EXPECT_THAT(opened.error().what, HasSubstr(row.what)) << row.says;
    }
    EXPECT_EQ(Publisher::open(std::make_unique<MemoryFiles>(), "two words", key_of_seed('L')).error().code,
              Code::invalid);
}

TEST(Publisher, signs_nothing_over_a_checkpoint_that_it_did_not_write) {
    const auto content = published_at({300});
    Publisher publisher = open(content).value();
    publisher.append(entry(300));
    const std::string own = content->at("checkpoint");
    content->at("checkpoint") = sign_checkpoint({origin, 400, sha256("fork"), {}}, key_of_seed('L'));
    const Content before = *content;
    EXPECT_EQ(publisher.publish().error().code, Code::conflict);
    content->erase("checkpoint");
    EXPECT_EQ(publisher.publish().error().what, "the checkpoint over 300 leaves is gone from disk");
    *content = before;
    content->at("checkpoint") = own;
    EXPECT_TRUE(publisher.publish());
}

TEST(Publisher, rebuilds_damaged_tiles_from_the_store) {
    const auto content = published_at({100, 300, 700});
    const std::string older = content->at("checkpoint");
    const auto good = std::make_shared<Content>(*content);
    for (auto& [path, bytes] : *content)
        if (path != "checkpoint") bytes = "rust";
    EXPECT_FALSE(open(content));
    for (const std::uint64_t size : {700u, 705u, 800u}) {
        const auto damaged = std::make_shared<Content>(*content);
        Result<Publisher> rebuilt =
            Publisher::rebuild(std::make_unique<MemoryFiles>(damaged), origin, key_of_seed('L'), size, store);
        ASSERT_TRUE(rebuilt) << rebuilt.error().what;
        ASSERT_TRUE(rebuilt->publish());
        const auto audited = audit(damaged, older);
        ASSERT_TRUE(audited) << audited.error().what;
        EXPECT_EQ(audited->checkpoint.size, size);
    }
    const auto rebuild = [&](std::uint64_t size, const EntryReader& from) {
        const auto untouched = std::make_shared<Content>(*content);
        const auto rebuilt =
            Publisher::rebuild(std::make_unique<MemoryFiles>(untouched), origin, key_of_seed('L'), size, from);
        EXPECT_EQ(*untouched, *content) << "nothing is written before everything is compared";
        return rebuilt ? std::string{"rebuilt"} : rebuilt.error().what;
    };
    EXPECT_THAT(rebuild(699, store), HasSubstr("the store has 699 entries, and 700 were signed for"));
    EXPECT_THAT(rebuild(800, [](std::uint64_t i) -> Result<Hash> { return entry(i == 5 ? 6 : i); }),
                HasSubstr("the store's first 700 entries give root"));
}

// One life of a publisher: the store grows by random steps, each published; until the end or until something fails.
struct Life {
    std::mt19937_64 random;
    std::uint64_t in_store = 0;  // durable whatever happens to the directory

    explicit Life(std::uint64_t seed) : random{seed} {}

    // True when it reached the size.
    bool live(std::unique_ptr<Files> files, std::uint64_t until) {
        Result<Publisher> publisher = Publisher::open(std::move(files), origin, key_of_seed('L'));
        if (!publisher || !publisher->catch_up(in_store, store) || !publisher->publish()) return false;
        while (in_store < until) {
            for (std::uint64_t more = 1 + random() % 300; more > 0; --more) publisher->append(entry(in_store++));
            if (!publisher->publish()) return false;
        }
        return true;
    }
};

TEST(PublisherStory, whatever_a_power_failure_leaves_it_verifies_and_can_be_continued) {
    int failures = 0;
    for (int changes = 0; changes < 60; ++changes)
        for (std::uint64_t seed = 1; seed <= 4; ++seed) {
            SCOPED_TRACE("power fails at change " + std::to_string(changes) + ", seed " + std::to_string(seed));
            const auto content = std::make_shared<Content>();
            Life life{seed};
            std::string older;
            for (int failure = 0; failure < 3; ++failure) {
                auto files = std::make_unique<MemoryFiles>(content);
                files->fail_power_after(changes, seed + static_cast<std::uint64_t>(failure) * 100);
                if (!life.live(std::move(files), life.in_store + 2000)) ++failures;
                if (!content->contains("checkpoint")) {
                    ASSERT_EQ(older, "") << "the checkpoint is gone";
                    continue;
                }
                const auto left = audit(content, older.empty() ? std::nullopt : std::optional{older});
                ASSERT_TRUE(left) << left.error().what;
                ASSERT_LE(left->checkpoint.size, life.in_store) << "signed for what was not durable";
                older = content->at("checkpoint");
            }
            ASSERT_TRUE(life.live(std::make_unique<MemoryFiles>(content), life.in_store + 300));
            const auto whole = audit(content, older.empty() ? std::nullopt : std::optional{older});
            ASSERT_TRUE(whole) << whole.error().what;
            EXPECT_EQ(whole->checkpoint.size, life.in_store);
            EXPECT_EQ(stray_partials(*content), 0u);
        }
    EXPECT_GT(failures, 400);
}

TEST(PublisherStory, an_error_is_survived_by_trying_again) {
    for (const bool although_done : {false, true})
        for (int changes = 0; changes < 40; ++changes) {
            SCOPED_TRACE(std::to_string(changes) + (although_done ? ", done all the same" : ""));
            const auto content = std::make_shared<Content>();
            auto files = std::make_unique<MemoryFiles>(content);
            files->fail_once_after(changes, although_done);
            Publisher publisher = Publisher::open(std::move(files), origin, key_of_seed('L')).value();
            int errors = 0;
            for (std::uint64_t i = 0; i < 2000; ++i) {
                publisher.append(entry(i));
                if (i % 170 == 169 && !publisher.publish()) ++errors;
            }
            if (!publisher.publish()) ++errors;
            ASSERT_TRUE(publisher.publish());
            EXPECT_EQ(errors, 1);
            EXPECT_EQ(audit(content)->checkpoint.size, 2000u);
        }
}

}  // namespace
}  // namespace bulkhead::audit
