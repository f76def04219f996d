// A node's drives over a machine in a folder and scripted drives: who has which number, who is left alone, and what a
// wipe says that an executor signs.
#include "bulkhead/agent/drives.hpp"

#include <gmock/gmock.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "bulkhead/agent/drive_rules.hpp"
#include "bulkhead/evidence/statement.hpp"
#include "bulkhead/hw/nvme/scripted_drive_test.hpp"
#include "bulkhead/hw/nvme/tree_test.hpp"
#include "bulkhead/node/executor.hpp"

namespace bulkhead::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NodeDrives : public ::testing::Test {
protected:
    explicit NodeDrives(const std::string& machine = "lab") : machine_{machine} {
        std::filesystem::create_directories(machine_.folder() / "agent");
        for (const char* serial : {"LAB-NVME-0", "LAB-NVME-1", "TENANT-A", "TENANT-B", "SYSTEM-A"})
            scripted_[serial].serial = serial;
        settings_.folder = machine_.folder() / "agent";
        settings_.tree = machine_.tree();
        settings_.erase.samples = 100;
        settings_.locks = machine_.folder() / "locks";
        settings_.open = [this](const nvme::Tree&,
                                const nvme::Drive& drive) -> Result<std::unique_ptr<nvme::Transport>> {
            return std::make_unique<nvme::ScriptedTransport>(scripted_.at(drive.serial));
        };
        settings_.clock.sleep = [](std::chrono::milliseconds) {};
    }
    std::unique_ptr<Drives> open(std::vector<std::string> tenant) {
        settings_.tenant = std::move(tenant);
        auto opened = Drives::open(settings_);
        EXPECT_TRUE(opened) << opened.error().what;
        return opened ? *std::move(opened) : nullptr;
    }
    static std::vector<std::string> serials(const Drives& drives) {
        std::vector<std::string> found;
        for (const NodeDrive& drive : drives.inventory()) found.push_back(drive.serial);
        return found;
    }
    // As an executor of a node with simulated GPUs has it done.
    static WipeReport wipe(Drives& drives, std::uint16_t number) {
        Executor executor{
            {.node = "n", .grade = Grade::simulated}, *evidence::SigningKey::from_seed(std::string(32, 'k')), {}};
        std::deque<Operation> begun;
        WipeReport answer;
        const auto take = [&](const Outcome& outcome) {
            begun.insert(begun.end(), outcome.begin.begin(), outcome.begin.end());
            for (const Report& report : outcome.reports)
                if (const auto* wiped = std::get_if<WipeReport>(&report.what)) answer = *wiped;
        };
        take(executor.resume({}, "boot"));
        take(executor.on_order({}, {1, Sanitize{{{UnitKind::drive, number, 0, 1, key_of(1, 1)}}}}));
        for (; !begun.empty(); begun.pop_front()) {
            OperationResult result;
            if (const auto* wiping = std::get_if<Wipe>(&begun.front().what)) result = drives.wipe(*wiping);
            if (const auto* reading = std::get_if<Verify>(&begun.front().what)) result = drives.verify(*reading);
            result.number = begun.front().number;
            take(executor.on_result({}, result));
        }
        return answer;
    }

    // A controller leaves the machine, and comes back.
    void pull(const std::string& controller) {
        std::filesystem::rename(machine_.folder() / "sys/class/nvme" / controller, machine_.folder() / controller);
    }
    void plug_in(const std::string& controller) {
        std::filesystem::rename(machine_.folder() / controller, machine_.folder() / "sys/class/nvme" / controller);
    }

    nvme::UnpackedTree machine_;
    std::map<std::string, nvme::ScriptedDrive> scripted_;
    DriveSettings settings_;
};
class ServerDrives : public NodeDrives {
protected:
    ServerDrives() : NodeDrives{"server"} {}
};

TEST_F(NodeDrives, a_wipe_is_verified_and_its_evidence_says_by_what_how_and_how_well_known) {
    const auto drives = open({"LAB-NVME-0"});
    const WipeReport wiped = wipe(*drives, 0);
    ASSERT_TRUE(wiped.verified) << wiped.why;
    const auto said = evidence::read_statement(wiped.evidence.statement);
    ASSERT_TRUE(said) << said.error().what;
    EXPECT_EQ(said->device, "LAB-NVME-0");
    EXPECT_EQ(said->model, "QEMU NVMe Ctrl");
    EXPECT_EQ(said->firmware, "10.0.13");
    EXPECT_EQ(said->method, "nvme-format-erase");
    EXPECT_EQ(said->grade, Grade::emulated) << "its GPUs are simulated; the drive is QEMU's";
    EXPECT_EQ(said->command, "admin 80h nsid 1h cdw10 00000200h");
    EXPECT_EQ(said->status, "00h (success)");
    EXPECT_EQ(said->skipped.size(), 3u);
    EXPECT_EQ(said->claim, "user data erase via Format (Purge per SP 800-88r1, since withdrawn)");
    EXPECT_THAT(said->samples,
                HasSubstr("places at random that could have told would all have missed it with probability"));
    EXPECT_EQ(said->bytes, 4 << 20);
    EXPECT_GT(said->bytes_verified, 0);
    EXPECT_EQ(said->digest.size(), 64u);
}

TEST_F(ServerDrives, evidence_says_that_it_was_read_in_a_virtual_machine_and_keeps_the_drives_grade) {
    const auto drives = open({"TENANT-A"});
    WipeReport wiped = wipe(*drives, 0);
    ASSERT_TRUE(wiped.verified) << wiped.why;
    auto said = evidence::read_statement(wiped.evidence.statement);
    ASSERT_TRUE(said);
    EXPECT_EQ(said->grade, Grade::silicon);
    EXPECT_THAT(said->samples, ::testing::Not(HasSubstr("virtual")));
    machine_.put("proc/cpuinfo", "flags\t\t: fpu hypervisor");
    machine_.put("sys/class/dmi/id/sys_vendor", "Somebody's Cloud");
    wiped = wipe(*drives, 0);
    ASSERT_TRUE(wiped.verified) << wiped.why;
    said = evidence::read_statement(wiped.evidence.statement);
    ASSERT_TRUE(said);
    EXPECT_EQ(said->grade, Grade::silicon) << "a drive that is passed through is a drive";
    EXPECT_THAT(said->samples, HasSubstr("read in a virtual machine (Somebody's Cloud), to which"));
}

TEST_F(NodeDrives, a_drive_that_lies_has_failed_at_once_and_without_a_claim) {
    const auto drives = open({"LAB-NVME-0"});
    scripted_["LAB-NVME-0"].lies = {1};
    const WipeReport wiped = wipe(*drives, 0);
    EXPECT_FALSE(wiped.verified);
    EXPECT_THAT(wiped.why, HasSubstr("bytes were left: "));
    const auto said = evidence::read_statement(wiped.evidence.statement);
    ASSERT_TRUE(said);
    EXPECT_EQ(said->claim, "");
    EXPECT_EQ(said->result, evidence::WipeResult::failed);
    EXPECT_EQ(scripted_["LAB-NVME-0"].received.size(), 1u) << "a second look could miss what this one met";
}

TEST_F(NodeDrives, a_verification_needs_a_wipe_of_this_very_process) {
    const auto drives = open({"LAB-NVME-0"});
    EXPECT_FALSE(drives->verify({UnitKind::drive, 0, 0, 1, 1}).ok);
    ASSERT_TRUE(drives->wipe({UnitKind::drive, 0, 0, 1}).ok);
    EXPECT_TRUE(drives->verify({UnitKind::drive, 0, 0, 1, 1}).ok);
    EXPECT_FALSE(drives->verify({UnitKind::drive, 0, 0, 1, 1}).ok) << "one wipe answers one verification";
}

TEST_F(NodeDrives, a_number_stays_with_its_serial_over_reboots_and_pulled_drives) {
    EXPECT_THAT(serials(*open({"LAB-NVME-0"})), ElementsAre("LAB-NVME-0"));
    EXPECT_THAT(serials(*open({"model:QEMU*"})), ElementsAre("LAB-NVME-0", "LAB-NVME-1"));
    machine_.remove("sys/class/nvme/nvme1");  // LAB-NVME-0 is pulled
    const auto drives = open({"model:QEMU*"});
    EXPECT_THAT(serials(*drives), ElementsAre("LAB-NVME-0", "LAB-NVME-1"));
    EXPECT_EQ(drives->inventory()[0].size.bytes, 256 << 20) << "as it was";
    const auto faults = drives->look();
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].kind, UnitKind::drive);
    EXPECT_EQ(faults[0].device, 0);
    EXPECT_THAT(faults[0].why, HasSubstr("LAB-NVME-0 is gone from this machine"));
    EXPECT_THAT(drives->look(), IsEmpty()) << "said once";
    const OperationResult refused = drives->wipe({UnitKind::drive, 0, 0, 1});
    EXPECT_FALSE(refused.ok);
    EXPECT_TRUE(refused.untouched);
    EXPECT_TRUE(drives->wipe({UnitKind::drive, 1, 0, 1}).ok) << "the other one is where it was";
    EXPECT_THAT(scripted_["LAB-NVME-0"].received, IsEmpty());
}

TEST_F(NodeDrives, one_that_is_plugged_in_later_gets_the_next_number_once_two_looks_have_seen_it_alike) {
    pull("nvme0");  // LAB-NVME-1
    auto drives = open({"LAB-NVME-0", "LAB-NVME-1"});
    EXPECT_THAT(serials(*drives), ElementsAre("LAB-NVME-0"));
    EXPECT_FALSE(drives->take_in_new());
    plug_in("nvme0");
    machine_.put("sys/class/nvme/nvme0/state", "connecting");
    EXPECT_FALSE(drives->take_in_new());
    EXPECT_FALSE(drives->take_in_new()) << "the kernel has not got it yet";
    machine_.put("sys/class/nvme/nvme0/state", "live");
    const std::filesystem::path second = machine_.folder() / "sys/class/nvme/nvme0/nvme0n2";
    std::filesystem::rename(second, machine_.folder() / "nvme0n2");
    EXPECT_FALSE(drives->take_in_new());
    std::filesystem::rename(machine_.folder() / "nvme0n2", second);
    EXPECT_FALSE(drives->take_in_new()) << "one more namespace than at the last look";
    EXPECT_THAT(serials(*drives), ElementsAre("LAB-NVME-0"));
    EXPECT_TRUE(drives->take_in_new());
    EXPECT_THAT(serials(*drives), ElementsAre("LAB-NVME-0", "LAB-NVME-1"));
    EXPECT_FALSE(drives->take_in_new()) << "told once";
    EXPECT_TRUE(is_drive_taken(settings_.locks, "LAB-NVME-1"));
    scripted_["LAB-NVME-1"].add(2);
    EXPECT_TRUE(drives->wipe({UnitKind::drive, 1, 0, 1}).ok);
    EXPECT_TRUE(drives->verify({UnitKind::drive, 1, 0, 1, 3}).ok);
    drives.reset();
    EXPECT_THAT(serials(*open({"LAB-NVME-1"})), ElementsAre("LAB-NVME-0", "LAB-NVME-1")) << "over a restart, too";
}

TEST_F(NodeDrives, one_that_comes_later_and_is_not_named_or_somebody_elses_is_left_alone) {
    pull("nvme0");
    const auto drives = open({"LAB-NVME-0"});
    plug_in("nvme0");
    for (int look = 0; look < 3; ++look) EXPECT_FALSE(drives->take_in_new());
    pull("nvme0");

    DriveSettings other = settings_;
    other.folder = machine_.folder() / "other";
    other.tenant = {"LAB-NVME-1"};
    std::filesystem::create_directories(other.folder);
    pull("nvme1");
    auto later = Drives::open(other);
    ASSERT_TRUE(later) << later.error().what;
    auto held = take_drive_lock(settings_.locks, "LAB-NVME-1");  // erase-drive, say
    ASSERT_TRUE(held);
    plug_in("nvme0");
    for (int look = 0; look < 3; ++look) EXPECT_FALSE((*later)->take_in_new());
    held->close();
    EXPECT_TRUE((*later)->take_in_new()) << "tried again";
    EXPECT_THAT(serials(**later), ElementsAre("LAB-NVME-1"));
}

TEST_F(NodeDrives, a_whole_kind_is_taken_in_at_a_start_alone) {
    pull("nvme0");
    auto drives = open({"model:QEMU*"});
    plug_in("nvme0");
    for (int look = 0; look < 3; ++look) EXPECT_FALSE(drives->take_in_new()) << "somebody may want what is on it";
    drives.reset();
    EXPECT_THAT(serials(*open({"model:QEMU*"})), ElementsAre("LAB-NVME-0", "LAB-NVME-1"));
}

TEST_F(NodeDrives, a_number_that_cannot_be_kept_is_not_given) {
    pull("nvme0");
    const auto drives = open({"LAB-NVME-0", "LAB-NVME-1"});
    plug_in("nvme0");
    EXPECT_FALSE(drives->take_in_new());
    std::filesystem::rename(machine_.folder() / "agent", machine_.folder() / "agent-away");
    EXPECT_FALSE(drives->take_in_new());
    EXPECT_THAT(serials(*drives), ElementsAre("LAB-NVME-0"));
    EXPECT_FALSE(is_drive_taken(settings_.locks, "LAB-NVME-1"));
    std::filesystem::rename(machine_.folder() / "agent-away", machine_.folder() / "agent");
    EXPECT_TRUE(drives->take_in_new());
}

TEST_F(NodeDrives, one_that_was_pulled_and_comes_back_has_its_number_and_can_be_wiped) {
    const auto drives = open({"LAB-NVME-0"});
    pull("nvme1");
    ASSERT_EQ(drives->look().size(), 1u);
    EXPECT_FALSE(drives->wipe({UnitKind::drive, 0, 0, 1}).ok);
    plug_in("nvme1");
    EXPECT_THAT(drives->look(), IsEmpty());
    EXPECT_FALSE(drives->take_in_new());
    EXPECT_FALSE(drives->take_in_new()) << "it is known";
    EXPECT_TRUE(drives->wipe({UnitKind::drive, 0, 0, 1}).ok);
    pull("nvme1");
    EXPECT_EQ(drives->look().size(), 1u) << "and is missed again";
}

TEST_F(NodeDrives, two_that_say_the_same_serial_are_nobodys) {
    machine_.put("sys/class/nvme/nvme0/serial", "LAB-NVME-0");
    const auto drives = open({"LAB-NVME-0"});
    EXPECT_THAT(drives->wipe({UnitKind::drive, 0, 0, 1}).why, HasSubstr("2 controllers say that they are LAB-NVME-0"));
}

TEST_F(NodeDrives, a_tenant_gets_the_blocks_of_its_namespaces_and_nothing_to_send_commands_by) {
    const auto drives = open({"LAB-NVME-0", "LAB-NVME-1"});
    const std::vector<std::uint16_t> leased{1};
    const auto nodes = drives->nodes(leased);
    ASSERT_TRUE(nodes);
    EXPECT_THAT(*nodes, ElementsAre(container::DeviceNode{"/dev/drive0n1", 'b', 259, 0},
                                    container::DeviceNode{"/dev/drive0n2", 'b', 259, 1}));
    EXPECT_TRUE(drives->attach({1, 5}).ok);
    EXPECT_TRUE(drives->detach({1}).ok);
    EXPECT_FALSE(drives->attach({7, 5}).ok);
}

TEST_F(NodeDrives, without_a_list_no_drive_is_a_tenants) {
    const auto drives = open({});
    EXPECT_THAT(drives->inventory(), IsEmpty());
    EXPECT_FALSE(drives->grade());
    EXPECT_FALSE(drives->wipe({UnitKind::drive, 0, 0, 1}).ok);
}

TEST_F(NodeDrives, a_list_may_be_a_file) {
    machine_.put("list", "# tenants' drives\n LAB-NVME-1\r\n\nmodel:Other*");
    EXPECT_THAT(serials(*open({"@" + (machine_.folder() / "list").string()})), ElementsAre("LAB-NVME-1"));
    settings_.tenant = {"@/nowhere"};
    EXPECT_FALSE(Drives::open(settings_));
}

TEST_F(ServerDrives, what_the_machine_runs_from_is_never_a_tenants) {
    EXPECT_THAT(serials(*open({"model:*"})), ElementsAre("TENANT-A", "TENANT-B"));
    settings_.tenant = {"SYSTEM-A"};
    const auto refused = Drives::open(settings_);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().what, "SYSTEM-A is what this machine runs from");
}

TEST_F(ServerDrives, a_drive_that_is_mounted_is_left_alone) {
    const auto drives = open({"TENANT-B"});
    const OperationResult refused = drives->wipe({UnitKind::drive, 0, 0, 1});
    EXPECT_FALSE(refused.ok);
    EXPECT_TRUE(refused.untouched);
    EXPECT_THAT(refused.why, HasSubstr("nvme0n2p1 is mounted on /data (of process 812)"));
    EXPECT_FALSE(drives->attach({0, 5}).ok);
    EXPECT_FALSE(drives->detach({0}).ok);
    EXPECT_THAT(scripted_["TENANT-B"].received, IsEmpty());
}

TEST_F(ServerDrives, a_drive_given_to_a_virtual_machine_says_where_it_may_be) {
    const auto drives = open({"TENANT-A"});
    EXPECT_EQ(drives->grade(), Grade::silicon);
    machine_.remove("sys/class/nvme/nvme2");
    EXPECT_THAT(drives->look().at(0).why, HasSubstr("the controller at 0000:05:00.0 is bound to vfio-pci"));
}

TEST_F(NodeDrives, a_damaged_list_of_numbers_stops_the_agent) {
    open({"LAB-NVME-0"});
    machine_.put("agent/drives", "nonsense");
    settings_.tenant = {"LAB-NVME-0"};
    EXPECT_FALSE(Drives::open(settings_));
    for (const char* text : {"12x LAB-NVME-0", "-1 LAB-NVME-0", "12", "12 ", "1 LAB-NVME-1\n1 LAB-NVME-1", ""}) {
        machine_.put("agent/drives", text);
        EXPECT_FALSE(Drives::open(settings_)) << text;
    }
    machine_.remove("agent/drives");
    EXPECT_TRUE(Drives::open(settings_)) << "a new node has none yet";
    machine_.remove("agent/drives");
    machine_.put("agent/drives/in-the-way", "");  // there, and cannot be read
    EXPECT_FALSE(Drives::open(settings_)) << "numbers are not given out anew because a file cannot be read";
}

TEST_F(NodeDrives, a_drive_that_an_agent_has_is_nobody_elses_until_it_ends) {
    auto drives = open({"LAB-NVME-0"});
    DriveSettings other = settings_;
    other.folder = machine_.folder() / "other";
    std::filesystem::create_directories(other.folder);
    const auto refused = Drives::open(other);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::conflict);
    EXPECT_THAT(refused.error().what, HasSubstr("LAB-NVME-0 is in the hands of another agent"));
    EXPECT_TRUE(is_drive_taken(settings_.locks, "LAB-NVME-0"));
    EXPECT_FALSE(is_drive_taken(settings_.locks, "LAB-NVME-1"));
    other.tenant = {"LAB-NVME-1"};
    EXPECT_TRUE(Drives::open(other));
    drives.reset();
    EXPECT_FALSE(is_drive_taken(settings_.locks, "LAB-NVME-0"));
    other.tenant = {"LAB-NVME-0"};
    EXPECT_TRUE(Drives::open(other));
}

TEST_F(NodeDrives, a_serial_number_that_is_a_path_is_refused) {
    machine_.put("sys/class/nvme/nvme0/serial", "../../etc");
    settings_.tenant = {"../../etc"};
    EXPECT_FALSE(Drives::open(settings_));
}

TEST_F(NodeDrives, udev_is_told_to_leave_those_alone_that_were_taken_in_and_no_others) {
    settings_.udev = machine_.folder() / "run/udev/rules.d";
    const auto rules = [&](const std::filesystem::path& folder) {
        std::ifstream file{folder.string() + std::string{drive_rules_file}};
        return std::string{std::istreambuf_iterator<char>{file}, {}};
    };
    open({"LAB-NVME-0"});
    EXPECT_FALSE(std::filesystem::exists(machine_.folder() / "run")) << "a machine without udev";
    std::filesystem::create_directories(machine_.folder() / "run/udev");
    const auto drives = open({"LAB-NVME-0"});
    const std::string text = rules(settings_.udev);
    EXPECT_THAT(text, HasSubstr("ATTRS{serial}==\"LAB-NVME-0| *LAB-NVME-0\", GOTO=\"bulkhead_drive\"\n"));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("LAB-NVME-1")));
    EXPECT_EQ(rules(settings_.folder), text) << "for the next boot";
}

TEST_F(NodeDrives, udev_sees_again_what_was_given_back_to_the_host) {
    settings_.udev = machine_.folder() / "run/udev/rules.d";
    std::filesystem::create_directories(machine_.folder() / "run/udev");
    const auto file_in = [](const std::filesystem::path& folder) {
        return folder.string() + std::string{drive_rules_file};
    };
    open({"LAB-NVME-0", "LAB-NVME-1"});
    open({"LAB-NVME-1"});
    std::ifstream file{file_in(settings_.udev)};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    EXPECT_THAT(text, ::testing::Not(HasSubstr("LAB-NVME-0")));
    EXPECT_THAT(text, HasSubstr("LAB-NVME-1"));
    open({});
    EXPECT_FALSE(std::filesystem::exists(file_in(settings_.udev)));
    EXPECT_FALSE(std::filesystem::exists(file_in(settings_.folder)));
}

TEST(DriveRules, a_serial_number_is_no_pattern_and_ends_no_rule) {
    const std::vector<std::string> serials{"S 1", "a*b", "x\", RUN+=\"y", "[z]|", ""};
    const std::string text = drive_rules(serials);
    for (const char* line : {"\"S 1| *S 1\",", "\"a?b| *a?b\",", "\"x?? RUN+??y| *x?? RUN+??y\",", "\"?z??| *?z??\","})
        EXPECT_THAT(text,
                    HasSubstr(std::string{"KERNEL==\"nvme*\", ATTRS{serial}=="} + line + " GOTO=\"bulkhead_drive\"\n"));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("serial}==\"\"")));
}

TEST_F(NodeDrives, who_holds_a_drive_open_is_waited_for_by_the_clock) {
    machine_.put("sys/class/nvme-generic/ng1n1/dev", "1:3");
    machine_.link("proc/77/fd/3", "/dev/null");  // which has that number
    std::chrono::steady_clock::time_point now{};
    settings_.clock.now = [&] { return now += std::chrono::seconds{3}; };  // each look takes its time
    int slept = 0;
    settings_.clock.sleep = [&](std::chrono::milliseconds) { ++slept; };
    const auto drives = open({"LAB-NVME-0"});
    EXPECT_THAT(drives->attach({0, 5}).why, HasSubstr("nvme1n1 is open in process 77"));
    EXPECT_LE(slept, 4);
    EXPECT_GT(slept, 0);
}

TEST_F(NodeDrives, an_agent_that_stops_does_not_wait_for_a_drive) {
    scripted_["LAB-NVME-0"].sanicap = 1;
    scripted_["LAB-NVME-0"].hangs = true;
    settings_.clock = scripted_["LAB-NVME-0"].clock();
    Drives* all = nullptr;
    settings_.clock.sleep = [&](std::chrono::milliseconds) { all->stop(); };  // and no time passes
    const auto drives = open({"LAB-NVME-0"});
    all = drives.get();
    const OperationResult wiped = drives->wipe({UnitKind::drive, 0, 0, 1});
    EXPECT_FALSE(wiped.ok);
    EXPECT_THAT(wiped.why, HasSubstr("the agent was stopped"));
}

}  // namespace
}  // namespace bulkhead::agent
