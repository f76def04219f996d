// In fleets whose nodes differ in size every guarantee is served, whatever the order in which its work arrives.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>

#include "bulkhead/sched/play_test.hpp"

namespace bulkhead::sched {
namespace {

// Nodes of 2, 4 and 8 GPUs, each the guarantee of one of several distrusting tenants, and jobs of one GPU that fill all
// guarantees to the last GPU, in any order.
std::string full_fleet(std::mt19937& random, double fixed) {
    const auto number = [&](int least, int most) { return std::uniform_int_distribution{least, most}(random); };
    const int nodes = number(2, 6), tenants = number(2, std::min(4, nodes));
    std::vector<int> owner, guarantee(static_cast<std::size_t>(tenants));
    for (int i = 0; i < nodes; ++i) owner.push_back(i < tenants ? i : number(0, tenants - 1));
    std::ranges::shuffle(owner, random);
    std::string nodes_text = "nodes:\n", people = "kind: Cluster\ntenants:\n", work = "jobs:\n";
    std::vector<int> jobs;
    for (std::size_t i = 0; i < owner.size(); ++i) {
        const int gpus = 1 << number(1, 3);
        nodes_text += fmt::format("  - {{name: n{}, gpus: {}, canReboot: true}}\n", i, gpus);
        guarantee[static_cast<std::size_t>(owner[i])] += gpus;
        jobs.insert(jobs.end(), static_cast<std::size_t>(gpus), owner[i]);
    }
    for (int i = 0; i < tenants; ++i)
        people += fmt::format("  - {{name: t{0}, domain: d{0}, hard: true, guarantee: {1}}}\n", i,
                              guarantee[static_cast<std::size_t>(i)]);
    std::ranges::shuffle(jobs, random);
    for (std::size_t i = 0; i < jobs.size(); ++i)
        work += fmt::format("  - {{name: j{}, tenant: t{}, gpus: 1, waited: {}m, preemptible: {}}}\n", i, jobs[i],
                            number(1, 500), std::bernoulli_distribution{fixed}(random) ? "false" : "true");
    return people + nodes_text + work;
}

class FullFleets : public testing::TestWithParam<double> {};

TEST_P(FullFleets, serve_every_guarantee_on_unequal_nodes) {
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        std::mt19937 random{seed};
        const std::string scene = full_fleet(random, GetParam());
        EXPECT_THAT(told(scene).waiting(), testing::IsEmpty()) << "seed " << seed << "\n" << scene;
    }
}

INSTANTIATE_TEST_SUITE_P(PartThatMayNotBePreempted, FullFleets, testing::Values(0.0, 0.5, 1.0));

TEST(UnequalNodes, leave_the_large_node_to_the_guarantee_that_needs_it) {
    const Told said = told(R"(
kind: Cluster
tenants:
  - {name: small, domain: d1, guarantee: 6}
  - {name: large, domain: d2, guarantee: 8}
nodes:
  - {name: eight, gpus: 8, canReboot: true}
  - {name: four, gpus: 4, canReboot: true}
  - {name: two, gpus: 2, canReboot: true}
jobs:
  - {name: a, tenant: small, gpus: 2, waited: 3h}
  - {name: b, tenant: small, gpus: 2, waited: 2h}
  - {name: c, tenant: small, gpus: 2, waited: 1h}
  - {name: d, tenant: large, gpus: 8, waited: 1m}
)");
    EXPECT_THAT(said.waiting(), testing::IsEmpty());
    EXPECT_TRUE(said.played.evictions.empty());
}

}  // namespace
}  // namespace bulkhead::sched
