// What a person is told who asks why a job waits: which nodes, which work, why it stays, and when the job could start.
#include <gmock/gmock.h>

#include "bulkhead/sched/blocking_text.hpp"
#include "bulkhead/sched/engine_test.hpp"

namespace bulkhead::sched {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr Duration minutes(std::int64_t count) { return Duration{count * 60'000}; }

// A team that trusts no other.
TenantFacts stranger(std::string name, std::uint32_t domain, std::int64_t guarantee = 0) {
    TenantFacts facts = team(std::move(name), guarantee);
    facts.domain = domain;
    return facts;
}

struct Question : Play {
    std::vector<std::string> tenant_names;

    Question() { job_names.emplace_back(); }  // keys from 1 on, as everywhere outside of tests

    void teams(std::vector<TenantFacts> facts) {
        for (const TenantFacts& each : facts) tenant_names.push_back(each.name);
        tenants(std::move(facts));
    }
    Blocking blocking(const std::string& job) { return *engine.explain(jobs.at(job), now).blocking; }
    Names must_end(const std::string& job) {
        Names out;
        for (const Blocker& each : blocking(job).must_end) out.push_back(name(each.workload));
        return out;
    }
    InTheWay read_by(Audience reader, const std::string& job, TenantNo asks = 0) {
        const BlockingNames names{.node = [&](std::uint32_t node) { return nodes[node]; },
                                  .workload = [&](std::int64_t key) { return name(key); },
                                  .tenant = [&](TenantNo tenant) { return tenant_names[tenant]; },
                                  .is_own = [&](TenantNo tenant) { return tenant == asks; }};
        return in_the_way(blocking(job), names, reader);
    }
};

// Two small jobs of distrusting tenants close two nodes; neither has run its minimum time.
Question closed_nodes() {
    Question play;
    std::vector<TenantFacts> facts{stranger("small1", 2), stranger("small2", 3), stranger("big", 4, 8)};
    facts[0].reclaim_after = facts[1].reclaim_after = minutes(10);
    play.teams(facts);
    play.node({"n1"});
    play.node({"n2"});
    play.run({.name = "s1", .tenant = 0});
    play.later(minutes(3));
    play.run({.name = "s2", .tenant = 1});
    play.later(minutes(2));
    play.submit({.name = "train", .tenant = 2, .gpus = 8});
    play.cycle();
    return play;
}

TEST(Blocking, names_the_job_that_closes_the_reserved_node_and_when_it_may_be_evicted) {
    Question play = closed_nodes();
    const Blocking blocking = play.blocking("train");
    ASSERT_EQ(blocking.must_end.size(), 1u);
    const Blocker& work = blocking.must_end[0];
    EXPECT_EQ(play.name(work.workload), "s2") << "its node is reserved: s1 has run longer and would lose more";
    EXPECT_EQ(work.stays, Stays::minimum_run_time);
    EXPECT_EQ(work.ran, minutes(2));
    EXPECT_EQ(work.minimum, minutes(10));
    EXPECT_TRUE(work.closes_node);
    ASSERT_EQ(blocking.nodes.size(), 2u);
    EXPECT_EQ(play.nodes[blocking.nodes[0].node], "n2") << "the best candidate first";
    for (const BlockedNode& node : blocking.nodes) EXPECT_EQ(node.obstacle, Obstacle::neighbours);
    EXPECT_EQ(blocking.start, work.until);
}

TEST(Blocking, operators_read_names_and_numbers) {
    Question play = closed_nodes();
    const InTheWay way = play.read_by(Audience::fleet_operator, "train");
    ASSERT_EQ(way.mustEnd.size(), 1u);
    EXPECT_EQ(way.mustEnd[0].says,
              "node n2: job s2 of tenant small2 closes the node (1 of 8 GPUs leased); it would have to end; it is "
              "preemptible and has run 2m of a minimum of 10m");
    EXPECT_EQ(way.nodes[0].says, "node n2 runs work that may not share a node with it");
    EXPECT_THAT(way.expectedSays, HasSubstr(print(*way.expectedStart)));
}

TEST(Blocking, a_tenant_reads_the_same_without_names_counts_and_sizes) {
    Question play = closed_nodes();
    const InTheWay way = play.read_by(Audience::tenant, "train", 2);
    ASSERT_EQ(way.mustEnd.size(), 1u);
    EXPECT_EQ(way.mustEnd[0], (WorkInTheWay{.stays = Stays::minimum_run_time,
                                            .says = "other work would have to end, and its minimum run time is not "
                                                    "over"}));
    ASSERT_EQ(way.nodes.size(), 1u) << "two nodes with the same obstacle read as one";
    EXPECT_EQ(way.nodes[0].node, "");
    EXPECT_EQ(way.nodes[0].says, "nodes that could serve it run work that may not share a node with it");
    EXPECT_EQ(way.expectedStart->ms % 60'000, 0) << "to the minute";
}

TEST(Blocking, a_tenant_is_not_told_that_it_is_beyond_its_due) {
    Blocking blocking{.must_end = {{.workload = 1, .tenant = 0, .stays = Stays::no_claim}}};
    const BlockingNames names{.node = [](std::uint32_t) { return "n1"; },
                              .workload = [](std::int64_t) { return "a"; },
                              .tenant = [](TenantNo) { return "early"; },
                              .is_own = [](TenantNo tenant) { return tenant == 1; }};
    EXPECT_EQ(in_the_way(blocking, names, Audience::tenant).mustEnd[0].stays, Stays::due);
    blocking.must_end[0].stays = Stays::due;
    EXPECT_EQ(in_the_way(blocking, names, Audience::tenant).mustEnd[0].says,
              "other work would have to end, and it is not evicted for this one");
}

TEST(Blocking, work_within_its_guarantee_is_said_to_be) {
    Question play;
    play.teams({stranger("owner", 1, 8), stranger("guest", 1)});
    play.node({"n1"});
    play.run({.name = "own", .tenant = 0, .gpus = 8});
    play.submit({.name = "other", .tenant = 1, .gpus = 8});
    play.cycle();
    const Blocking blocking = play.blocking("other");
    ASSERT_EQ(blocking.must_end.size(), 1u);
    EXPECT_EQ(blocking.must_end[0].stays, Stays::guarantee);
    EXPECT_EQ(blocking.basis, StartBasis::unknown);
    EXPECT_FALSE(blocking.start);
    EXPECT_EQ(play.read_by(Audience::fleet_operator, "other").expectedSays,
              "no estimate: the run time of own is not declared");
    EXPECT_EQ(play.read_by(Audience::tenant, "other", 1).expectedSays,
              "no estimate: the run time of work in its way is not declared");
    EXPECT_THAT(play.read_by(Audience::tenant, "other", 1).mustEnd[0].says, Not(HasSubstr("own")));
}

TEST(Blocking, declared_run_times_give_an_estimate) {
    Question play;
    play.teams({stranger("a", 1, 8), stranger("b", 1, 8), stranger("c", 1)});
    play.node({"n1"});
    play.node({"n2"});
    play.run({.name = "short", .tenant = 0, .gpus = 8, .duration = Duration::hours(2)});
    play.run({.name = "long", .tenant = 1, .gpus = 8, .duration = Duration::hours(5)});
    play.later(minutes(30));
    play.submit({.name = "next", .tenant = 2, .gpus = 8});
    play.cycle();
    const Blocking blocking = play.blocking("next");
    EXPECT_EQ(blocking.start, Play::noon + Duration::hours(2));
    EXPECT_THAT(play.read_by(Audience::fleet_operator, "next").mustEnd[0].says,
                HasSubstr("by its declared run time it ends at "));
}

TEST(Blocking, a_limit_is_in_the_way_by_the_work_that_it_counts) {
    Question play;
    std::vector<TenantFacts> facts{stranger("a", 1, 4)};
    facts[0].limit = Gpus::whole(4);
    play.teams(facts);
    play.node({"n1"});
    play.run({.name = "half", .tenant = 0, .gpus = 2, .duration = Duration::hours(1)});
    play.run({.name = "rest", .tenant = 0, .gpus = 2});
    play.submit({.name = "more", .tenant = 0, .gpus = 2});
    play.cycle();
    const Blocking blocking = play.blocking("more");
    EXPECT_EQ(play.must_end("more").size(), 1u) << "two GPUs are enough";
    EXPECT_THAT(blocking.nodes, IsEmpty()) << "no node is in the way";
    EXPECT_EQ(blocking.start, Play::noon + Duration::hours(1)) << "as soon as half has ended";
    const InTheWay own = play.read_by(Audience::tenant, "more", 0);
    EXPECT_FALSE(own.mustEnd[0].workload.empty()) << "its own work is named to a tenant";
}

TEST(Blocking, a_gang_is_told_the_cheapest_set_of_nodes) {
    Question play;
    play.teams({stranger("a", 1, 32), stranger("b", 1)});
    for (const char* node : {"n1", "n2", "n3", "n4"}) play.node({node});
    for (const char* job : {"w1", "w2", "w3", "w4"}) {
        play.run({.name = job, .tenant = 0, .gpus = 8});
        play.later(Duration::hours(1));
    }
    play.submit({.name = "gang", .tenant = 1, .gpus = 8, .tasks = 2});
    play.cycle();
    Names ends = play.must_end("gang");
    std::ranges::sort(ends);
    EXPECT_THAT(ends, ElementsAre("w3", "w4")) << "the youngest have the least to lose";
}

TEST(Blocking, the_lists_are_bounded) {
    Question play;
    play.teams({stranger("a", 1, 400), stranger("b", 1)});
    for (int i = 0; i < 50; ++i) {
        play.node({"n" + std::to_string(i)});
        play.run({.name = "w" + std::to_string(i), .tenant = 0, .gpus = 8});
    }
    play.submit({.name = "gang", .tenant = 1, .gpus = 8, .tasks = 40});
    play.cycle();
    const Blocking blocking = play.blocking("gang");
    EXPECT_EQ(blocking.nodes.size(), 8u);
    EXPECT_EQ(blocking.must_end.size(), 16u);
    EXPECT_EQ(blocking.more_work, 24);
}

TEST(Blocking, a_question_changes_nothing) {
    Question asked = closed_nodes(), silent = closed_nodes();
    static_cast<void>(asked.blocking("train"));
    asked.later(minutes(8));
    silent.later(minutes(8));
    asked.settle();
    silent.settle();
    EXPECT_EQ(asked.runs("train"), silent.runs("train"));
    EXPECT_EQ(asked.where("s1"), silent.where("s1"));
    EXPECT_EQ(asked.runs("s2"), silent.runs("s2"));
}

}  // namespace
}  // namespace bulkhead::sched
