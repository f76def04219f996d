// Turns see use of the last moments, and dues come in whole GPUs where nothing else is asked for.
#include "bulkhead/sched/engine_test.hpp"

namespace bulkhead::sched {
namespace {

// Which tenant's jobs ran, one after the other, each for so long.
std::string order_of(std::vector<TenantFacts> facts, Duration each) {
    Play play;
    play.tenants(std::move(facts));
    play.node({.name = "n1", .gpus = 1});
    for (int i = 0; i < 3; ++i) play.submit({.name = "a" + std::to_string(i), .tenant = 0});
    for (int i = 0; i < 3; ++i) play.submit({.name = "b" + std::to_string(i), .tenant = 1});
    std::string out;
    for (int i = 0; i < 6; ++i) {
        play.cycle();
        if (play.last.bind.size() != 1) return out + "?";
        const std::string name = play.bound().front();
        out += name.front();
        play.later(each);
        play.engine.finish(play.jobs.at(name));
    }
    return out;
}

TEST(Turns, tenants_with_equal_claims_alternate_however_short_their_jobs_are) {
    for (const std::int64_t ms : {1, 10, 200, 999, 1000, 20'000, 3'600'000}) {
        EXPECT_EQ(order_of({team("a"), team("b")}, Duration{ms}), "ababab") << ms;
        std::vector<TenantFacts> halves{team("a"), team("b")};
        for (TenantFacts& each : halves) each.guarantee = Gpus::of_thousandths(500);
        EXPECT_EQ(order_of(halves, Duration{ms}), "ababab") << ms;
        // Guarantees that cannot all be kept at once take turns too.
        EXPECT_EQ(order_of({team("a", 1), team("b", 1)}, Duration{ms}), "ababab") << ms;
    }
}

TEST(Turns, ties_go_by_name_whatever_the_order_in_the_list) {
    Play play;
    play.tenants({team("z"), team("a")});
    play.node({.name = "n1", .gpus = 1});
    play.submit({.name = "zj", .tenant = 0});
    play.submit({.name = "aj", .tenant = 1});
    play.cycle();
    EXPECT_TRUE(play.runs("aj"));
}

TEST(Turns, use_given_in_milliseconds_counts) {
    Play play;
    std::vector<TenantFacts> facts{team("a"), team("b")};
    facts[0].usage_ms = 1;
    play.tenants(facts);
    play.node({.name = "n1", .gpus = 1});
    play.submit({.name = "aj", .tenant = 0});
    play.submit({.name = "bj", .tenant = 1});
    play.cycle();
    EXPECT_TRUE(play.runs("bj"));
}

// Three GPUs, 1.5 each. In exact shares neither tenant could have a job of two GPUs, and the third GPU would idle.
TEST(WholeGpus, no_gpu_idles_while_both_sides_are_short) {
    Play play;
    play.tenants({team("a"), team("b")});
    play.node({.name = "n1", .gpus = 3});
    play.run({.name = "a1", .tenant = 0});
    play.run({.name = "a2", .tenant = 0});
    play.submit({.name = "pair of a", .tenant = 0, .gpus = 2});
    play.submit({.name = "pair of b", .tenant = 1, .gpus = 2});
    play.settle();
    EXPECT_TRUE(play.runs("pair of b"));
    EXPECT_EQ(Gpus{play.engine.held(0)}, Gpus::whole(1));
    EXPECT_EQ(Gpus{play.engine.held(1)}, Gpus::whole(2));
    for (int i = 0; i < 20; ++i) {
        play.later(Duration{600'000});
        EXPECT_TRUE(play.cycle().quiet()) << i;
    }
}

TEST(WholeGpus, dues_are_whole_unless_a_job_asks_for_a_part) {
    Play play;
    play.tenants({team("a"), team("b"), team("c")});
    play.node({.name = "n1"});
    for (TenantNo tenant = 0; tenant < 3; ++tenant)
        for (int i = 0; i < 8; ++i)
            play.submit({.name = std::to_string(tenant) + "." + std::to_string(i), .tenant = tenant});
    play.cycle();
    std::int64_t sum = 0;
    for (TenantNo tenant = 0; tenant < 3; ++tenant) {
        sum += play.engine.due(tenant);
        EXPECT_EQ(play.engine.due(tenant) % gpu_unit, 0);
    }
    EXPECT_EQ(Gpus{sum}, Gpus::whole(8));
    play.submit({.name = "part", .tenant = 0, .share = 500});
    play.cycle();
    EXPECT_NE(play.engine.due(1) % gpu_unit, 0);
    play.engine.finish(play.jobs.at("part"));
    play.cycle();
    EXPECT_EQ(play.engine.due(1) % gpu_unit, 0);
}

// A GPU that only rounding gave away does not change hands as time passes and usage grows.
TEST(WholeGpus, rounding_takes_nothing_from_a_tenant_that_holds_it) {
    Play play;
    play.tenants({team("a"), team("b")});
    play.node({.name = "n1", .gpus = 5});
    for (int i = 0; i < 5; ++i) play.run({.name = "a" + std::to_string(i), .tenant = 0});
    for (int i = 0; i < 5; ++i) play.submit({.name = "b" + std::to_string(i), .tenant = 1});
    play.settle();
    EXPECT_EQ(Gpus{play.engine.held(0)}, Gpus::whole(3));
    EXPECT_EQ(Gpus{play.engine.held(1)}, Gpus::whole(2));
    for (int i = 0; i < 50; ++i) {
        play.later(Duration{3'600'000});
        EXPECT_TRUE(play.cycle().quiet()) << i;
    }
}

}  // namespace
}  // namespace bulkhead::sched
