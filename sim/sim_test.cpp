// The simulation itself: it passes where nothing is wrong, it repeats to the last event, and it catches a bug planted
// for each invariant within a stated number of seeds.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/world.hpp"

namespace bulkhead::sim {
namespace {

Spec shortened(std::string_view name) {
    Spec spec = *find_spec(name);
    spec.length = Duration::hours(3);
    spec.calm = Duration{5'400'000};
    return spec;
}

std::string words_of(const RunResult& result) {
    std::string all;
    for (const Violation& violation : result.violations)
        all += "seed " + std::to_string(result.seed) + ": invariant " + std::to_string(violation.invariant) + ": " +
               violation.what + "\n";
    return all;
}

TEST(Simulation, twenty_seeds_of_a_crowded_world_hold_every_invariant_under_every_fault) {
    const Spec spec = shortened("small");
    std::map<std::string, std::uint64_t> faults, probes;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const RunResult result = run(spec, seed);
        EXPECT_TRUE(result.violations.empty()) << words_of(result);
        for (const auto& [name, count] : result.faults) faults[name] += count;
        for (const auto& [name, count] : result.probes) probes[name] += count;
    }
    for (const char* name : {"power cut", "second leader", "agent killed", "wipe lies", "message lost", "partition",
                             "gpu drained", "memory stuck", "fence falls"})
        EXPECT_GT(faults[name], 0u) << name << " never happened";
    for (const char* name : {"record draining", "a drain was over", "a GPU was reset", "record compliance-on",
                             "a node was kept away for its fences", "covered time was billed", "a bill was checked"})
        EXPECT_GT(probes[name], 0u) << name << ": never";
}

TEST(Simulation, the_whole_world_holds_for_one_seed_of_each_kind_of_fault) {
    for (const char* name : {"default", "network", "disk", "nodes", "restore"}) {
        Spec spec = shortened(name);
        spec.nodes = 8;
        const RunResult result = run(spec, 7);
        EXPECT_TRUE(result.violations.empty()) << name << "\n" << words_of(result);
    }
}

TEST(Simulation, guaranteed_capacity_comes_back_within_the_bound) {
    std::map<std::string, std::uint64_t> faults, probes;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        const RunResult result = run(shortened("guarantees"), seed);
        EXPECT_TRUE(result.violations.empty()) << words_of(result);
        for (const auto& [name, count] : result.faults) faults[name] += count;
        for (const auto& [name, count] : result.probes) probes[name] += count;
    }
    for (const char* name : {"node lost", "limit lowered", "node drained"}) EXPECT_GT(faults[name], 0u) << name;
    for (const char* name : {"a guaranteed claim waited", "a guaranteed claim was served after a reclaim"})
        EXPECT_GT(probes[name], 0u) << name << ": never";
}

TEST(Simulation, one_seed_is_one_run) {
    const Spec spec = shortened("small");
    const RunResult a = run(spec, 5), b = run(spec, 5), c = run(spec, 6);
    EXPECT_EQ(a.events, b.events);
    EXPECT_EQ(a.faults, b.faults);
    EXPECT_EQ(a.probes, b.probes);
    EXPECT_NE(a.events, c.events);
}

struct Plant {
    Planted bug;
    int invariant;
    std::uint64_t seeds;  // within so many it must be found
    std::string_view spec = "small";
    std::uint64_t first = 1;  // the first seed that is tried: with rarer bugs, later ones save time
};

class Planting : public testing::TestWithParam<Plant> {};

TEST_P(Planting, is_caught_within_the_stated_number_of_seeds) {
    Spec spec = shortened(GetParam().spec);
    spec.nodes = std::min(spec.nodes, 8u);
    spec.planted = GetParam().bug;
    for (std::uint64_t seed = GetParam().first; seed < GetParam().first + GetParam().seeds; ++seed) {
        const RunResult result = run(spec, seed);
        for (const Violation& violation : result.violations)
            if (violation.invariant == GetParam().invariant) {
                std::cout << "found with seed " << seed << ": " << violation.what << "\n";
                return;
            }
        ASSERT_TRUE(result.violations.empty()) << "something else was found first\n" << words_of(result);
    }
    FAIL() << "not found within " << GetParam().seeds << " seeds from " << GetParam().first;
}

INSTANTIATE_TEST_SUITE_P(Bugs, Planting,
                         testing::Values(Plant{Planted::lease_twice, 1, 3}, Plant{Planted::believe_failed_wipes, 2, 5},
                                         Plant{Planted::ignore_neighbours, 3, 3}, Plant{Planted::answer_early, 4, 3},
                                         Plant{Planted::start_early, 5, 5, "nodes"}, Plant{Planted::ignore_quota, 6, 3},
                                         Plant{Planted::evict_for_nothing, 7, 3},
                                         Plant{Planted::forget_log_entry, 8, 1}, Plant{Planted::ignore_drains, 9, 3},
                                         Plant{Planted::cover_silence, 11, 6, "network", 6},
                                         Plant{Planted::draw_blindly, 12, 12},
                                         Plant{Planted::serve_by_due_alone, 6, 8, "guarantees"},
                                         Plant{Planted::keep_host_history, 6, 8, "guarantees"},
                                         Plant{Planted::forget_promises, 6, 8, "guarantees"},
                                         Plant{Planted::exceed_lowered_limits, 6, 8, "guarantees", 9},
                                         Plant{Planted::end_one_job_at_most, 6, 8, "guarantees"},
                                         Plant{Planted::count_in_thousandths, 6, 8, "guarantees"},
                                         Plant{Planted::count_mps_workloads, 1, 8, "guarantees"}),
                         [](const testing::TestParamInfo<Plant>& plant) {
                             return "invariant_" + std::to_string(plant.param.invariant) + "_bug_" +
                                    std::to_string(static_cast<int>(plant.param.bug));
                         });

// A fleet of two nodes as its rows have it, for the checkers alone.
struct Rows {
    Checkers checkers{
        {{.name = "big", .domain = "", .hard_limit = 84'000, .guarantee = 84'000, .nodes = 1, .never_gives_way = true},
         {.name = "ant", .domain = "", .gives_way = true}},
        Duration{600'000}};
    std::int64_t now = 0;
    void put(Table table, std::int64_t key, std::string body) {
        Batch batch;
        batch.rows.push_back({table, key, std::move(body), false});
        checkers.set_time(now += 2000);
        checkers.committed(batch);
    }
    void node(std::int64_t key, const std::string& name, bool drained = false) {
        put(Table::node, key,
            R"({"metadata":{"name":")" + name + R"("},"spec":{)" + (drained ? R"("unschedulable":true)" : "") +
                R"(},"status":{"phase":"ready"}})");
    }
    void work(std::int64_t key, const std::string& name, const std::string& tenant, const std::string& gpu,
              const std::string& phase) {
        put(Table::workload, key,
            R"({"metadata":{"name":")" + name + R"("},"spec":{"tenant":")" + tenant + R"(","gpu":{)" + gpu +
                R"(}},"status":{"phase":")" + phase + R"("}})");
    }
    void lease(std::int64_t key, const std::string& tenant, const std::string& node) {
        Batch batch;
        const std::string name = "lease-" + std::to_string(key);
        batch.rows.push_back({Table::lease, key,
                              R"({"metadata":{"name":")" + name + R"("},"spec":{"tenant":")" + tenant +
                                  R"(","mechanism":"mps","slices":[{"node":")" + node +
                                  R"(","gpu":0,"share":100}]},"status":{"phase":"active","gpus":0.1,"activeAt":)" +
                                  R"("2027-01-15T08:00:00Z"}})",
                              false});
        checkers.set_time(now += 2000);
        checkers.committed(batch);
    }
    void wait(std::int64_t ms) {  // as time passes something else becomes durable
        for (std::int64_t step = 0; step < ms; step += 10'000) {
            now += 8000;
            node(1, "n1");
        }
    }
    auto seen() const { return std::ranges::count(checkers.violations(), 6, &Violation::invariant); }
};

TEST(Checking, guaranteed_work_that_waits_longer_than_the_bound_is_seen) {
    Rows rows;
    rows.node(1, "n1");
    rows.lease(10, "ant", "n1");
    rows.work(20, "train", "big", R"("count":4)", "pending");
    rows.wait(500'000);
    EXPECT_EQ(rows.seen(), 0) << "there is time left";
    rows.checkers.disturbed();
    rows.wait(500'000);
    EXPECT_EQ(rows.seen(), 0) << "what goes wrong begins the bound anew";
    rows.wait(200'000);
    EXPECT_GT(rows.seen(), 0);
}

TEST(Checking, work_beyond_a_guarantee_or_without_a_node_that_can_be_freed_may_wait) {
    {
        Rows rows;
        rows.node(1, "n1");
        rows.lease(10, "ant", "n1");
        rows.work(20, "train", "big", R"("count":5)", "pending");
        rows.wait(2'000'000);
        EXPECT_EQ(rows.seen(), 0) << "it is guaranteed four";
    }
    {
        Rows rows;
        rows.node(1, "n1");
        rows.lease(10, "big", "n1");
        rows.work(20, "train", "big", R"("count":3)", "pending");
        rows.wait(2'000'000);
        EXPECT_EQ(rows.seen(), 0) << "its guarantee takes up one node, and it has one";
    }
    {
        Rows rows;
        rows.node(1, "n1", true);
        rows.work(20, "train", "big", R"("count":4)", "pending");
        rows.now += 2'000'000;
        rows.node(1, "n1", true);
        EXPECT_EQ(rows.seen(), 0) << "the node is drained";
    }
}

TEST(Checking, work_that_starts_where_a_waiting_claim_would_end_it_is_seen) {
    Rows rows;
    rows.node(1, "n1");
    rows.work(20, "train", "big", R"("count":4)", "pending");
    rows.wait(30'000);
    EXPECT_EQ(rows.seen(), 0);
    rows.lease(11, "ant", "n1");
    EXPECT_EQ(rows.seen(), 1);
}

TEST(Checking, a_fence_that_fell_and_was_forgotten_is_seen) {
    Checkers checkers{{}};
    const auto forgotten = [&] { return std::ranges::count(checkers.violations(), 13, &Violation::invariant); };
    checkers.fences_tested("n", 1, FabricFound::closed);
    checkers.acknowledged_report("n", 1);
    EXPECT_EQ(forgotten(), 0);
    checkers.fences_tested("n", 2, FabricFound::open);
    checkers.fences_tested("n", 3, FabricFound::unproven);
    EXPECT_EQ(forgotten(), 0) << "nobody has heard it yet";
    checkers.acknowledged_report("n", 3);
    EXPECT_EQ(forgotten(), 1) << "no row says so";
    checkers.fences_tested("n", 4, FabricFound::closed);
    checkers.acknowledged_report("n", 4);
    EXPECT_EQ(forgotten(), 1) << "it was repaired";
}

// No bug in the control plane brings this about, so the checker is shown what it must never see.
TEST(Checking, a_gpu_that_is_reset_under_its_tenant_is_seen) {
    Checkers checkers{{}};
    const NodeModel model{{.node = "n", .gpus = 2}};
    const auto resets_seen = [&](std::uint16_t gpu) {
        checkers.begun("n", model, {1, ResetGpu{gpu}});
        return std::ranges::count(checkers.violations(), 10, &Violation::invariant);
    };
    checkers.begun("n", model,
                   {2, StartTenant{.lease = 7,
                                   .tier = Tier::vm,
                                   .gpus = {{.gpu = 1, .start = 0, .size = 4, .profile = "3g.40gb"}},
                                   .drives = {},
                                   .functions = {},
                                   .tenant = {},
                                   .mechanism = {},
                                   .program = {}}});
    EXPECT_EQ(resets_seen(0), 0) << "the tenant is on the other";
    EXPECT_EQ(resets_seen(1), 1);
    checkers.ended("n", model, {3, StopTenant{7}}, true);
    EXPECT_EQ(resets_seen(1), 1) << "nobody is there any more";
}

// Nor this: a subnet that goes to another tenant while a function of the first may still have it.
TEST(Checking, numbers_of_the_fabric_that_two_tenants_have_are_seen) {
    Checkers checkers{{}};
    NodeModel model{{.node = "n", .gpus = 1, .functions = 3}};
    const auto attach = [&](std::uint16_t function, std::string tenant, FabricPort port) {
        port.function = function;
        const Operation operation{1, AttachFunction{function, 7, std::move(tenant), std::move(port)}};
        ASSERT_TRUE(model.carry_out(operation)->ok);
        checkers.ended("n", model, operation, true);
    };
    const auto seen = [&] { return std::ranges::count(checkers.violations(), 12, &Violation::invariant); };
    const FabricPort first{
        .mac = "02:42:0a:80:00:02", .vlan = 100, .address = "10.128.0.2/20", .subnet = "10.128.0.0/20"},
        second{.mac = "02:42:0a:80:00:03", .vlan = 100, .address = "10.128.0.3/20", .subnet = "10.128.0.0/20"};
    attach(0, "acme", first);
    attach(1, "acme", second);
    EXPECT_EQ(seen(), 0) << "a tenant's own functions share what is the tenant's";
    attach(2, "acme", second);
    EXPECT_EQ(seen(), 2) << "but no address: the MAC and the address are there twice";
    attach(2, "beta", first);
    EXPECT_EQ(seen(), 8) << "of vf0 all four, of vf1 subnet and VLAN";
    const Operation wipe{2, Wipe{UnitKind::vf, 0}};
    ASSERT_TRUE(model.carry_out(wipe)->ok);
    checkers.ended("n", model, wipe, true);
    attach(0, "beta",
           {.mac = "02:42:0a:80:10:09", .vlan = 101, .address = "10.128.16.9/20", .subnet = "10.128.16.0/20"});
    EXPECT_EQ(seen(), 8) << "what was wiped may be anybody";
}

}  // namespace
}  // namespace bulkhead::sim
