#include "bulkhead/replay/mix_fleet.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace bulkhead::replay {
namespace {

FleetMix mix_of_everything() {
    return read_mix("m.yaml",
                    "kind: FleetMix\n"
                    "dirty: 0.05\n"
                    "quarantined: 0.02\n"
                    "tenants: {departments: 20, teams: 12, domainOf: 4, alone: 20, vm: 15, hard: 10, idle: 10}\n"
                    "nodes:\n"
                    "  - {weight: 3, model: h100-80gb-sxm5, cpu: 192, memory: 2Ti, cut: 20}\n"
                    "  - {weight: 1, model: l4, gpus: 4, cpu: 64, memory: 512Gi}\n"
                    "jobs:\n"
                    "  - {weight: 3, gpus: 1, variants: 10, cpu: [3, 9], memory: [10Gi, 20Gi]}\n"
                    "  - {weight: 1, gpus: 8, tasks: 4, within: leaf, preemptible: 0}\n"
                    "  - {weight: 4, fraction: [0.1, 0.5], variants: 20}\n"
                    "  - {weight: 2, profile: 3g.40gb, cpu: [2]}\n")
        .value();
}

TEST(MixFleet, the_same_seed_gives_the_same_fleet_and_the_same_jobs) {
    const FleetMix mix = mix_of_everything();
    const MixFleet one{mix, 300, 7}, same{mix, 300, 7}, other{mix, 300, 8};
    const auto told = [](const MixFleet& fleet) {
        std::string text;
        for (std::size_t i = 0; i < fleet.nodes(); ++i)
            for (const sched::Gpu& gpu : fleet.node(i).gpus)
                text += gpu.model + std::to_string(gpu.available) + "/" + std::to_string(gpu.lost) + " ";
        Rng rng{3};
        for (int i = 0; i < 500; ++i) {
            const MixDraw draw = fleet.draw(rng);
            text += std::to_string(draw.variant) + "@" + std::to_string(draw.job.tenant) + " ";
        }
        return text;
    };
    EXPECT_EQ(told(one), told(same));
    EXPECT_NE(told(one), told(other));
}

TEST(MixFleet, has_the_tenants_that_were_asked_for_and_guarantees_what_was_said) {
    const FleetMix mix = mix_of_everything();
    const MixFleet fleet{mix, 1000, 1};
    ASSERT_EQ(fleet.tenants().size(), 20u + 240u);
    ASSERT_EQ(fleet.teams().size(), 240u);
    std::map<TeamTrust, int> trusts;
    std::map<std::uint32_t, int> domains;
    int hard = 0, idle = 0;
    std::int64_t guaranteed = 0;
    for (const MixTeam& team : fleet.teams()) {
        const sched::TenantFacts& facts = fleet.tenants()[team.tenant];
        ASSERT_TRUE(facts.parent) << facts.name;
        ++trusts[team.trust];
        hard += facts.hard ? 1 : 0;
        idle += team.idle ? 1 : 0;
        guaranteed += facts.guarantee.thousandths();
        EXPECT_EQ(facts.domain == 0, team.trust != TeamTrust::domain) << facts.name;
        if (facts.domain != 0) ++domains[facts.domain];
    }
    EXPECT_GT(trusts[TeamTrust::domain], 120);
    EXPECT_GT(trusts[TeamTrust::alone], 20);
    EXPECT_GT(trusts[TeamTrust::vm], 15);
    EXPECT_GT(hard, 8);
    EXPECT_GT(idle, 8);
    EXPECT_LE(std::ranges::max_element(domains, {}, [](const auto& d) { return d.second; })->second, 4);
    EXPECT_NEAR(static_cast<double>(guaranteed), static_cast<double>(fleet.gpus()) * 700, 1000);
}

TEST(MixFleet, nodes_have_dirt_and_cuts_in_the_measure_asked_for) {
    const FleetMix mix = mix_of_everything();
    const MixFleet fleet{mix, 2000, 1};
    std::int64_t gpus = 0, dirty = 0, lost = 0, cuttable = 0, cut = 0;
    for (std::size_t i = 0; i < fleet.nodes(); ++i) {
        const sched::Node node = fleet.node(i);
        gpus += std::ssize(node.gpus);
        cuttable += node.gpus.front().board != nullptr ? 1 : 0;
        cut += node.residents.empty() ? 0 : 1;
        for (const sched::Gpu& gpu : node.gpus) {
            EXPECT_EQ(gpu.available & (gpu.held | gpu.lost), 0);
            if (!gpu.seats.empty()) continue;
            lost += gpu.lost != 0 ? 1 : 0;
            dirty += gpu.lost == 0 && gpu.available != gpu.all() ? 1 : 0;
        }
        for (const sched::Resident& resident : node.residents)
            EXPECT_EQ(resident.tenant, node.residents.front().tenant) << "one team alone cut this node";
    }
    EXPECT_EQ(gpus, fleet.gpus());
    EXPECT_NEAR(static_cast<double>(dirty) / static_cast<double>(gpus), 0.05, 0.01);
    EXPECT_NEAR(static_cast<double>(lost) / static_cast<double>(gpus), 0.02, 0.01);
    EXPECT_NEAR(static_cast<double>(cut) / static_cast<double>(cuttable), 0.2, 0.05);
}

TEST(MixFleet, instances_that_sit_for_good_sit_where_the_board_allows_and_not_on_each_other) {
    const FleetMix mix = mix_of_everything();
    const MixFleet fleet{mix, 1000, 1};
    std::int64_t seen = 0;
    for (std::size_t i = 0; i < fleet.nodes(); ++i)
        for (const sched::Gpu& gpu : fleet.node(i).gpus) {
            unsigned taken = 0;
            for (const sched::Seat& seat : gpu.seats) {
                ++seen;
                const auto profile = std::ranges::find(gpu.board->profiles, seat.profile, &gpu::Profile::name);
                ASSERT_NE(profile, gpu.board->profiles.end());
                EXPECT_TRUE(profile->starts.contains(seat.start));
                const unsigned mask = profile->at(seat.start).mask();
                EXPECT_EQ(taken & mask, 0u);
                taken |= mask;
            }
            EXPECT_EQ(taken, gpu.held);
        }
    EXPECT_GT(seen, 100);
}

TEST(MixFleet, jobs_come_by_weight_and_never_from_the_idle) {
    const FleetMix mix = mix_of_everything();
    const MixFleet fleet{mix, 1000, 1};
    Rng rng{5};
    std::map<std::size_t, int> sorts;
    for (int i = 0; i < 10'000; ++i) {
        const MixDraw draw = fleet.draw(rng);
        const MixVariant& variant = fleet.variants()[draw.variant];
        ++sorts[variant.sort];
        const auto team = std::ranges::find(fleet.teams(), draw.job.tenant, &MixTeam::tenant);
        ASSERT_NE(team, fleet.teams().end());
        EXPECT_FALSE(team->idle);
        EXPECT_EQ(team->trust, draw.trust);
        EXPECT_EQ(draw.job.preemptible, variant.sort != 1);
    }
    EXPECT_NEAR(sorts[0], 3000, 200);
    EXPECT_NEAR(sorts[1], 1000, 200);
    EXPECT_NEAR(sorts[2], 4000, 200);
    EXPECT_NEAR(sorts[3], 2000, 200);
}

TEST(MixFleet, a_request_wants_every_model_that_will_do) {
    const FleetMix mix = mix_of_everything();
    const MixFleet fleet{mix, 100, 1};
    const auto models = [&](std::size_t sort) {
        const auto variant = std::ranges::find(fleet.variants(), sort, &MixVariant::sort);
        std::vector<std::string> out;
        for (const sched::Want& want : variant->needs[0].wants) out.push_back(want.model);
        return out;
    };
    EXPECT_THAT(models(0), testing::ElementsAre("h100-80gb-sxm5", "l4"));
    EXPECT_THAT(models(1), testing::ElementsAre("h100-80gb-sxm5")) << "eight GPUs";
    EXPECT_THAT(models(3), testing::ElementsAre("h100-80gb-sxm5")) << "cut with MIG";
    const auto slice = std::ranges::find(fleet.variants(), 3u, &MixVariant::sort);
    EXPECT_EQ(slice->gpus, Gpus::of_thousandths(500)) << "four of eight memory slices";
    const sched::TaskNeed& vm = slice->needs[static_cast<std::size_t>(TeamTrust::vm)];
    EXPECT_FALSE(vm.on_host_kernel);
    EXPECT_EQ(vm.sharing.node, PeerTrust::distrusting);
    EXPECT_EQ(vm.sharing.gpu, PeerTrust::distrusting);
    EXPECT_EQ(vm.sharing.instance, PeerTrust::same_tenant);
}

}  // namespace
}  // namespace bulkhead::replay
