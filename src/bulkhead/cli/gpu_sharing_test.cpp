// Sharing a device by MPS: a daemon while somebody is on it, one tenant's server that nobody gets past, nothing of it
// afterwards.
#include <csignal>
#include <fstream>

#include "bulkhead/cli/gpu_agent_test.hpp"
#include "bulkhead/cli/said_test.hpp"
#include "bulkhead/hw/mps/control.hpp"
#include "bulkhead/node/driver_model.hpp"

namespace bulkhead::cli {
namespace {

namespace fs = std::filesystem;

TEST_F(GpuAgent, shares_by_mps_while_somebody_does) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    StartTenant start = on_half(9);
    start.program.words = {"/bin/sh", "-c", "env | grep CUDA_MPS | sort"};
    const OperationResult started = carry(start);
    ASSERT_TRUE(started.ok) << started.why;
    ASSERT_TRUE(eventually([&] { return !exits_.empty(); }));
    EXPECT_NE(exits_.front().output.find("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50"), std::string::npos)
        << exits_.front().output;
    EXPECT_NE(exits_.front().output.find("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=71"), std::string::npos)
        << exits_.front().output;
    EXPECT_TRUE(carry(StopTenant{9}).ok);
    EXPECT_EQ(mps_daemons(), 0) << "its daemon is gone with it";
}

// Who drops the way to the server finds the GPU taken, and nothing of it is left for the next.
TEST_F(GpuAgent, while_a_gpu_is_shared_by_mps_nobody_gets_past_its_server) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    const auto mode = [&] { return driver::Model::from_bytes(slurp(folder_ / "node/state.bin"))->gpu(0).compute_mode; };
    StartTenant start = on_half(9);
    start.program.words = {"/bin/sh", "-c", "sleep 600"};
    const OperationResult started = carry(start);
    ASSERT_TRUE(started.ok) << started.why;
    EXPECT_EQ(mode(), driver::ComputeMode::exclusive_process);
    for (const fs::directory_entry& entry : fs::directory_iterator{places().run_folder + "/mps"}) {
        auto control = mps::Control::adopt({.program = settings_.mps, .folder = entry.path(), .device = {}});
        ASSERT_TRUE(control);
        EXPECT_EQ(control->servers().value().size(), 1u) << "before its first client comes";
    }
    ASSERT_TRUE(carry(StopTenant{9}).ok);
    EXPECT_EQ(mode(), driver::ComputeMode::normal);
    EXPECT_TRUE(fs::is_empty(places().run_folder + "/mps")) << "pipes and logs are gone";
}

TEST_F(GpuAgent, who_shared_a_gpu_by_mps_can_leave_it_when_it_is_lost) {
    open("2 x h200-141gb");
    if (!hardware_) return;
    StartTenant start = on_half(9);
    start.program.words = {"/bin/sh", "-c", "sleep 600"};
    ASSERT_TRUE(carry(start).ok);
    simulate({"lose", "--gpu", "0"});
    const OperationResult stopped = carry(StopTenant{9});
    EXPECT_TRUE(stopped.ok) << stopped.why;
    EXPECT_EQ(mps_daemons(), 0);
}

// As an agent leaves it that was killed at the wrong moment.
TEST_F(GpuAgent, a_gpu_is_open_to_whoever_has_all_of_it) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    const auto nvml = nvml::Nvml::open(settings_.nvml);
    ASSERT_TRUE(nvml);
    const std::string uuid = nvml->gpus()->front().uuid;
    ASSERT_TRUE(nvml->set_exclusive(uuid, true));
    StartTenant start{.lease = 9, .tier = Tier::process, .gpus = {{.gpu = 0, .start = 0, .size = 8}}, .tenant = "acme"};
    ASSERT_TRUE(carry(start).ok);
    EXPECT_FALSE(nvml->is_exclusive(uuid).value());
}

TEST_F(GpuAgent, shares_an_instance_by_mps_too) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    ASSERT_TRUE(carry(CreateInstance{0, "3g.71gb", 4}).ok);
    StartTenant start = on_half(9);
    start.gpus = {{.gpu = 0, .start = 4, .size = 4, .profile = "3g.71gb"}};
    start.mechanism = Mechanism::mps_in_mig;
    start.program.words = {"/bin/sh", "-c", "env | grep -c CUDA_MPS; sleep 600"};
    const OperationResult started = carry(start);
    ASSERT_TRUE(started.ok) << started.why;
    EXPECT_EQ(mps_daemons(), 1);
    for (const fs::directory_entry& entry : fs::directory_iterator{places().run_folder + "/mps"})
        EXPECT_TRUE(entry.path().filename().string().starts_with("MIG-")) << entry.path();
    EXPECT_TRUE(carry(StopTenant{9}).ok);
    EXPECT_EQ(mps_daemons(), 0);
}

TEST_F(GpuAgent, a_daemon_that_dies_under_its_tenants_is_replaced) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    StartTenant start = on_half(9);
    start.program.words = {"/bin/sh", "-c", "sleep 600"};
    ASSERT_TRUE(carry(start).ok);
    const auto daemon = [&] {
        pid_t pid = 0;
        for (const fs::directory_entry& entry : fs::directory_iterator{places().run_folder + "/mps"})
            std::ifstream{entry.path() / "pipe/nvidia-cuda-mps-control.pid"} >> pid;
        return pid;
    };
    const pid_t first = daemon();
    ASSERT_GT(first, 1);
    ASSERT_EQ(::kill(first, SIGKILL), 0);
    EXPECT_TRUE(eventually([&] { return daemon() > 1 && daemon() != first; }));
    EXPECT_TRUE(carry(StopTenant{9}).ok);
    EXPECT_EQ(mps_daemons(), 0);
}

TEST_F(GpuAgent, a_start_that_fails_leaves_no_mps_daemon_unless_somebody_else_is_on_it) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    StartTenant start = on_half(9);
    start.program.words = {"./neither-here-nor-there"};
    const OperationResult refused = carry(start);
    ASSERT_FALSE(refused.ok);
    EXPECT_EQ(mps_daemons(), 0) << refused.why;
    StartTenant neighbour = on_half(10);
    neighbour.program.words = {"/bin/sh", "-c", "sleep 600"};
    ASSERT_TRUE(carry(neighbour).ok);
    EXPECT_FALSE(carry(start).ok);
    EXPECT_EQ(mps_daemons(), 1) << "the neighbour's";
    EXPECT_TRUE(carry(StopTenant{10}).ok);
    EXPECT_EQ(mps_daemons(), 0);
}

TEST_F(GpuAgent, a_daemon_that_nobody_came_to_is_taken_down_by_the_next_agent) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    StartTenant neighbour = on_half(10);
    neighbour.program.words = {"/bin/sh", "-c", "sleep 600"};
    ASSERT_TRUE(carry(neighbour).ok);
    const mps::Settings unused{
        .program = settings_.mps, .folder = places().run_folder + "/mps/GPU-0", .device = "GPU-0"};
    hardware_.reset();
    ASSERT_TRUE(mps::Control::start(unused));
    EXPECT_EQ(mps_daemons(), 2);
    hardware_ = *agent::GpuHardware::open(settings_);
    EXPECT_EQ(mps_daemons(), 1) << "somebody is on that one";
    EXPECT_TRUE(carry(StopTenant{10}).ok);
    EXPECT_EQ(mps_daemons(), 0);
}

// A daemon that takes its time is waited for by those who want something of it, and by nobody else.
TEST_F(GpuAgent, tenants_are_started_looked_at_and_stopped_while_an_mps_daemon_takes_its_time) {
    const std::string wait = folder_ / "wait", program = folder_ / "slow-mps";
    std::ofstream{program} << fmt::format("#!/bin/sh\nwhile test -e {}; do sleep 0.02; done\nexec {} \"$@\"\n", wait,
                                          settings_.mps);
    fs::permissions(program, fs::perms::owner_all);
    settings_.mps = program;
    open("2 x h200-141gb");
    if (!hardware_) return;
    std::ofstream{wait} << "";
    StartTenant shared = on_half(9);
    shared.program.words = {"/bin/sh", "-c", "sleep 600"};
    const std::int64_t starting = ++numbers_;
    ASSERT_TRUE(hardware_->begin({}, {starting, shared}));

    StartTenant beside{
        .lease = 10, .tier = Tier::process, .gpus = {{.gpu = 1, .start = 0, .size = 8}}, .tenant = "acme"};
    beside.program.words = {"/bin/sh", "-c", "exit 3"};
    const OperationResult started = carry(beside);
    EXPECT_TRUE(started.ok) << started.why;
    EXPECT_TRUE(eventually([&] { return !exits_.empty(); }));
    const OperationResult stopped = carry(StopTenant{10});
    EXPECT_TRUE(stopped.ok) << stopped.why;
    const auto answered = [&] {
        return std::ranges::find(results_, starting, &OperationResult::number) != results_.end();
    };
    EXPECT_FALSE(answered());
    fs::remove(wait);
    ASSERT_TRUE(eventually(answered));
    const auto joined = std::ranges::find(results_, starting, &OperationResult::number);
    EXPECT_TRUE(joined->ok) << joined->why;
    EXPECT_TRUE(carry(StopTenant{9}).ok);
    EXPECT_EQ(mps_daemons(), 0);
}

}  // namespace
}  // namespace bulkhead::cli
