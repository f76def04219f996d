// Why a drive is out of use, as operators read it.
#include <gmock/gmock.h>

#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

NodeDrive drive_of(const Plane& plane) { return plane.node("n0").status.drives.at(0); }

TEST(OutOfUse, a_drive_says_why_it_is_quarantined_and_what_to_do_until_it_is_wiped) {
    Plane plane{1};
    EXPECT_THAT(drive_of(plane).why, IsEmpty());
    plane.fault("n0", {.kind = UnitKind::drive, .device = 0, .why = "S1 is gone from this machine; put it back"});
    EXPECT_EQ(drive_of(plane).state, CleanState::quarantined);
    EXPECT_EQ(drive_of(plane).why,
              "S1 is gone from this machine; put it back; when that is settled: bulkhead repair n0 drive0 --why ...");
    plane.fault("n0", {.kind = UnitKind::drive, .device = 0, .why = "S1 is in use: nvme0n1 is part of md127"});
    const std::string newest =
        "S1 is in use: nvme0n1 is part of md127; when that is settled: bulkhead repair n0 drive0 --why ...";
    EXPECT_EQ(drive_of(plane).why, newest);
    plane.restart(2);
    plane.hello("n0");
    EXPECT_EQ(drive_of(plane).why, newest) << "also to the process that comes after";
    ASSERT_TRUE(
        plane.ask(command::Repair{.node = "n0", .kind = UnitKind::drive, .device = 0, .why = "md stopped"}).outcome);
    plane.settle();
    EXPECT_EQ(drive_of(plane).state, CleanState::available);
    EXPECT_THAT(drive_of(plane).why, IsEmpty());
}

TEST(OutOfUse, a_wipe_that_failed_is_the_reason) {
    Plane plane{1};
    plane.nodes["n0"]->model.faults({UnitKind::drive, 0}).fail = 10;
    plane.fault("n0", {.kind = UnitKind::drive, .device = 0, .why = "worn"});
    ASSERT_TRUE(
        plane.ask(command::Repair{.node = "n0", .kind = UnitKind::drive, .device = 0, .why = "looked"}).outcome);
    plane.settle();
    ASSERT_EQ(plane.logged("wipe-failed"), 1);
    EXPECT_EQ(drive_of(plane).state, CleanState::quarantined);
    EXPECT_THAT(drive_of(plane).why,
                AllOf(Not(HasSubstr("worn")), HasSubstr("; when that is settled: bulkhead repair n0 drive0")));
}

TEST(OutOfUse, a_node_cannot_write_more_than_a_line_there) {
    Plane plane{1};
    plane.fault("n0", {.kind = UnitKind::drive, .device = 0, .why = "worn\nout"});
    EXPECT_EQ(drive_of(plane).why,
              "its node gives no reason that can be shown; when that is settled: bulkhead repair n0 drive0 --why ...");
}

}  // namespace
}  // namespace bulkhead
