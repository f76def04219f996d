// An acknowledged commit survives any power cut, and half a commit is never there.
#include "sim/disk/life_test.hpp"

namespace bulkhead::sim {
namespace {

TEST(PowerCut, at_every_write_keeps_what_was_acknowledged_and_never_half_a_batch) {
    std::uint64_t crashes = 0;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        for (std::uint64_t n = 1;; ++n) {
            SCOPED_TRACE(fmt::format("seed {}, power goes at write {}", seed, n));
            Disk disk;
            Rng rng{seed}, fate{seed * 1000 + n};
            Life life;
            disk.crash_at_write(n);
            bool finished = false;
            if (auto store = Store::open(on(disk)); store) finished = life.work(*store, rng, 12);
            // Closing writes as well; a run that got through that has met every boundary there is.
            if (!disk.power_lost()) {
                ASSERT_TRUE(finished);
                break;
            }
            ++crashes;
            disk.crash(fate);
            // And once more during the recovery itself, at a place drawn by lot.
            disk.crash_at_write(disk.writes() + 1 + fate.below(30));
            if (auto store = Store::open(on(disk)); store) {
                life.must_be_in(*store);
                if (HasFatalFailure()) return;
                life.work(*store, rng, 4);
            }
            disk.crash(fate);
            auto store = Store::open(on(disk));
            ASSERT_TRUE(store) << words_of(store.error());
            life.must_be_in(*store);
            if (HasFatalFailure()) return;
            ASSERT_TRUE(life.work(*store, rng, 3));
            life.must_be_in(*store);
            if (HasFatalFailure()) return;
        }
    }
    EXPECT_GT(crashes, 500u);
}

TEST(PowerCut, of_long_lives_with_many_crashes) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        Rng rng{seed};
        Disk disk;
        Life life;
        for (int round = 0; round < 12; ++round) {
            if (rng.chance(700)) disk.crash_at_write(disk.writes() + 1 + rng.below(150));
            auto store = Store::open(on(disk, static_cast<int>(4 + rng.below(40))));
            if (store) {
                life.must_be_in(*store);
                if (HasFatalFailure()) return;
                life.work(*store, rng, static_cast<int>(rng.below(20)));
            }
            if (rng.chance(300) && !disk.power_lost())
                disk.kill_processes();  // kill -9: nothing written is lost
            else if (rng.chance(800) || disk.power_lost())
                disk.crash(rng);
        }
        disk.crash(rng);
        const auto store = Store::open(on(disk));
        ASSERT_TRUE(store) << words_of(store.error());
        life.must_be_in(*store);
        if (HasFatalFailure()) return;
    }
}

TEST(FailedSync, that_silently_lost_its_writes_takes_nothing_acknowledged_later_with_it) {
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        Rng rng{seed};
        Disk disk;
        Life life;
        for (int round = 0; round < 4; ++round) {
            auto store = Store::open(on(disk, static_cast<int>(4 + rng.below(60))));
            ASSERT_TRUE(store) << words_of(store.error());
            life.must_be_in(*store);
            if (HasFatalFailure()) return;
            ASSERT_TRUE(life.work(*store, rng, static_cast<int>(rng.below(12))));
            disk.fail_sync(rng.chance(700) ? Disk::SyncFault::loses : Disk::SyncFault::keeps);
            EXPECT_FALSE(life.work(*store, rng, 1));
            EXPECT_TRUE(store->must_be_reopened());
            EXPECT_EQ(store->position().error().code, Code::unavailable);
            if (rng.chance(500)) disk.kill_processes();
            store = std::unexpected(Error{});  // closed in good order, or long dead
            disk.heal();
            auto again = Store::open(on(disk));
            ASSERT_TRUE(again) << words_of(again.error());
            life.must_be_in(*again);
            if (HasFatalFailure()) return;
            ASSERT_TRUE(life.work(*again, rng, static_cast<int>(rng.below(4))));
            disk.crash(rng);
        }
        const auto store = Store::open(on(disk));
        ASSERT_TRUE(store) << words_of(store.error());
        life.must_be_in(*store);
        if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace bulkhead::sim
