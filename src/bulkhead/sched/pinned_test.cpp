// Work that may not be preempted stays inside what its tenant is entitled to, and leaves every guarantee a node.
#include "bulkhead/sched/engine_test.hpp"

namespace bulkhead::sched {
namespace {

TenantFacts in_domain(std::uint32_t domain, TenantFacts facts) {
    facts.domain = domain;
    return facts;
}

constexpr SharingScope bears_strangers{PeerTrust::distrusting, PeerTrust::distrusting, PeerTrust::same_domain,
                                       PeerTrust::distrusting};

TEST(Pinned, work_closes_no_more_nodes_than_its_tenant_is_entitled_to) {
    Play play{{.moves = 0}};  // otherwise the work beside the first would move
    play.tenants({in_domain(1, team("a", 8))});
    play.node({.name = "n1"});
    play.node({.name = "n2"});
    play.run({.name = "first", .gpus = 1, .preemptible = false});
    play.run({.name = "rest", .gpus = 7, .priority = 9});
    ASSERT_EQ(play.where("first"), play.where("rest"));
    play.submit({.name = "second", .gpus = 1, .preemptible = false});
    play.cycle();
    EXPECT_FALSE(play.runs("second")) << "it would close a second node for a guarantee of one";
    EXPECT_TRUE(play.waits_for("second", "wait.entitlement"));
    play.engine.finish(play.jobs.at("rest"));
    play.cycle();
    EXPECT_EQ(play.where("second"), play.where("first"));
}

TEST(Pinned, work_that_may_be_preempted_goes_anywhere) {
    Play play;
    play.tenants({in_domain(1, team("a", 8))});
    play.node({.name = "n1"});
    play.node({.name = "n2"});
    play.run({.name = "first", .gpus = 8, .preemptible = false});
    play.run({.name = "second", .gpus = 8});
}

TEST(Pinned, a_start_leaves_every_other_guarantee_a_node) {
    Play play;
    play.tenants({in_domain(1, team("a", 9)), in_domain(2, team("b", 8))});
    play.node({.name = "n1"});
    play.node({.name = "n2"});
    play.node({.name = "small", .gpus = 4, .cpu = 0});
    play.run({.name = "first", .tenant = 0, .gpus = 8, .preemptible = false});
    // Two nodes are within the entitlement of a, but b would be left with the small one.
    play.submit({.name = "second", .tenant = 0, .preemptible = false, .cpu = 1});
    play.cycle();
    EXPECT_FALSE(play.runs("second"));
    EXPECT_TRUE(play.waits_for("second", "wait.entitlement"));
    play.run({.name = "third", .tenant = 0, .preemptible = false});
    EXPECT_EQ(play.where("third"), (Names{"small"}));
    play.run({.name = "guaranteed", .tenant = 1, .gpus = 8, .preemptible = false});
}

TEST(Pinned, tenants_in_machines_of_their_own_keep_apart_where_each_needs_a_whole_node) {
    Play play;
    play.tenants({in_domain(1, team("a", 8)), in_domain(2, team("b", 8))});
    play.node({.name = "n1"});
    play.node({.name = "n2"});
    const auto machine = [](std::string name, TenantNo tenant) {
        return JobRow{.name = std::move(name),
                      .tenant = tenant,
                      .gpus = 4,
                      .preemptible = false,
                      .sharing = bears_strangers,
                      .on_host_kernel = false};
    };
    play.run(machine("a1", 0));
    play.run(machine("b1", 1));
    EXPECT_NE(play.where("a1"), play.where("b1"));
    play.run(machine("a2", 0));
    play.run(machine("b2", 1));
    EXPECT_EQ(play.where("a2"), play.where("a1"));
    EXPECT_EQ(play.where("b2"), play.where("b1"));
}

TEST(Pinned, a_claimant_takes_back_a_node_that_it_is_entitled_to) {
    Play play;
    play.tenants({in_domain(1, team("a", 8)), in_domain(2, team("b")), in_domain(3, team("c"))});
    play.node({.name = "n1"});
    play.node({.name = "n2"});
    play.run({.name = "crumb1", .tenant = 1, .share = 100});
    play.run({.name = "crumb2", .tenant = 2, .share = 100});
    play.later(Duration::hours(2));
    play.submit({.name = "first", .tenant = 0, .gpus = 4, .preemptible = false});
    play.settle();
    EXPECT_TRUE(play.runs("first"));
    play.later(Duration::hours(2));
    play.submit({.name = "second", .tenant = 0, .gpus = 4, .preemptible = false});
    play.settle();
    EXPECT_EQ(play.where("second"), play.where("first"));
    EXPECT_EQ((play.runs("crumb1") ? 1 : 0) + (play.runs("crumb2") ? 1 : 0), 1) << "one of the two nodes is enough";
}

}  // namespace
}  // namespace bulkhead::sched
