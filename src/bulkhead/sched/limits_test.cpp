// Limits that are lowered below what a tenant leases.
#include "bulkhead/sched/engine_test.hpp"

namespace bulkhead::sched {
namespace {

Gpus held(const Play& play, TenantNo tenant) { return Gpus{play.engine.held(tenant)}; }

struct Limited : Play {
    std::vector<TenantFacts> facts;
    explicit Limited(std::vector<TenantFacts> all) : facts{std::move(all)} {
        tenants(facts);
        node({.name = "n1"});
    }
    void limit(TenantNo tenant, std::int64_t gpus) {
        facts[tenant].limit = Gpus::whole(gpus);
        tenants(facts);
    }
};

TEST(Limits, work_is_evicted_until_the_tenant_is_within_its_lowered_limit) {
    Limited play{{team("a"), team("b")}};
    for (int i = 0; i < 6; ++i) play.run({.name = "v" + std::to_string(i)});
    play.limit(0, 2);
    play.cycle();
    EXPECT_EQ(play.last.evict.size(), 4u);
    for (const Eviction& each : play.last.evict) {
        EXPECT_EQ(each.action, Action::limit);
        EXPECT_EQ(each.claimant, 0);
        ASSERT_FALSE(each.reasons.empty());
        EXPECT_EQ(each.reasons.front().code, "evict.limit");
    }
    play.stop_evicted();
    play.settle();
    EXPECT_EQ(held(play, 0), Gpus::whole(2));
    EXPECT_TRUE(play.last.over_limit.empty());
}

TEST(Limits, the_work_that_loses_least_goes) {
    Limited play{{team("a")}};
    play.run({.name = "saved", .gpus = 2, .checkpoint = Duration::hours(1)});
    play.run({.name = "unsaved", .gpus = 2});
    play.later(Duration::hours(3));
    play.run({.name = "young", .gpus = 2});
    play.later(Duration{1000});
    play.limit(0, 4);
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"saved"}));
}

TEST(Limits, no_more_work_goes_than_has_to) {
    Limited play{{team("a")}};
    play.run({.name = "five", .gpus = 5});
    play.run({.name = "one", .gpus = 1});
    play.run({.name = "two", .gpus = 2});
    play.limit(0, 6);
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"two"}));
}

TEST(Limits, spare_tasks_of_elastic_gangs_go_first) {
    Limited play{{team("a")}};
    play.run({.name = "elastic", .gpus = 1, .tasks = 6, .least = 2});
    play.run({.name = "rigid", .gpus = 2});
    play.limit(0, 5);
    play.cycle();
    ASSERT_EQ(play.evicted(), (Names{"elastic"}));
    EXPECT_FALSE(play.last.evict.front().whole);
    EXPECT_EQ(play.last.evict.front().tasks, 3);
    play.settle();
    EXPECT_EQ(play.engine.seats(play.jobs.at("elastic")).size(), 3u);
    EXPECT_TRUE(play.runs("rigid"));
}

TEST(Limits, minimum_run_time_is_kept) {
    std::vector<TenantFacts> facts{team("a")};
    facts[0].preempt_after = Duration::hours(1);
    Limited play{facts};
    play.run({.name = "v", .gpus = 4});
    play.limit(0, 2);
    play.cycle();
    EXPECT_TRUE(play.last.evict.empty());
    ASSERT_EQ(play.last.over_limit.size(), 1u);
    EXPECT_EQ(play.last.over_limit.front().held, Gpus::whole(4));
    EXPECT_EQ(play.last.over_limit.front().fixed, Gpus{});
    play.later(Duration::hours(1));
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"v"}));
}

TEST(Limits, work_that_may_not_be_preempted_stays_and_goes_on_counting) {
    Limited play{{team("fixed", 6), team("b"), team("c")}};
    play.run({.name = "pinned", .gpus = 6, .preemptible = false});
    for (int i = 0; i < 4; ++i) {
        play.submit({.name = "b" + std::to_string(i), .tenant = 1});
        play.submit({.name = "c" + std::to_string(i), .tenant = 2});
    }
    play.facts[0].guarantee = Gpus::whole(2);
    play.limit(0, 2);
    play.settle();
    EXPECT_TRUE(play.runs("pinned"));
    ASSERT_EQ(play.last.over_limit.size(), 1u);
    EXPECT_EQ(play.last.over_limit.front().fixed, Gpus::whole(6));
    EXPECT_EQ(Gpus{play.engine.due(1)}, Gpus::whole(1));
    EXPECT_EQ(Gpus{play.engine.due(2)}, Gpus::whole(1));
    EXPECT_EQ(held(play, 1), Gpus::whole(1));
    EXPECT_EQ(held(play, 2), Gpus::whole(1));
}

TEST(Limits, of_a_parent_are_kept_by_the_work_below_it) {
    std::vector<TenantFacts> facts{team("dept"), team("a"), team("b")};
    facts[1].parent = facts[2].parent = 0;
    Limited play{facts};
    play.run({.name = "a4", .tenant = 1, .gpus = 4});
    play.run({.name = "b2", .tenant = 2, .gpus = 2});
    play.limit(0, 4);
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"b2"}));
    play.stop_evicted();
    play.settle();
    EXPECT_LE(held(play, 0), Gpus::whole(4));
}

// A department whose limit is lowered, with a guaranteed team and two others.
struct Department : Limited {
    explicit Department(std::int64_t guarantee)
        : Limited{[&] {
              std::vector<TenantFacts> facts{team("dept"), team("owner", guarantee), team("guest"), team("other")};
              for (TenantNo child : {1u, 2u, 3u}) facts[child].parent = 0;
              return facts;
          }()} {}
};

TEST(Limits, of_a_parent_spare_the_work_that_a_child_is_guaranteed) {
    Department play{4};
    play.run({.name = "guest", .tenant = 2, .gpus = 4});
    play.later(Duration::hours(1));
    play.run({.name = "owned", .tenant = 1, .gpus = 4});
    play.later(Duration::hours(1));
    play.limit(0, 4);
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"guest"}));
    play.stop_evicted();
    play.settle();
    EXPECT_TRUE(play.runs("owned"));
}

TEST(Limits, spare_tasks_within_a_guarantee_go_after_whole_jobs_beyond_one) {
    Department play{5};
    play.run({.name = "owned", .tenant = 1, .tasks = 5, .least = 1});
    play.run({.name = "guest", .tenant = 2, .gpus = 2});
    play.later(Duration::hours(1));
    play.limit(0, 5);
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"guest"}));
}

TEST(Limits, guaranteed_work_goes_if_nothing_else_is_left) {
    Department play{4};
    play.run({.name = "guest", .tenant = 2, .gpus = 2});
    play.run({.name = "owned", .tenant = 1, .tasks = 4, .least = 2});
    play.limit(0, 3);
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"guest", "owned"}));
    EXPECT_EQ(held(play, 1), Gpus::whole(3));
}

TEST(Limits, among_many_jobs_the_guaranteed_ones_stay) {
    Department play{2};
    for (int i = 0; i < 6; ++i) play.run({.name = "guest" + std::to_string(i), .tenant = 2, .gpus = 1});
    play.node({.name = "n2"});
    for (int i = 0; i < 7; ++i) play.run({.name = "other" + std::to_string(i), .tenant = 3, .gpus = 1});
    play.later(Duration::hours(1));
    play.run({.name = "young", .tenant = 1, .gpus = 2});  // it loses least
    play.later(Duration::hours(1));
    play.limit(0, 2);
    play.cycle();
    EXPECT_EQ(play.evicted().size(), 13u);
    play.stop_evicted();
    play.settle();
    EXPECT_TRUE(play.runs("young"));
}

TEST(Limits, kept_nodes_of_a_guaranteed_child_are_given_up_last) {
    Department play{1};
    play.node({.name = "n2"});
    const SharingScope alone{PeerTrust::same_tenant, PeerTrust::same_tenant, PeerTrust::same_tenant,
                             PeerTrust::same_tenant};
    play.run({.name = "guest", .tenant = 2, .gpus = 1, .sharing = alone, .keeps_node = true});
    play.later(Duration::hours(1));
    play.run({.name = "owned", .tenant = 1, .gpus = 1, .sharing = alone, .keeps_node = true});
    play.later(Duration::hours(1));
    play.limit(0, 8);
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"guest"}));
}

TEST(Limits, a_gang_in_groups_gives_up_whole_groups) {
    Limited play{{team("a")}};
    play.run({.name = "gang", .tasks = 6, .least = 2, .group = 2, .group_within = TopologyLevel::node});
    play.limit(0, 5);
    play.cycle();
    ASSERT_EQ(play.evicted(), (Names{"gang"}));
    EXPECT_FALSE(play.last.evict.front().whole);
    EXPECT_EQ(play.last.evict.front().tasks, 2);
    play.settle();
    EXPECT_EQ(play.engine.seats(play.jobs.at("gang")).size(), 4u);
    EXPECT_TRUE(play.last.over_limit.empty());
}

TEST(Limits, groups_that_stay_are_together) {
    Limited play{{team("a")}};
    play.node({.name = "n2"});
    play.run({.name = "gang", .gpus = 2, .tasks = 6, .least = 2, .group = 2, .group_within = TopologyLevel::node});
    play.limit(0, 8);
    play.settle();
    std::map<NodeNo, int> on;
    for (const TaskSeat& task : play.engine.seats(play.jobs.at("gang"))) ++on[task.node];
    int left = 0;
    for (const auto& [node, count] : on) {
        EXPECT_EQ(count % 2, 0) << node;
        left += count;
    }
    EXPECT_EQ(left, 4);
}

TEST(Limits, a_lowered_guarantee_of_a_hard_partition_is_such_a_limit) {
    std::vector<TenantFacts> facts{team("hard", 6), team("b")};
    facts[0].hard = true;
    Limited play{facts};
    for (int i = 0; i < 6; ++i) play.run({.name = "v" + std::to_string(i)});
    play.facts[0].guarantee = Gpus::whole(4);
    play.tenants(play.facts);
    play.cycle();
    EXPECT_EQ(play.last.evict.size(), 2u);
}

}  // namespace
}  // namespace bulkhead::sched
