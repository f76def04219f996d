// Elastic gangs that run with fewer tasks than they asked for.
#include "bulkhead/sched/engine_test.hpp"
#include "bulkhead/sched/rebuilt_test.hpp"

namespace bulkhead::sched {
namespace {

std::size_t tasks(const Play& play, const std::string& job) { return play.engine.seats(play.jobs.at(job)).size(); }

// The gang of tenant 1 runs with two tasks of six; tenant 0 has the other six GPUs.
struct Small : Play {
    explicit Small(std::vector<TenantFacts> facts, EngineSettings settings = {}) : Play{settings} {
        tenants(std::move(facts));
        node({.name = "n1"});
        for (int i = 0; i < 6; ++i) run({.name = "v" + std::to_string(i), .tenant = 0});
        submit({.name = "elastic", .tenant = 1, .tasks = 6, .least = 2, .grow_by = 1});
        cycle();
        EXPECT_TRUE(runs("elastic"));
    }
};

TEST(Growth, a_gang_below_its_due_reclaims_up_to_it_and_no_further) {
    Small play{{team("greedy"), team("late")}};
    play.settle();
    EXPECT_EQ(tasks(play, "elastic"), 4u);
    EXPECT_EQ(Gpus{play.engine.held(0)}, Gpus::whole(4));
}

TEST(Growth, a_gang_within_its_guarantee_reclaims_up_to_it) {
    Small play{{team("greedy", 0, 100), team("late", 5)}};
    play.settle();
    EXPECT_GE(tasks(play, "elastic"), 5u);
}

TEST(Growth, a_gang_beyond_guarantee_and_due_evicts_nobody) {
    Small play{{team("greedy", 6), team("late")}};
    play.settle();
    EXPECT_EQ(tasks(play, "elastic"), 2u);
    EXPECT_EQ(Gpus{play.engine.held(0)}, Gpus::whole(6));
}

TEST(Growth, room_that_was_freed_for_it_is_not_taken_by_others) {
    Small play{{team("greedy"), team("late"), team("third")}};
    ASSERT_FALSE(play.last.evict.empty() && play.cycle().evict.empty());
    const Names leaving = play.evicted();
    play.submit({.name = "thief", .tenant = 0});
    play.stop_evicted();
    play.cycle();
    EXPECT_GT(tasks(play, "elastic"), 2u);
    EXPECT_FALSE(play.runs("thief"));
}

TEST(Growth, a_gang_that_ends_leaves_no_claim_behind) {
    Small play{{team("greedy"), team("late")}};
    play.cycle();
    play.engine.finish(play.jobs.at("elastic"));
    play.stop_evicted();
    play.settle();
    EXPECT_TRUE(play.engine.promises().empty());
    EXPECT_EQ(Gpus{play.engine.held(0)}, Gpus::whole(6));
}

TEST(Growth, a_gang_that_gave_up_a_task_does_not_take_it_back) {
    Play play;
    play.tenants({team("greedy"), team("late")});
    play.node({.name = "n1"});
    play.run({.name = "elastic", .tenant = 0, .tasks = 8, .least = 1});
    for (int i = 0; i < 8; ++i) play.submit({.name = "c" + std::to_string(i), .tenant = 1});
    play.settle();
    EXPECT_EQ(tasks(play, "elastic"), 4u);
    EXPECT_EQ(Gpus{play.engine.held(1)}, Gpus::whole(4));
}

// Growth that is a restart, as in the control plane. `elastic` runs with two tasks of six beside six jobs of tenant 0.
struct ByRestart : Small {
    explicit ByRestart(std::vector<TenantFacts> facts) : Small{std::move(facts), restarts()} {}
    static EngineSettings restarts() { return {.grow = false, .grow_by_restart = true}; }
};

TEST(GrowthByRestart, a_gang_asks_for_all_that_it_deserves_at_once) {
    ByRestart play{{team("greedy"), team("late")}};
    EXPECT_EQ(play.evicted().size(), 0u);
    play.cycle();
    EXPECT_EQ(play.evicted().size(), 2u) << "the cycle that started it does not disturb others for it";
    play.stop_evicted();
    play.cycle();
    ASSERT_EQ(play.last.bind.size(), 1u);
    EXPECT_EQ(play.last.bind.front().tasks.size(), 2u);
    play.settle();
    EXPECT_EQ(tasks(play, "elastic"), 4u);
    EXPECT_EQ(Gpus{play.engine.held(0)}, Gpus::whole(4));
}

TEST(GrowthByRestart, no_task_is_worth_a_restart_before_the_caller_says_so) {
    for (const std::int32_t by : {0, 3}) {
        Play play{ByRestart::restarts()};
        play.tenants({team("greedy"), team("late")});
        play.node({.name = "n1"});
        for (int i = 0; i < 6; ++i) play.run({.name = "v" + std::to_string(i), .tenant = 0});
        play.submit({.name = "elastic", .tenant = 1, .tasks = 6, .least = 2, .grow_by = by});
        play.settle();
        EXPECT_EQ(tasks(play, "elastic"), 2u) << "it deserves two more, and they are not worth it: " << by;
    }
}

// `large` can never start, because `fixed` has one of the four GPUs. It counts as asked for all the same.
TEST(GrowthByRestart, beyond_guarantee_and_due_a_gang_does_not_even_take_free_room) {
    Play play{ByRestart::restarts()};
    play.tenants({team("a"), team("b", 1)});
    play.node({.name = "n1", .gpus = 4});
    play.run({.name = "fixed", .tenant = 1, .preemptible = false});
    play.run({.name = "short", .tenant = 0});
    play.run({.name = "x", .tenant = 0, .tasks = 8, .least = 2, .grow_by = 1});
    play.submit({.name = "large", .tenant = 1, .gpus = 4});
    play.engine.finish(play.jobs.at("short"));
    play.settle();
    EXPECT_EQ(tasks(play, "x"), 2u);
    play.engine.finish(play.jobs.at("large"));
    play.settle();
    EXPECT_EQ(tasks(play, "x"), 3u);
}

TEST(GrowthByRestart, two_gangs_come_to_rest) {
    Play play{ByRestart::restarts()};
    play.tenants({team("a"), team("b")});
    play.node({.name = "n1"});
    play.run({.name = "x", .tenant = 0, .tasks = 8, .least = 1, .grow_by = 1});
    play.submit({.name = "y", .tenant = 1, .tasks = 8, .least = 1, .grow_by = 1});
    play.settle();
    EXPECT_EQ(tasks(play, "x"), 4u);
    EXPECT_EQ(tasks(play, "y"), 4u);
}

// Two racks of one node each; the gang must stay in the first.
struct Racks : Play {
    explicit Racks(std::vector<TenantFacts> facts) {
        tenants(std::move(facts));
        node({.name = "n1", .rack = "r1"});
        node({.name = "n2", .rack = "r2"});
    }
    // The gang starts with two tasks on the node where six other jobs run; eight run on the other one.
    void start_small(JobRow gang) {
        for (int i = 0; i < 14; ++i) run({.name = "v" + std::to_string(i), .tenant = 0});
        gang.tenant = 1;
        submit(gang);
        cycle();
        EXPECT_EQ(tasks(*this, gang.name), 2u);
    }
    // So many of the other jobs on a node are done.
    void end_on(const std::string& node, int count) {
        for (int i = 0; i < 14 && count > 0; ++i) {
            const std::string name = "v" + std::to_string(i);
            if (!jobs.contains(name) || !runs(name) || !is_on(name, node)) continue;
            engine.finish(jobs.at(name));
            jobs.erase(name);
            --count;
        }
    }
};

TEST(Growth, a_gang_grows_inside_the_domain_where_it_must_stay) {
    Racks play{{team("greedy", 16), team("late")}};
    play.start_small({.name = "gang", .tasks = 6, .least = 2, .within = TopologyLevel::rack});
    const Names before = play.where("gang");
    play.end_on(before.front() == "n1" ? "n2" : "n1", 8);
    play.settle();
    EXPECT_EQ(tasks(play, "gang"), 2u) << "the other rack is no place for it";
    play.end_on(before.front(), 3);
    play.settle();
    EXPECT_EQ(tasks(play, "gang"), 5u);
    EXPECT_EQ(play.where("gang"), before);
}

TEST(Growth, a_gang_reclaims_inside_the_domain_where_it_must_stay) {
    Racks play{{team("greedy", 0, 100), team("late", 6)}};
    play.start_small({.name = "gang", .tasks = 6, .least = 2, .within = TopologyLevel::rack});
    const Names before = play.where("gang");
    play.settle();
    EXPECT_EQ(tasks(play, "gang"), 6u);
    EXPECT_EQ(play.where("gang"), before);
    EXPECT_EQ(Gpus{play.engine.held(0)}, Gpus::whole(10));
}

TEST(Growth, a_gang_in_groups_grows_by_whole_groups) {
    Racks play{{team("greedy", 0, 100), team("late", 5)}};
    play.start_small({.name = "gang", .tasks = 6, .least = 2, .group = 2, .group_within = TopologyLevel::node});
    play.settle();
    EXPECT_EQ(tasks(play, "gang"), 4u) << "a third group would exceed the guarantee";
    play.end_on("n1", 8);
    play.end_on("n2", 8);
    play.settle();
    EXPECT_EQ(tasks(play, "gang"), 6u);
    std::map<NodeNo, int> on;
    for (const TaskSeat& task : play.engine.seats(play.jobs.at("gang"))) ++on[task.node];
    for (const auto& [node, count] : on) EXPECT_EQ(count % 2, 0);
}

TEST(Growth, a_free_gpu_on_each_of_two_nodes_is_no_room_for_a_group) {
    Racks play{{team("greedy", 16), team("late")}};
    play.start_small({.name = "gang", .tasks = 6, .least = 2, .group = 2, .group_within = TopologyLevel::node});
    play.end_on("n1", 1);
    play.end_on("n2", 1);
    play.settle();
    EXPECT_EQ(tasks(play, "gang"), 2u);
    play.end_on("n1", 1);
    play.settle();
    EXPECT_EQ(tasks(play, "gang"), 4u);
}

TEST(Growth, two_elastic_gangs_share_and_settle) {
    Play play;
    play.tenants({team("a"), team("b")});
    play.node({.name = "n1"});
    play.run({.name = "x", .tenant = 0, .tasks = 8, .least = 1});
    play.submit({.name = "y", .tenant = 1, .tasks = 8, .least = 1});
    play.settle();
    EXPECT_EQ(tasks(play, "x"), 4u);
    EXPECT_EQ(tasks(play, "y"), 4u);
}

}  // namespace
}  // namespace bulkhead::sched
