// Work that is stopped for others and comes back: saved where it says how, told where it was, and what was lost
// counted.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// Four GPUs, all of them the early tenant's until their owner asks for two.
struct Interrupted : Plane {
    Interrupted() : Plane{2} { apply_a_lab(); }
    void submit(const std::string& name, const std::string& owner, int tasks, const std::string& more) {
        const Answer answer = apply("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: " + name +
                                    "}\nspec: {tenant: " + owner + ", gpu: {count: 1, mechanism: whole}, tasks: " +
                                    std::to_string(tasks) + ", preemptible: true" + more + "}\n");
        ASSERT_TRUE(answer.outcome) << answer.outcome.error().what;
    }
    // The gang runs for an hour, then its owner takes two GPUs and gives them back an hour later.
    void interrupt(const std::string& more) {
        submit("gang", "early", 4, more);
        settle();
        ASSERT_EQ(workload("gang").status->phase, WorkloadPhase::running);
        settle(3600);
        submit("claim", "owner", 2, "");
        settle(60);
        ASSERT_EQ(workload("claim").status->phase, WorkloadPhase::running);
    }
    void come_back() {
        ASSERT_TRUE(remove(ObjectKind::workload, "claim").outcome);
        settle(120);
        ASSERT_EQ(workload("gang").status->phase, WorkloadPhase::running);
    }
    WorkHistory history() const { return workload("gang").status->history; }
    // Of the orders to let go: which of them say that the work is to be saved.
    std::vector<bool> saves_ordered() const {
        std::vector<bool> saves;
        for (const Order& order : orders)
            if (const auto* release = std::get_if<Release>(&order.what)) saves.push_back(release->save);
        return saves;
    }
    // The environment of the latest orders to prepare it, by rank.
    std::vector<std::vector<std::string>> told(std::size_t nodes) const {
        std::vector<std::vector<std::string>> found;
        for (auto order = orders.rbegin(); order != orders.rend() && found.size() < nodes; ++order)
            if (const auto* prepare = std::get_if<Prepare>(&order->what); prepare && prepare->workload == "gang")
                found.insert(found.begin(), prepare->program.environment);
        return found;
    }
    std::string last(const std::string& kind, const std::string& about) const {
        for (auto entry = log.rbegin(); entry != log.rend(); ++entry)
            if (entry->starts_with("{\"kind\":\"" + kind + "\"") && entry->contains(about)) return *entry;
        return {};
    }
};

constexpr const char* with_hook =
    ", command: [train], environment: [MINE=1, BULKHEAD_NODES=99], "
    "checkpoint: {command: [save], within: 30s}";

TEST(Interrupted, a_gang_is_told_which_of_its_nodes_is_which) {
    Interrupted plane;
    plane.submit("gang", "early", 4, with_hook);
    plane.settle();
    const auto told = plane.told(2);
    ASSERT_EQ(told.size(), 2u);
    for (std::size_t rank = 0; rank < 2; ++rank) {
        EXPECT_THAT(told[rank], Contains("MINE=1"));
        EXPECT_THAT(told[rank], Contains("BULKHEAD_WORKLOAD=gang"));
        EXPECT_THAT(told[rank], Contains("BULKHEAD_NODES=2"));
        EXPECT_THAT(told[rank], Not(Contains("BULKHEAD_NODES=99")));
        EXPECT_THAT(told[rank], Contains("BULKHEAD_NODE_RANK=" + std::to_string(rank)));
        EXPECT_THAT(told[rank], Contains("BULKHEAD_TASKS=4"));
        EXPECT_THAT(told[rank], Contains("BULKHEAD_START=1"));
        EXPECT_THAT(told[rank], Not(Contains(StartsWith("BULKHEAD_CHECKPOINT="))));
    }
}

TEST(Interrupted, what_was_saved_on_each_node_is_handed_to_the_node_of_its_rank) {
    Interrupted plane;
    plane.interrupt(with_hook);
    EXPECT_EQ(plane.history().interruptions, 1);
    EXPECT_EQ(plane.history().lost, Duration{});
    EXPECT_TRUE(plane.history().savedAt);
    ASSERT_EQ(plane.history().saved.size(), 2u);
    EXPECT_THAT(plane.last("lease-closed", "GpuWorkload/gang"), HasSubstr("\"lost-gpu-ms\":\"0\""));
    plane.come_back();
    EXPECT_EQ(plane.history().starts, 2);
    const auto told = plane.told(2);
    ASSERT_EQ(told.size(), 2u);
    for (std::size_t rank = 0; rank < 2; ++rank) {
        EXPECT_THAT(told[rank], Contains("BULKHEAD_START=2"));
        EXPECT_THAT(told[rank], Contains("BULKHEAD_CHECKPOINT=" + plane.history().saved[rank]));
    }
}

TEST(Interrupted, a_new_process_knows_what_was_saved) {
    Interrupted plane;
    plane.interrupt(with_hook);
    const WorkHistory before = plane.history();
    plane.restart(2);
    for (const char* name : {"n0", "n1"}) plane.hello(name);
    plane.settle();
    EXPECT_EQ(plane.history(), before);
    plane.come_back();
    ASSERT_EQ(plane.told(2).size(), 2u);
    EXPECT_THAT(plane.told(2)[1], Contains("BULKHEAD_CHECKPOINT=" + before.saved.at(1)));
}

TEST(Interrupted, what_nobody_saves_is_lost_from_the_start) {
    Interrupted plane;
    plane.interrupt("");
    EXPECT_EQ(plane.history().interruptions, 1);
    EXPECT_GE(plane.history().lost, Duration::hours(4)) << "an hour of four GPUs";
    EXPECT_LT(plane.history().lost, Duration::hours(5));
    EXPECT_THAT(plane.last("lease-closed", "GpuWorkload/gang"), HasSubstr("nothing was saved"));
}

TEST(Interrupted, what_saves_itself_loses_no_more_than_it_says) {
    Interrupted plane;
    plane.interrupt(", checkpointInterval: 10m");
    EXPECT_EQ(plane.history().lost, Duration{4 * 600'000});
    EXPECT_THAT(plane.last("lease-closed", "GpuWorkload/gang"), HasSubstr("\"lost-gpu-ms\":\"2400000\""));
}

TEST(Interrupted, what_is_deleted_is_neither_saved_nor_counted) {
    Interrupted plane;
    plane.submit("gang", "early", 4, with_hook);
    plane.settle();
    plane.orders.clear();
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "gang").outcome);
    plane.settle();
    EXPECT_THAT(plane.saves_ordered(), AllOf(Not(IsEmpty()), Each(false)));
    EXPECT_THAT(plane.last("lease-closed", "GpuWorkload/gang"), Not(HasSubstr("lost")));
}

TEST(Interrupted, one_node_that_did_not_save_loses_the_gangs_work) {
    Interrupted plane;
    plane.submit("gang", "early", 4, with_hook);
    plane.settle(3600);
    ASSERT_EQ(plane.workload("gang").status->phase, WorkloadPhase::running);
    // Its processes are gone from one node, and nobody noticed.
    NodeModel& gone = plane.nodes["n1"]->model;
    ASSERT_EQ(gone.running().size(), 1u);
    ASSERT_TRUE(gone.carry_out({1'000'000, StopTenant{gone.running().front()}})->ok);
    plane.submit("claim", "owner", 2, "");
    plane.settle(60);
    EXPECT_EQ(plane.history().interruptions, 1);
    EXPECT_FALSE(plane.history().savedAt);
    EXPECT_TRUE(plane.history().saved.empty());
    EXPECT_GE(plane.history().lost, Duration::hours(3));
    EXPECT_THAT(plane.last("lease-closed", "GpuWorkload/gang"), HasSubstr("not saved on n1: it did not run"));
}

TEST(Interrupted, who_is_frozen_is_stopped_at_once) {
    Interrupted plane;
    plane.submit("gang", "early", 4, with_hook);
    plane.settle();
    plane.orders.clear();
    ASSERT_TRUE(plane.ask(command::Freeze{.tenant = "early", .on = true, .why = "an incident"}).outcome);
    plane.settle();
    EXPECT_THAT(plane.saves_ordered(), AllOf(Not(IsEmpty()), Each(false)));
}

// The node's word was durable, and its acknowledgement was not: it says it again to the next process.
TEST(Interrupted, a_word_that_is_heard_twice_is_one_nodes_word) {
    Interrupted plane;
    plane.submit("gang", "early", 4, with_hook);
    plane.settle();
    plane.nodes["n1"]->reachable = false;
    plane.submit("claim", "owner", 2, "");
    plane.settle(3);
    Key lease = 0;
    for (const Order& order : plane.orders)
        if (const auto* release = std::get_if<Release>(&order.what)) lease = release->lease;
    ASSERT_NE(lease, 0);
    plane.restart(2);
    plane.hello("n0");
    plane.event(AgentReport{"n0",
                            plane.nodes["n0"]->session,
                            {1'000, LeaseReport{.lease = lease,
                                                .phase = PartPhase::stopped,
                                                .why = {},
                                                .saved = Saved{true, fmt::format("n0 lease {}", lease)}}}});
    plane.nodes["n1"]->reachable = true;
    plane.hello("n1");
    plane.settle(60);
    ASSERT_EQ(plane.history().saved.size(), 2u);
    EXPECT_EQ(plane.history().saved[0], fmt::format("n0 lease {}", lease));
    EXPECT_EQ(plane.history().saved[1], fmt::format("n1 lease {}", lease));
}

TEST(Interrupted, the_words_of_a_gang_of_another_size_or_another_command_are_nobodys) {
    Interrupted plane;
    plane.interrupt(with_hook);
    ASSERT_EQ(plane.history().saved.size(), 2u);
    plane.submit("gang", "early", 2, with_hook);
    EXPECT_TRUE(plane.history().saved.empty());
    EXPECT_EQ(plane.history().interruptions, 1) << "what it went through is not forgotten";
}

TEST(Interrupted, nobody_waits_for_work_to_be_saved_for_longer_than_the_fleet_allows) {
    Interrupted plane;
    const Answer answer = plane.apply(
        "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: gang}\nspec: {tenant: early, gpu: "
        "{count: 1}, command: [train], checkpoint: {command: [save], within: 6m}}\n");
    ASSERT_FALSE(answer.outcome);
    ASSERT_FALSE(answer.findings.empty());
    EXPECT_EQ(answer.findings.front().path, "/spec/checkpoint/within");
    EXPECT_THAT(answer.findings.front().what, HasSubstr("waits 5m at most"));
}

TEST(Interrupted, a_checkpoint_without_a_command_is_refused_with_its_place) {
    Interrupted plane;
    const Answer answer = plane.apply(
        "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: gang}\nspec: {tenant: early, gpu: "
        "{count: 1}, checkpoint: {command: [save]}}\n");
    ASSERT_FALSE(answer.outcome);
    ASSERT_FALSE(answer.findings.empty());
    EXPECT_EQ(answer.findings.front().path, "/spec/checkpoint/command");
}

}  // namespace
}  // namespace bulkhead
