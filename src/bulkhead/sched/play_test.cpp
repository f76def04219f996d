// Scenes played to their end: what the engine decides is carried out, and the answer says so.
#include "bulkhead/sched/play_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bulkhead::sched {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view lent =
    "kind: Cluster\n"
    "tenants: [{name: research, guarantee: 8}, {name: serving, guarantee: 8}]\n"
    "nodes: [{name: m, count: 2}]\n"
    "jobs:\n"
    "  - {name: sweep, tenant: research, gpus: 8, on: [m-1], ran: 3h, checkpoint: 30m}\n"
    "  - {name: pretrain, tenant: research, gpus: 8, on: [m-2], ran: 20m, checkpoint: 1h}\n"
    "  - {name: chat, tenant: serving, tasks: 2, gpus: 4}\n";

TEST(Play, nothing_to_do_is_settled_at_once) {
    const Told quiet = told("kind: Cluster\nnodes: [{name: m}]\n");
    EXPECT_TRUE(quiet.played.settled);
    EXPECT_EQ(quiet.played.cycles, 1);
    EXPECT_THAT(quiet.played.bindings, IsEmpty());
}

TEST(Play, what_fits_is_bound_in_the_order_of_the_file_and_the_rest_says_why_not) {
    const Told full = told("kind: Cluster\nnodes: [{name: m}]\njobs: [{name: j, gpus: 3, count: 3}]\n");
    EXPECT_TRUE(full.played.settled);
    EXPECT_EQ(full.played.cycles, 2) << "the second has nothing to say";
    EXPECT_THAT(full.running(), ElementsAre("j-1", "j-2"));
    ASSERT_THAT(full.waiting(), ElementsAre("j-3"));
    EXPECT_THAT(full.played.waiting.front().reasons, testing::Not(IsEmpty()));
    EXPECT_EQ(full.played.tenants.front().held, Gpus::whole(6));
}

TEST(Play, as_many_requests_in_bytes_share_a_gpu_as_its_memory_holds) {
    const auto asks = [](std::string_view memory) {
        return told("kind: Cluster\nnodes: [{name: m, gpus: 1, model: a30}]\njobs: [{name: j, gpuMemory: " +
                    std::string{memory} + ", count: 4}]\n");
    };
    EXPECT_THAT(asks("8Gi").running(), ElementsAre("j-1", "j-2", "j-3"));
    EXPECT_THAT(asks("8193Mi").running(), ElementsAre("j-1", "j-2"));
    EXPECT_EQ(asks("8Gi").played.tenants.front().held, Gpus::whole(1));
}

TEST(Play, what_was_evicted_is_gone_and_the_claimant_has_its_place) {
    const Told after = told(lent);
    EXPECT_TRUE(after.played.settled);
    ASSERT_EQ(after.played.evictions.size(), 1u);
    const Eviction& evicted = after.played.evictions.front().what;
    EXPECT_EQ(after.name(evicted.workload), "sweep") << "it has just saved its work; the other would lose 20 minutes";
    EXPECT_EQ(after.name(evicted.claimant), "chat");
    EXPECT_EQ(evicted.action, Action::reclaim);
    EXPECT_EQ(evicted.lost_gpu_ms, 0);
    EXPECT_THAT(after.running(), ElementsAre("pretrain", "chat"));
    EXPECT_THAT(after.waiting(), IsEmpty());
    EXPECT_EQ(after.played.bindings.front().cycle, 2);
}

TEST(Play, the_memory_mode_of_amd_gpus_holds_for_a_whole_node) {
    const Told two = told(
        "kind: Cluster\nnodes: [{name: m, model: mi300x}]\njobs:\n"
        "  - {name: four, profile: cpx_nps4, on: [m]}\n"
        "  - {name: also-four, profile: cpx_nps4}\n"
        "  - {name: one, profile: cpx_nps1}\n"
        "  - {name: whole, gpus: 1}\n");
    EXPECT_THAT(two.running(), ElementsAre("four", "also-four"));
    EXPECT_THAT(two.waiting(), ElementsAre("one", "whole")) << "both need NPS1";
    const Told one = told(
        "kind: Cluster\nnodes: [{name: m, model: mi300x}]\njobs:\n"
        "  - {name: whole, gpus: 1, on: [m]}\n"
        "  - {name: one, profile: cpx_nps1}\n"
        "  - {name: four, profile: cpx_nps4}\n");
    EXPECT_THAT(one.running(), ElementsAre("whole", "one")) << "compute modes are each GPU's own";
    EXPECT_THAT(one.waiting(), ElementsAre("four"));
    const Told apart = told(
        "kind: Cluster\nnodes: [{name: m, model: mi300x, count: 2}]\njobs:\n"
        "  - {name: one, profile: cpx_nps1}\n"
        "  - {name: four, profile: cpx_nps4}\n");
    EXPECT_THAT(apart.waiting(), IsEmpty()) << "a node for each";
}

TEST(Play, an_mps_server_serves_one_tenant) {
    const Told two = told(
        "kind: Cluster\nnodes: [{name: m, gpus: 1}]\njobs:\n"
        "  - {name: a, tenant: a, gpus: 0.5}\n"
        "  - {name: b, tenant: b, gpus: 0.5}\n"
        "  - {name: a2, tenant: a, gpus: 0.5}\n");
    EXPECT_THAT(two.running(), ElementsAre("a", "a2"));
    EXPECT_THAT(two.waiting(), ElementsAre("b"));
}

TEST(Play, resubmitted_it_waits_again_and_nobody_goes_round_in_circles) {
    const Told after = told(lent, {.resubmit = true});
    EXPECT_TRUE(after.played.settled);
    EXPECT_EQ(after.played.evictions.size(), 1u);
    EXPECT_THAT(after.waiting(), ElementsAre("sweep"));
    EXPECT_EQ(after.played.tenants[0].held, Gpus::whole(8));
    EXPECT_EQ(after.played.tenants[1].held, Gpus::whole(8));
}

TEST(Play, time_passes_only_where_cycles_are_asked_for) {
    const std::string text = std::string{lent} + "settings: {reclaimMinRuntime: 190m}\n";
    EXPECT_THAT(told(text).played.evictions, IsEmpty()) << "nobody has run for that long";
    const Told later = told(text, {.cycles = 15});
    EXPECT_EQ(later.played.cycles, 15);
    ASSERT_EQ(later.played.evictions.size(), 1u);
    EXPECT_EQ(later.name(later.played.evictions.front().what.workload), "sweep");
    EXPECT_EQ(later.played.evictions.front().cycle, 11) << "ten minutes later";
    EXPECT_THAT(later.running(), ElementsAre("pretrain", "chat"));
}

TEST(Play, what_is_held_back_waits_with_its_reason) {
    Told one = told("kind: Cluster\nnodes: [{name: m}]\njobs: [{name: j}]\n");
    one.scene.jobs.front().held_back = Reason{"wait.frozen", {}};
    const Played played = play(one.scene, {});
    EXPECT_THAT(played.running, IsEmpty());
    ASSERT_EQ(played.waiting.size(), 1u);
    EXPECT_EQ(played.waiting.front().reasons, std::vector<Reason>{*one.scene.jobs.front().held_back});
}

TEST(Play, one_scene_gives_one_answer) {
    const Told once = told(lent, {.resubmit = true}), again = told(lent, {.resubmit = true});
    EXPECT_EQ(once.running(), again.running());
    EXPECT_EQ(once.waiting(), again.waiting());
    for (std::size_t i = 0; i < once.played.running.size(); ++i)
        EXPECT_EQ(once.played.running[i].tasks.front().gpus, again.played.running[i].tasks.front().gpus);
}

}  // namespace
}  // namespace bulkhead::sched
