// Capacity that work asks to keep from others beyond the rules counts against the limit of its tenant, and nothing
// else.
#include "bulkhead/sched/exclusivity.hpp"

#include <fmt/core.h>

#include "bulkhead/sched/engine_test.hpp"
#include "bulkhead/sched/play_test.hpp"

namespace bulkhead::sched {
namespace {

constexpr std::int64_t gpu = gpu_unit;

TEST(KeptParts, of_a_node_are_what_no_lease_holds_split_by_lease_size) {
    const std::vector<std::int64_t> sound{gpu, gpu, gpu, gpu / 2};
    const std::vector<NodeTenure> tenures{{.leased = {gpu, 0, 0, 0}, .keeps_node = true},
                                          {.leased = {0, gpu / 2, 0, 0}, .keeps_node = true},
                                          {.leased = {0, 0, gpu / 4, 0}}};
    const auto parts = kept_parts(tenures, sound);
    std::int64_t sums[3] = {};
    for (std::size_t i = 0; i < 3; ++i)
        for (const std::int64_t each : parts[i]) sums[i] += each;
    EXPECT_EQ(sums[0] + sums[1], gpu / 2 + gpu * 3 / 4 + gpu / 2);
    EXPECT_NEAR(static_cast<double>(sums[0]), 2.0 * static_cast<double>(sums[1]), 8.0);
    EXPECT_EQ(sums[2], 0) << "it asked for nothing";
}

TEST(KeptParts, of_a_gpu_are_its_rest) {
    const std::vector<std::int64_t> sound{gpu, gpu};
    const std::vector<NodeTenure> tenures{{.leased = {gpu / 7, 0}, .keeps_gpu = true}, {.leased = {0, gpu / 7}}};
    const auto parts = kept_parts(tenures, sound);
    EXPECT_EQ(parts[0], (std::vector<std::int64_t>{gpu - gpu / 7, 0}));
    EXPECT_EQ(parts[1], (std::vector<std::int64_t>{0, 0}));
}

struct Alone : Play {  // two nodes of eight GPUs, and one of four where that is wanted
    std::vector<TenantFacts> facts{team("a"), team("b")};
    explicit Alone(std::optional<std::int64_t> limit, bool small = false) {
        if (limit) facts[0].limit = Gpus::whole(*limit);
        tenants(facts);
        node({.name = "n1"});
        node({.name = "n2"});
        if (small) node({.name = "n3", .gpus = 4});
    }
    static JobRow keeper(std::string name, std::int64_t gpus = 1) {
        return {
            .name = std::move(name),
            .gpus = gpus,
            .sharing = {PeerTrust::same_tenant, PeerTrust::same_tenant, PeerTrust::same_tenant, PeerTrust::same_tenant},
            .keeps_node = true};
    }
    Gpus kept(TenantNo tenant = 0) const { return Gpus{engine.kept(tenant)}; }
    Gpus held(TenantNo tenant = 0) const { return Gpus{engine.held(tenant)}; }
};

TEST(Exclusivity, a_node_kept_for_one_gpu_counts_whole_against_the_limit) {
    Alone play{8};
    play.run(Alone::keeper("k"));
    EXPECT_EQ(play.held(), Gpus::whole(1));
    EXPECT_EQ(play.kept(), Gpus::whole(7));
    // Elsewhere its tenant may lease nothing more; where it keeps the node it may.
    play.submit({.name = "more", .gpus = 8});
    play.cycle();
    EXPECT_FALSE(play.runs("more"));
    EXPECT_TRUE(play.waits_for("more", "wait.exclusive"));
    play.run({.name = "inside", .gpus = 3});
    EXPECT_EQ(play.where("inside"), play.where("k"));
    EXPECT_EQ(play.kept(), Gpus::whole(4));
    play.run(Alone::keeper("second", 4));
    EXPECT_EQ(play.where("second"), play.where("k"));
    EXPECT_EQ(play.kept(), Gpus{});
    EXPECT_EQ(play.held(), Gpus::whole(8));
}

TEST(Exclusivity, work_that_would_keep_more_than_the_limit_waits_and_the_reason_has_the_numbers) {
    Alone play{6};
    play.submit(Alone::keeper("k", 2));
    play.submit({.name = "plain", .gpus = 6});
    play.cycle();
    EXPECT_FALSE(play.runs("k"));
    EXPECT_TRUE(play.runs("plain")) << "what is only asked for counts for nothing";
    EXPECT_TRUE(play.waits_for("k", "wait.exclusive"));
    EXPECT_FALSE(play.waits_for("k", "wait.quota"));
}

TEST(Exclusivity, it_goes_to_the_smaller_node_where_only_that_is_within_the_limit) {
    Alone play{4, true};
    play.run({.name = "other", .tenant = 1, .gpus = 4});  // sits on the smallest node
    play.submit(Alone::keeper("k"));
    play.cycle();
    EXPECT_FALSE(play.runs("k"));
    EXPECT_TRUE(play.last.evict.empty());
    EXPECT_TRUE(play.waits_for("k", "wait.exclusive"));
    play.engine.finish(play.jobs.at("other"));
    play.cycle();
    ASSERT_TRUE(play.runs("k"));
    EXPECT_EQ(play.where("k"), (Names{"n3"}));
    EXPECT_EQ(play.kept(), Gpus::whole(3));
}

TEST(Exclusivity, without_a_limit_it_is_counted_and_stops_nothing) {
    Alone play{std::nullopt};
    play.run(Alone::keeper("k"));
    play.run(Alone::keeper("l", 8));
    EXPECT_EQ(play.kept(), Gpus::whole(7));
    play.engine.finish(play.jobs.at("k"));
    EXPECT_EQ(play.kept(), Gpus{});
}

TEST(Exclusivity, counts_for_neither_due_nor_guarantee) {
    Alone play{8};
    play.facts[0].guarantee = Gpus::whole(2);
    play.facts[1].guarantee = Gpus::whole(8);
    play.tenants(play.facts);
    play.run(Alone::keeper("k", 2));
    play.cycle();
    EXPECT_EQ(play.held(), Gpus::whole(2)) << "a guarantee of 2 covers it, whatever it keeps";
    EXPECT_EQ(play.kept(), Gpus::whole(6));
    play.submit({.name = "big", .tenant = 1, .gpus = 8});
    play.settle();
    EXPECT_TRUE(play.runs("big"));
    EXPECT_TRUE(play.runs("k"));
}

TEST(Exclusivity, the_rest_of_a_gpu_counts_as_quota_counts_slices) {
    Alone play{1};
    JobRow slice{.name = "s", .profile = "1g.10gb", .keeps_gpu = true};
    play.run(slice);
    EXPECT_EQ(play.kept() + play.held(), Gpus::whole(1));
    play.run({.name = "t", .profile = "1g.10gb"});  // on the same GPU
    EXPECT_EQ(play.kept() + play.held(), Gpus::whole(1));
    play.submit({.name = "u", .profile = "7g.80gb"});
    play.cycle();
    EXPECT_FALSE(play.runs("u"));
    EXPECT_TRUE(play.waits_for("u", "wait.exclusive"));
}

TEST(Exclusivity, a_limit_of_a_tenant_above_counts_it_too) {
    Alone play{std::nullopt};
    play.facts = {team("dept"), team("a"), team("b")};
    play.facts[1].parent = play.facts[2].parent = 0;
    play.facts[0].limit = Gpus::whole(8);
    play.tenants(play.facts);
    JobRow k = Alone::keeper("k");
    k.tenant = 1;
    play.run(k);
    play.submit({.name = "c", .tenant = 2, .gpus = 1});
    play.cycle();
    EXPECT_FALSE(play.runs("c"));
    EXPECT_TRUE(play.waits_for("c", "wait.parent-exclusive"));
}

TEST(Exclusivity, a_lowered_limit_ends_the_work_that_keeps_and_no_other) {
    Alone play{std::nullopt};
    play.run(Alone::keeper("k"));
    play.run(Alone::keeper("k2"));
    play.run({.name = "guest", .gpus = 2});  // on the same node
    play.run({.name = "whole", .gpus = 8});
    ASSERT_EQ(play.where("k"), play.where("k2"));
    ASSERT_EQ(play.where("k"), play.where("guest"));
    play.facts[0].limit = Gpus::whole(13);
    play.tenants(play.facts);
    play.cycle();
    EXPECT_EQ(play.evicted(), (Names{"k", "k2"}));
    for (const Eviction& each : play.last.evict) EXPECT_EQ(each.reasons.front().code, "evict.exclusive");
    play.stop_evicted();
    play.settle();
    EXPECT_TRUE(play.runs("guest"));
    EXPECT_TRUE(play.runs("whole"));
    EXPECT_FALSE(play.runs("k"));
}

TEST(Exclusivity, nothing_oscillates_around_a_limit) {
    for (std::int64_t limit = 1; limit <= 20; ++limit) {
        Alone play{limit, true};
        for (int i = 0; i < 3; ++i) {
            play.submit(Alone::keeper("k" + std::to_string(i), 1 + i));
            play.submit({.name = "p" + std::to_string(i), .gpus = 1 + 2 * i});
            play.submit({.name = "b" + std::to_string(i), .tenant = 1, .gpus = 2});
        }
        play.settle();
        EXPECT_LE((play.held() + play.kept()).units, limit * gpu) << "limit " << limit;
    }
}

TEST(Exclusivity, the_short_form_counts_it_where_the_trust_domain_has_other_tenants) {
    const auto waits = [](std::string_view mate) {
        const Told after = told(
            fmt::format("kind: Cluster\n"
                        "tenants: [{{name: a, limit: 4, domain: d}}, {{name: b, domain: {}}}]\n"
                        "nodes: [{{name: m, gpus: 8}}]\n"
                        "jobs: [{{name: x, tenant: a, gpus: 1, isolation: {{node: same-tenant, gpu: same-tenant}}}}]\n",
                        mate));
        return !after.waiting().empty();
    };
    EXPECT_TRUE(waits("d")) << "it would close eight GPUs to b, and the limit is four";
    EXPECT_FALSE(waits("e")) << "b may not share the node in any case";
}

}  // namespace
}  // namespace bulkhead::sched
