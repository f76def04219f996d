#include "bulkhead/replay/scheduler_trial.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/replay/meters.hpp"

namespace bulkhead::replay {
namespace {

constexpr std::string_view small =
    "kind: FleetMix\n"
    "full: 0.7\n"
    "dirty: 0.02\n"
    "tenants: {departments: 3, teams: 4, domainOf: 4, vm: 20, idle: 25}\n"
    "nodes: [{model: h100-80gb-sxm5, cpu: 192, memory: 2Ti, cut: 5}]\n"
    "jobs:\n"
    "  - {weight: 4, gpus: 1, cpu: [8], memory: [64Gi]}\n"
    "  - {weight: 3, fraction: [0.25], cpu: [4], memory: [16Gi]}\n"
    "  - {weight: 2, profile: 1g.10gb, cpu: [2], memory: [16Gi]}\n"
    "  - {weight: 1, gpus: 8, cpu: [32], memory: [256Gi]}\n";

TrialOptions quick(std::int64_t nodes) {
    TrialOptions options;
    options.nodes = nodes;
    options.decisions = 2000;
    options.rounds = 8;
    return options;
}

TEST(SchedulerTrial, fills_the_fleet_and_answers_every_question) {
    const auto figures = try_scheduler(read_mix("m.yaml", small).value(), quick(256));
    ASSERT_TRUE(figures) << figures.error().what;
    EXPECT_EQ(figures->nodes, 256);
    EXPECT_EQ(figures->gpus, 2048);
    EXPECT_GE(figures->full, 0.7);
    EXPECT_GT(figures->jobs, 500);
    EXPECT_EQ(figures->decisions, 2000);
    EXPECT_GT(figures->placed, 1000);
    EXPECT_GT(figures->decisions_per_second, 0);
    EXPECT_GT(figures->single.count, 0);
    EXPECT_LE(figures->single.p50_us, figures->single.p99_us);
    EXPECT_EQ(figures->gang512.count, 8);
    EXPECT_GT(figures->gang512.yes, 0) << "room was made for it";
    EXPECT_EQ(figures->unschedulable.count, 8);
    EXPECT_EQ(figures->unschedulable.yes, figures->unschedulable.count) << "each refusal has reasons";
    EXPECT_EQ(figures->reclaim.count, 8);
    EXPECT_GT(figures->reclaim.yes, 0) << "the idle find somebody above its due";
    EXPECT_GT(figures->distinct_states, 1);
    EXPECT_GT(figures->bytes_per_node, 0);
    EXPECT_GT(figures->bytes_per_job, 0);
}

TEST(SchedulerTrial, decides_the_same_for_the_same_seed) {
    const FleetMix mix = read_mix("m.yaml", small).value();
    const auto one = try_scheduler(mix, quick(64)), again = try_scheduler(mix, quick(64));
    TrialOptions another = quick(64);
    another.seed = 2;
    const auto other = try_scheduler(mix, another);
    ASSERT_TRUE(one && again && other);
    EXPECT_EQ(one->jobs, again->jobs);
    EXPECT_EQ(one->placed, again->placed);
    EXPECT_EQ(one->distinct_states, again->distinct_states);
    EXPECT_NE(one->jobs, other->jobs);
}

TEST(SchedulerTrial, what_cannot_be_asked_is_left_out) {
    const auto figures = try_scheduler(
        read_mix("m.yaml",
                 "kind: FleetMix\nnodes: [{model: l4, gpus: 1, cpu: 8, memory: 64Gi}]\njobs: [{gpus: 1, cpu: [2]}]\n")
            .value(),
        quick(10));
    ASSERT_TRUE(figures) << figures.error().what;
    EXPECT_EQ(figures->gang512.count, 0) << "nobody has eight GPUs";
    EXPECT_EQ(figures->unschedulable.count, 0);
    EXPECT_EQ(figures->reclaim.count, 0) << "nobody is idle";
    EXPECT_EQ(figures->jobs, 9) << "nine of ten GPUs";
}

TEST(SchedulerTrial, a_fleet_of_nothing_is_refused) {
    const FleetMix mix = read_mix("m.yaml", small).value();
    for (const std::int64_t nodes : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1'000'001}}) {
        const auto figures = try_scheduler(mix, quick(nodes));
        ASSERT_FALSE(figures) << nodes;
        EXPECT_THAT(figures.error().what, testing::HasSubstr(std::to_string(nodes)));
        EXPECT_THAT(figures.error().remedy, testing::HasSubstr("from 1 to"));
    }
}

TEST(Meters, see_what_is_used) {
    const std::int64_t cpu = thread_cpu_ns(), resident = resident_bytes();
    const std::vector<char> memory(std::size_t{64} << 20, 'x');
    EXPECT_GT(thread_cpu_ns(), cpu);
    EXPECT_GT(resident_bytes(), resident + (std::int64_t{32} << 20));
    EXPECT_EQ(memory.back(), 'x');
}

}  // namespace
}  // namespace bulkhead::replay
