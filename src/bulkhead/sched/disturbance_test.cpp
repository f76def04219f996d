// Reclaim, preemption, consolidation and their limits: facts/scheduling.md section 5, sentence by sentence.
#include "bulkhead/sched/engine_test.hpp"

namespace bulkhead::sched {
namespace {

std::string numbered(const char* name, int i) { return name + std::to_string(i); }

// Tenant 0 fills eight GPUs with single-GPU work.
struct Full : Play {
    explicit Full(std::vector<TenantFacts> facts, EngineSettings settings = {}) : Play{settings} {
        tenants(std::move(facts));
        node({.name = "n1"});
        for (int i = 0; i < 8; ++i) run({.name = numbered("v", i), .tenant = 0});
    }
};

TEST(Reclaim, a_claimant_below_its_share_gets_it_back_and_no_more) {
    Full play{{team("greedy"), team("late")}};
    for (int i = 0; i < 8; ++i) play.submit({.name = numbered("c", i), .tenant = 1});
    play.settle();
    EXPECT_EQ(play.engine.held(0), 4 * gpu_unit);
    EXPECT_EQ(play.engine.held(1), 4 * gpu_unit);
}

TEST(Reclaim, evicts_as_little_as_helps) {
    Full play{{team("greedy"), team("late")}};
    play.submit({.name = "c", .tenant = 1, .gpus = 3});
    play.cycle();
    EXPECT_EQ(play.last.evict.size(), 3u);
    play.stop_evicted();
    play.cycle();
    EXPECT_TRUE(play.runs("c"));
    EXPECT_TRUE(play.last.evict.empty());
}

TEST(Reclaim, evicts_nobody_if_it_would_not_help) {
    Play play;
    play.tenants({team("greedy"), team("late")});
    play.node({.name = "n1", .gpus = 4});
    play.node({.name = "n2", .gpus = 4});
    for (int i = 0; i < 8; ++i) play.run({.name = numbered("v", i), .tenant = 0});
    play.submit({.name = "c", .tenant = 1, .gpus = 8});  // no node has eight
    play.cycle();
    EXPECT_TRUE(play.last.quiet());
}

TEST(Reclaim, of_equal_victims_the_one_that_loses_least_since_its_checkpoint) {
    Play play;
    play.tenants({team("greedy"), team("late")});
    play.node({.name = "n1", .gpus = 2});
    play.run({.name = "saved just now", .tenant = 0, .checkpoint = Duration::hours(1)});
    play.run({.name = "never saved", .tenant = 0});
    play.later(Duration::hours(3));
    play.submit({.name = "c", .tenant = 1});
    play.cycle();
    ASSERT_EQ(play.evicted(), (Names{"saved just now"}));
    EXPECT_EQ(play.last.evict.front().lost_gpu_ms, 0);
}

TEST(Reclaim, one_large_eviction_rather_than_two_small_ones) {
    Play play;
    play.tenants({team("greedy"), team("late")});
    play.node({.name = "n1", .gpus = 4});
    play.run({.name = "small 1", .tenant = 0});
    play.run({.name = "small 2", .tenant = 0});
    play.run({.name = "pair", .tenant = 0, .gpus = 2});
    play.submit({.name = "c", .tenant = 1, .gpus = 2});
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"pair"}));
}

TEST(Reclaim, work_that_may_not_be_preempted_is_never_a_victim) {
    Play play;
    play.tenants({team("a", 4), team("b", 4)});
    play.node({.name = "n1"});
    play.run({.name = "pinned", .tenant = 0, .gpus = 4, .preemptible = false});
    for (int i = 0; i < 4; ++i) play.run({.name = numbered("v", i), .tenant = 0});
    play.submit({.name = "c", .tenant = 1, .gpus = 4});
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"v0", "v1", "v2", "v3"}));
}

TEST(Reclaim, a_queue_within_its_guarantee_is_no_victim_of_one_beyond_its_own) {
    Play play;
    play.tenants({team("owner", 6), team("claimant", 0, 100)});
    play.node({.name = "n1"});
    for (int i = 0; i < 6; ++i) play.run({.name = numbered("v", i), .tenant = 0});
    play.run({.name = "c0", .tenant = 1, .gpus = 2});
    play.submit({.name = "c1", .tenant = 1, .gpus = 2});
    play.settle();
    EXPECT_EQ(play.engine.held(0), 6 * gpu_unit);
    EXPECT_FALSE(play.runs("c1"));
}

TEST(Reclaim, a_guarantee_comes_back_even_from_one_large_gang) {
    Play play;
    play.tenants({team("greedy"), team("guaranteed", 2)});
    play.node({.name = "n1"});
    play.run({.name = "gang", .tenant = 0, .gpus = 8});
    play.submit({.name = "c", .tenant = 1, .gpus = 2});
    play.settle();
    EXPECT_TRUE(play.runs("c"));
    EXPECT_FALSE(play.runs("gang"));
}

TEST(Reclaim, never_so_much_that_the_roles_swap) {
    // Four are due to each. Without the three the victim still has more than that, without the five it would not.
    Play play;
    play.tenants({team("greedy"), team("late")});
    play.node({.name = "n1"});
    play.run({.name = "three", .tenant = 0, .gpus = 3});
    play.later(Duration::hours(1));
    play.run({.name = "five", .tenant = 0, .gpus = 5});
    play.submit({.name = "c1", .tenant = 1, .gpus = 2});
    play.submit({.name = "c2", .tenant = 1, .gpus = 2});
    play.cycle();
    ASSERT_FALSE(play.last.evict.empty());
    EXPECT_EQ(play.name(play.last.evict.front().workload), "three");
}

TEST(Reclaim, a_gang_that_cannot_be_halved_goes_and_does_not_come_back_at_others_cost) {
    Play play;
    play.tenants({team("greedy"), team("late")});
    play.node({.name = "n1"});
    play.run({.name = "gang", .tenant = 0, .gpus = 8});
    for (int i = 0; i < 4; ++i) play.submit({.name = numbered("c", i), .tenant = 1});
    play.settle();
    EXPECT_FALSE(play.runs("gang"));
    EXPECT_EQ(play.engine.held(1), 4 * gpu_unit);
    EXPECT_TRUE(play.waits_for("gang", "wait.due"));
}

TEST(Reclaim, is_settled_where_the_branches_meet) {
    // Department x as a whole is at its due; inside it, one team has everything.
    Play play;
    std::vector<TenantFacts> facts{team("x"), team("y"), team("x1"), team("x2"), team("y1")};
    facts[2].parent = 0;
    facts[3].parent = 0;
    facts[4].parent = 1;
    play.tenants(facts);
    play.node({.name = "n1"});
    for (int i = 0; i < 4; ++i) play.run({.name = numbered("v", i), .tenant = 2});
    for (int i = 0; i < 4; ++i) play.run({.name = numbered("w", i), .tenant = 4});
    for (int i = 0; i < 4; ++i) play.submit({.name = numbered("c", i), .tenant = 3});
    play.settle();
    EXPECT_EQ(play.engine.held(4), 4 * gpu_unit);  // nobody in y pays for a quarrel inside x
    EXPECT_EQ(play.engine.held(2), 2 * gpu_unit);
    EXPECT_EQ(play.engine.held(3), 2 * gpu_unit);
}

// The search for large fleets leaves out victims that cannot be paid for: the department is at its guarantee, so work
// of its own goes, although other work on the same nodes would lose less.
TEST(Reclaim, in_a_large_fleet_a_department_at_its_guarantee_makes_room_itself) {
    constexpr int nodes = 80;
    Play play;
    std::vector<TenantFacts> facts{team("x", 4 * nodes), team("x1"), team("x2", 8), team("y")};
    facts[1].parent = 0;
    facts[2].parent = 0;
    play.tenants(facts);
    for (int i = 0; i < nodes; ++i) {
        play.node({.name = numbered("n", i)});
        play.run({.name = numbered("v", i), .tenant = 1, .gpus = 4});
    }
    play.later(Duration::hours(2));
    for (int i = 0; i < nodes; ++i) play.run({.name = numbered("w", i), .tenant = 3, .gpus = 4});
    play.later(Duration::hours(1));
    play.submit({.name = "claim", .tenant = 2, .gpus = 4});
    play.cycle();
    ASSERT_EQ(play.last.evict.size(), 1u);
    EXPECT_EQ(play.evicted().front().front(), 'v');
    play.stop_evicted();
    play.settle();
    EXPECT_TRUE(play.runs("claim"));
}

TEST(Reclaim, minimum_run_time_is_read_one_step_below_where_branches_meet) {
    std::vector<TenantFacts> facts{team("x"), team("y"), team("x1")};
    facts[2].parent = 0;
    facts[0].reclaim_after = Duration::hours(2);  // between x and y
    facts[2].reclaim_after = Duration{0};         // only between teams of x
    Play play;
    play.tenants(facts);
    play.node({.name = "n1", .gpus = 2});
    play.run({.name = "v0", .tenant = 2});
    play.run({.name = "v1", .tenant = 2});
    play.submit({.name = "c", .tenant = 1});
    play.later(Duration::hours(1));
    play.cycle();
    EXPECT_TRUE(play.last.quiet());
    play.later(Duration::hours(1));
    play.cycle();
    EXPECT_EQ(play.last.evict.size(), 1u);
}

TEST(Reclaim, elastic_gangs_give_what_they_have_beyond_their_minimum_first) {
    Play play;
    play.tenants({team("greedy"), team("late")});
    play.node({.name = "n1", .gpus = 4});
    play.run({.name = "elastic", .tenant = 0, .tasks = 3, .least = 1});
    play.run({.name = "single", .tenant = 0});
    play.submit({.name = "c", .tenant = 1, .gpus = 2});
    play.settle();
    EXPECT_TRUE(play.runs("elastic"));
    EXPECT_TRUE(play.runs("single"));
    EXPECT_TRUE(play.runs("c"));
    EXPECT_EQ(play.engine.seats(play.jobs.at("elastic")).size(), 1u);
}

TEST(Reclaim, what_was_freed_belongs_to_the_claimant) {
    Full play{{team("greedy"), team("late"), team("third")}};
    play.submit({.name = "c", .tenant = 1, .gpus = 2});
    play.cycle();
    ASSERT_EQ(play.last.evict.size(), 2u);
    play.engine.stopped(play.jobs.at(play.evicted()[0]));  // the first has left, the second not yet
    play.submit({.name = "thief", .tenant = 2});
    play.cycle();
    EXPECT_FALSE(play.runs("thief"));
    EXPECT_TRUE(play.waits_for("c", "wait.freeing"));
    for (const char* name : {"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7"}) play.engine.stopped(play.jobs.at(name));
    play.cycle();
    EXPECT_TRUE(play.runs("c"));
}

TEST(Reclaim, whole_gangs_go) {
    Play play;
    play.tenants({team("greedy"), team("late")});
    play.node({.name = "n1"});
    play.node({.name = "n2"});
    play.run({.name = "gang", .tenant = 0, .gpus = 8, .tasks = 2});
    play.submit({.name = "c", .tenant = 1, .gpus = 8});
    play.cycle();
    ASSERT_EQ(play.evicted(), (Names{"gang"}));
    EXPECT_EQ(play.last.evict.front().tasks, 2);
    play.stop_evicted();
    play.settle();
    EXPECT_TRUE(play.runs("c"));
    EXPECT_FALSE(play.runs("gang"));
}

TEST(Reclaim, a_gang_within_a_leaf_gets_whole_nodes_of_one_leaf) {
    Play play;
    play.tenants({team("greedy"), team("late")});
    for (const char* name : {"a1", "a2", "b1", "b2"}) play.node({.name = name, .leaf = std::string{name[0]}});
    for (int i = 0; i < 32; ++i) play.run({.name = numbered("v", i), .tenant = 0});
    play.submit({.name = "c", .tenant = 1, .gpus = 8, .tasks = 2, .within = TopologyLevel::leaf});
    play.settle();
    ASSERT_TRUE(play.runs("c"));
    EXPECT_EQ(play.engine.held(0), 16 * gpu_unit);
}

TEST(Preemption, inside_a_tenant_by_priority) {
    Play play;
    play.tenants({team("a")});
    play.node({.name = "n1", .gpus = 2});
    play.run({.name = "low", .priority = 1});
    play.run({.name = "middle", .priority = 5});
    play.submit({.name = "high", .priority = 9});
    play.submit({.name = "equal", .priority = 5});
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"low"}));
    play.stop_evicted();
    play.settle();
    EXPECT_TRUE(play.runs("high"));
    EXPECT_TRUE(play.runs("middle"));
}

TEST(Preemption, works_at_the_tenants_limit) {
    Play play;
    std::vector<TenantFacts> facts{team("a")};
    facts[0].limit = Gpus::whole(2);
    play.tenants(facts);
    play.node({.name = "n1", .gpus = 4});
    play.run({.name = "low", .gpus = 2, .priority = 1});
    play.submit({.name = "high", .gpus = 2, .priority = 9});
    play.submit({.name = "same", .gpus = 2, .priority = 1});
    play.settle();
    EXPECT_TRUE(play.runs("high"));
    EXPECT_EQ(play.engine.held(0), 2 * gpu_unit);
}

TEST(Preemption, does_not_reach_other_tenants) {
    Play play;
    play.tenants({team("a", 1), team("b", 1)});
    play.node({.name = "n1", .gpus = 2});
    play.run({.name = "b", .tenant = 1, .priority = 1});
    play.run({.name = "a", .tenant = 0, .priority = 1});
    play.submit({.name = "high", .tenant = 0, .priority = 900});
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"a"}));
}

TEST(Consolidation, moves_rather_than_kills) {
    Play play;
    play.tenants({team("a"), team("b")});
    play.node({.name = "n1", .gpus = 4});
    play.node({.name = "n2", .gpus = 4});
    play.run({.name = "x", .tenant = 0, .gpus = 3});
    play.run({.name = "y", .tenant = 0, .gpus = 3});
    play.engine.finish(play.jobs.at("x"));
    play.run({.name = "x1", .tenant = 0, .gpus = 1});
    // Somewhere there are now one and three taken; a task of four needs a node to itself.
    play.engine.finish(play.jobs.at("y"));
    play.run({.name = "y1", .tenant = 0, .gpus = 3});
    play.engine.finish(play.jobs.at("y1"));
    play.run({.name = "y2", .tenant = 1, .gpus = 3});
    ASSERT_TRUE(play.runs("x1"));
    play.submit({.name = "four", .tenant = 1, .gpus = 4});
    play.settle();
    EXPECT_TRUE(play.runs("x1"));
    EXPECT_TRUE(play.runs("y2"));
}

TEST(Consolidation, leaves_everything_as_it_was_when_not_all_can_be_placed_again) {
    Play play;
    play.tenants({team("a"), team("b")});
    play.node({.name = "n1", .gpus = 4});
    play.node({.name = "n2", .gpus = 4});
    play.run({.name = "x", .tenant = 0, .gpus = 3});
    play.run({.name = "y", .tenant = 1, .gpus = 3});
    const auto before = std::pair{play.where("x"), play.where("y")};
    play.submit({.name = "four", .tenant = 1, .gpus = 4});
    play.cycle();
    EXPECT_TRUE(play.last.move.empty());
    EXPECT_EQ((std::pair{play.where("x"), play.where("y")}), before);
}

TEST(Stale, a_gang_below_its_minimum_is_cleared_after_a_grace_period) {
    Play play{{.stale_grace = Duration{60'000}}};
    play.tenants({team("a")});
    play.node({.name = "n1"});
    play.submit({.name = "gang", .gpus = 1, .tasks = 4});
    TaskSeat one;
    one.node = 0;
    one.gpus = {0};
    one.seats = {{.start = 0, .size = 8, .profile = {}}};
    play.engine.adopt(play.jobs.at("gang"),
                      std::vector{one,
                                  [&] {
                                      TaskSeat two = one;
                                      two.gpus = {1};
                                      return two;
                                  }()},
                      play.now);
    play.cycle();
    EXPECT_TRUE(play.last.evict.empty());
    play.later(Duration{61'000});
    play.cycle();
    ASSERT_EQ(play.evicted(), (Names{"gang"}));
    EXPECT_EQ(play.last.evict.front().action, Action::stale);
    play.stop_evicted();
    play.cycle();
    EXPECT_EQ(play.engine.seats(play.jobs.at("gang")).size(), 4u);
}

}  // namespace
}  // namespace bulkhead::sched
