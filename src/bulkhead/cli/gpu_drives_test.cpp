// A node's hardware with drives: what its inventory says, what a tenant finds in /dev, and that wipes go side by side.
// The machine is one of testdata/nvme and its drives are scripted; everything between is what runs on a node.
#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <utility>

#include "bulkhead/cli/gpu_agent_test.hpp"
#include "bulkhead/hw/nvme/scripted_drive_test.hpp"
#include "bulkhead/hw/nvme/tree_test.hpp"

namespace bulkhead::cli {
namespace {

using ::testing::HasSubstr;

class GpuDrives : public GpuAgent {
protected:
    void SetUp() override {
        GpuAgent::SetUp();
        for (const char* serial : {"LAB-NVME-0", "LAB-NVME-1"}) scripted_[serial].serial = serial;
        scripted_["LAB-NVME-1"].add(2);
        settings_.drives.tenant = {"LAB-NVME-0", "LAB-NVME-1"};
        settings_.drives.tree = machine_.tree();
        settings_.drives.erase.samples = 100;
        settings_.drives.locks = machine_.folder() / "locks";
        settings_.drives.clock.sleep = [](std::chrono::milliseconds) {};
        settings_.drives.open = [this](const nvme::Tree&,
                                       const nvme::Drive& drive) -> Result<std::unique_ptr<nvme::Transport>> {
            meet(drive.serial);
            return std::make_unique<nvme::ScriptedTransport>(scripted_.at(drive.serial));
        };
    }
    void meet(const std::string& serial) {
        std::unique_lock lock{mutex_};
        ++met_;
        all_here_.notify_all();
        EXPECT_TRUE(all_here_.wait_for(lock, std::chrono::seconds{60}, [&] {
            return met_ >= expected_ && slow_ != serial;
        })) << "one waits for the other";
    }
    void let_go() {
        const std::scoped_lock lock{mutex_};
        slow_.clear();
        all_here_.notify_all();
    }

    nvme::UnpackedTree machine_{"lab"};
    std::map<std::string, nvme::ScriptedDrive> scripted_;
    std::mutex mutex_;
    std::condition_variable all_here_;
    int met_ = 0, expected_ = 0;
    std::string slow_;  // this one's erase goes on until it is let go
};

TEST_F(GpuDrives, the_inventory_has_them_by_serial_and_says_how_they_are_known) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    const auto inventory = hardware_->inventory();
    ASSERT_TRUE(inventory);
    ASSERT_EQ(inventory->drives.size(), 2u);
    EXPECT_EQ(inventory->drives[0].serial, "LAB-NVME-0");
    EXPECT_EQ(inventory->drives[0].size.bytes, 256 << 20);
    const auto found = std::ranges::find(inventory->capabilities, Capability::local_nvme, &DetectedCapability::name);
    ASSERT_NE(found, inventory->capabilities.end());
    EXPECT_EQ(found->grade, Grade::emulated);
}

TEST_F(GpuDrives, a_tenant_finds_the_blocks_of_its_drive_and_no_other_node) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    ASSERT_TRUE(carry(AttachDrive{1, 6}).ok);
    StartTenant start{.lease = 6,
                      .tier = Tier::process,
                      .gpus = {{.gpu = 0, .start = 0, .size = 8}},
                      .drives = {1},
                      .tenant = "acme"};
    start.program.words = {"/bin/sh", "-c",
                           "echo $BULKHEAD_DRIVES; ls /dev | grep -e nvme -e drive; stat -c '%F %t:%T' /dev/drive0n2"};
    const OperationResult started = carry(start);
    ASSERT_TRUE(started.ok) << started.why;
    ASSERT_TRUE(eventually([&] { return !exits_.empty(); }));
    EXPECT_EQ(exits_[0].output, "/dev/drive0n1,/dev/drive0n2\ndrive0n1\ndrive0n2\nblock special file 103:1\n");
    EXPECT_TRUE(carry(StopTenant{6}).ok);
    EXPECT_TRUE(carry(DetachDrive{1}).ok);
}

TEST_F(GpuDrives, drives_are_erased_side_by_side_and_beside_a_gpu) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    expected_ = 2;
    ASSERT_TRUE(hardware_->begin({}, {101, Wipe{UnitKind::drive, 0, 0, 1}}));
    ASSERT_TRUE(hardware_->begin({}, {102, Wipe{UnitKind::drive, 1, 0, 1}}));
    ASSERT_TRUE(hardware_->begin({}, {103, Wipe{UnitKind::memory, 0, 0, 8}}));
    ASSERT_TRUE(eventually([&] { return results_.size() == 3; }));
    for (const OperationResult& result : results_) EXPECT_TRUE(result.ok) << result.why;
    EXPECT_TRUE(carry(Verify{UnitKind::drive, 0, 0, 1, 5}).ok);
    EXPECT_TRUE(carry(Verify{UnitKind::drive, 1, 0, 1, 5}).ok);
}

// A node is back after the slowest of what it wipes. No time is asserted: everything else has reported while the
// slowest goes on, and what it took from there to the last report is printed (docs/promises.md).
TEST_F(GpuDrives, all_that_a_node_wipes_goes_on_at_once_and_the_slowest_is_the_last_to_report) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    expected_ = 2;
    slow_ = "LAB-NVME-0";
    Executor executor{
        {.node = "n", .grade = Grade::simulated}, *evidence::SigningKey::from_seed(std::string(32, 'k')), {}};
    std::vector<std::int64_t> reported;
    const auto take = [&](const Outcome& outcome) {
        for (const Operation& operation : outcome.begin) EXPECT_TRUE(hardware_->begin({}, operation));
        for (const Report& report : outcome.reports)
            if (const auto* wiped = std::get_if<WipeReport>(&report.what)) {
                EXPECT_TRUE(wiped->verified) << wiped->why;
                reported.push_back(wiped->ticket);
            }
        return outcome.begin.size();
    };
    take(executor.resume({}, "boot"));
    const Key gpu = key_of(1, 1), slow = key_of(1, 2), fast = key_of(1, 3);
    const std::size_t begun = take(executor.on_order({}, {1, Sanitize{{{UnitKind::memory, 0, 0, 8, gpu},
                                                                       {UnitKind::drive, 0, 0, 1, slow},
                                                                       {UnitKind::drive, 1, 0, 1, fast}}}}));
    EXPECT_EQ(begun, 3u) << "none waits for another";
    const auto until_reported = [&](std::size_t count) {
        return eventually([&] {
            for (OperationResult& result : std::exchange(results_, {})) take(executor.on_result({}, result));
            return reported.size() >= count;
        });
    };
    ASSERT_TRUE(until_reported(2));
    EXPECT_THAT(reported, ::testing::UnorderedElementsAre(gpu, fast)) << "both are done while the third is erased";
    const auto let_go_at = std::chrono::steady_clock::now();
    let_go();
    ASSERT_TRUE(until_reported(3));
    EXPECT_EQ(reported.back(), slow);
    const std::chrono::duration<double> after = std::chrono::steady_clock::now() - let_go_at;
    std::printf("erasing 4 MiB, reading it back and reporting took the slowest %.3f s after it was let go\n",
                after.count());
}

TEST_F(GpuDrives, an_agent_that_stops_does_not_wait_for_hours_of_erasing) {
    scripted_["LAB-NVME-0"].sanicap = 1;
    scripted_["LAB-NVME-0"].hangs = true;
    std::atomic<bool> waits = false;
    settings_.drives.clock.now = [] { return std::chrono::steady_clock::time_point{}; };  // no deadline comes
    settings_.drives.clock.sleep = [&](std::chrono::milliseconds) {
        waits = true;
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    };
    open("1 x h200-141gb");
    if (!hardware_) return;
    ASSERT_TRUE(hardware_->begin({}, {101, Wipe{UnitKind::drive, 0, 0, 1}}));
    ASSERT_TRUE(eventually([&] { return waits.load(); }));
    hardware_.reset();  // returns
}

TEST_F(GpuDrives, one_that_is_plugged_in_later_is_news_and_in_the_inventory) {
    const std::filesystem::path there = machine_.folder() / "sys/class/nvme/nvme0";
    std::filesystem::rename(there, machine_.folder() / "nvme0");  // LAB-NVME-1
    open("1 x h200-141gb");
    if (!hardware_) return;
    ASSERT_EQ(hardware_->inventory()->drives.size(), 1u);
    std::filesystem::rename(machine_.folder() / "nvme0", there);
    ASSERT_TRUE(eventually([&] { return stock_changed_; }));
    const auto inventory = hardware_->inventory();
    ASSERT_TRUE(inventory);
    ASSERT_EQ(inventory->drives.size(), 2u);
    EXPECT_EQ(inventory->drives[1].serial, "LAB-NVME-1");
    EXPECT_TRUE(carry(Wipe{UnitKind::drive, 1, 0, 1}).ok);
}

TEST_F(GpuDrives, one_that_is_pulled_is_a_fault) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    machine_.remove("sys/class/nvme/nvme1");
    ASSERT_TRUE(eventually([&] { return !faults_.empty(); }));
    EXPECT_EQ(faults_[0].kind, UnitKind::drive);
    EXPECT_EQ(faults_[0].device, 0);
    EXPECT_THAT(faults_[0].why, HasSubstr("LAB-NVME-0 is gone"));
}

}  // namespace
}  // namespace bulkhead::cli
