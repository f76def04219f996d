// Guarantee claims: served before all other work, and never overtaken while they wait for their room.
#include "bulkhead/sched/engine_test.hpp"
#include "bulkhead/sched/rebuilt_test.hpp"

namespace bulkhead::sched {
namespace {

SharingScope alone_on_its_node() {
    return {PeerTrust::same_tenant, PeerTrust::same_tenant, PeerTrust::same_tenant, PeerTrust::same_tenant};
}

TEST(GuaranteeClaims, are_served_before_work_whose_turn_it_would_be) {
    Play play;
    std::vector<TenantFacts> facts{team("batch", 0, 100), team("owner", 4)};
    facts[1].usage = 1'000'000;  // by Fair Tree it would be the turn of batch
    play.tenants(facts);
    play.node({.name = "n1"});
    play.submit({.name = "b", .tenant = 0, .gpus = 4, .sharing = alone_on_its_node()});
    play.submit({.name = "o", .tenant = 1, .gpus = 4, .sharing = alone_on_its_node()});
    play.cycle();
    EXPECT_TRUE(play.runs("o"));
    EXPECT_FALSE(play.runs("b"));
    EXPECT_EQ(play.settle(), 1);
}

TEST(GuaranteeClaims, keep_their_place_while_minimum_run_time_protects_the_work_on_it) {
    Play play;
    std::vector<TenantFacts> facts{team("batch"), team("owner", 8)};
    facts[0].reclaim_after = Duration::hours(1);
    play.tenants(facts);
    play.node({.name = "n1"});
    play.run({.name = "v", .tenant = 0, .gpus = 4});
    play.submit({.name = "c", .tenant = 1, .gpus = 8});
    play.submit({.name = "thief", .tenant = 0, .gpus = 4});
    play.cycle();
    EXPECT_TRUE(play.last.quiet());
    EXPECT_TRUE(play.waits_for("c", "wait.kept"));
    EXPECT_FALSE(play.runs("thief"));
    play.later(Duration{Duration::hours(1).ms - 1});
    EXPECT_TRUE(play.cycle().quiet());
    play.later(Duration{1});
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"v"}));
    play.stop_evicted();
    play.settle();
    EXPECT_TRUE(play.runs("c"));
    EXPECT_FALSE(play.runs("thief"));
}

TEST(GuaranteeClaims, no_short_job_is_backfilled_into_their_place) {
    Play play;
    std::vector<TenantFacts> facts{team("batch"), team("owner", 8)};
    facts[0].reclaim_after = Duration::hours(1);
    play.tenants(facts);
    play.node({.name = "n1"});
    play.run({.name = "v", .tenant = 0, .gpus = 4});
    play.submit({.name = "c", .tenant = 1, .gpus = 8});
    play.submit({.name = "short", .tenant = 0, .gpus = 1, .duration = Duration{60'000}});
    play.cycle();
    EXPECT_FALSE(play.runs("short"));
}

// Half of n1 runs v; the other half is reserved for a gang that needs both halves. `guarantee` is the owner's.
void reserve_the_rest_of_a_node(Play& play, std::int64_t guarantee) {
    play.tenants({team("batch"), team("owner", guarantee)});
    play.node({.name = "n1"});
    play.run({.name = "v", .tenant = 0, .gpus = 4, .duration = Duration::hours(2)});
    play.submit({.name = "gang", .tenant = 0, .gpus = 4, .tasks = 2});
    play.later(Duration::hours(1));
    play.cycle();
    ASSERT_TRUE(play.waits_for("gang", "wait.kept"));
}

TEST(GuaranteeClaims, take_room_that_other_work_had_reserved) {
    Play play;
    ASSERT_NO_FATAL_FAILURE(reserve_the_rest_of_a_node(play, 4));
    play.submit({.name = "c", .tenant = 1, .gpus = 4});
    play.cycle();
    EXPECT_TRUE(play.runs("c"));
    EXPECT_TRUE(play.last.evict.empty());
}

TEST(GuaranteeClaims, evict_work_beside_which_other_work_had_reserved_room) {
    Play play;
    ASSERT_NO_FATAL_FAILURE(reserve_the_rest_of_a_node(play, 8));
    play.submit({.name = "c", .tenant = 1, .gpus = 8});
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"v"}));
    play.stop_evicted();
    play.settle();
    EXPECT_TRUE(play.runs("c"));
}

// Room is being wiped and kept for work that is not guaranteed; a guarantee claim takes it, and nothing is evicted
// twice.
TEST(GuaranteeClaims, take_room_that_is_being_freed_for_work_without_a_guarantee) {
    Play play;
    play.tenants({team("a"), team("b"), team("owner", 8)});
    play.node({.name = "n1"});
    play.run({.name = "v", .tenant = 0, .gpus = 8});
    play.later(Duration::hours(1));
    play.submit({.name = "fair", .tenant = 1, .gpus = 4});
    play.cycle();
    ASSERT_EQ(play.evicted(), (Names{"v"}));
    play.submit({.name = "c", .tenant = 2, .gpus = 8});
    play.engine.stopped(play.jobs.at("v"));
    play.settle();
    EXPECT_TRUE(play.runs("c"));
    EXPECT_FALSE(play.runs("fair"));
}

TEST(GuaranteeClaims, a_lowered_guarantee_ends_the_reservation) {
    Play play;
    std::vector<TenantFacts> facts{team("batch"), team("owner", 8)};
    facts[0].reclaim_after = Duration::hours(1);
    play.tenants(facts);
    play.node({.name = "n1"});
    play.run({.name = "v", .tenant = 0, .gpus = 4});
    play.submit({.name = "c", .tenant = 1, .gpus = 8});
    play.submit({.name = "other", .tenant = 0, .gpus = 4});
    play.cycle();
    ASSERT_FALSE(play.runs("other"));
    facts[1].guarantee = {};
    play.tenants(facts);
    play.cycle();
    EXPECT_TRUE(play.runs("other"));
}

// The control plane builds the engine anew in each cycle, and hands promises on.

struct Drained : Rebuilt {
    Drained() {
        tenants({team("batch"), team("owner", 16)});
        node({.name = "n1"});
        node({.name = "n2"});
        submit({.name = "v", .tenant = 0, .gpus = 8});
        cycle();
        submit({.name = "c", .tenant = 1, .gpus = 8, .tasks = 2});
        submit({.name = "small", .tenant = 0, .gpus = 1});
        cycle();
        EXPECT_EQ(evicted, (Names{"v"}));
        carry_out_evictions();  // v has left, and its node is drained before the gang starts
    }
};

TEST(GuaranteeClaims, keep_the_other_node_while_one_is_drained_and_opened_again) {
    Drained fleet;
    fleet.open("n1", false);
    for (int i = 0; i < 3; ++i) {
        fleet.cycle();
        EXPECT_FALSE(fleet.runs("small"));
        EXPECT_FALSE(fleet.runs("c"));
        fleet.later(Duration{60'000});
    }
    fleet.open("n1", true);
    fleet.cycle();
    EXPECT_TRUE(fleet.runs("c"));
    EXPECT_FALSE(fleet.runs("small"));
}

TEST(GuaranteeClaims, keep_their_place_while_their_tenant_is_frozen) {
    Drained fleet;
    fleet.hold_back("c", true);
    fleet.cycle();
    EXPECT_FALSE(fleet.runs("small"));
    fleet.hold_back("c", false);
    fleet.cycle();
    EXPECT_TRUE(fleet.runs("c"));
}

TEST(GuaranteeClaims, move_to_another_node_when_one_of_theirs_is_drained) {
    Drained fleet;
    fleet.open("n1", false);
    fleet.node({.name = "n3"});
    fleet.cycle();
    EXPECT_TRUE(fleet.runs("c"));
    EXPECT_FALSE(fleet.runs("small"));
}

}  // namespace
}  // namespace bulkhead::sched
