#include "bulkhead/hw/topology/topology.hpp"

#include <gtest/gtest.h>

namespace bulkhead::topology {
namespace {

// Two sockets. The first has two NUMA nodes, and a switch with two GPUs beside a third GPU on the first of them; the
// last device hangs on the machine as a whole, as firmware leaves it that says nothing.
const std::string two_sockets = BULKHEAD_SOURCE_DIR "/testdata/hwloc/two-sockets.xml";

TEST(Topology, tells_where_a_device_sits_by_either_way_of_writing_its_address) {
    const auto machine = Machine::open(two_sockets);
    ASSERT_TRUE(machine) << machine.error().what;
    const Position wanted{.bus = "0000:13:00.0",
                          .numa = 0,
                          .cpus = "0-1,8-9",
                          .bridges = {"0000:10:01.0", "0000:11:00.0", "0000:12:00.0"}};
    EXPECT_EQ(machine->position("00000000:13:00.0"), wanted);
    EXPECT_EQ(machine->position("0000:13:00.0"), wanted);
}

TEST(Topology, what_is_not_there_is_unknown) {
    const auto machine = Machine::open(two_sockets);
    ASSERT_TRUE(machine) << machine.error().what;
    EXPECT_FALSE(machine->position("00000000:99:00.0"));
    EXPECT_FALSE(machine->position("no address"));
    EXPECT_FALSE(machine->meeting("00000000:13:00.0", "00000000:99:00.0"));
    const auto loose = machine->position("0000:80:00.0");
    ASSERT_TRUE(loose);
    EXPECT_FALSE(loose->numa) << "it hangs on all of them, which is none that is known";
    EXPECT_EQ(loose->cpus, "");
    EXPECT_FALSE(machine->meeting("0000:80:00.0", "0000:13:00.0"));
}

TEST(Topology, two_devices_meet_where_their_ways_do) {
    const auto machine = Machine::open(two_sockets);
    ASSERT_TRUE(machine) << machine.error().what;
    struct Row {
        const char *says, *one, *other;
        Meeting meeting;
    };
    const Row rows[] = {
        {"below one switch", "0000:13:00.0", "0000:15:00.0", Meeting::bridge},
        {"beside the switch, on the same NUMA node", "0000:13:00.0", "0000:17:00.0", Meeting::numa},
        {"on the other NUMA node of the socket", "0000:13:00.0", "0000:31:00.0", Meeting::socket},
        {"on the other socket", "0000:13:00.0", "0000:51:00.0", Meeting::machine},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(machine->meeting(row.one, row.other), row.meeting) << row.says;
        EXPECT_EQ(machine->meeting(row.other, row.one), row.meeting) << row.says << ", and back";
    }
}

TEST(Topology, a_file_that_is_none_is_an_error_that_names_it) {
    const auto machine = Machine::open("/nonexistent/machine.xml");
    ASSERT_FALSE(machine);
    EXPECT_NE(machine.error().what.find("/nonexistent/machine.xml"), std::string::npos) << machine.error().what;
}

TEST(Topology, this_machine_can_be_looked_at) { EXPECT_TRUE(Machine::open()); }

}  // namespace
}  // namespace bulkhead::topology
