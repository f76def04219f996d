// Full, failing, read-only and rotting disks: the right word for each, and nothing lost.
#include "sim/disk/life_test.hpp"

namespace bulkhead::sim {
namespace {

TEST(FullDisk, refuses_as_exhausted_and_goes_on_when_there_is_room) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        Rng rng{seed};
        Disk disk;
        Life life;
        auto store = Store::open(on(disk));
        ASSERT_TRUE(store) << words_of(store.error());
        ASSERT_TRUE(life.work(*store, rng, 5));
        disk.leave_free(rng.below(60'000));
        bool refused = false;
        for (int step = 0; step < 300 && !refused; ++step) {
            const Batch batch = random_batch(rng, life.acknowledged);
            const auto done = store->commit(batch);
            if (done) {
                life.acknowledged.apply(batch);
            } else {
                EXPECT_EQ(done.error().code, Code::exhausted) << words_of(done.error());
                refused = true;
            }
        }
        EXPECT_TRUE(refused);
        EXPECT_FALSE(store->must_be_reopened());
        life.must_be_in(*store);
        if (HasFatalFailure()) return;
        if (rng.chance(500)) {
            disk.heal();
            ASSERT_TRUE(life.work(*store, rng, 5)) << "without being opened again";
        }
        disk.crash(rng);
        disk.heal();
        const auto again = Store::open(on(disk));
        ASSERT_TRUE(again) << words_of(again.error());
        life.must_be_in(*again);
        if (HasFatalFailure()) return;
    }
}

TEST(FullDisk, cannot_be_opened_for_the_first_time) {
    Disk disk;
    disk.fill();
    const auto store = Store::open(on(disk));
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, Code::exhausted) << words_of(store.error());
}

TEST(FailingDisk, is_unavailable_and_loses_nothing_acknowledged) {
    for (std::uint64_t n = 0; n < 60; ++n) {
        SCOPED_TRACE(fmt::format("I/O error after {} writes", n));
        Rng rng{n + 1};
        Disk disk;
        Life life;
        {
            auto store = Store::open(on(disk));
            ASSERT_TRUE(store) << words_of(store.error());
            ASSERT_TRUE(life.work(*store, rng, 3));
            disk.fail_writes(n);
            for (int step = 0; step < 30; ++step) {
                const Batch batch = random_batch(rng, life.acknowledged);
                life.under_way = life.acknowledged;
                life.under_way->apply(batch);
                const auto done = store->commit(batch);
                if (!done) {
                    EXPECT_EQ(done.error().code, Code::unavailable) << words_of(done.error());
                    EXPECT_FALSE(done.error().remedy.empty());
                    break;
                }
                life.acknowledged = *life.under_way;
            }
            EXPECT_TRUE(store->must_be_reopened());
            EXPECT_EQ(store->commit(Batch{}).error().code, Code::unavailable);
            disk.heal();
        }
        if (rng.chance(500)) disk.crash(rng);
        auto store = Store::open(on(disk));
        ASSERT_TRUE(store) << words_of(store.error());
        life.must_be_in(*store);
        if (HasFatalFailure()) return;
        ASSERT_TRUE(life.work(*store, rng, 3));
    }
}

TEST(FailingDisk, that_cannot_be_read_is_unavailable_and_not_corrupt) {
    for (std::uint64_t n = 0; n < 40; ++n) {
        Disk disk;
        Rng rng{n + 1};
        Life life;
        {
            auto store = Store::open(on(disk));
            ASSERT_TRUE(store);
            ASSERT_TRUE(life.work(*store, rng, 10));
        }
        disk.fail_reads(n);
        auto store = Store::open(on(disk));
        if (store) continue;
        EXPECT_EQ(store.error().code, Code::unavailable) << n << ": " << words_of(store.error());
        disk.heal();
        store = Store::open(on(disk));
        ASSERT_TRUE(store) << words_of(store.error());
        life.must_be_in(*store);
    }
}

TEST(ReadOnlyDisk, is_unavailable_and_loses_nothing) {
    Disk disk;
    Rng rng{1};
    Life life;
    {
        auto store = Store::open(on(disk));
        ASSERT_TRUE(store);
        ASSERT_TRUE(life.work(*store, rng, 6));
        disk.read_only();
        const auto refused = store->commit(random_batch(rng, life.acknowledged));
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Code::unavailable) << words_of(refused.error());
    }
    const auto store = Store::open(on(disk));
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, Code::unavailable) << words_of(store.error());
    disk.read_only(false);
    auto again = Store::open(on(disk));
    ASSERT_TRUE(again) << words_of(again.error());
    life.must_be_in(*again);
}

// A control plane that decided on a flipped bit would be wrong with a straight face.
TEST(Rot, of_any_bit_is_refused_or_changes_nothing) {
    Disk disk;
    Rng rng{7};
    Life life;
    {
        auto store = Store::open(on(disk));
        ASSERT_TRUE(store);
        ASSERT_TRUE(life.work(*store, rng, 40));
    }
    ASSERT_EQ(disk.files(), std::vector<std::string>{path}) << "closing leaves one file";
    const std::string sound = disk.snapshot(path);
    int refused_at_open = 0, refused_at_load = 0, harmless = 0;
    for (int trial = 0; trial < 3000; ++trial) {
        disk.put(path, sound);
        const std::uint64_t bit = trial < 800 ? static_cast<std::uint64_t>(trial) : rng.below(sound.size() * 8);
        SCOPED_TRACE(fmt::format("bit {} of byte {}", bit % 8, bit / 8));
        disk.flip_bit(path, bit);
        const auto store = Store::open(on(disk));
        if (!store) {
            // A flipped application id or version reads as another's or a newer one's.
            const bool header = bit / 8 < 100 && store.error().code == Code::invalid;
            EXPECT_TRUE(header || store.error().code == Code::corrupt) << words_of(store.error());
            ++refused_at_open;
        } else if (const auto found = read_back(*store); !found) {
            EXPECT_EQ(found.error().code, Code::corrupt) << words_of(found.error());
            ++refused_at_load;
        } else {
            ASSERT_TRUE(*found == life.acknowledged);  // in a byte that nothing is kept in
            EXPECT_EQ(store->secret(), on(disk).secret_if_new);
            ++harmless;
        }
        for (const std::string& file : disk.files())
            if (file != path) disk.remove(file);
    }
    EXPECT_GT(refused_at_open, 200);
    EXPECT_GT(refused_at_load, 500);
    EXPECT_GT(harmless, 0);
}

TEST(Rot, of_whole_pages_is_refused_as_corrupt) {
    Disk disk;
    Rng rng{9};
    Life life;
    {
        auto store = Store::open(on(disk));
        ASSERT_TRUE(store);
        ASSERT_TRUE(life.work(*store, rng, 60));
    }
    const std::string sound = disk.snapshot(path);
    for (std::uint64_t page = 1; page < sound.size() / 4096; ++page) {
        std::string damaged = sound;
        for (std::uint64_t i = 0; i < 4096; ++i) damaged[page * 4096 + i] = static_cast<char>(rng.next());
        disk.put(path, damaged);
        auto store = Store::open(on(disk));
        const auto found = store ? read_back(*store) : std::unexpected(store.error());
        if (found) {
            EXPECT_TRUE(*found == life.acknowledged) << "page " << page;  // a free page
        } else {
            EXPECT_EQ(found.error().code, Code::corrupt) << words_of(found.error());
        }
    }
}

}  // namespace
}  // namespace bulkhead::sim
