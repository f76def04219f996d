// The picture of a fleet: what is drawn, and what is said beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "bulkhead/cli/fleet_text.hpp"

namespace bulkhead::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// Four GPUs, of which the first is held and the first two are drained.
Snapshot fleet_of_one() {
    Snapshot fleet;
    GpuNode& node = fleet.nodes.emplace_back();
    node.metadata.name = "n0";
    node.spec.site = "fra";
    node.status.phase = NodePhase::ready;
    const auto gpu = [&](CleanState state, std::string lease, std::string draining) {
        node.status.gpus.push_back({.model = "h100-80gb-sxm5",
                                    .slices = {{.profile = {}, .start = 0, .state = state, .lease = std::move(lease)}},
                                    .draining = std::move(draining)});
    };
    gpu(CleanState::in_use, "l1", "Xid 63");
    gpu(CleanState::quarantined, "", "Xid 63");
    gpu(CleanState::available, "", "");
    gpu(CleanState::available, "", "");
    GpuLease& lease = fleet.leases.emplace_back();
    lease.metadata.name = "l1";
    lease.spec.tenant = "acme";
    lease.spec.workload = "train";
    return fleet;
}

std::string drawn(const Snapshot& fleet) {
    std::ostringstream out;
    EXPECT_TRUE(print_fleet(out, fleet, "", false));
    return out.str();
}

TEST(FleetPicture, says_which_gpus_are_drained_and_why) {
    const std::string text = drawn(fleet_of_one());
    EXPECT_THAT(text, HasSubstr("gpu0     [########] h100-80gb-sxm5  acme/train  draining: Xid 63\n"));
    EXPECT_THAT(text, HasSubstr("gpu1     [xxxxxxxx] h100-80gb-sxm5  draining: Xid 63\n"));
    EXPECT_THAT(text, HasSubstr("gpu2-3   [........] h100-80gb-sxm5\n"));
    EXPECT_THAT(text, HasSubstr(". 16 available  # 8 in use  ~ 0 being wiped  x 8 quarantined"));
}

TEST(FleetPicture, says_why_a_drive_is_quarantined_and_what_to_do) {
    Snapshot fleet = fleet_of_one();
    fleet.nodes[0].status.drives = {
        {.serial = "S0", .size = {}, .state = CleanState::available, .lease = {}},
        {.serial = "S1", .size = {}, .state = CleanState::quarantined, .lease = {}, .why = "it is worn; replace it"}};
    const std::string text = drawn(fleet);
    EXPECT_THAT(text, HasSubstr("  drive0   available \n"));
    EXPECT_THAT(text, HasSubstr("  drive1   quarantined  S1: it is worn; replace it\n"));
}

TEST(FleetPicture, joins_gpus_only_when_the_same_is_true_of_them) {
    Snapshot fleet = fleet_of_one();
    fleet.nodes[0].status.gpus[3].draining = "Xid 92";
    const std::string text = drawn(fleet);
    EXPECT_THAT(text, Not(HasSubstr("gpu2-3")));
    EXPECT_THAT(text, HasSubstr("gpu3     [........] h100-80gb-sxm5  draining: Xid 92\n"));
}

TEST(FleetPicture, says_what_a_node_found_at_its_own_fences) {
    Snapshot fleet = fleet_of_one();
    GpuNodeStatus& status = fleet.nodes[0].status;
    status.functions.resize(2);
    status.functions[0].physical = "0000:3b:00.0";
    status.functions[1].physical = "0000:af:00.0";
    EXPECT_THAT(drawn(fleet), Not(HasSubstr("fences")));
    NodeFabricTest closed{.nic = "0000:3b:00.0", .fence = FabricFence::on, .found = FabricFound::closed};
    closed.grade = Grade::emulated;
    closed.stopped = {"forged-mac", "forged-gid"};
    closed.record = 42;
    NodeFabricTest open = closed;
    open.fence = FabricFence::nic;
    open.found = FabricFound::open;
    open.through = {"forged-gid"};
    open.record = 43;
    status.fabricTests = {closed, open};
    const std::string text = drawn(fleet);
    EXPECT_THAT(text, HasSubstr("  fences of 0000:3b:00.0: closed (2 stopped), emulated, log record 42\n"));
    EXPECT_THAT(text, HasSubstr("  fences of 0000:3b:00.0 alone: open to forged-gid, emulated, log record 43\n"));
    EXPECT_THAT(text, HasSubstr("  fences of 0000:af:00.0: not tested\n"));
}

TEST(FleetPicture, says_where_neighbours_can_profile_each_other) {
    Snapshot fleet = fleet_of_one();
    EXPECT_THAT(drawn(fleet), Not(HasSubstr("performance counters"))) << "nobody said anything";
    fleet.nodes[0].status.profilingRestricted = true;
    EXPECT_THAT(drawn(fleet), Not(HasSubstr("performance counters")));
    fleet.nodes[0].status.profilingRestricted = false;
    EXPECT_THAT(drawn(fleet), HasSubstr("its driver lets every process read performance counters\n"));
}

TEST(FleetPicture, of_a_node_that_is_not_there_is_none) {
    std::ostringstream out;
    EXPECT_FALSE(print_fleet(out, fleet_of_one(), "n7", false));
    EXPECT_TRUE(out.str().empty());
}

}  // namespace
}  // namespace bulkhead::cli
