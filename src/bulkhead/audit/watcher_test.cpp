#include "bulkhead/audit/watcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/audit/memory_files_test.hpp"
#include "bulkhead/audit/publisher.hpp"
#include "bulkhead/audit/small_log_test.hpp"
#include "bulkhead/audit/tile_reader.hpp"
#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/evidence/key_history.hpp"

namespace bulkhead::audit {
namespace {

using testing::HasSubstr;

// A log that somebody publishes and somebody else watches.
struct WatchedLog {
    std::shared_ptr<MemoryFiles::Content> content = std::make_shared<MemoryFiles::Content>();
    Publisher publisher =
        Publisher::open(std::make_unique<MemoryFiles>(content), origin, evidence::key_of_seed('L')).value();
    WatchState state{.key = print(vkey())};

    void grow_to(std::uint64_t size, std::uint64_t changed = UINT64_MAX) {
        while (publisher.size() < size)
            publisher.append(entry(publisher.size() == changed ? changed + 1'000'000 : publisher.size()));
        ASSERT_TRUE(publisher.publish());
    }
    Result<Watched> look() {
        auto seen = watch_once(std::make_shared<MemoryFiles>(content), state);
        if (seen) state = seen->state;
        return seen;
    }
    std::string wrong() {
        const WatchState before = state;
        const auto seen = look();
        if (!seen) return "cannot look: " + seen.error().what;
        if (!seen->tampering) return "sound";
        EXPECT_EQ(state, before) << "what is not good is not remembered";
        return fmt::format("{}: {}", word(*seen->tampering), seen->what);
    }
    // Another history under the same key, as its operator could write it.
    void rewrite(std::uint64_t size, std::uint64_t changed) {
        WatchedLog other;
        other.grow_to(size, changed);
        *content = *other.content;
    }
    void flip(const std::string& path, std::size_t byte, int bit = 0) {
        auto file = content->find(path);
        ASSERT_NE(file, content->end()) << path;
        file->second[byte] = static_cast<char>(file->second[byte] ^ (1 << bit));
    }
};

TEST(Watcher, follows_a_log_that_only_grows) {
    WatchedLog log;
    EXPECT_THAT(log.wrong(), HasSubstr("cannot look: the log has no checkpoint yet"));
    log.grow_to(0);
    EXPECT_EQ(log.wrong(), "sound");
    for (const std::uint64_t size : {1u, 2u, 255u, 256u, 257u, 600u, 70'000u}) {
        log.grow_to(size);
        const auto seen = log.look();
        ASSERT_TRUE(seen && !seen->tampering) << size << (seen ? seen->what : seen.error().what);
        EXPECT_EQ(seen->size, size);
        EXPECT_EQ(log.wrong(), "sound") << "and nothing new is fine too";
        EXPECT_EQ(read_watch_state(print(log.state)), log.state);
    }
}

TEST(Watcher, begins_with_a_log_of_any_size_whose_tiles_agree) {
    WatchedLog log;
    log.grow_to(700);
    EXPECT_EQ(log.wrong(), "sound");
    WatchedLog spoilt;
    spoilt.grow_to(700);
    spoilt.flip("tile/0/002.p/188", 5);
    EXPECT_THAT(spoilt.wrong(), HasSubstr("edit: the tiles over 700 entries do not give the root"));
}

TEST(Watcher, names_what_was_done_to_a_log) {
    struct Row {
        std::string_view says;
        void (*change)(WatchedLog&);
        std::string_view found;
    };
    const Row rows[] = {
        {"a rollback to what was signed before", [](WatchedLog& log) { log.rewrite(200, UINT64_MAX); },
         "rollback: the checkpoint covers 200 entries, and one over 300 was seen"},
        {"the checkpoint is removed", [](WatchedLog& log) { log.content->erase("checkpoint"); },
         "rollback: the checkpoint is gone"},
        {"another history of the same size", [](WatchedLog& log) { log.rewrite(300, 17); },
         "fork: two checkpoints over 300 entries are signed"},
        {"another history that goes on", [](WatchedLog& log) { log.rewrite(700, 17); },
         "fork: the checkpoint over 700 entries does not continue the one over 300"},
        {"a bit of an old tile, over the first 256 entries",
         [](WatchedLog& log) {
             log.grow_to(700);
             log.flip("tile/1/000.p/2", 7);
         },
         "edit: the tiles over the first 300 entries are not what was signed"},
        {"a bit of a new entry",
         [](WatchedLog& log) {
             log.grow_to(700);
             log.flip("tile/entries/002.p/188", 40);
         },
         "edit: entries 300 to 699 are not what was signed"},
        {"two new entries in another order",
         [](WatchedLog& log) {
             log.grow_to(700);
             std::string& bundle = log.content->at("tile/entries/002.p/188");
             std::swap_ranges(bundle.begin() + 2, bundle.begin() + 34, bundle.begin() + 36);
         },
         "edit: entries 300 to 699 are not what was signed"},
        {"entries that are gone",
         [](WatchedLog& log) {
             log.grow_to(700);
             log.content->erase("tile/entries/001");
         },
         "truncation: the log has signed for 700 entries, and tile/entries/001 is missing"},
        {"a bundle that is cut short",
         [](WatchedLog& log) {
             log.grow_to(700);
             log.content->at("tile/entries/001").resize(100);
         },
         "truncation: the log has signed for 700 entries, and tile/entries/001"},
        {"a tile that is gone",
         [](WatchedLog& log) {
             log.grow_to(700);
             log.content->erase("tile/0/000");
             log.content->erase("tile/1/000.p/2");
         },
         "truncation: "},
        {"signed by somebody else",
         [](WatchedLog& log) {
             log.content->at("checkpoint") =
                 evidence::sign_checkpoint({origin, 900, {}, {}}, evidence::key_of_seed('x'));
         },
         "signature: no key that is trusted here"},
        {"a checkpoint whose size was edited",
         [](WatchedLog& log) {
             std::string& note = log.content->at("checkpoint");
             note.replace(note.find("\n300\n"), 5, "\n301\n");
         },
         "signature: the signature of log.example/fleet does not fit"},
    };
    for (const Row& row : rows) {
        WatchedLog log;
        log.grow_to(300);
        ASSERT_EQ(log.wrong(), "sound");
        row.change(log);
        EXPECT_THAT(log.wrong(), HasSubstr(row.found)) << row.says;
    }
}

TEST(Watcher, accepts_checkpoints_that_witnesses_have_signed_too) {
    WatchedLog log;
    log.grow_to(300);
    auto note = evidence::parse_note(log.content->at("checkpoint")).value();
    for (char seed = 'a'; seed < 'a' + 16; ++seed)
        evidence::sign_note(note, fmt::format("witness.example/{}", seed), evidence::key_of_seed(seed));
    log.content->at("checkpoint") = print(note);
    EXPECT_EQ(log.wrong(), "sound");
}

TEST(Watcher, is_told_only_why_it_cannot_look_when_the_way_is_blocked) {
    WatchedLog log;
    log.grow_to(300);
    auto files = std::make_shared<MemoryFiles>(log.content);
    files->fail_power_after(0, 1);
    (void)files->remove("nothing");
    const auto seen = watch_once(files, log.state);
    ASSERT_FALSE(seen) << "a server that is down is no tampering";
    EXPECT_EQ(seen.error().code, Code::unavailable);
}

// The log changes its key: record, a checkpoint under both, and from then on the new one alone.
struct RotatedLog : WatchedLog {
    evidence::KeyHistory history{.first = print(vkey())};

    void rotate(char before, char after) {
        evidence::Record record = evidence::log_key_rotated({{origin, evidence::key_of_seed(before).public_key()},
                                                             {origin, evidence::key_of_seed(after).public_key()}});
        record.actor = "api:sec";
        const std::string payload = payload_of(record), salt(16, 's');
        publisher.cosign(evidence::key_of_seed(after));
        const std::uint64_t index = publisher.size();
        publisher.append(evidence::commit_to(salt, payload));
        ASSERT_TRUE(publisher.publish());
        evidence::Certificate made;
        made.record = evidence::proven_leaf(
            index, salt, payload,
            TileReader{std::make_shared<MemoryFiles>(content)}.prove(index, publisher.size()).value());
        made.checkpoint = publisher.checkpoint();
        history.rotations.push_back(made);
        (*content)["keys"] = print(history);
        ASSERT_TRUE(publisher.change_key());
    }
};

TEST(Watcher, follows_a_change_of_the_logs_key) {
    RotatedLog log;
    log.grow_to(300);
    ASSERT_EQ(log.wrong(), "sound");
    ASSERT_NO_FATAL_FAILURE(log.rotate('L', 'M'));
    EXPECT_EQ(log.wrong(), "sound") << "signed by both: no history is needed";
    EXPECT_EQ(log.state.key, print(vkey()));
    log.grow_to(400);
    ASSERT_NO_FATAL_FAILURE(log.rotate('M', 'N'));
    log.grow_to(500);
    const auto seen = log.look();
    ASSERT_TRUE(seen && !seen->tampering) << (seen ? seen->what : seen.error().what);
    EXPECT_TRUE(seen->key_changed) << "two changes later, by the history";
    EXPECT_EQ(log.state.key, print(evidence::VerifierKey{origin, evidence::key_of_seed('N').public_key()}));
    log.grow_to(600);
    EXPECT_EQ(log.wrong(), "sound");

    // Whoever still has the first key goes on as if nothing had happened.
    log.content->at("checkpoint") =
        evidence::sign_checkpoint({origin, 650, log.publisher.root(), {}}, evidence::key_of_seed('L'));
    EXPECT_THAT(log.wrong(), HasSubstr("signature: the key that signed for 650 leaves was replaced"));
}

TEST(Watcher, believes_no_history_that_was_made_up) {
    RotatedLog log;
    log.grow_to(300);
    ASSERT_EQ(log.wrong(), "sound");
    // Without the log's own key, nobody can make one that leads to another.
    RotatedLog other;
    other.publisher =
        Publisher::open(std::make_unique<MemoryFiles>(other.content), origin, evidence::key_of_seed('X')).value();
    other.grow_to(400);
    other.history.first = print(vkey());
    ASSERT_NO_FATAL_FAILURE(other.rotate('L', 'X')) << "it signs as X alone, and says L had agreed";
    *log.content = *other.content;
    EXPECT_THAT(log.wrong(), HasSubstr("signature: no key that is trusted here"));
}

TEST(Publisher, changes_its_key_only_under_a_checkpoint_that_both_have_signed) {
    WatchedLog log;
    log.grow_to(10);
    EXPECT_FALSE(log.publisher.change_key()) << "there is none to change to";
    log.publisher.cosign(evidence::key_of_seed('M'));
    EXPECT_FALSE(log.publisher.change_key()) << "it has signed nothing yet";
    log.grow_to(11);
    EXPECT_EQ(evidence::parse_note(log.publisher.checkpoint())->signatures.size(), 2u);
    const auto open_as = [&](char seed) {
        const auto copy = std::make_shared<MemoryFiles::Content>(*log.content);
        return Publisher::open(std::make_unique<MemoryFiles>(copy), origin, evidence::key_of_seed(seed)).has_value();
    };
    EXPECT_TRUE(open_as('L') && open_as('M')) << "a restart at this moment goes on under either";
    ASSERT_TRUE(log.publisher.change_key());
    log.grow_to(12);
    EXPECT_EQ(evidence::parse_note(log.publisher.checkpoint())->signatures.size(), 1u);
    EXPECT_TRUE(open_as('M'));
    EXPECT_FALSE(open_as('L'));
}

TEST(WatchState, what_is_malformed_is_refused) {
    for (const char* text : {"", "{}", R"({"version":"bulkhead.dev/audit-watch/v2","key":"x"})",
                             R"({"version":"bulkhead.dev/audit-watch/v1","key":"nonsense"})",
                             R"({"version":"bulkhead.dev/audit-watch/v1","key":"nonsense","surplus":1})"})
        EXPECT_FALSE(read_watch_state(text)) << text;
    EXPECT_FALSE(read_watch_state(print(WatchState{.key = print(vkey()), .checkpoint = "no note"})));
}

}  // namespace
}  // namespace bulkhead::audit
