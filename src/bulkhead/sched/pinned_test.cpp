// Work that may not be preempted stays inside what its tenant is entitled to, and leaves every guarantee a node.
#include <random>
#include <string>
#include <vector>

#include "bulkhead/sched/engine_test.hpp"
#include "bulkhead/sched/play_test.hpp"

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

// Nodes of several sizes: what is fixed on a small node first does not lock its owner out of the rest.
TEST(Pinned, work_within_its_guarantee_is_not_locked_out_by_where_it_started) {
    const std::string_view scenes[] = {
        "kind: Cluster\n"
        "tenants: [{name: bank, domain: d0, guarantee: 6}]\n"
        "nodes: [{name: large, gpus: 8, canReboot: true}, {name: small, gpus: 4, canReboot: true}]\n"
        "jobs: [{name: f, tenant: bank, count: 6, gpus: 1, preemptible: false}]\n",
        "kind: Cluster\n"
        "tenants: [{name: bank, domain: d0, guarantee: 6}, {name: free, domain: x}]\n"
        "nodes: [{name: large, gpus: 8, canReboot: true}, {name: small, gpus: 4, canReboot: true}]\n"
        "jobs:\n"
        "  - {name: crumb, tenant: free, gpus: 1, on: [large], ran: 2h}\n"
        "  - {name: f, tenant: bank, count: 6, gpus: 1, preemptible: false, waited: 1h}\n",
    };
    for (const std::string_view text : scenes) {
        const Told after = told(text);
        EXPECT_TRUE(after.played.settled);
        const std::vector<std::string> running = after.running();
        EXPECT_EQ(std::ranges::count_if(running, [](const std::string& name) { return name.starts_with("f-"); }), 6)
            << text;
    }
}

TEST(Pinned, work_leaves_the_small_node_where_another_guarantee_needs_no_more) {
    // Six GPUs need the large node, because four of the small one are guaranteed to the other.
    const Told after = told(
        "kind: Cluster\n"
        "tenants: [{name: bank, domain: d0, guarantee: 6}, {name: lab, domain: d1, guarantee: 4}]\n"
        "nodes: [{name: large, gpus: 8, canReboot: true}, {name: small, gpus: 4, canReboot: true}]\n"
        "jobs:\n"
        "  - {name: f, tenant: bank, count: 6, gpus: 1, preemptible: false, waited: 1h}\n"
        "  - {name: g, tenant: lab, count: 4, gpus: 1, preemptible: false}\n");
    EXPECT_EQ(after.running().size(), 10u);
}

// The one node that a site serves is left to the guarantee that may not be kept elsewhere.
TEST(Pinned, a_start_leaves_every_guarantee_a_node_where_it_may_be_kept) {
    for (const bool american_first : {true, false}) {
        Play play;
        TenantFacts american = in_domain(2, team("american", 8));
        american.sites = {"us"};
        play.tenants({in_domain(1, team("anywhere", 8)), american});
        for (const char* site : {american_first ? "us" : "eu", american_first ? "eu" : "us"}) {
            Node node = node_of(NodeRow{.name = site});
            node.site = site;
            play.nodes.push_back(site);
            play.engine.add_node(node);
        }
        play.run({.name = "fixed", .tenant = 0, .gpus = 8, .preemptible = false});
        EXPECT_EQ(play.where("fixed"), (Names{"eu"}));
    }
}

TEST(Pinned, a_start_leaves_whole_nodes_to_a_guarantee_of_nodes) {
    Play play{{.moves = 0}};  // otherwise the work beside the first would move
    TenantFacts nodes = team("nodes", 8);
    nodes.node_gpus = 8;
    nodes.least_node = 1;
    play.tenants({in_domain(1, nodes), in_domain(1, team("gpus", 8))});
    play.node({.name = "n1"});
    play.node({.name = "n2"});
    play.run({.name = "b1", .tenant = 1, .gpus = 3, .preemptible = false});
    play.run({.name = "filler", .tenant = 1, .gpus = 5, .priority = 9});
    ASSERT_EQ(play.where("filler"), play.where("b1"));
    play.submit({.name = "b2", .tenant = 1, .gpus = 4, .preemptible = false});
    play.cycle();
    EXPECT_FALSE(play.runs("b2")) << "neither node would be a whole one";
    play.run({.name = "a1", .tenant = 0, .gpus = 2, .preemptible = false});
    EXPECT_NE(play.where("a1"), play.where("b1"));
    play.run({.name = "a2", .tenant = 0, .gpus = 6, .preemptible = false});
    EXPECT_EQ(play.where("a2"), play.where("a1"));
}

// The engine counts nodes as work comes and goes. An engine that is given the same running work allows the same starts.
TEST(Pinned, starts_depend_on_the_work_that_runs_and_not_on_its_history) {
    int allowed = 0, refused = 0;
    for (unsigned seed = 0; seed < 30; ++seed) {
        std::mt19937 random{seed};
        const auto number = [&](int least, int most) { return std::uniform_int_distribution{least, most}(random); };
        std::vector<TenantFacts> facts;
        for (unsigned i = 0; i < 3; ++i) facts.push_back(in_domain(i + 1, team("t", number(2, 10))));
        std::vector<NodeRow> nodes;
        for (int i = 0; i < 5; ++i)
            nodes.push_back({.name = "n" + std::to_string(i), .gpus = std::size_t{1} << number(1, 3)});
        const auto draw = [&](Play& play) {
            play.tenants(facts);
            for (const NodeRow& node : nodes) play.node(node);
        };
        Play play;
        draw(play);
        std::vector<JobRow> running;
        for (int step = 0; step < 60; ++step) {
            if (!running.empty() && number(0, 2) == 0) {
                const auto ends = running.begin() + number(0, static_cast<int>(running.size()) - 1);
                play.engine.finish(play.jobs.at(ends->name));
                running.erase(ends);
            } else {
                JobRow row{.name = "j" + std::to_string(step), .tenant = static_cast<TenantNo>(number(0, 2))};
                row.preemptible = number(0, 2) == 0;
                if (number(0, 1) == 0) row.share = 500;
                const JobNo job = play.submit(row);
                if (play.engine.allocate(job, play.now))
                    running.push_back(row);
                else
                    play.engine.finish(job);
            }
            Play anew;
            draw(anew);
            for (const JobRow& row : running)
                anew.engine.adopt(anew.submit(row), play.engine.seats(play.jobs.at(row.name)), play.now);
            for (TenantNo tenant = 0; tenant < 3; ++tenant) {
                const auto starts = [&](Play& in) {
                    const JobNo probe = in.submit({.name = "probe", .tenant = tenant, .preemptible = false});
                    const bool did = in.engine.allocate(probe, in.now);
                    in.engine.finish(probe);
                    return did;
                };
                const bool did = starts(play);
                ++(did ? allowed : refused);
                ASSERT_EQ(did, starts(anew)) << "seed " << seed << ", step " << step << ", tenant " << tenant;
            }
        }
    }
    EXPECT_GT(allowed, 500);
    EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace bulkhead::sched
