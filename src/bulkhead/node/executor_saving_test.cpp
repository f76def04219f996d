// Saving a tenant's work before it is stopped to be run again: ordered, done once, told.
#include <gtest/gtest.h>

#include "bulkhead/node/rig_test.hpp"

namespace bulkhead {
namespace {

struct SavingRig : Rig {
    SavingRig() {
        clean_all();
        lease = half();
        lease.program = {.words = {"train"}, .checkpoint = {"save"}, .checkpoint_within = Duration{30'000}};
        order(lease);
        order(Start{lease.lease});
        reports.clear();
        release = release_of(lease);
        release.save = true;
    }
    std::optional<Saved> told() const {
        for (const Report& report : reports)
            if (const auto* part = std::get_if<LeaseReport>(&report.what);
                part != nullptr && part->phase == PartPhase::stopped)
                return part->saved;
        return std::nullopt;
    }
    Prepare lease;
    Release release;
};

TEST(Executor, work_that_comes_back_is_saved_before_it_is_stopped_and_its_word_is_told) {
    SavingRig rig;
    rig.order(rig.release);
    ASSERT_EQ(rig.operations<StopTenant>().size(), 1u);
    EXPECT_EQ(rig.operations<StopTenant>().front().save, Duration{30'000});
    EXPECT_EQ(rig.told(), (Saved{true, fmt::format("{} lease {}", rig.model.spec().node, rig.lease.lease)}));
}

TEST(Executor, work_that_does_not_come_back_is_not_saved) {
    SavingRig rig;
    rig.release.save = false;
    rig.order(rig.release);
    EXPECT_EQ(rig.operations<StopTenant>().front().save, Duration{});
    EXPECT_EQ(rig.told(), std::nullopt);
}

TEST(Executor, what_was_saved_is_known_after_a_crash_and_is_not_saved_twice) {
    SavingRig rig;
    rig.give(rig.release);
    ASSERT_TRUE(rig.step());  // stopped, and saved
    ASSERT_FALSE(rig.told());
    rig.restart();
    rig.settle();
    EXPECT_EQ(rig.told(), (Saved{true, fmt::format("{} lease {}", rig.model.spec().node, rig.lease.lease)}));
    ASSERT_EQ(rig.operations<StopTenant>().size(), 2u);
    EXPECT_EQ(rig.operations<StopTenant>().back().save, Duration{});
}

TEST(Executor, saving_may_take_as_long_as_it_was_given) {
    SavingRig rig;
    rig.give(rig.release);
    const Instant began = rig.now;
    EXPECT_EQ(rig.executor->next_deadline(), began + Duration{rig.identity.limits.stop.ms + 30'000});
}

}  // namespace
}  // namespace bulkhead
