// What a node says of a GPU that it drains, when, and to whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/node/rig_test.hpp"

namespace bulkhead {
namespace {

using testing::ElementsAre;

constexpr UnitKind gpu_memory = UnitKind::memory;

TEST(NodeDrain, its_hello_names_the_gpus_that_are_drained_and_why) {
    Rig rig{{.gpus = 4}};
    const auto told = [&] {
        const Hello hello = rig.executor->hello(rig.model.inventory(), rig.model.boot_id());
        std::vector<std::pair<std::int64_t, std::string>> groups;
        for (const NodeGpus& group : hello.inventory.gpus) groups.emplace_back(group.count, group.draining);
        return groups;
    };
    EXPECT_THAT(told(), ElementsAre(std::pair{4, ""}));
    rig.carry(rig.executor->on_fault(rig.now, {gpu_memory, 1, "Xid 63", true}));
    EXPECT_THAT(told(), ElementsAre(std::pair{1, ""}, std::pair{1, "Xid 63"}, std::pair{2, ""}));
    rig.carry(rig.executor->on_fault(rig.now, {gpu_memory, 3, "Xid 92", true}));
    rig.restart();
    EXPECT_THAT(told(),
                ElementsAre(std::pair{1, ""}, std::pair{1, "Xid 63"}, std::pair{1, ""}, std::pair{1, "Xid 92"}));
    rig.order(Sanitize{.wipes = {{.kind = gpu_memory, .device = 1, .size = 8, .ticket = rig.key(), .burn_in = true}}});
    EXPECT_THAT(told(), ElementsAre(std::pair{3, ""}, std::pair{1, "Xid 92"}));
}

// A wipe that anybody could take for the end of it is followed by the drain; one that burnt a part in is not, or that
// part would go out of use again and never wait for the rest.
TEST(NodeDrain, is_said_again_after_a_wipe_and_not_after_a_burn_in) {
    Rig rig{{.gpus = 1}};
    rig.clean_all();
    const Prepare stays = rig.half(4);
    rig.order(stays);
    rig.carry(rig.executor->on_fault(rig.now, {gpu_memory, 0, "Xid 63", true}));
    const auto faults_after = [&](decltype(Order::what) what) {
        rig.carry(rig.executor->on_ack(rig.executor->ledger().reports));
        rig.reports.clear();
        rig.order(std::move(what));
        EXPECT_TRUE(rig.last<WipeReport>().verified);
        return rig.all<FaultReport>().size();
    };
    const auto part = [&](bool burn_in) {
        return Sanitize{.wipes = {{.kind = gpu_memory, .size = 4, .ticket = rig.key(), .burn_in = burn_in}}};
    };
    EXPECT_EQ(faults_after(part(false)), 1u);
    EXPECT_EQ(faults_after(part(true)), 0u);
    EXPECT_TRUE(rig.executor->ledger().draining.contains({gpu_memory, 0})) << "the other half is somebody's";
    EXPECT_EQ(faults_after(rig.release_of(stays)), 1u);
}

}  // namespace
}  // namespace bulkhead
