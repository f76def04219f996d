// Commands that end by themselves: how the workload ended is how its command did, and a gang ends as a whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

class Exit : public testing::Test {
protected:
    Exit() {
        EXPECT_TRUE(plane
                        .apply("apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: lab}\n"
                               "spec: {class: research, priorityGrant: 50}\n")
                        .outcome);
    }
    // Two GPUs for each task: one task on each node.
    void submit(int tasks) {
        ASSERT_TRUE(plane
                        .apply("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: train}\n"
                               "spec: {tenant: lab, gpu: {count: 2, mechanism: whole}, command: [/bin/train], tasks: " +
                               std::to_string(tasks) + "}\n")
                        .outcome);
        plane.settle();
        ASSERT_EQ(status().phase, WorkloadPhase::running);
        for (const auto& [name, node] : plane.nodes)
            for (const Key key : node->model.running()) {
                on.push_back(name);
                lease = key;
            }
        ASSERT_EQ(on.size(), static_cast<std::size_t>(tasks));
    }
    void ends(const std::string& node, std::int64_t with, const std::string& output = {}) {
        plane.exit(node, {lease, with, output});
        plane.settle();
    }
    GpuWorkloadStatus status() const { return *plane.workload("train").status; }
    std::size_t running() const {
        std::size_t count = 0;
        for (const auto& [name, node] : plane.nodes) count += node->model.running().size();
        return count;
    }
    void expect_over(std::int64_t with) {
        const WorkloadPhase phase = with == 0 ? WorkloadPhase::finished : WorkloadPhase::failed;
        EXPECT_EQ(status().phase, phase);
        EXPECT_EQ(status().exitStatus, with);
        EXPECT_EQ(status().lease, "");
        EXPECT_EQ(running(), 0u);
        EXPECT_TRUE(plane.core->snapshot().leases.empty());
        EXPECT_EQ(plane.logged("lease-closed"), 1);
        plane.restart(2);
        for (const auto& [name, node] : plane.nodes) plane.hello(name);
        plane.settle(200);
        EXPECT_EQ(status().phase, phase) << "it is not run again";
        EXPECT_EQ(status().exitStatus, with);
        EXPECT_EQ(plane.logged("leased"), 1);
    }

    Plane plane{2};
    Key lease = 0;
    std::vector<std::string> on;
};

TEST_F(Exit, a_command_that_ended_well_finishes_its_workload) {
    submit(1);
    ends(on[0], 0, "loss 0.1\n");
    EXPECT_EQ(status().output, "loss 0.1\n");
    expect_over(0);
}

TEST_F(Exit, a_command_that_failed_fails_it_with_its_status) {
    submit(1);
    ends(on[0], 137, "killed\x1b[2J");
    EXPECT_EQ(status().output, "killed?[2J") << "what a tenant prints is anybody's bytes";
    expect_over(137);
}

TEST_F(Exit, one_member_that_failed_ends_its_gang) {
    submit(2);
    ends(on[1], 3);
    EXPECT_EQ(running(), 0u) << "the other was stopped";
    const auto ending = std::ranges::find_if(
        plane.log, [](const std::string& payload) { return payload.find("lease-ending") != std::string::npos; });
    ASSERT_NE(ending, plane.log.end());
    EXPECT_THAT(*ending, HasSubstr("its command ended with status 3 on " + on[1]));
    expect_over(3);
}

TEST_F(Exit, a_gang_is_finished_when_all_of_it_has_ended_well) {
    submit(2);
    ends(on[0], 0);
    EXPECT_EQ(status().phase, WorkloadPhase::running) << "the other goes on";
    EXPECT_FALSE(status().exitStatus);
    EXPECT_EQ(running(), 2u) << "its part is kept until all of it is given back";
    ends(on[1], 0);
    expect_over(0);
}

TEST_F(Exit, the_last_of_a_gang_may_still_fail_it) {
    submit(2);
    ends(on[0], 0);
    ends(on[1], 9);
    expect_over(9);
}

}  // namespace
}  // namespace bulkhead
