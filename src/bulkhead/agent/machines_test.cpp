#include "bulkhead/agent/machines.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "bulkhead/agent/machine_domain.hpp"
#include "bulkhead/hw/vm/embedded_test.hpp"
#include "bulkhead/hw/vm/presence.hpp"
#include "bulkhead/hw/vm/sysfs_tree_test.hpp"

namespace bulkhead::agent {

namespace {

bool before_long(const std::function<bool()>& holds) {
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::minutes{4};
         std::chrono::steady_clock::now() < until;) {
        if (holds()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
    return false;
}

// No other test on this computer has machines of these names, and none of ours is left when a test ends early.
class OwnMachines {
public:
    ~OwnMachines() {
        for (const Key lease : {first(), second()})
            if (const auto left = vm::presence_of(machine_name(lease)))
                for (const pid_t process : left->processes) ::kill(process, SIGKILL);
    }
    static Key first() { return key_of(::getpid(), 7); }
    static Key second() { return key_of(::getpid(), 8); }
};

GpuNodeStatus small_node() {
    GpuNodeStatus node;
    node.gpus = {{.model = "h100-80gb-sxm5", .count = 1}};
    node.topology = {{.gpu = 0, .bus = "0000:3b:00.0"}};
    node.cpu = 2;
    node.memory = {std::int64_t{4} << 30};
    return node;
}

StartTenant machine_with(Key lease, std::vector<std::string> words) {
    return {.lease = lease,
            .tier = Tier::vm,
            .gpus = {{.gpu = 0, .start = 0, .size = 8}},
            .tenant = "acme",
            .mechanism = Mechanism::whole,
            .program = {.words = std::move(words),
                        .environment = {"WHO=acme"},
                        .cpu_thousandths = 1000,
                        .memory_bytes = 256 << 20}};
}

}  // namespace

TEST(Machines, without_libvirt_there_are_none_and_why_is_said) {
    const auto none = Machines::open({.uri = "qemu:///system", .library = "libbulkhead-has-no-such.so.0"});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Code::unavailable);
}

TEST(Machines, a_name_is_short_enough_for_libvirt_whatever_the_lease) {
    EXPECT_EQ(machine_name(key_of(epoch_max, (std::int64_t{1} << 32) - 1)), "bh-7fffffffffffffff");
    EXPECT_LT(machine_name(std::numeric_limits<Key>::max()).size(), 20U);
}

TEST(Machines, the_image_is_the_one_that_the_control_plane_names) {
    EXPECT_EQ(image_of({.environment = {"A=1", "BULKHEAD_IMAGE=trainer"}}), "trainer");
    EXPECT_EQ(image_of({}), "default");
}

TEST(Machines, a_tenants_own_kernel_boots_prints_is_stopped_and_leaves_nothing) {
    vm::Embedded here;
    const OwnMachines own;
    if (const auto why = here.prepare()) GTEST_SKIP() << *why;
    const MachineSettings settings{.uri = here.uri(),
                                   .images = vm::Embedded::images(),
                                   .folder = here.folder() / "machines",
                                   .allow_emulated = true,
                                   .look_every = Duration{100}};
    MachineSettings strict = settings;
    strict.allow_emulated = false;
    const auto refused = Machines::open(strict);
    if (!refused && refused.error().what.find("no KVM") == std::string::npos) GTEST_SKIP() << refused.error().what;
    EXPECT_FALSE(refused) << "software alone is not what a vm tier means, unless somebody says so";
    auto machines = Machines::open(settings);
    ASSERT_TRUE(machines) << machines.error().what;
    EXPECT_TRUE((*machines)->are_emulated());

    // One that ends by itself; then one that stays. Two at once are too much for two cores that do it all by software.
    const auto start = [&](const StartTenant& what) {
        const auto started = (*machines)->start(what, small_node(), false);
        ASSERT_TRUE(started) << started.error().what;
        EXPECT_TRUE((*machines)->start(what, small_node(), false)) << "again is fine";
    };
    const StartTenant ends = machine_with(own.first(), {"sh", "-c", "echo \"hello from $WHO on $(uname -s)\"; exit 3"});
    start(ends);
    std::vector<TenantExit> exits;
    EXPECT_TRUE(before_long([&] {
        for (TenantExit& exit : (*machines)->exits()) exits.push_back(std::move(exit));
        return !exits.empty();
    }));
    ASSERT_EQ(exits.size(), 1U);
    EXPECT_EQ(exits.front().lease, own.first());
    EXPECT_EQ(exits.front().status, 3);
    EXPECT_NE(exits.front().output.find("hello from acme on Linux"), std::string::npos) << exits.front().output;
    start(machine_with(own.second(), {"sh", "-c", "echo I stay; while :; do sleep 100; done"}));
    const auto output = [&](Key lease) { return (*machines)->output({.lease = lease}).value_or(OutputPiece{}).bytes; };
    EXPECT_TRUE(before_long([&] { return output(own.second()).contains("I stay") || !(*machines)->exits().empty(); }));
    EXPECT_TRUE(output(own.second()).contains("I stay")) << output(own.second());

    // A new agent finds what there is.
    auto next = Machines::open(settings);
    ASSERT_TRUE(next) << next.error().what;
    EXPECT_EQ(*(*next)->leases(), (std::vector<Key>{own.first(), own.second()}));
    for (const Key lease : {own.first(), own.second()}) {
        const auto stopped = (*next)->stop(lease, Duration{200});
        ASSERT_TRUE(stopped) << stopped.error().what;
        EXPECT_NE(stopped->find("bytes of its files overwritten"), std::string::npos) << *stopped;
        EXPECT_FALSE(vm::presence_of(machine_name(lease))->any());
        EXPECT_FALSE((*next)->has(lease));
        EXPECT_TRUE((*next)->stop(lease, Duration{0})) << "again is fine";
    }
    EXPECT_EQ((*machines)->output({.lease = own.second()}).error().code, Code::not_found);
    const auto nowhere = (*next)->start(
        [&] {
            StartTenant what = ends;
            what.program.environment = {"BULKHEAD_IMAGE=other"};
            return what;
        }(),
        small_node(), false);
    ASSERT_FALSE(nowhere);
    EXPECT_NE(nowhere.error().what.find("admits no image \"other\""), std::string::npos) << nowhere.error().what;
}

// On a host without IOMMU groups, or one where there is no such device, nothing is started and nothing is left.
TEST(Machines, a_device_that_cannot_be_given_stops_the_start_and_what_was_begun_is_taken_apart) {
    vm::Embedded here;
    if (const auto why = here.prepare()) GTEST_SKIP() << *why;
    auto machines = Machines::open({.uri = here.uri(),
                                    .images = vm::Embedded::images(),
                                    .folder = here.folder() / "machines",
                                    .allow_emulated = true,
                                    .vfio = {.sysfs = here.folder() / "no-sysfs"}});
    if (!machines) GTEST_SKIP() << machines.error().what;
    const auto started = (*machines)->start(machine_with(9, {"true"}), small_node(), true);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::not_found) << started.error().what;
    EXPECT_TRUE((*machines)->has(9));
    EXPECT_FALSE((*machines)->records().holds("0000:3b:00.0")) << "it never left the host";
    ASSERT_TRUE((*machines)->stop(9, Duration{0}));
    EXPECT_FALSE((*machines)->has(9));
}

TEST(MachineRecords, are_known_without_libvirt) {
    const auto folder = std::filesystem::temp_directory_path() / fmt::format("machine-records-{}", ::getpid());
    const MachineRecords records{folder};
    EXPECT_FALSE(records.has(9));
    EXPECT_FALSE(records.holds("0000:3b:00.0")) << "no machine was ever started here";
    EXPECT_TRUE(records.leases()->empty());
    std::filesystem::create_directories(records.folder_of(9).path);
    ASSERT_TRUE(records.keep_given(9, {{"0000:3b:00.0", "nvidia"}, {"0000:3b:10.1", ""}}));
    EXPECT_TRUE(records.has(9));
    EXPECT_EQ(*records.leases(), std::vector<Key>{9});
    EXPECT_TRUE(records.holds("0000:3b:00.0"));
    EXPECT_FALSE(records.holds("0000:5e:00.0"));
    ASSERT_EQ(records.given_to(9).size(), 2U);
    EXPECT_EQ(records.given_to(9)[0].driver, "nvidia");
    EXPECT_EQ(records.given_to(9)[1].driver, "");
    std::filesystem::remove_all(folder);
    std::ofstream{folder} << "no folder";
    EXPECT_TRUE(records.holds("0000:3b:00.0")) << "nobody can look: whoever asks is careful";
    std::filesystem::remove(folder);
}

// libvirt finds no such device on this computer, so that the start fails after the GPU was given away.
TEST(Machines, a_gpu_that_was_given_comes_back_reset_however_the_start_went_and_says_by_which_way) {
    vm::Embedded here;
    if (const auto why = here.prepare()) GTEST_SKIP() << *why;
    const std::string gpu = "0000:3b:00.0";
    if (std::filesystem::exists("/sys/bus/pci/devices/" + gpu)) GTEST_SKIP() << "this computer has a " << gpu;
    const OwnMachines own;
    vm::SysfsTree tree;
    tree.add(gpu, 7);
    auto machines = Machines::open({.uri = here.uri(),
                                    .images = vm::Embedded::images(),
                                    .folder = here.folder() / "machines",
                                    .allow_emulated = true,
                                    .vfio = tree.settings()});
    if (!machines) GTEST_SKIP() << machines.error().what;
    const vm::Vfio& vfio = (*machines)->vfio();
    const auto started = (*machines)->start(machine_with(own.first(), {"true"}), small_node(), true);
    ASSERT_FALSE(started);
    EXPECT_NE(started.error().what.find("libvirt could not start"), std::string::npos) << started.error().what;
    EXPECT_EQ(*vfio.driver_of(gpu), "vfio-pci");
    EXPECT_TRUE((*machines)->records().holds(gpu));
    EXPECT_FALSE((*machines)->records().returned_by(gpu));
    const auto stopped = (*machines)->stop(own.first(), Duration{0});
    ASSERT_TRUE(stopped) << stopped.error().what;
    EXPECT_NE(stopped->find(gpu + ": flr, rebind nvidia"), std::string::npos) << *stopped;
    EXPECT_EQ(*vfio.driver_of(gpu), "nvidia");
    EXPECT_TRUE(tree.saw_reset_of(gpu));
    EXPECT_FALSE((*machines)->records().holds(gpu));
    EXPECT_EQ((*machines)->records().returned_by(gpu), "flr, rebind nvidia");
    (*machines)->records().forget_return(gpu);
    EXPECT_FALSE((*machines)->records().returned_by(gpu));
}

}  // namespace bulkhead::agent
