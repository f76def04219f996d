// A GPU that its node drains takes nobody new, at once and over every restart, until all of it has passed a burn-in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

class Drain : public testing::Test {
protected:
    Drain() {
        EXPECT_TRUE(plane
                        .apply("apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: lab}\n"
                               "spec: {class: research, priorityGrant: 50}\n")
                        .outcome);
    }
    void submit(const std::string& name, const std::string& gpu) {
        ASSERT_TRUE(plane
                        .apply("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: " + name +
                               "}\nspec: {tenant: lab, gpu: {" + gpu + "}}\n")
                        .outcome);
        plane.settle();
    }
    bool runs(const std::string& name) const { return plane.workload(name).status->phase == WorkloadPhase::running; }
    // Which GPU of n0 it has a part of; none: one that there is not.
    std::uint16_t gpu_of(const std::string& name) const {
        const GpuLease lease = plane.find<GpuLease>(plane.workload(name).status->lease);
        EXPECT_EQ(lease.spec.slices.size(), 1u) << name;
        return lease.spec.slices.size() == 1 ? static_cast<std::uint16_t>(lease.spec.slices[0].gpu) : 0xFFFF;
    }
    // Whoever comes now goes elsewhere.
    void expect_that_only_one_stays_on(std::uint16_t gpu) {
        submit("two", "fraction: 0.25");
        EXPECT_NE(gpu_of("two"), gpu);
        EXPECT_TRUE(runs("one"));
    }
    void strike(std::uint16_t gpu, const std::string& why = "Xid 63") {
        plane.fault("n0", {UnitKind::memory, gpu, why, true});
    }
    NodeGpus shown(std::uint16_t gpu) const { return plane.node("n0").status.gpus[gpu]; }
    int in_state(std::uint16_t gpu, CleanState state) const {
        int runs_of_slices = 0;
        for (const GpuSlice& slice : shown(gpu).slices) runs_of_slices += slice.state == state ? 1 : 0;
        return runs_of_slices;
    }
    bool repair(std::uint16_t gpu) {
        const bool done =
            plane.ask(command::Repair{.node = "n0", .kind = UnitKind::memory, .device = gpu, .why = "seen"})
                .outcome.has_value();
        plane.settle();
        return done;
    }
    void remove(const std::string& name) {
        ASSERT_TRUE(plane.remove(ObjectKind::workload, name).outcome);
        plane.settle();
    }
    void restart() {
        plane.restart(++epoch);
        for (const auto& [name, node] : plane.nodes) plane.hello(name);
        plane.settle();
    }
    std::int64_t prepares_for(std::uint16_t gpu) const {
        std::int64_t count = 0;
        for (const Order& order : plane.orders)
            if (const auto* prepare = std::get_if<Prepare>(&order.what))
                for (const GpuPart& part : prepare->gpus) count += part.gpu == gpu ? 1 : 0;
        return count;
    }

    Plane plane{1};
    std::int64_t epoch = 1;
};

TEST_F(Drain, nobody_comes_to_share_a_gpu_that_is_drained) {
    submit("one", "fraction: 0.25");
    const std::uint16_t gpu = gpu_of("one");
    submit("two", "fraction: 0.25");
    ASSERT_EQ(gpu_of("two"), gpu) << "they share, as long as nothing is wrong";
    strike(gpu);
    EXPECT_EQ(shown(gpu).draining, "Xid 63") << "at once";
    EXPECT_EQ(plane.logged("draining"), 1);
    EXPECT_TRUE(runs("one") && runs("two")) << "who is there stays";
    const std::int64_t before = prepares_for(gpu);
    submit("three", "fraction: 0.25");
    EXPECT_NE(gpu_of("three"), gpu);
    submit("four", "count: 1, mechanism: whole");
    EXPECT_FALSE(runs("four")) << "the other GPU is shared, and this one is no place";
    EXPECT_EQ(prepares_for(gpu), before) << "the node is not even asked";
    EXPECT_TRUE(shown(static_cast<std::uint16_t>(1 - gpu)).draining.empty());
}

TEST_F(Drain, nobody_gets_the_free_slices_of_a_gpu_that_is_drained) {
    submit("one", "profile: 1g.10gb, mechanism: mig");
    const std::uint16_t gpu = gpu_of("one");
    strike(gpu);
    EXPECT_EQ(in_state(gpu, CleanState::available), 0);
    submit("two", "profile: 1g.10gb, mechanism: mig");
    EXPECT_NE(gpu_of("two"), gpu);
    EXPECT_TRUE(runs("one"));
}

TEST_F(Drain, outlives_the_control_plane) {
    submit("one", "fraction: 0.25");
    const std::uint16_t gpu = gpu_of("one");
    strike(gpu);
    // The rows alone: the node has not been heard of yet.
    plane.restart(++epoch);
    EXPECT_EQ(shown(gpu).draining, "Xid 63");
    restart();
    EXPECT_EQ(shown(gpu).draining, "Xid 63");
    EXPECT_EQ(plane.logged("draining"), 1) << "what is known is not news";
    expect_that_only_one_stays_on(gpu);
}

TEST_F(Drain, is_learned_again_from_the_nodes_hello_when_a_backup_has_forgotten_it) {
    submit("one", "fraction: 0.25");
    const std::uint16_t gpu = gpu_of("one");
    const auto backup = plane.rows;
    strike(gpu);
    plane.settle();
    plane.rows = backup;
    plane.restart(++epoch, true);
    EXPECT_TRUE(shown(gpu).draining.empty());
    plane.hello("n0");
    EXPECT_EQ(shown(gpu).draining, "Xid 63");
    EXPECT_EQ(plane.logged("draining"), 2);
    expect_that_only_one_stays_on(gpu);
}

TEST_F(Drain, is_over_when_all_of_the_gpu_has_passed_a_burn_in) {
    submit("one", "profile: 3g.40gb, mechanism: mig");
    const std::uint16_t gpu = gpu_of("one");
    strike(gpu);
    ASSERT_TRUE(repair(gpu)) << "what was free went out of use";
    EXPECT_GE(in_state(gpu, CleanState::available), 1) << "it has passed";
    EXPECT_EQ(shown(gpu).draining, "Xid 63") << "and somebody is still on the rest";
    submit("two", "profile: 1g.10gb, mechanism: mig");
    EXPECT_NE(gpu_of("two"), gpu);
    remove("one");
    EXPECT_GE(in_state(gpu, CleanState::quarantined), 1) << "wiped, and out of use";
    EXPECT_EQ(plane.logged("drain-over"), 0);
    // Two stretches of it were two tenants' until now: two wipes, of which the second ends it.
    ASSERT_TRUE(repair(gpu));
    EXPECT_EQ(shown(gpu).draining, "");
    EXPECT_EQ(plane.logged("drain-over"), 1);
    EXPECT_EQ(in_state(gpu, CleanState::quarantined), 0);
    const auto spare = static_cast<std::uint16_t>(1 - gpu);
    strike(spare);
    submit("three", "count: 1, mechanism: whole");
    EXPECT_EQ(gpu_of("three"), gpu) << "it is a GPU like others again";
}

TEST_F(Drain, said_anew_takes_back_what_had_passed) {
    submit("one", "profile: 3g.40gb, mechanism: mig");
    const std::uint16_t gpu = gpu_of("one");
    strike(gpu);
    ASSERT_TRUE(repair(gpu));
    strike(gpu);
    EXPECT_EQ(in_state(gpu, CleanState::available), 0) << "whatever it was, it came after the burn-in";
    strike(gpu, "Xid 92");
    EXPECT_EQ(shown(gpu).draining, "Xid 92");
    EXPECT_EQ(plane.logged("draining"), 2) << "one for each reason";
}

TEST_F(Drain, ends_by_no_wipe_that_burnt_nothing_in) {
    submit("one", "count: 1, mechanism: whole");
    const std::uint16_t gpu = gpu_of("one");
    strike(gpu);
    remove("one");
    EXPECT_EQ(in_state(gpu, CleanState::quarantined), 1);
    restart();
    EXPECT_EQ(in_state(gpu, CleanState::quarantined), 1);
    EXPECT_EQ(shown(gpu).draining, "Xid 63");
    ASSERT_TRUE(repair(gpu));
    EXPECT_EQ(shown(gpu).draining, "");
    EXPECT_EQ(in_state(gpu, CleanState::available), 1);
}

TEST_F(Drain, evicting_who_is_on_it_makes_no_room) {
    submit("one", "count: 1, mechanism: whole");
    submit("two", "count: 1, mechanism: whole");
    const std::uint16_t gpu = gpu_of("one");
    strike(gpu);
    strike(static_cast<std::uint16_t>(1 - gpu));
    ASSERT_TRUE(plane
                    .apply("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: urgent}\n"
                           "spec: {tenant: lab, priority: 50, gpu: {count: 1, mechanism: whole}}\n")
                    .outcome);
    plane.settle(600);
    EXPECT_TRUE(runs("one") && runs("two"));
    EXPECT_FALSE(runs("urgent"));
    EXPECT_FALSE(plane.workload("urgent").status->reasons.empty());
}

TEST_F(Drain, words_that_cannot_be_shown_are_not) {
    strike(0, "Xid\n63");
    EXPECT_THAT(shown(0).draining, HasSubstr("no reason that can be shown"));
    const int said = plane.logged("draining");
    plane.hello("n0");
    EXPECT_EQ(plane.logged("draining"), said);
}

}  // namespace
}  // namespace bulkhead
