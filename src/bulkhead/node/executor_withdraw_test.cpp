// Wipes that are withdrawn: what was not begun is not done, whenever the order for it comes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "bulkhead/node/rig_test.hpp"

namespace bulkhead {
namespace {

struct WithdrawRig : Rig {
    WithdrawRig() {
        clean_all();
        lease = half();
        order(lease);
        order(Start{lease.lease});
        release = release_of(lease);
        reports.clear();
    }
    std::uint64_t memory() const { return model.read({UnitKind::memory, 0, 5}); }
    WipeReport answer() const { return last<WipeReport>(); }

    Prepare lease;
    Release release;
};

TEST(Withdraw, of_what_a_release_carries_keeps_what_the_tenant_left) {
    WithdrawRig rig;
    rig.give(rig.release);
    rig.give(Withdraw{rig.release.wipes});
    EXPECT_TRUE(rig.answer().stale);
    EXPECT_EQ(rig.answer().ticket, rig.release.wipes.front().ticket);
    rig.settle();
    EXPECT_EQ(rig.last<LeaseReport>().phase, PartPhase::stopped) << "the lease ends all the same";
    EXPECT_NE(rig.memory(), 0u);
    for (const bool restarted : {false, true}) {
        if (restarted) rig.restart();
        rig.reports.clear();
        rig.order(Sanitize{rig.release.wipes});
        EXPECT_TRUE(rig.answer().stale) << "the order that was on its way, or comes twice";
        EXPECT_NE(rig.memory(), 0u);
    }
    WipeTask later = rig.release.wipes.front();
    later.ticket = rig.key();
    rig.order(Sanitize{{later}});
    EXPECT_TRUE(rig.answer().verified) << "when the hold is lifted, under another ticket";
    EXPECT_EQ(rig.memory(), 0u);
}

TEST(Withdraw, comes_before_the_order_or_while_the_wipe_waits_for_its_turn) {
    for (const bool taken : {false, true}) {
        WithdrawRig rig;
        Release without = rig.release;
        without.wipes.clear();
        rig.order(without);
        WipeTask other = rig.release.wipes.front();
        other.start = 0;
        other.ticket = rig.release.wipes.front().ticket - 1;  // of the same GPU, before it
        other.lease.clear();
        other.tenants.clear();
        if (taken) rig.give(Sanitize{{other, rig.release.wipes.front()}});
        rig.give(Withdraw{rig.release.wipes});
        if (!taken) rig.give(Sanitize{rig.release.wipes});
        rig.settle();
        EXPECT_NE(rig.memory(), 0u) << taken;
        const std::vector<WipeReport> all = rig.all<WipeReport>();
        EXPECT_TRUE(std::ranges::any_of(
            all, [&](const WipeReport& one) { return one.stale && one.ticket == rig.release.wipes.front().ticket; }));
    }
}

TEST(Withdraw, of_what_was_begun_changes_nothing) {
    for (const bool restarted : {false, true}) {
        WithdrawRig rig;
        rig.give(rig.release);
        while (rig.begun.empty() || !std::holds_alternative<Wipe>(rig.begun.front().what)) ASSERT_TRUE(rig.step());
        if (restarted) rig.restart();
        rig.reports.clear();
        rig.give(Withdraw{rig.release.wipes});
        EXPECT_TRUE(rig.all<WipeReport>().empty()) << "what came of it is not known yet";
        rig.settle();
        EXPECT_TRUE(rig.answer().verified);
        EXPECT_EQ(rig.memory(), 0u);
        rig.reports.clear();
        rig.order(Withdraw{rig.release.wipes});
        EXPECT_TRUE(rig.answer().verified) << "and is said again to who asks later";
    }
}

TEST(Withdraw, of_a_ticket_that_another_wipe_has_leaves_that_one_alone) {
    WithdrawRig rig;
    rig.give(rig.release);
    WipeTask elsewhere = rig.release.wipes.front();
    elsewhere.device = 1;
    rig.order(rig.release);
    EXPECT_EQ(rig.memory(), 0u);
    rig.reports.clear();
    rig.order(Withdraw{{elsewhere}});
    EXPECT_TRUE(rig.answer().stale);
    EXPECT_EQ(rig.answer().device, 1);
    rig.order(Withdraw{{{.kind = UnitKind::drive, .device = 0, .size = 9, .ticket = rig.key()}}});
    EXPECT_FALSE(rig.answer().verified) << "no drive is of nine parts";
}

// The control plane gave another ticket since: of the one before it, it knows nothing any more.
TEST(Withdraw, stops_every_wipe_of_its_units_whatever_the_ticket) {
    for (const bool released : {false, true}) {
        WithdrawRig rig;
        if (released) {
            Release without = rig.release;
            without.wipes.clear();
            rig.order(without);
            WipeTask before = rig.release.wipes.front();
            before.start = 0;  // of the same GPU, and first
            before.ticket = rig.release.wipes.front().ticket - 1;
            rig.give(Sanitize{{before, rig.release.wipes.front()}});
        } else {
            rig.give(rig.release);
        }
        WipeTask later = rig.release.wipes.front();
        later.ticket = rig.key();
        rig.give(Withdraw{{later}});
        rig.settle();
        EXPECT_NE(rig.memory(), 0u) << released;
        std::set<Key> withdrawn;
        for (const WipeReport& one : rig.all<WipeReport>())
            if (one.stale) withdrawn.insert(one.ticket);
        EXPECT_TRUE(withdrawn.contains(later.ticket));
        EXPECT_TRUE(withdrawn.contains(rig.release.wipes.front().ticket));
        rig.restart();
        rig.reports.clear();
        rig.order(Sanitize{rig.release.wipes});
        EXPECT_TRUE(rig.answer().stale);
        EXPECT_NE(rig.memory(), 0u);
        const std::size_t said = rig.reports.size();
        rig.order(Withdraw{{later}});
        EXPECT_LE(rig.reports.size(), said + 1) << "and is not said of older ones with every repetition";
    }
}

TEST(Withdraw, says_nothing_is_kept_of_what_another_tickets_wipe_has_begun_on) {
    WithdrawRig rig;
    rig.give(rig.release);
    while (rig.begun.empty() || !std::holds_alternative<Wipe>(rig.begun.front().what)) ASSERT_TRUE(rig.step());
    WipeTask later = rig.release.wipes.front();
    later.ticket = rig.key();
    rig.reports.clear();
    rig.give(Withdraw{{later}});
    EXPECT_TRUE(rig.all<WipeReport>().empty()) << "what comes of the other is not known yet";
    rig.settle();
    EXPECT_EQ(rig.answer().ticket, rig.release.wipes.front().ticket);
    rig.order(Withdraw{{later}});
    EXPECT_EQ(rig.answer().ticket, later.ticket);
    EXPECT_TRUE(rig.answer().verified) << "it is gone, and that is shown";
}

}  // namespace
}  // namespace bulkhead
