// The rules of placement and of turns, as their users know them. Reclaim and its relatives: disturbance_test.cpp.
#include "bulkhead/sched/engine_test.hpp"

namespace bulkhead::sched {
namespace {

TEST(Engine, one_task_goes_to_the_node_that_is_fuller) {
    Play play;
    play.tenants({team("a")});
    play.node({.name = "n1"});
    play.node({.name = "n2"});
    play.run({.name = "first", .gpus = 6});
    play.run({.name = "second", .gpus = 2});
    EXPECT_EQ(play.where("second"), play.where("first"));
}

TEST(Engine, a_gang_starts_whole_or_not_at_all) {
    Play play;
    play.tenants({team("a")});
    play.node({.name = "n1"});
    play.node({.name = "n2"});
    play.submit({.name = "gang", .gpus = 8, .tasks = 3});
    play.cycle();
    EXPECT_FALSE(play.runs("gang"));
    play.node({.name = "n3"});
    play.cycle();
    EXPECT_TRUE(play.runs("gang"));
    EXPECT_EQ(play.where("gang").size(), 3u);
}

TEST(Engine, a_gang_takes_whole_nodes_first_and_the_tightest_last) {
    Play play;
    play.tenants({team("a")});
    for (const char* name : {"n1", "n2", "n3"}) play.node({.name = name});
    play.run({.name = "half", .gpus = 4});
    play.run({.name = "gang", .gpus = 4, .tasks = 3});
    EXPECT_EQ(play.where("gang").size(), 2u);
    EXPECT_TRUE(play.is_on("gang", play.where("half").front()));
}

TEST(Engine, within_is_kept_and_the_tightest_domain_is_taken) {
    Play play;
    play.tenants({team("a")});
    for (const char* name : {"a1", "a2", "a3"}) play.node({.name = name, .leaf = "a"});
    for (const char* name : {"b1", "b2"}) play.node({.name = name, .leaf = "b"});
    play.run({.name = "gang", .gpus = 8, .tasks = 2, .within = TopologyLevel::leaf});
    EXPECT_EQ(play.where("gang"), (Names{"b1", "b2"}));
    play.submit({.name = "four", .gpus = 8, .tasks = 4, .within = TopologyLevel::leaf});
    play.cycle();
    EXPECT_FALSE(play.runs("four"));
    EXPECT_TRUE(play.waits_for("four", "wait.within"));
}

TEST(Engine, prefer_is_kept_where_it_can_be) {
    Play play;
    play.tenants({team("a")});
    for (const char* name : {"a1", "b1", "b2", "b3"}) play.node({.name = name, .leaf = std::string{name[0]}});
    play.run({.name = "near", .gpus = 8, .tasks = 2, .prefer = TopologyLevel::leaf});
    EXPECT_EQ(play.where("near"), (Names{"b1", "b2"}));
    play.run({.name = "apart", .gpus = 8, .tasks = 2, .prefer = TopologyLevel::leaf});
    EXPECT_EQ(play.where("apart"), (Names{"a1", "b3"}));
}

TEST(Engine, what_is_preferred_does_not_reach_beyond_what_must_be_kept_to) {
    // A leaf that spans two racks has room for both tasks; no rack's part of it has.
    Play play;
    play.tenants({team("a")});
    play.node({.name = "n1", .rack = "x", .leaf = "l"});
    play.node({.name = "n2", .rack = "y", .leaf = "l"});
    play.submit({.name = "gang", .gpus = 8, .tasks = 2, .within = TopologyLevel::rack, .prefer = TopologyLevel::leaf});
    play.cycle();
    EXPECT_FALSE(play.runs("gang"));
    play.node({.name = "n3", .rack = "y", .leaf = "m"});
    play.cycle();
    EXPECT_EQ(play.where("gang"), (Names{"n2", "n3"}));
}

TEST(Engine, a_node_of_many_gpus_is_used_to_the_last_share) {
    Play play;
    play.tenants({team("a")});
    play.node({.name = "n1", .gpus = 40});
    for (int i = 0; i < 80; ++i) play.run({.name = "s" + std::to_string(i), .share = 500});
    EXPECT_EQ(play.engine.held(0), 40 * gpu_unit);
}

TEST(Engine, groups_of_a_gang_stay_together) {
    Play play;
    play.tenants({team("a")});
    for (const char* name : {"a1", "a2", "a3", "b1", "b2", "b3"})
        play.node({.name = name, .leaf = std::string{name[0]}});
    // Six nodes in two leaves of three hold two groups of two, not three.
    play.submit({.name = "three",
                 .gpus = 8,
                 .tasks = 6,
                 .within = TopologyLevel::zone,
                 .group = 2,
                 .group_within = TopologyLevel::leaf});
    play.submit({.name = "two",
                 .gpus = 8,
                 .tasks = 4,
                 .within = TopologyLevel::zone,
                 .group = 2,
                 .group_within = TopologyLevel::leaf});
    play.cycle();
    EXPECT_FALSE(play.runs("three"));
    ASSERT_TRUE(play.runs("two"));
    EXPECT_EQ(play.where("two").size(), 4u);
}

TEST(Engine, an_elastic_gang_starts_with_what_is_there_and_grows) {
    Play play;
    play.tenants({team("a")});
    play.node({.name = "n1"});
    play.run({.name = "other", .gpus = 4});
    play.submit({.name = "elastic", .gpus = 1, .tasks = 8, .least = 2});
    play.cycle();
    EXPECT_EQ(play.engine.seats(play.jobs.at("elastic")).size(), 4u);
    play.engine.finish(play.jobs.at("other"));
    play.cycle();
    EXPECT_EQ(play.engine.seats(play.jobs.at("elastic")).size(), 8u);
}

TEST(Engine, fractions_share_a_gpu_and_never_more_than_all_of_it) {
    Play play;
    play.tenants({team("a")});
    play.node({.name = "n1", .gpus = 2});
    for (const char* name : {"x", "y", "z"}) play.run({.name = name, .share = 500});
    std::vector<std::uint16_t> gpus;
    for (const char* name : {"x", "y", "z"}) gpus.push_back(play.engine.seats(play.jobs.at(name)).front().gpus.front());
    EXPECT_EQ(gpus[0], gpus[1]);
    EXPECT_NE(gpus[0], gpus[2]);
}

TEST(Engine, the_48_clients_of_an_mps_server_are_counted_over_all_workloads_and_tasks) {
    Play play;
    play.tenants({team("a")});
    play.node({.name = "n1", .gpus = 1});
    play.run({.name = "x", .tasks = 40, .share = 10});
    play.submit({.name = "y", .tasks = 40, .share = 10});
    play.cycle();
    EXPECT_FALSE(play.runs("y")) << "eighty clients of one server";
    play.run({.name = "z", .tasks = 8, .share = 10});
    play.submit({.name = "one more", .share = 10});
    play.cycle();
    EXPECT_FALSE(play.runs("one more"));
    play.engine.finish(play.jobs.at("x"));
    play.cycle();
    EXPECT_TRUE(play.runs("y"));
    EXPECT_FALSE(play.runs("one more"));
}

TEST(Engine, large_shares_need_no_count_of_mps_clients) {
    Play play;
    play.tenants({team("a")});
    play.node({.name = "n1", .gpus = 2});
    play.run({.name = "x", .tasks = 2, .share = 400});
    play.run({.name = "y", .tasks = 40, .share = 5});
    std::vector<std::int64_t> clients(2);
    for (const char* name : {"x", "y"})
        for (const TaskSeat& task : play.engine.seats(play.jobs.at(name))) ++clients[task.gpus.front()];
    for (const std::int64_t count : clients) EXPECT_LE(count, 48);
    EXPECT_EQ(clients[0] + clients[1], 42);
}

TEST(Engine, a_large_share_is_one_client_of_its_mps_server) {
    Play play;
    play.tenants({team("a")});
    play.node({.name = "n1", .gpus = 1});
    play.run({.name = "x", .share = 600});
    play.run({.name = "y", .tasks = 30, .share = 10});
    play.run({.name = "z", .tasks = 17, .share = 1});
    play.submit({.name = "the 49th", .share = 1});
    play.cycle();
    EXPECT_FALSE(play.runs("the 49th"));
}

TEST(Engine, no_work_ends_for_clients_that_an_mps_server_still_takes) {
    Play play;
    play.tenants({team("a", 1), team("b")});
    play.node({.name = "n1", .gpus = 2});
    play.run({.name = "x", .share = 600});
    play.run({.name = "z", .tenant = 1});
    play.later(Duration::hours(1));
    play.submit({.name = "y", .tasks = 30, .share = 10});
    play.cycle();
    EXPECT_TRUE(play.runs("y"));
    EXPECT_TRUE(play.last.evict.empty());
}

// One lease holds the shares of fifty tasks on two GPUs: 40 on the first, 10 on the second.
TEST(Engine, clients_of_leases_that_are_there_are_counted_gpu_by_gpu) {
    Play play;
    play.tenants({team("a")});
    Node node = node_of({.name = "n1", .gpus = 2});
    for (std::size_t gpu = 0; gpu < 2; ++gpu) {
        node.gpus[gpu].available = 0;
        node.gpus[gpu].held = 0xFF;
        node.gpus[gpu].seats.push_back(
            {.lease = 7, .size = 8, .profile = {}, .share = gpu == 0 ? 400 : 100, .mechanism = Mechanism::mps});
    }
    node.residents.push_back({.lease = 7,
                              .tenant = 0,
                              .node = PeerTrust::same_domain,
                              .gpu = PeerTrust::same_domain,
                              .instance = PeerTrust::same_domain,
                              .nvlink = PeerTrust::same_domain,
                              .tasks = 50});
    play.nodes.push_back("n1");
    play.engine.add_node(node);
    play.run({.name = "y", .tasks = 46, .share = 1});
    std::vector<int> clients(2);
    for (const TaskSeat& task : play.engine.seats(play.jobs.at("y"))) ++clients[task.gpus.front()];
    EXPECT_EQ(clients, (std::vector<int>{8, 38}));
    play.submit({.name = "one more", .share = 1});
    play.cycle();
    EXPECT_FALSE(play.runs("one more"));
}

TEST(Engine, a_slice_goes_where_it_leaves_the_most) {
    Play play;
    play.tenants({team("a")});
    play.node({.name = "n1", .gpus = 1});
    play.run({.name = "three", .profile = "3g.40gb"});
    EXPECT_EQ(play.engine.seats(play.jobs.at("three")).front().seats.front().start, 4);
    play.run({.name = "four", .profile = "4g.40gb"});
    play.submit({.name = "one", .profile = "1g.10gb"});
    play.cycle();
    EXPECT_FALSE(play.runs("one"));
}

TEST(Engine, dirty_slices_are_no_candidates) {
    Play play{{.wipes = true}};
    play.tenants({team("a")});
    play.node({.name = "n1", .gpus = 1});
    play.run({.name = "first"});
    play.engine.finish(play.jobs.at("first"));
    play.submit({.name = "second"});
    play.cycle();
    EXPECT_FALSE(play.runs("second"));
    EXPECT_TRUE(play.waits_for("second", "wait.wiping"));
    play.engine.clean(0, 0, 0xFF);
    play.cycle();
    EXPECT_TRUE(play.runs("second"));
}

TEST(Engine, strangers_never_share_a_node_unless_both_are_in_virtual_machines) {
    const SharingScope open{PeerTrust::distrusting, PeerTrust::distrusting, PeerTrust::same_tenant,
                            PeerTrust::distrusting};
    for (const bool host_kernel : {true, false}) {
        Play play;
        std::vector<TenantFacts> facts{team("a"), team("b")};
        facts[0].domain = 1;
        facts[1].domain = 2;
        play.tenants(facts);
        play.node({.name = "n1", .gpus = 2});
        play.run({.name = "a", .tenant = 0, .sharing = open, .on_host_kernel = host_kernel});
        play.submit({.name = "b", .tenant = 1, .sharing = open, .on_host_kernel = host_kernel});
        play.cycle();
        EXPECT_EQ(play.runs("b"), !host_kernel);
    }
}

TEST(Engine, a_domain_shares_nodes_only_as_far_as_each_bears_it) {
    const SharingScope alone{PeerTrust::same_tenant, PeerTrust::same_tenant, PeerTrust::same_tenant,
                             PeerTrust::same_tenant};
    Play play;
    play.tenants({team("a"), team("b")});  // one domain
    play.node({.name = "n1", .gpus = 4});
    play.node({.name = "n2", .gpus = 4});
    play.run({.name = "a", .tenant = 0, .sharing = alone});
    play.run({.name = "b", .tenant = 1});
    EXPECT_NE(play.where("a"), play.where("b"));
    play.run({.name = "more of a", .tenant = 0, .gpus = 3, .sharing = alone});
    EXPECT_EQ(play.where("more of a"), play.where("a"));
    play.submit({.name = "alone", .tenant = 0, .sharing = alone});
    play.cycle();
    EXPECT_FALSE(play.runs("alone"));  // n2 has room, and somebody else on it
    EXPECT_TRUE(play.waits_for("alone", "wait.neighbours"));
}

TEST(Engine, a_fabric_in_one_piece_belongs_to_one_tenant_across_its_nodes) {
    Play play{{.moves = 0}};  // otherwise the two would swap places
    std::vector<TenantFacts> facts{team("a"), team("b")};
    facts[0].domain = 1;
    facts[1].domain = 2;
    play.tenants(facts);
    for (const char* name : {"n1", "n2", "n3"}) {
        Node node = node_of({.name = name});
        node.board_is_one = true;
        if (node.name != "n3") node.nvlink_domain = "rack";
        play.nodes.push_back(name);
        play.engine.add_node(node);
    }
    play.run({.name = "a", .tenant = 0, .gpus = 8});
    play.run({.name = "b", .tenant = 1, .gpus = 8});
    EXPECT_EQ(play.where("b"), (Names{"n3"}));
    play.submit({.name = "b2", .tenant = 1, .gpus = 8});
    play.cycle();
    EXPECT_FALSE(play.runs("b2"));
    play.run({.name = "a2", .tenant = 0, .gpus = 8});
    EXPECT_EQ(play.where("a2"), (Names{"n2"}));
}

// --- quota -----------------------------------------------------------------------------------------------------------

TEST(Quota, a_limit_holds_at_every_level) {
    Play play;
    std::vector<TenantFacts> facts{team("dept"), team("x"), team("y")};
    facts[0].limit = Gpus::whole(3);
    facts[1].parent = 0;
    facts[2].parent = 0;
    play.tenants(facts);
    play.node({.name = "n1"});
    play.run({.name = "x", .tenant = 1, .gpus = 2});
    play.submit({.name = "y", .tenant = 2, .gpus = 2});
    play.cycle();
    EXPECT_FALSE(play.runs("y"));
    EXPECT_EQ(play.codes("y").front(), "wait.parent-quota");
    play.run({.name = "y1", .tenant = 2, .gpus = 1});
}

TEST(Quota, a_hard_partition_is_never_lent_and_never_exceeded) {
    Play play;
    std::vector<TenantFacts> facts{team("hard", 4), team("soft")};
    facts[0].hard = true;
    play.tenants(facts);
    play.node({.name = "n1"});
    for (int i = 0; i < 6; ++i) play.submit({.name = "s" + std::to_string(i), .tenant = 1});
    play.cycle();
    EXPECT_EQ(play.engine.held(1), 4 * gpu_unit);
    play.submit({.name = "big", .tenant = 0, .gpus = 5});
    play.cycle();
    EXPECT_FALSE(play.runs("big"));
    play.run({.name = "fits", .tenant = 0, .gpus = 4});
}

TEST(Quota, work_that_may_not_be_preempted_stays_within_the_guarantee) {
    Play play;
    play.tenants({team("a", 2)});
    play.node({.name = "n1"});
    play.run({.name = "pinned", .gpus = 2, .preemptible = false});
    play.submit({.name = "too much", .gpus = 1, .preemptible = false});
    play.cycle();
    EXPECT_FALSE(play.runs("too much"));
    EXPECT_EQ(play.codes("too much").front(), "wait.pinned");
    play.run({.name = "preemptible", .gpus = 4});
}

TEST(Quota, seven_sevenths_of_a_gpu_are_one_gpu) {
    Play play;
    std::vector<TenantFacts> facts{team("a", 1), team("b", 7)};
    facts[0].limit = Gpus::whole(1);
    facts[0].hard = true;
    play.tenants(facts);
    play.node({.name = "n1"});
    for (int i = 0; i < 8; ++i) play.submit({.name = "s" + std::to_string(i), .profile = "1g.10gb"});
    play.cycle();
    for (int i = 0; i < 7; ++i) EXPECT_TRUE(play.runs("s" + std::to_string(i))) << i;
    EXPECT_FALSE(play.runs("s7"));
    EXPECT_EQ(play.engine.held(0), 1 * gpu_unit);
}

// --- turns -----------------------------------------------------------------------------------------------------------

TEST(Turns, equals_share_equally) {
    Play play;
    play.tenants({team("a"), team("b")});
    play.node({.name = "n1"});
    for (int i = 0; i < 8; ++i) play.submit({.name = "a" + std::to_string(i), .tenant = 0});
    for (int i = 0; i < 8; ++i) play.submit({.name = "b" + std::to_string(i), .tenant = 1});
    play.cycle();
    EXPECT_EQ(play.engine.held(0), 4 * gpu_unit);
    EXPECT_EQ(play.engine.held(1), 4 * gpu_unit);
}

TEST(Turns, weights_and_guarantees_decide_what_is_due) {
    Play play;
    play.tenants({team("a", 4, 1), team("b", 0, 3)});
    play.node({.name = "n1"});
    for (int i = 0; i < 8; ++i) play.submit({.name = "a" + std::to_string(i), .tenant = 0});
    for (int i = 0; i < 8; ++i) play.submit({.name = "b" + std::to_string(i), .tenant = 1});
    play.cycle();
    EXPECT_EQ(play.engine.held(0), 5 * gpu_unit);  // 4 guaranteed, and a quarter of the rest
    EXPECT_EQ(play.engine.held(1), 3 * gpu_unit);
}

TEST(Turns, whoever_used_less_of_its_share_goes_first) {
    Play play;
    std::vector<TenantFacts> facts{team("heavy"), team("light")};
    facts[0].usage = 1000;
    facts[1].usage = 10;
    play.tenants(facts);
    play.node({.name = "n1", .gpus = 1});
    play.submit({.name = "h", .tenant = 0});
    play.submit({.name = "l", .tenant = 1});
    play.cycle();
    EXPECT_EQ(play.bound(), (Names{"l"}));
}

TEST(Turns, priority_before_age_and_age_before_the_rest) {
    Play play;
    play.tenants({team("a")});
    play.node({.name = "n1", .gpus = 2});
    play.submit({.name = "old"});
    play.later(Duration{1000});
    play.submit({.name = "young"});
    play.submit({.name = "urgent", .priority = 10});
    play.cycle();
    EXPECT_EQ(play.bound(), (Names{"urgent", "old"}));
}

TEST(Turns, a_near_deadline_raises_priority_within_the_grant) {
    Play play;
    std::vector<TenantFacts> facts{team("a")};
    facts[0].grant = 50;
    play.tenants(facts);
    play.node({.name = "n1", .gpus = 1});
    const Duration hour = Duration::hours(1);
    play.submit({.name = "important", .priority = 40});
    play.submit({.name = "soon", .duration = hour, .deadline = play.now + Duration{hour.ms + 60'000}});
    play.submit({.name = "too late", .priority = 39, .duration = hour, .deadline = play.now + Duration{60'000}});
    play.cycle();
    EXPECT_EQ(play.bound(), (Names{"soon"}));
    play.engine.finish(play.jobs.at("soon"));
    play.cycle();
    EXPECT_EQ(play.bound(), (Names{"important"}));
}

TEST(Turns, what_one_cannot_use_another_may) {
    Play play;
    play.tenants({team("a"), team("b")});
    play.node({.name = "n1", .gpus = 4});
    play.node({.name = "n2", .gpus = 4});
    play.submit({.name = "gang", .tenant = 0, .gpus = 8});  // no node has eight
    for (int i = 0; i < 8; ++i) play.submit({.name = "b" + std::to_string(i), .tenant = 1});
    play.settle();
    EXPECT_EQ(play.engine.held(1), 8 * gpu_unit);
}

// --- reservations ----------------------------------------------------------------------------------------------------

TEST(Backfill, a_large_gang_is_not_starved_by_small_work) {
    Play play;
    play.tenants({team("a")});
    play.node({.name = "n1", .gpus = 4});
    play.node({.name = "n2", .gpus = 4});
    int next = 0;
    const auto small = [&] { play.submit({.name = "s" + std::to_string(next++)}); };
    for (int i = 0; i < 8; ++i) small();
    play.cycle();
    play.submit({.name = "gang", .gpus = 4});
    std::vector<int> order{0, 1, 2, 3, 4, 5, 6, 7};
    // One small job ends at a time, and two new ones come: without a reservation four GPUs of a node are never free.
    int rounds = 0;
    for (int ended = 0; !play.runs("gang") && rounds < 12; ++rounds) {
        play.later(Duration{300'000});
        while (ended < next && !play.runs("s" + std::to_string(ended))) ++ended;
        if (ended < next) play.engine.finish(play.jobs.at("s" + std::to_string(ended++)));
        small();
        small();
        play.cycle();
    }
    EXPECT_TRUE(play.runs("gang"));
}

TEST(Backfill, short_work_may_use_what_is_kept) {
    Play play;
    play.tenants({team("a")});
    play.node({.name = "n1", .gpus = 8});
    play.run({.name = "running", .gpus = 4, .duration = Duration::hours(2)});
    play.submit({.name = "gang", .gpus = 8});
    play.submit({.name = "short", .gpus = 2, .duration = Duration::hours(1)});
    play.submit({.name = "long", .gpus = 2, .duration = Duration::hours(3)});
    play.cycle();
    EXPECT_EQ(play.bound(), (Names{"short"}));
    EXPECT_TRUE(play.last.bind.front().backfilled);
    EXPECT_EQ(play.engine.why(play.jobs.at("gang"), play.now).expected_ms, (play.now + Duration::hours(2)).ms);
    play.engine.finish(play.jobs.at("running"));
    play.engine.finish(play.jobs.at("short"));
    play.cycle();
    EXPECT_TRUE(play.runs("gang"));
}

}  // namespace
}  // namespace bulkhead::sched
