#include "bulkhead/audit/tile_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "bulkhead/audit/memory_files_test.hpp"
#include "bulkhead/audit/publisher.hpp"
#include "bulkhead/audit/small_log_test.hpp"

namespace bulkhead::audit {
namespace {

using namespace evidence;
using testing::HasSubstr;
using Content = MemoryFiles::Content;

struct Published {
    Content content;
    std::vector<std::string> notes;  // one for each size
};

using EntryAt = std::function<Hash(std::uint64_t)>;

Published published_in_steps(std::initializer_list<std::uint64_t> sizes, const EntryAt& entry_at = entry) {
    Published made;
    const auto content = std::make_shared<Content>();
    Publisher publisher = Publisher::open(std::make_unique<MemoryFiles>(content), origin, key_of_seed('L')).value();
    for (const std::uint64_t size : sizes) {
        while (publisher.size() < size) publisher.append(entry_at(publisher.size()));
        EXPECT_TRUE(publisher.publish());
        made.notes.push_back(publisher.checkpoint());
    }
    made.content = *content;
    return made;
}

TileReader reader_of(Content content) {
    return TileReader{std::make_shared<MemoryFiles>(std::make_shared<Content>(std::move(content)))};
}

std::string audited(Content content, std::optional<std::string> older = {}) {
    const auto audit = reader_of(std::move(content)).verify_all(vkey(), older);
    return audit ? "sound" : audit.error().what;
}

const Published& large() {  // three levels of tiles
    static const Published published = published_in_steps({66'000});
    return published;
}

TEST(TileReader, gives_entries_and_proofs_that_others_can_check) {
    const TileReader reader = reader_of(large().content);
    const Checkpoint checkpoint = reader.checkpoint(vkey()).value();
    for (const std::uint64_t index : {0u, 255u, 256u, 65'535u, 65'536u, 65'999u}) {
        const std::string bytes = reader.entry(index, checkpoint.size).value();
        EXPECT_EQ(bytes, bytes_of(entry(index)));
        const auto proof = reader.prove(index, checkpoint.size).value();
        EXPECT_TRUE(verify_inclusion({index, checkpoint.size, leaf_hash(bytes), checkpoint.root}, proof)) << index;
    }
    EXPECT_EQ(reader.entry(66'000, checkpoint.size).error().code, Code::not_found);
    EXPECT_EQ(reader.prove(66'000, checkpoint.size).error().code, Code::not_found);
}

TEST(TileReader, proves_that_a_log_continues_what_it_was) {
    const Published log = published_in_steps({1, 100, 256, 300, 700, 1000});
    const TileReader reader = reader_of(log.content);
    const Checkpoint now = reader.checkpoint(vkey()).value();
    for (const std::string& note : log.notes) {
        const Checkpoint then = open_checkpoint(note, vkey()).value();
        const auto proof = reader.prove_consistency({then.size, now.size}).value();
        EXPECT_TRUE(verify_consistency({{then.size, now.size}, then.root, now.root}, proof)) << then.size;
        EXPECT_EQ(audited(log.content, note), "sound");
        // Whoever still holds the older checkpoint finds its tiles, partial or full.
        EXPECT_TRUE(verify_inclusion({0, then.size, leaf_hash(bytes_of(entry(0))), then.root},
                                     reader.prove(0, then.size).value()));
    }
}

TEST(TileReader, proves_in_trees_that_were_never_published) {
    const Published log = published_in_steps({700});
    const TileReader reader = reader_of(log.content);
    for (const std::uint64_t size : {1u, 5u, 255u, 256u, 300u, 513u, 699u}) {
        Frontier tree;
        for (std::uint64_t i = 0; i < size; ++i) tree.append(leaf_hash(bytes_of(entry(i))));
        const auto proof = reader.prove(size - 1, size);
        ASSERT_TRUE(proof) << size << proof.error().what;
        EXPECT_TRUE(verify_inclusion({size - 1, size, leaf_hash(bytes_of(entry(size - 1))), tree.root()}, *proof));
        const auto continued = reader.prove_consistency({1, size});
        ASSERT_TRUE(continued) << size << continued.error().what;
        EXPECT_TRUE(verify_consistency({{1, size}, leaf_hash(bytes_of(entry(0))), tree.root()}, *continued));
        EXPECT_EQ(reader.frontier({size, 700})->root(), tree.root());
    }
}

TEST(TileReader, a_sound_log_is_said_to_be_sound) {
    const auto audit = reader_of(large().content).verify_all(vkey());
    ASSERT_TRUE(audit) << audit.error().what;
    EXPECT_EQ(audit->checkpoint.size, 66'000u);
    EXPECT_EQ(audit->tiles, large().content.size() - 1);
    EXPECT_FALSE(audit->continues_older);
}

TEST(TileReader, no_byte_can_be_changed_removed_or_added_anywhere) {
    const Published log = published_in_steps({5, 100, 300, 600, 610});
    ASSERT_EQ(audited(log.content, log.notes[2]), "sound");
    std::mt19937_64 random{7};
    for (const auto& [path, bytes] : log.content)
        for (int i = 0; i < 12; ++i) {
            Content spoiled = log.content;
            std::string& victim = spoiled[path];
            const std::size_t at = random() % victim.size();
            if (i < 8)
                victim[at] = static_cast<char>(victim[at] ^ (1 << random() % 8));
            else if (i < 10)
                victim.erase(at, 1);
            else
                victim.insert(at, 1, 'x');
            EXPECT_NE(audited(spoiled), "sound") << path << " at " << at << ", way " << i;
        }
}

void flip(Content& content, const std::string& path, std::size_t at) { content.at(path)[at] ^= 1; }

// The bytes of one hash or entry, exchanged with another's.
void swap_parts(std::string& a, std::size_t at_a, std::string& b, std::size_t at_b, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) std::swap(a[at_a + i], b[at_b + i]);
}

TEST(TileReader, says_where_a_log_was_changed) {
    struct Row {
        std::string_view says;
        std::function<void(Content&)> spoil;
        std::string_view found;
    };
    const Row rows[] = {
        {"an entry edited", [](Content& c) { flip(c, "tile/entries/001", 34 * 44 + 9); },
         "tile/entries/001 was edited: entry 300 is not the one that was signed"},
        {"a leaf hash edited", [](Content& c) { flip(c, "tile/0/001", 32 * 44 + 9); },
         "tile/0/001 was edited: entry 300 is what was signed, and its hash there is not"},
        {"a node edited", [](Content& c) { flip(c, "tile/1/000", 32 * 3 + 9); },
         "tile/1/000 was edited: its hash over entries 768 to 1023 is not that of these entries"},
        {"the topmost node edited", [](Content& c) { flip(c, "tile/2/000.p/1", 9); },
         "tile/2/000.p/1 was edited: its hash over entries 0 to 65535"},
        {"two entries exchanged",
         [](Content& c) { swap_parts(c["tile/entries/001"], 34 * 44, c["tile/entries/001"], 34 * 50, 34); },
         "the order was changed in tile/entries/001: at 300 stands entry 306"},
        {"two bundles exchanged", [](Content& c) { std::swap(c["tile/entries/001"], c["tile/entries/007"]); },
         "the order was changed in tile/entries/001: at 256 stands entry 1792"},
        {"two bundles exchanged with their hashes",
         [](Content& c) {
             std::swap(c["tile/entries/001"], c["tile/entries/007"]);
             std::swap(c["tile/0/001"], c["tile/0/007"]);
         },
         "entries 256 to 511 were rewritten together with their tiles: tile/1/000 still has the hash of others"},
        {"the last bundle removed", [](Content& c) { c.erase("tile/entries/257.p/208"); },
         "entries 65792 to 65999 cannot be read: tile/entries/257.p/208 is missing"},
        {"a bundle in the middle removed", [](Content& c) { c.erase("tile/entries/100"); },
         "entries 25600 to 25855 cannot be read: tile/entries/100 is missing"},
        {"a bundle cut short", [](Content& c) { c["tile/entries/100"].resize(34 * 200); },
         "entries 25600 to 25855 cannot be read: tile/entries/100: a bundle of 256 entries has 200"},
        {"a tile cut short", [](Content& c) { c["tile/0/100"].resize(32 * 200); },
         "tile/0/100: a tile of 256 hashes has 6400"},
        {"a tile removed", [](Content& c) { c.erase("tile/1/000"); }, "tile/1/000 is missing"},
        {"the size in the checkpoint changed",
         [](Content& c) { c["checkpoint"].replace(c["checkpoint"].find("66000"), 5, "65000"); },
         "the signature of log.example/fleet does not fit the note's text"},
        {"no checkpoint", [](Content& c) { c.erase("checkpoint"); }, "there is no checkpoint here"},
    };
    for (const Row& row : rows) {
        Content content = large().content;
        row.spoil(content);
        EXPECT_THAT(audited(content), HasSubstr(row.found)) << row.says;
    }
}

// The operator itself, or whoever has its key and its disk, writes another history: every file fits every other.
TEST(TileReader, a_rewritten_history_is_caught_by_one_older_checkpoint) {
    const Published honest = published_in_steps({100, 300, 600});
    const Published other =
        published_in_steps({100, 300, 600, 700}, [](std::uint64_t i) { return entry(i == 50 ? 51 : i); });
    const Published late =
        published_in_steps({100, 300, 600, 700}, [](std::uint64_t i) { return entry(i == 450 ? 51 : i); });
    EXPECT_EQ(audited(other.content), "sound") << "alone it cannot be told from an honest log";
    EXPECT_THAT(audited(other.content, honest.notes[0]), HasSubstr("forked: its first 100 entries give root"));
    EXPECT_THAT(audited(other.content, honest.notes[2]), HasSubstr("forked: its first 600 entries give root"));
    EXPECT_EQ(audited(late.content, honest.notes[1]), "sound") << "the change came after what the auditor has seen";
    EXPECT_THAT(audited(late.content, honest.notes[2]), HasSubstr("forked"));

    Content same_size = published_in_steps({600}, [](std::uint64_t i) { return entry(i + 1); }).content;
    EXPECT_THAT(audited(same_size, honest.notes[2]), HasSubstr("forked: two checkpoints over 600 entries are signed"));
}

TEST(TileReader, a_rollback_is_caught_by_a_newer_checkpoint) {
    const Published log = published_in_steps({300, 600});
    EXPECT_EQ(audited(published_in_steps({300}).content), "sound");
    EXPECT_EQ(audited(published_in_steps({300}).content, log.notes[1]),
              "the log was rolled back: its checkpoint covers 300 entries, and an older one 600");
}

// Someone with the disk and without the key.
TEST(TileReader, a_rewritten_history_under_the_old_checkpoint_does_not_give_its_root) {
    const Published honest = published_in_steps({300, 600});
    const auto under_the_old = [&](std::uint64_t changed) {
        Content content =
            published_in_steps({300, 600}, [=](std::uint64_t i) { return entry(i == changed ? i + 1 : i); }).content;
        content["checkpoint"] = honest.notes[1];
        return content;
    };
    EXPECT_THAT(audited(under_the_old(5)), HasSubstr("entries and tiles fit each other and give root"));
    EXPECT_THAT(audited(under_the_old(5), honest.notes[0]), HasSubstr("they were rewritten, before entry 300"));
    EXPECT_THAT(audited(under_the_old(500), honest.notes[0]), HasSubstr("they were rewritten, from entry 300 on"));
}

TEST(TileReader, an_older_checkpoint_must_be_of_this_log) {
    const Published log = published_in_steps({300});
    const std::string foreign =
        sign_checkpoint({origin, 5, {}, {}}, SigningKey::from_seed(std::string(32, 'x')).value());
    EXPECT_THAT(audited(log.content, foreign), HasSubstr("the older checkpoint: no key that is trusted here"));
    EXPECT_THAT(audited(log.content, "nonsense"), HasSubstr("the older checkpoint: not a signed note"));
}

TEST(TileReader, an_empty_older_checkpoint_is_continued_by_every_log) {
    const Published log = published_in_steps({0, 300});
    EXPECT_EQ(audited(log.content, log.notes[0]), "sound");
}

}  // namespace
}  // namespace bulkhead::audit
