// What an agent's hardware does on its node, but for sharing by MPS (gpu_sharing_test.cpp). What only silicon can show
// is in docs/measurements/.
#include "bulkhead/cli/gpu_agent_test.hpp"

#include <sys/wait.h>

#include <csignal>
#include <fstream>

namespace bulkhead::cli {
namespace {

namespace fs = std::filesystem;

TEST_F(GpuAgent, tells_what_the_node_has_and_that_it_is_simulated) {
    open("4 x h200-141gb, 2 x l40s");
    if (!hardware_) return;
    const auto inventory = hardware_->inventory();
    ASSERT_TRUE(inventory);
    ASSERT_EQ(inventory->gpus.size(), 2u);
    EXPECT_EQ(inventory->gpus[0].model, "h200-141gb");
    EXPECT_EQ(inventory->gpus[0].count, 4);
    EXPECT_EQ(inventory->gpus[1].count, 2);
    EXPECT_EQ(hardware_->grade(), Grade::simulated);
    const auto version = [&](Component component) {
        const auto found = std::ranges::find(inventory->versions, component, &InstalledVersion::component);
        return found != inventory->versions.end() ? found->version : "";
    };
    EXPECT_EQ(version(Component::driver), "580.159.04");
    EXPECT_EQ(version(Component::gsp_firmware), "580.159.04");
    EXPECT_FALSE(version(Component::vbios).empty());
    for (const DetectedCapability& found : inventory->capabilities) EXPECT_EQ(found.grade, Grade::simulated);
}

// The host of this test knows no such GPUs; the simulated machine's own description does.
TEST_F(GpuAgent, tells_where_its_gpus_sit_and_leaves_out_what_the_machine_does_not_say) {
    open("6 x h200-141gb");
    if (!hardware_) return;
    const auto unknown = hardware_->inventory();
    ASSERT_TRUE(unknown);
    ASSERT_EQ(unknown->topology.size(), 6u);
    EXPECT_FALSE(unknown->topology[0].numaNode);
    EXPECT_TRUE(unknown->topology[0].bridges.empty() && unknown->topology[0].sameNuma.empty());
    ::setenv("HWLOC_XMLFILE", (folder_ / "node/topology.xml").c_str(), 1);
    const auto known = hardware_->inventory();
    ::unsetenv("HWLOC_XMLFILE");
    ASSERT_TRUE(known);
    const GpuPosition& second = known->topology.at(1);
    EXPECT_EQ(second.bus, "0000:29:00.0");
    EXPECT_EQ(second.numaNode, 0);
    EXPECT_EQ(second.cpus, "0-15");
    EXPECT_EQ(second.bridges, (std::vector<std::string>{"0000:16:00.0", "0000:17:00.0"}));
    EXPECT_EQ(second.sameSwitch, std::vector<std::int64_t>{0});
    EXPECT_EQ(second.sameNuma, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(second.otherSockets, (std::vector<std::int64_t>{4, 5}));
    EXPECT_EQ(known->topology.at(4).cpus, "16-31");
    EXPECT_EQ(second.nvlinks, 18);
    EXPECT_TRUE(second.nvlinkSwitched);
    ASSERT_EQ(second.nvlinkPeers.size(), 5u);
    EXPECT_EQ(second.nvlinkPeers[0], (NvLinkPeer{.gpu = 0, .links = 18}));
}

TEST_F(GpuAgent, wipes_a_whole_gpu_and_says_what_it_read) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    const OperationResult wiped = carry(Wipe{UnitKind::memory, 0, 0, 8});
    ASSERT_TRUE(wiped.ok) << wiped.why;
    EXPECT_GT(wiped.bytes, std::int64_t{139} << 30);
    EXPECT_GT(wiped.bytes_unreachable, 0);
    const OperationResult read = carry(Verify{UnitKind::memory, 0, 0, 8, 0});
    EXPECT_TRUE(read.ok) << read.why;
    EXPECT_EQ(read.bytes, wiped.bytes);
    EXPECT_EQ(read.digest.size(), 64u);
    const OperationResult again = carry(Verify{UnitKind::memory, 0, 0, 8, 0});
    EXPECT_FALSE(again.ok) << "one wipe answers one verification";
}

TEST_F(GpuAgent, finds_what_a_tenant_left_and_removes_it) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    simulate({"keep-residue", "--gpu", "0"});
    leave_dirt();
    const OperationResult wiped = carry(Wipe{UnitKind::memory, 0, 0, 8});
    ASSERT_TRUE(wiped.ok) << wiped.why;
    EXPECT_EQ(wiped.bytes_found, std::int64_t{1} << 30);
    EXPECT_TRUE(carry(Verify{UnitKind::memory, 0, 0, 8, 0}).ok);
}

// Red: with the overwrite left out, nothing may pass.
TEST_F(GpuAgent, a_wipe_that_leaves_what_was_there_is_never_verified) {
    settings_.scrub.emplace_back("--skip-overwrite");
    open("1 x h200-141gb");
    if (!hardware_) return;
    simulate({"keep-residue", "--gpu", "0"});
    leave_dirt();
    const OperationResult wiped = carry(Wipe{UnitKind::memory, 0, 0, 8});
    EXPECT_EQ(wiped.bytes_found, std::int64_t{1} << 30);
    const OperationResult read = carry(Verify{UnitKind::memory, 0, 0, 8, 0});
    EXPECT_FALSE(read.ok);
    EXPECT_GT(read.bytes_residue, 0);
}

// Memory that takes no stores until the GPU is reset: what two passes cannot, a reset can.
TEST_F(GpuAgent, memory_that_only_a_reset_frees_is_verified_after_one_and_the_evidence_says_so) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    simulate({"keep-residue", "--gpu", "0"});
    leave_dirt();
    simulate({"stick", "--gpu", "0", "--how", "until-reset"});
    const WipeReport refused = wipe_by_executor(false);
    EXPECT_FALSE(refused.verified) << "nobody allowed a reset";
    const WipeReport wiped = wipe_by_executor(true);
    EXPECT_TRUE(wiped.verified) << wiped.why;
    EXPECT_NE(wiped.evidence.statement.find("overwrite, second pass, after a GPU reset"), std::string::npos)
        << wiped.evidence.statement;
    for (const char* named : {"\"serial\":\"", "\"driver\":\"", "\"vbios\":\"", "\"agentVersion\":\""})
        EXPECT_NE(wiped.evidence.statement.find(named), std::string::npos) << named << wiped.evidence.statement;
}

// Red: what a reset leaves is never called clean.
TEST_F(GpuAgent, memory_that_a_reset_does_not_free_stays_out_of_use) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    simulate({"keep-residue", "--gpu", "0"});
    leave_dirt();
    simulate({"stick", "--gpu", "0", "--how", "for-good"});
    const WipeReport wiped = wipe_by_executor(true);
    EXPECT_FALSE(wiped.verified);
    EXPECT_NE(wiped.why.find("left after a second pass"), std::string::npos) << wiped.why;
}

TEST_F(GpuAgent, resets_nothing_that_somebody_is_on) {
    open("2 x h200-141gb");
    if (!hardware_) return;
    simulate({"start", "--gpu", "0", "--pid", "4000000"});
    EXPECT_NE(carry(ResetGpu{0}).why.find("1 processes are on GPU-"), std::string::npos);
    StartTenant start{.lease = 6, .tier = Tier::process, .gpus = {{.gpu = 0, .start = 0, .size = 8}}, .tenant = "acme"};
    start.program.words = {"/bin/sh", "-c", "sleep 600"};
    const OperationResult started = carry(start);
    ASSERT_TRUE(started.ok) << started.why;
    EXPECT_NE(carry(ResetGpu{1}).why.find("joined to others by NVLink"), std::string::npos);
    ASSERT_TRUE(carry(StopTenant{6}).ok);
    const OperationResult alone = carry(ResetGpu{1});
    EXPECT_TRUE(alone.ok) << alone.why;
}

TEST_F(GpuAgent, a_reset_ends_with_whoever_ordered_it) {
    const std::string said = folder_ / "resetting", program = folder_ / "slow-smi";
    std::ofstream{program} << fmt::format("#!/bin/sh\necho $$ > {0}.new; mv {0}.new {0}\nexec sleep 600\n", said);
    fs::permissions(program, fs::perms::owner_all);
    settings_.smi = program;
    open("1 x h200-141gb");
    if (!hardware_) return;
    hardware_.reset();
    const pid_t agent = ::fork();
    if (agent == 0) {
        auto opened = agent::GpuHardware::open(settings_);
        if (opened) (void)(*opened)->begin({}, {1, ResetGpu{0}});
        ::pause();
    }
    pid_t resetting = 0;
    const auto soon = [](const std::function<bool()>& holds) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{60};
        while (!holds() && std::chrono::steady_clock::now() < until)
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
        return holds();
    };
    EXPECT_TRUE(soon([&] { return static_cast<bool>(std::ifstream{said} >> resetting); }));
    EXPECT_EQ(::kill(resetting, 0), 0);
    ::kill(agent, SIGKILL);
    ::waitpid(agent, nullptr, 0);
    EXPECT_TRUE(soon([&] {
        std::ifstream file{fmt::format("/proc/{}/stat", resetting)};
        const std::string stat{std::istreambuf_iterator<char>{file}, {}};
        return stat.empty() || stat.find(") Z ") != std::string::npos;
    }));
}

TEST_F(GpuAgent, what_was_out_of_use_is_burnt_in) {
    settings_.burn_in_passes = 3;
    open("1 x h200-141gb");
    if (!hardware_) return;
    const Wipe returning{UnitKind::memory, 0, 0, 8, true};
    const OperationResult wiped = carry(returning);
    ASSERT_TRUE(wiped.ok) << wiped.why;
    EXPECT_EQ(wiped.method, "overwrite, burn-in of 3 passes and a computation");
    EXPECT_TRUE(carry(Verify{UnitKind::memory, 0, 0, 8, 0}).ok);
    simulate({"stick", "--gpu", "0"});
    EXPECT_TRUE(carry(returning).ok);
    const OperationResult stuck = carry(Verify{UnitKind::memory, 0, 0, 8, 0});
    EXPECT_FALSE(stuck.ok);
    EXPECT_NE(stuck.why.find("pass 1 of 3 of the burn-in"), std::string::npos) << stuck.why;
    simulate({"stick", "--gpu", "0", "--how", "no"});
    simulate({"health", "--gpu", "0", "--uncorrected", "2"});
    const OperationResult unfit = carry(returning);
    EXPECT_NE(unfit.why.find("cannot return: 2 memory errors"), std::string::npos) << unfit.why;
}

TEST_F(GpuAgent, cuts_adopts_and_wipes_slices_beside_one_that_stays) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    const OperationResult stays = carry(CreateInstance{0, "3g.71gb", 4});
    ASSERT_TRUE(stays.ok) << stays.why;
    ASSERT_TRUE(carry(CreateInstance{0, "1g.18gb", 0}).ok);
    EXPECT_TRUE(carry(CreateInstance{0, "1g.18gb", 0}).ok) << "the same again is adopted";
    EXPECT_FALSE(carry(CreateInstance{0, "3g.71gb", 2}).ok) << "no 3g starts there";
    ASSERT_TRUE(carry(DestroyInstance{0, 0}).ok);
    EXPECT_TRUE(carry(DestroyInstance{0, 0}).ok) << "absent is fine";
    const OperationResult wiped = carry(Wipe{UnitKind::memory, 0, 0, 4});
    ASSERT_TRUE(wiped.ok) << wiped.why;
    EXPECT_TRUE(carry(Verify{UnitKind::memory, 0, 0, 4, 0}).ok);
    const OperationResult kept = carry(CreateInstance{0, "3g.71gb", 4});
    EXPECT_TRUE(kept.ok && kept.device_identity.empty()) << "the neighbour was there all along";
}

TEST_F(GpuAgent, a_slice_that_only_a_neighbour_could_reach_is_not_called_wiped) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    ASSERT_TRUE(carry(CreateInstance{0, "1g.18gb", 6}).ok);
    const OperationResult wiped = carry(Wipe{UnitKind::memory, 0, 7, 1});
    EXPECT_FALSE(wiped.ok);
    EXPECT_NE(wiped.why.find("fit into no instance"), std::string::npos) << wiped.why;
}

TEST_F(GpuAgent, runs_a_command_in_its_tier_and_brings_back_how_it_ended) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    StartTenant start{.lease = 7, .tier = Tier::process, .gpus = {{.gpu = 0, .start = 0, .size = 8}}, .tenant = "acme"};
    start.program.words = {"/bin/sh", "-c", "echo $BULKHEAD_TENANT sees $CUDA_VISIBLE_DEVICES; exit 3"};
    const OperationResult started = carry(start);
    ASSERT_TRUE(started.ok) << started.why;
    ASSERT_TRUE(eventually([&] { return !exits_.empty(); }));
    EXPECT_EQ(exits_.front().lease, 7);
    EXPECT_EQ(exits_.front().status, 3);
    EXPECT_TRUE(exits_.front().output.starts_with("acme sees GPU-")) << exits_.front().output;
    EXPECT_TRUE(carry(StopTenant{7}).ok);
    EXPECT_EQ(exits_.size(), 1u) << "told once";
}

TEST_F(GpuAgent, a_tenant_that_ignores_sigterm_is_gone_after_its_grace) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    StartTenant start{.lease = 8, .tier = Tier::process, .gpus = {{.gpu = 0, .start = 0, .size = 8}}, .tenant = "acme"};
    start.program.words = {"/bin/sh", "-c", "trap '' TERM; while true; do sleep 1; done"};
    ASSERT_TRUE(carry(start).ok);
    const OperationResult stopped = carry(StopTenant{8});
    EXPECT_TRUE(stopped.ok) << stopped.why;
}

TEST_F(GpuAgent, saves_a_tenants_work_before_it_stops_it) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    StartTenant start{.lease = 8, .tier = Tier::process, .gpus = {{.gpu = 0, .start = 0, .size = 8}}, .tenant = "acme"};
    start.program.words = {"/bin/sh", "-c", "echo 41 > step; while true; do sleep 1; done"};
    start.program.checkpoint = {"/bin/sh", "-c", "while ! test -s step; do sleep 0.01; done; echo step $(cat step)"};
    ASSERT_TRUE(carry(start).ok);
    const OperationResult stopped = carry(StopTenant{8, Duration{60'000}});
    ASSERT_TRUE(stopped.ok) << stopped.why;
    EXPECT_EQ(stopped.saved, (Saved{true, "step 41"}));
    const OperationResult again = carry(StopTenant{8, Duration{60'000}});
    EXPECT_TRUE(again.ok) << again.why;
    EXPECT_FALSE(again.saved->ok) << "there is nothing left to save";
}

TEST_F(GpuAgent, turns_are_as_long_as_the_operator_wants_them) {
    settings_.time_slice = "long";
    open("2 x h200-141gb");
    if (!hardware_) return;
    StartTenant start{.lease = 9,
                      .tier = Tier::process,
                      .gpus = {{.gpu = 1, .start = 0, .size = 8}},
                      .tenant = "acme",
                      .mechanism = Mechanism::whole};
    ASSERT_TRUE(carry(start).ok);
    EXPECT_EQ(simulate({"show"}).find("time slice"), std::string::npos) << "whoever has it alone takes no turns";
    start.gpus.front().share = 500;
    start.mechanism = Mechanism::time_slicing;
    const OperationResult started = carry(start);
    ASSERT_TRUE(started.ok) << started.why;
    const std::string shown = simulate({"show"});
    EXPECT_GT(shown.find("time slice 3"), shown.find("gpu 1")) << shown;
}

TEST_F(GpuAgent, a_time_slice_that_cannot_be_had_is_said) {
    settings_.time_slice = "long";
    settings_.smi = "/bin/false";
    open("1 x h200-141gb");
    if (!hardware_) return;
    const OperationResult started = carry(StartTenant{.lease = 9,
                                                      .tier = Tier::process,
                                                      .gpus = {{.gpu = 0, .start = 0, .size = 8, .share = 500}},
                                                      .tenant = "acme",
                                                      .mechanism = Mechanism::time_slicing});
    EXPECT_FALSE(started.ok);
    EXPECT_NE(started.why.find("cannot set a long time slice"), std::string::npos) << started.why;
}

TEST_F(GpuAgent, hears_of_a_gpu_that_breaks_and_not_of_what_a_tenant_did_to_itself) {
    open("2 x h200-141gb");
    if (!hardware_) return;
    simulate({"xid", "--gpu", "0", "--number", "13"});
    simulate({"xid", "--gpu", "1", "--number", "79"});
    ASSERT_TRUE(eventually([&] { return !faults_.empty(); }));
    EXPECT_EQ(faults_.front().device, 1);
    EXPECT_EQ(faults_.front().why, "Xid 79");
}

TEST_F(GpuAgent, a_gpu_that_goes_without_a_word_is_missed) {
    open("2 x h200-141gb");
    if (!hardware_) return;
    simulate({"lose", "--gpu", "1"});
    ASSERT_TRUE(eventually([&] { return !faults_.empty(); }));
    EXPECT_EQ(faults_.front(), (FaultReport{UnitKind::memory, 1, "it has fallen off the bus"}));
}

TEST_F(GpuAgent, counters_and_xids_drain_or_quarantine_each_as_it_must) {
    open("3 x h200-141gb");
    if (!hardware_) return;
    simulate({"xid", "--gpu", "0", "--number", "63"});
    ASSERT_TRUE(eventually([&] { return faults_.size() == 1; })) << faults_.size();
    EXPECT_EQ(faults_[0], (FaultReport{UnitKind::memory, 0, "Xid 63", true}));
    simulate({"health", "--gpu", "1", "--remap-pending"});
    ASSERT_TRUE(eventually([&] { return faults_.size() == 2; }));
    EXPECT_EQ(faults_[1].device, 1);
    EXPECT_TRUE(faults_[1].drain) << faults_[1].why;
    simulate({"health", "--gpu", "2", "--remap-failed"});
    ASSERT_TRUE(eventually([&] { return faults_.size() == 3; })) << "and each is told once";
    EXPECT_EQ(faults_[2], (FaultReport{UnitKind::memory, 2, "a row of its memory is broken and no spare is left"}));
}

// Hopper forgets over a reboot that it was cut; what was on it is gone either way.
TEST_F(GpuAgent, gpus_that_were_cut_are_cut_again_after_a_reboot) {
    for (const char* const board : {"1 x h200-141gb", "1 x a100-80gb"}) {
        SCOPED_TRACE(board);
        hardware_.reset();
        fs::remove_all(folder_ / "agent");
        fs::create_directories(folder_ / "agent");
        open(board);
        if (!hardware_) return;
        const std::string half = board == std::string{"1 x h200-141gb"} ? "3g.71gb" : "3g.40gb";
        const OperationResult cut = carry(CreateInstance{0, half, 4});
        ASSERT_TRUE(cut.ok) << cut.why;
        hardware_.reset();
        simulate({"reboot"});
        auto opened = agent::GpuHardware::open(settings_);
        ASSERT_TRUE(opened) << opened.error().what;
        hardware_ = *std::move(opened);
        EXPECT_EQ(mode_of_first(), nvml::MigMode::enabled);
        EXPECT_TRUE(carry(DestroyInstance{0, 4}).ok) << "absent is fine";
        const OperationResult wiped = carry(Wipe{UnitKind::memory, 0, 4, 4});
        EXPECT_TRUE(wiped.ok) << wiped.why;
        EXPECT_TRUE(carry(Verify{UnitKind::memory, 0, 4, 4, 0}).ok);
        EXPECT_FALSE(carry(CreateInstance{0, half, 4}).device_identity.empty()) << "it is made anew";
    }
}

TEST_F(GpuAgent, a_gpu_that_somebody_is_on_is_left_as_it_is_and_one_that_was_whole_stays_whole) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    ASSERT_TRUE(carry(CreateInstance{0, "3g.71gb", 4}).ok);
    hardware_.reset();
    simulate({"reboot"});
    simulate({"start", "--gpu", "0", "--pid", "4000000"});
    const auto again = [&] {
        hardware_.reset();
        auto opened = agent::GpuHardware::open(settings_);
        ASSERT_TRUE(opened) << opened.error().what;
        hardware_ = *std::move(opened);
    };
    again();
    EXPECT_EQ(mode_of_first(), nvml::MigMode::disabled);
    simulate({"end", "--pid", "4000000"});
    ASSERT_TRUE(carry(CreateInstance{0, "3g.71gb", 4}).ok);
    ASSERT_TRUE(carry(DestroyInstance{0, 4}).ok);
    ASSERT_TRUE(carry(Wipe{UnitKind::memory, 0, 0, 8}).ok) << "as a whole, for which it is made whole";
    again();
    EXPECT_EQ(mode_of_first(), nvml::MigMode::disabled);
}

TEST_F(GpuAgent, a_tier_it_does_not_have_is_refused_by_name) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    const OperationResult started = carry(StartTenant{.lease = 5, .tier = Tier::vm, .gpus = {{.gpu = 0, .size = 8}}});
    EXPECT_FALSE(started.ok);
    EXPECT_EQ(started.why, "this node has no vm tier: this agent was told of no libvirt");
}

}  // namespace
}  // namespace bulkhead::cli
