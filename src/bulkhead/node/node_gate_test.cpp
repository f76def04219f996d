// What a node hands out, whatever it is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/node/rig_test.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

TEST(NodeGate, what_the_journal_does_not_know_is_dirty) {
    Rig rig;
    rig.order(rig.half());
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("unknown here"));
    EXPECT_TRUE(rig.ever_begun.empty());
}

TEST(NodeGate, what_was_wiped_and_verified_is_handed_out_once) {
    Rig rig;
    rig.clean_all();
    const Prepare first = rig.half(), second = rig.half();
    rig.order(first);
    EXPECT_EQ(rig.phase(), PartPhase::prepared);
    rig.order(second);
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("in use by lease"));
}

TEST(NodeGate, a_unit_is_dirty_from_the_moment_its_preparation_begins) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half();
    rig.give(lease);  // no operation has been carried out
    EXPECT_FALSE(rig.executor->ledger().clean({UnitKind::memory, 0, 4}));
    Release release = rig.release_of(lease);
    release.wipes.clear();  // as under a legal hold
    rig.order(release);
    EXPECT_EQ(rig.phase(), PartPhase::stopped);
    rig.order(rig.half());
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("dirty"));
}

TEST(NodeGate, a_unit_with_a_wipe_ordered_is_not_handed_out_even_if_an_earlier_one_ended_well) {
    Rig rig;
    Sanitize twice{.wipes = {{UnitKind::memory, 0, 4, 4, rig.key()}, {UnitKind::memory, 0, 4, 4, rig.key()}}};
    rig.give(twice);
    rig.step();
    rig.step();  // the first is verified, the second has begun
    ASSERT_TRUE(rig.last<WipeReport>().verified);
    rig.give(rig.half());
    EXPECT_EQ(rig.phase(), PartPhase::refused);
}

TEST(NodeGate, bad_orders_are_refused_with_the_reason) {
    struct Row {
        std::string_view says;
        GpuPart part;
        std::string_view because;
    };
    const Row rows[] = {
        {"no slices", {.gpu = 0, .start = 0, .size = 0, .profile = "3g.40gb"}, "has no slices"},
        {"more slices than any board", {.gpu = 0, .start = 60, .size = 8}, "has no slices"},
        {"no share", {.gpu = 0, .start = 0, .size = 4, .profile = "3g.40gb", .share = 0}, "thousandths"},
        {"too large a share", {.gpu = 0, .start = 0, .size = 4, .profile = "3g.40gb", .share = 1001}, "thousandths"},
        {"a GPU that is not there", {.gpu = 9, .start = 0, .size = 4, .profile = "3g.40gb"}, "unknown here"},
        {"one slice twice", {.gpu = 0, .start = 7, .size = 1, .profile = "1g.10gb"}, "named twice"},
    };
    for (const Row& row : rows) {
        Rig rig;
        rig.clean_all();
        Prepare order = rig.half();
        order.gpus.push_back(row.part);
        rig.order(order);
        EXPECT_EQ(rig.phase(), PartPhase::refused) << row.says;
        EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr(row.because)) << row.says;
    }
}

TEST(NodeGate, a_refused_lease_stays_refused_when_its_order_comes_late_again) {
    Rig rig;
    const Prepare lease = rig.half();
    rig.order(lease);
    ASSERT_EQ(rig.phase(), PartPhase::refused);
    rig.clean_all();
    rig.order(lease);
    EXPECT_EQ(rig.phase(), PartPhase::refused);
}

TEST(NodeGate, a_prepare_that_comes_after_its_release_takes_nothing) {
    Rig rig;
    rig.clean_all();
    const Prepare lease = rig.half();
    rig.order(lease);
    rig.order(rig.release_of(lease));
    rig.ever_begun.clear();
    rig.order(lease);
    EXPECT_EQ(rig.phase(), PartPhase::stopped);
    EXPECT_TRUE(rig.ever_begun.empty());
}

TEST(NodeGate, very_old_leases_count_as_over) {
    Rig rig;
    const Prepare old = rig.half();
    rig.order(old);
    for (std::size_t i = 0; i < Ledger::closed_max + 1; ++i) {
        rig.order(rig.half());
        rig.carry(rig.executor->on_ack(rig.reports.back().number));
    }
    EXPECT_EQ(rig.executor->ledger().closed.size(), Ledger::closed_max);
    rig.order(old);
    EXPECT_EQ(rig.phase(), PartPhase::stopped);
}

TEST(NodeGate, an_mps_server_takes_48_leases) {
    Rig rig;
    rig.clean_all();
    for (int i = 0; i < 49; ++i) {
        Prepare lease = rig.half();
        lease.mechanism = Mechanism::mps_in_mig;
        lease.gpus[0].share = 10;
        rig.order(lease);
        EXPECT_EQ(rig.phase(), i < 48 ? PartPhase::prepared : PartPhase::refused) << i;
        if (i == 0) rig.order(Start{lease.lease});
    }
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("its MPS server takes 48 clients"));
}

TEST(NodeGate, shares_of_one_instance_may_sit_together_up_to_the_whole) {
    Rig rig;
    rig.clean_all();
    Prepare a = rig.half(), b = rig.half(), c = rig.half(), other_shape = rig.half();
    a.gpus[0].share = 400;
    b.gpus[0].share = 600;
    c.gpus[0].share = 100;
    other_shape.gpus[0] = {.gpu = 0, .start = 4, .size = 2, .profile = "2g.20gb", .share = 100};
    rig.order(a);
    EXPECT_EQ(rig.phase(), PartPhase::prepared);
    rig.order(Start{a.lease});
    rig.order(other_shape);
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    rig.order(b);
    EXPECT_EQ(rig.phase(), PartPhase::prepared) << "though the first has made it dirty";
    rig.order(c);
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("1100"));
    Prepare whole = rig.half();
    rig.order(whole);
    EXPECT_EQ(rig.phase(), PartPhase::refused) << "who wants all of it shares with nobody";
}

TEST(NodeGate, nobody_joins_an_instance_that_is_being_given_up) {
    Rig rig;
    rig.clean_all();
    Prepare a = rig.half(), b = rig.half();
    a.gpus[0].share = b.gpus[0].share = 500;
    rig.order(a);
    rig.give(rig.release_of(a));
    rig.give(b);
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    EXPECT_THAT(rig.last<LeaseReport>().why, HasSubstr("given up"));
}

TEST(NodeGate, a_host_that_was_never_measured_can_be_required_to_be) {
    Rig rig{{.gpus = 1}, {.host_must_be_known = true}};
    rig.clean_all();
    rig.order(rig.half());
    EXPECT_EQ(rig.phase(), PartPhase::refused);
    rig.order(Sanitize{.wipes = {{UnitKind::host, 0, 0, 1, rig.key()}}});
    EXPECT_TRUE(rig.last<WipeReport>().verified);
    rig.order(rig.half());
    EXPECT_EQ(rig.phase(), PartPhase::prepared);
}

}  // namespace
}  // namespace bulkhead
