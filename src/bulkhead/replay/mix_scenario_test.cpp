#include "bulkhead/replay/mix_scenario.hpp"

#include <gtest/gtest.h>

#include "bulkhead/replay/queueing_page.hpp"

namespace bulkhead::replay {
namespace {

constexpr std::string_view small =
    "kind: FleetMix\n"
    "full: 0.8\n"
    "tenants: {departments: 3, teams: 2, domainOf: 2, alone: 20, vm: 20, hard: 10}\n"
    "nodes:\n"
    "  - {model: h100-80gb-sxm5, cpu: 192, memory: 2Ti}\n"
    "jobs:\n"
    "  - {weight: 5, gpus: 1, cpu: [8], memory: [64Gi]}\n"
    "  - {weight: 2, gpus: 8, tasks: 2, cpu: [64], memory: [512Gi]}\n"
    "  - {weight: 2, fraction: [0.25, 0.5], variants: 3, cpu: [2], memory: [8Gi]}\n"
    "  - {weight: 2, profile: 1g.10gb, cpu: [2], memory: [8Gi]}\n";

FleetMix mix() {
    const auto read = read_mix("small.yaml", small);
    EXPECT_TRUE(read);
    return *read;
}

TEST(MixScenario, jobs_ask_for_the_part_of_the_fleet_that_the_mix_says) {
    const auto scenario = scenario_of(mix(), {.nodes = 20, .jobs = 2000, .seed = 3});
    ASSERT_TRUE(scenario) << scenario.error().what;
    EXPECT_EQ(scenario->units(), 160 * gpu_unit);
    double asked = 0;
    for (std::size_t i = 0; i < scenario->jobs.size(); ++i) {
        const ScenarioJob& job = scenario->jobs[i];
        asked += static_cast<double>(job.units()) * static_cast<double>(job.duration.ms);
        EXPECT_GE(job.work.submitted, scenario->jobs[i > 0 ? i - 1 : 0].work.submitted);
    }
    const auto span = static_cast<double>(scenario->jobs.back().work.submitted.ms);
    EXPECT_NEAR(asked / span / static_cast<double>(160 * gpu_unit), 0.8, 0.01);
}

TEST(MixScenario, every_job_of_a_mix_finishes_under_either_policy_with_and_without_wipes) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
        for (const Duration wipe : {Duration{}, Duration{30'000}}) {
            const auto scenario = scenario_of(mix(), {.nodes = 12, .jobs = 300, .seed = seed});
            ASSERT_TRUE(scenario) << scenario.error().what;
            for (const QueuePolicy policy : {QueuePolicy::fifo, QueuePolicy::bulkhead}) {
                SCOPED_TRACE(std::to_string(seed) + " " + print(wipe) + " " +
                             std::string{words(policy)[static_cast<std::size_t>(policy)]});
                const auto once = run_queueing(*scenario, policy, {.wipe = wipe});
                ASSERT_TRUE(once) << once.error().what;
                const auto again =
                    run_queueing(*scenario_of(mix(), {.nodes = 12, .jobs = 300, .seed = seed}), policy, {.wipe = wipe});
                ASSERT_TRUE(again) << again.error().what;
                const QueueingFigures figures = figures_of(*scenario, *once, {});
                EXPECT_LE(figures.utilisation, 1);
                EXPECT_EQ(spelled(figures), spelled(figures_of(*scenario, *again, {})));
            }
        }
}

TEST(MixScenario, a_fleet_on_which_nothing_fits_is_refused) {
    FleetMix large = mix();
    large.jobs = {large.jobs[1]};
    large.jobs[0].tasks = 64;
    const auto scenario = scenario_of(large, {.nodes = 2, .jobs = 10, .seed = 1});
    ASSERT_FALSE(scenario);
    EXPECT_EQ(scenario.error().what, "100 jobs drawn one after the other fit nowhere on 2 empty nodes");
    EXPECT_FALSE(scenario_of(mix(), {.nodes = 0, .jobs = 10, .seed = 1}));
    EXPECT_FALSE(scenario_of(mix(), {.nodes = 2, .jobs = 0, .seed = 1}));
}

}  // namespace
}  // namespace bulkhead::replay
