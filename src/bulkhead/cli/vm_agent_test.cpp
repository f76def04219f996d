// The vm tier of an agent, as its hands carry it out: simulated GPUs, a real kernel for the tenant.
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

#include "bulkhead/agent/machine_domain.hpp"
#include "bulkhead/agent/machine_order_test.hpp"
#include "bulkhead/cli/gpu_agent_test.hpp"
#include "bulkhead/cli/said_test.hpp"
#include "bulkhead/hw/vm/embedded_test.hpp"
#include "bulkhead/hw/vm/presence.hpp"
#include "bulkhead/render/libvirt_domain.hpp"
#include "bulkhead/render/libvirt_lease.hpp"

namespace bulkhead::cli {
namespace {

using testing::HasSubstr;

class VmAgent : public GpuAgent {
protected:
    void TearDown() override {
        if (const auto left = vm::presence_of(agent::machine_name(lease)))
            for (const pid_t process : left->processes) ::kill(process, SIGKILL);
        GpuAgent::TearDown();
    }
    StartTenant machine(std::vector<std::string> words) const { return agent::machine_order(lease, std::move(words)); }
    bool offers(Capability capability) const {
        const auto status = hardware_->inventory();
        return std::ranges::find(status->capabilities, capability, &DetectedCapability::name) !=
               status->capabilities.end();
    }
    const Key lease = key_of(::getpid(), 3);
};

TEST_F(VmAgent, without_libvirt_has_no_such_tier_and_says_so) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    EXPECT_FALSE(offers(Capability::virtual_machines));
    const auto refused = carry(machine({"true"}));
    EXPECT_FALSE(refused.ok);
    EXPECT_THAT(refused.why, HasSubstr("no vm tier"));
    EXPECT_TRUE(carry(StopTenant{.lease = lease}).ok) << "what never ran is stopped";
}

// Slices of others are on the same device, kept or not yet wiped: no order makes that a machine's, whoever gave it.
TEST_F(VmAgent, gives_a_machine_no_gpu_of_which_its_lease_has_a_part) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    StartTenant order = machine({"true"});
    const auto why_not = [&] { return carry(order).why; };
    const auto would_get_all = HasSubstr("a machine would get all of it");
    EXPECT_THAT(why_not(), testing::Not(would_get_all));
    order.gpus[0].profile = "1g.18gb";
    EXPECT_THAT(why_not(), would_get_all);
    order.gpus[0] = {.gpu = 0, .start = 0, .size = 8, .share = 500};
    EXPECT_THAT(why_not(), would_get_all);
    order.gpus[0] = {.gpu = 0, .start = 0, .size = 4};
    EXPECT_THAT(why_not(), would_get_all);
    order.gpus[0] = {.gpu = 0, .start = 0, .size = 8};
    order.mechanism = Mechanism::time_slicing;
    EXPECT_THAT(why_not(), would_get_all);
    order.program.words.clear();
    EXPECT_THAT(why_not(), would_get_all) << "nor one that nothing is started in yet";
}

TEST_F(VmAgent, a_machine_that_nobody_can_look_at_is_not_called_stopped) {
    settings_.machines = {.uri = "qemu:///system", .library = "libbulkhead-has-no-such.so.0"};
    settings_.machines.folder = folder_ / "machines";
    open("1 x h200-141gb");
    if (!hardware_) return;
    EXPECT_TRUE(carry(StopTenant{.lease = lease}).ok) << "what never ran is stopped";
    std::filesystem::create_directories(folder_ / "machines" / agent::machine_name(lease));
    const auto stopped = carry(StopTenant{.lease = lease});
    EXPECT_FALSE(stopped.ok);
    EXPECT_THAT(stopped.why, HasSubstr("has a machine here, and libvirt cannot be reached"));
    ASSERT_TRUE(eventually([&] { return !notes_.empty(); })) << "nor is why there is no such tier kept from its log";
    EXPECT_THAT(notes_.front(), HasSubstr("no machines for tenants: "));
    EXPECT_THAT(notes_.front(), HasSubstr("libbulkhead-has-no-such.so.0"));
}

TEST(VmUsers, that_are_accounts_of_the_host_are_refused_before_anything_is_started) {
    const std::string folder = testing::TempDir() + fmt::format("vm-users-{}", ::getpid());
    const Said refused = said_by("agent", {"--data", folder.c_str(), "--hardware", "gpu", "--vm-users", "1000"});
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr("--vm-users 1000: below 65536 are the host's own accounts"));
    std::filesystem::remove_all(folder);
}

// Beside the tier, because it is the same question: what an agent says of what it cannot look at.
TEST_F(VmAgent, without_its_nic_an_agent_goes_on_and_does_not_call_released_what_is_on_record) {
    settings_.nics = {"ffff:ff:1f.7"};
    open("1 x h200-141gb");
    if (!hardware_) return;
    ASSERT_TRUE(hardware_->why_no_functions());
    const std::string why = hardware_->why_no_functions()->what;  // no such NIC; or no right to the host's namespace
    EXPECT_TRUE(hardware_->inventory()->functions.empty());
    EXPECT_FALSE(carry(AttachFunction{.lease = lease, .tenant = "acme", .port = {}}).ok);
    EXPECT_TRUE(carry(DetachFunction{.function = 3}).ok) << "it was never attached";
    std::filesystem::create_directories(places().run_folder + "/functions");
    std::ofstream{places().run_folder + "/functions/0000:3b:10.3"}
        << R"({"lease":7,"device":"0000:3b:10.3","function":3})";
    const auto released = carry(DetachFunction{.function = 3});
    EXPECT_FALSE(released.ok);
    EXPECT_THAT(released.why, HasSubstr(why));
    EXPECT_TRUE(carry(DetachFunction{.function = 4}).ok);
}

TEST_F(VmAgent, a_gpu_that_a_machine_holds_is_not_lost_to_an_agent_that_is_started_meanwhile) {
    settings_.machines.folder = folder_ / "machines";
    open("2 x h200-141gb");
    if (!hardware_) return;
    const auto before = hardware_->inventory();
    const auto bus = render::parse_pci_address(before->topology.front().bus);
    ASSERT_TRUE(bus) << bus.error().what;
    const auto machine_folder = folder_ / "machines" / agent::machine_name(lease);
    std::filesystem::create_directories(machine_folder);
    std::ofstream{machine_folder / "devices"} << render::print(*bus) << " nvidia\n";
    simulate({"lose", "--gpu", "0"});  // as NVML sees one that went to a machine
    hardware_.reset();
    auto next = agent::GpuHardware::open(settings_);
    ASSERT_TRUE(next) << next.error().what;
    hardware_ = *std::move(next);
    EXPECT_EQ(hardware_->inventory()->gpus, before->gpus);
    simulate({"lose", "--gpu", "1"});
    ASSERT_TRUE(eventually([&] { return !faults_.empty(); }));
    EXPECT_EQ(faults_.front().device, 1) << "only the one that nobody holds has fallen off the bus";
    EXPECT_EQ(faults_.size(), 1U);
}

// Machines are pinned to parts of the CPUs beside their GPUs; a neighbour that is lost must not move those of others.
TEST_F(VmAgent, a_gpu_that_is_lost_keeps_its_part_of_the_cpus) {
    open("6 x h200-141gb");
    if (!hardware_) return;
    const auto cpus = [&](std::int64_t gpu) {
        ::setenv("HWLOC_XMLFILE", (folder_ / "node/topology.xml").c_str(), 1);
        const auto inventory = hardware_->inventory();
        ::unsetenv("HWLOC_XMLFILE");
        return render::print_cpu_list(*render::own_cpus(*inventory, gpu));
    };
    EXPECT_EQ(cpus(1), "4-7");
    EXPECT_EQ(cpus(2), "8-11");
    simulate({"lose", "--gpu", "0"});
    hardware_.reset();
    auto next = agent::GpuHardware::open(settings_);
    ASSERT_TRUE(next) << next.error().what;
    hardware_ = *std::move(next);
    ASSERT_EQ(hardware_->inventory()->gpus.front().model, "lost");
    EXPECT_EQ(cpus(1), "4-7");
    EXPECT_EQ(cpus(2), "8-11");
}

TEST_F(VmAgent, runs_a_tenants_command_on_a_kernel_of_its_own_and_clears_it_away) {
    vm::Embedded here;
    if (const auto why = here.prepare()) GTEST_SKIP() << *why;
    settings_.machines = {.uri = here.uri(),
                          .images = vm::Embedded::images(),
                          .folder = here.folder() / "machines",
                          .allow_emulated = true,
                          .look_every = Duration{100}};
    open("1 x h200-141gb");
    if (!hardware_) return;
    if (!offers(Capability::virtual_machines)) GTEST_SKIP() << carry(machine({"true"})).why;
    EXPECT_FALSE(offers(Capability::iommu_groups)) << "simulated GPUs are on no bus";

    StartTenant elsewhere = machine({"true"});
    elsewhere.program.environment = {"BULKHEAD_IMAGE=nobodys"};
    EXPECT_THAT(carry(elsewhere).why, HasSubstr("admits no image \"nobodys\""));

    const auto started =
        carry(machine({"sh", "-c", "echo \"$WHO has $(grep -c ^processor /proc/cpuinfo) CPU\"; exit 5"}));
    ASSERT_TRUE(started.ok) << started.why;
    for (int minutes = 0; minutes < 4 && exits_.empty(); ++minutes) eventually([&] { return !exits_.empty(); });
    ASSERT_EQ(exits_.size(), 1U);
    EXPECT_EQ(exits_.front().lease, lease);
    EXPECT_EQ(exits_.front().status, 5);
    EXPECT_THAT(exits_.front().output, HasSubstr("acme has 1 CPU"));
    EXPECT_THAT(hardware_->output({.lease = lease})->bytes, HasSubstr("acme has 1 CPU"));

    const auto stopped = carry(StopTenant{.lease = lease, .save = Duration{1000}});
    ASSERT_TRUE(stopped.ok) << stopped.why;
    ASSERT_TRUE(stopped.saved);
    EXPECT_FALSE(stopped.saved->ok) << "nobody reaches into a machine to save its work";
    EXPECT_THAT(stopped.method, HasSubstr("machine destroyed"));
    EXPECT_FALSE(vm::presence_of(agent::machine_name(lease))->any());
    EXPECT_FALSE(hardware_->output({.lease = lease}));
    const auto wiped = carry(Wipe{UnitKind::memory, 0, 0, 8});
    EXPECT_TRUE(wiped.ok) << wiped.why;
    EXPECT_EQ(wiped.method, "overwrite") << "it never left the host";

    // One that did, and came back before this agent was started: until it was wiped and read back, its wipe says how.
    const auto bus = render::parse_pci_address(hardware_->inventory()->topology.front().bus);
    ASSERT_TRUE(bus) << bus.error().what;
    std::ofstream{settings_.machines.folder + "/returned-" + render::print(*bus)} << "flr, rebind nvidia\n";
    for (int again = 0; again < 2; ++again)
        EXPECT_EQ(carry(Wipe{UnitKind::memory, 0, 0, 8}).method, "vfio-return: flr, rebind nvidia, overwrite");
    EXPECT_TRUE(carry(Verify{UnitKind::memory, 0, 0, 8}).ok);
    EXPECT_EQ(carry(Wipe{UnitKind::memory, 0, 0, 8}).method, "overwrite");
}

}  // namespace
}  // namespace bulkhead::cli
