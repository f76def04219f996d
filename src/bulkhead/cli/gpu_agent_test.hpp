// An agent's hardware over the simulated driver, for tests: the same calls, processes and files as on real GPUs, and
// nothing in between that agrees with itself.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <thread>

#include "bulkhead/agent/gpu_hardware.hpp"
#include "bulkhead/cli/host_places_test.hpp"
#include "bulkhead/hw/cuda/driver.hpp"
#include "bulkhead/hw/program/program.hpp"
#include "bulkhead/node/executor.hpp"

namespace bulkhead::cli {

class GpuAgent : public ::testing::Test {
protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / fmt::format("gpu-agent-{}", ::getpid());
        std::filesystem::remove_all(folder_);
        std::filesystem::create_directories(folder_ / "agent");
        ::setenv("BULKHEAD_SIM_NODE", (folder_ / "node").c_str(), 1);
        settings_ = {.nvml = BULKHEAD_SIM_LIBRARIES "/libnvidia-ml.so.1",
                     .cuda = BULKHEAD_SIM_LIBRARIES "/libcuda.so.1",
                     .mps = BULKHEAD_SOURCE_DIR "/nvml-sim/mps/nvidia-cuda-mps-control",
                     .smi = BULKHEAD_SIM_SMI,
                     .allow_gpu_reset = true,
                     .folder = folder_ / "agent",
                     .scrub = {BULKHEAD_PROGRAM, "scrub"},
                     .tenant_program = std::filesystem::path{BULKHEAD_PROGRAM}.parent_path() / "bulkhead-tenant",
                     .grace = Duration{200},
                     .health_every = Duration{200}};
    }
    void TearDown() override {
        hardware_.reset();
        ::unsetenv("BULKHEAD_SIM_NODE");
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
        clear(places());
    }
    std::string simulate(const std::vector<std::string>& words) {
        std::vector<std::string> command{std::filesystem::path{BULKHEAD_PROGRAM}.parent_path() / "bulkhead-gpusim",
                                         words.front(), folder_ / "node"};
        command.insert(command.end(), words.begin() + 1, words.end());
        const auto ran = program::run(command, {}, "", std::chrono::seconds{30});
        EXPECT_TRUE(ran) << ran.error().what;
        EXPECT_EQ(ran ? ran->status : 1, 0) << (ran ? ran->output : "");
        return ran ? ran->output : "";
    }
    void open(const std::string& gpus) {
        simulate({"new", "--gpus", gpus});
        auto opened = agent::GpuHardware::open(settings_);
        if (!opened) GTEST_SKIP() << "no tenants can be kept here: " << opened.error().what;
        hardware_ = *std::move(opened);
    }
    // Polls until it holds; news that nobody waited for yet are kept.
    bool eventually(const std::function<bool()>& holds) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{60};
        while (std::chrono::steady_clock::now() < until) {
            auto news = hardware_->poll({});
            if (!news) return false;
            for (OperationResult& result : news->results) results_.push_back(std::move(result));
            for (FaultReport& fault : news->faults) faults_.push_back(std::move(fault));
            for (TenantExit& exit : news->exits) exits_.push_back(std::move(exit));
            for (std::string& note : news->notes) notes_.push_back(std::move(note));
            stock_changed_ = stock_changed_ || news->stock_changed;
            if (holds()) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds{10});
        }
        return false;
    }
    OperationResult carry(decltype(Operation::what) what) {
        const std::int64_t number = ++numbers_;
        EXPECT_TRUE(hardware_->begin({}, {number, std::move(what)}));
        OperationResult found;
        EXPECT_TRUE(eventually([&] {
            for (const OperationResult& result : results_)
                if (result.number == number) {
                    found = result;
                    return true;
                }
            return false;
        })) << "operation "
            << number << " never answered";
        return found;
    }
    // What a tenant would leave: a pattern in memory that was freed.
    void leave_dirt() const {
        const auto driver = cuda::Driver::open(settings_.cuda);
        ASSERT_TRUE(driver) << driver.error().what;
        auto context = driver->context(0);
        ASSERT_TRUE(context) << context.error().what;
        const auto piece = context->allocate(1 << 30);
        ASSERT_TRUE(piece && *piece);
        ASSERT_TRUE(context->set_words((*piece)->at, 0xDEADBEEF, (1 << 30) / 4));
        ASSERT_TRUE(context->finish());
        ASSERT_TRUE(context->release((*piece)->at));
    }

    // One wipe of the whole of GPU 0, as an executor has it done.
    WipeReport wipe_by_executor(bool may_reset) {
        NodeIdentity identity{.node = "n", .grade = hardware_->grade(), .gpu_reset = may_reset};
        Executor executor{identity, *evidence::SigningKey::from_seed(std::string(32, 'k')), {}};
        std::deque<Operation> begun;
        WipeReport answer;
        const auto take = [&](const Outcome& outcome) {
            begun.insert(begun.end(), outcome.begin.begin(), outcome.begin.end());
            for (const Report& report : outcome.reports)
                if (const auto* wipe = std::get_if<WipeReport>(&report.what)) answer = *wipe;
        };
        take(executor.resume({}, "boot"));
        take(executor.on_order({}, {1, Sanitize{{{UnitKind::memory, 0, 0, 8, key_of(1, 1)}}}}));
        for (; !begun.empty(); begun.pop_front()) {
            OperationResult result = carry(begun.front().what);
            result.number = begun.front().number;
            take(executor.on_result({}, result));
        }
        return answer;
    }
    agent::HostPlaces places() const { return agent::host_places(settings_.folder); }
    // A tenant that shares GPU 0 by MPS; what it runs is for the test to say.
    static StartTenant on_half(Key lease) {
        return {.lease = lease,
                .tier = Tier::process,
                .gpus = {{.gpu = 0, .start = 0, .size = 8, .share = 500}},
                .tenant = "acme",
                .mechanism = Mechanism::mps};
    }
    std::ptrdiff_t mps_daemons() const {
        std::error_code none;
        const std::filesystem::recursive_directory_iterator files{places().run_folder + "/mps", none};
        return std::ranges::count_if(files, [](const std::filesystem::directory_entry& entry) {
            return entry.path().filename() == "nvidia-cuda-mps-control.pid";
        });
    }
    nvml::MigMode mode_of_first() const {
        const auto nvml = nvml::Nvml::open(settings_.nvml);
        return nvml->gpus()->front().mig.value();
    }

    std::filesystem::path folder_;
    agent::GpuHardwareSettings settings_;
    std::unique_ptr<agent::GpuHardware> hardware_;
    std::vector<OperationResult> results_;
    std::vector<FaultReport> faults_;
    std::vector<TenantExit> exits_;
    std::vector<std::string> notes_;
    bool stock_changed_ = false;
    std::int64_t numbers_ = 0;
};

}  // namespace bulkhead::cli
