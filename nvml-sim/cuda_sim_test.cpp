// The simulated CUDA driver as our own wipe meets it: overwrite, read back, and what is found when something goes
// wrong.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>

#include "bulkhead/hw/cuda/driver.hpp"
#include "bulkhead/hw/cuda/scrub.hpp"
#include "bulkhead/node/driver_model.hpp"
#include "rig_test.hpp"

namespace bulkhead::nvml_sim {
namespace {

// Which devices a process is shown is decided once in its life: each claim is a process of its own. What it returns is
// 0, or the line at which it gave up.
#define TELL(condition) \
    if (!(condition)) return __LINE__

template <class Work>
int in_a_process(const std::string& visible, Work&& work) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (visible.empty())
            ::unsetenv("CUDA_VISIBLE_DEVICES");
        else
            ::setenv("CUDA_VISIBLE_DEVICES", visible.c_str(), 1);
        const int line = work();
        if (line != 0) fprintf(stderr, "gave up at line %d\n", line);
        ::_exit(line == 0 ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
}

class CudaSim : public NvmlSim {
protected:
    nvml::Memory memory(nvml::Device of) {
        nvml::Memory told{};
        EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo)(of, &told), nvml::Return::success);
        return told;
    }
    std::string cut_one() {
        nvml::Return activation{};
        EXPECT_EQ(NVML(nvmlDeviceSetMigMode)(device(), nvml::MigMode::enabled, &activation), nvml::Return::success);
        nvml::GpuInstance instance = nullptr;
        nvml::ComputeInstance compute = nullptr;
        const nvml::InstancePlacement at{0, 1};
        EXPECT_EQ(NVML(nvmlDeviceCreateGpuInstanceWithPlacement)(device(), 19, &at, &instance), nvml::Return::success);
        EXPECT_EQ(NVML(nvmlGpuInstanceCreateComputeInstance)(instance, 0, &compute), nvml::Return::success);
        nvml::Device mig = nullptr;
        EXPECT_EQ(NVML(nvmlDeviceGetMigDeviceHandleByIndex)(device(), 0, &mig), nvml::Return::success);
        char uuid[nvml::uuid_v2_size];
        EXPECT_EQ(NVML(nvmlDeviceGetUUID)(mig, uuid, sizeof uuid), nvml::Return::success);
        return uuid;
    }
};

// A tenant that writes its secret over most of what it can have, and ends without a word.
int leave_a_secret() {
    const auto driver = cuda::Driver::open(BULKHEAD_CUDA_SIM);
    TELL(driver);
    auto context = driver->context(0);
    TELL(context);
    const auto info = context->memory();
    TELL(info);
    const auto piece = context->allocate(info->free / 4 * 3);
    TELL(piece && *piece);
    TELL(context->set_words((*piece)->at, 0x5EC2E7, (*piece)->bytes / 4));
    ::_exit(0);
}

constexpr std::array<std::uint32_t, 4> key{1, 2, 3, 4};

TEST_F(CudaSim, a_whole_gpu_is_wiped_and_read_back_by_our_own_kernels) {
    EXPECT_EQ(in_a_process("",
                           [] {
                               const auto driver = cuda::Driver::open(BULKHEAD_CUDA_SIM);
                               TELL(driver);
                               const auto report = cuda::scrub(*driver, {.ordinal = 1, .key = key, .survey = true});
                               TELL(report);
                               TELL(report->verified);
                               TELL(report->bytes_found == 0);
                               TELL(report->bytes_reached > std::uint64_t{139} << 30);
                               return 0;
                           }),
              0);
    EXPECT_EQ(memory(device(1)).used, 629824u * 1024u) << "what a process held is gone with it";
}

TEST_F(CudaSim, residue_is_seen_and_wiped_where_the_driver_keeps_it) {
    for (const bool keeps : {true, false}) {
        ASSERT_EQ(gpusim("keep-residue", keeps ? "" : "--off"), 0);
        ASSERT_EQ(in_a_process("0", leave_a_secret), 0);
        const auto wipe = [](bool dirty) {
            return [dirty] {
                const auto driver = cuda::Driver::open(BULKHEAD_CUDA_SIM);
                TELL(driver);
                const auto report = cuda::scrub(*driver, {.ordinal = 0, .key = key, .survey = true});
                TELL(report);
                TELL(report->verified);
                TELL((report->bytes_found > std::uint64_t{90} << 30) == dirty);
                return 0;
            };
        };
        EXPECT_EQ(in_a_process("0", wipe(keeps)), 0) << keeps;
    }
}

// What a context takes for itself is memory that another tenant had before. This secret lies where the first context of
// whoever comes next will be.
int leave_a_secret_under_the_next_context() {
    const auto driver = cuda::Driver::open(BULKHEAD_CUDA_SIM);
    TELL(driver);
    auto first = std::optional{driver->context(0)};
    TELL(*first);
    auto second = driver->context(0);
    TELL(second);
    first.reset();
    const auto piece = second->allocate(std::uint64_t{256} << 20);
    TELL(piece && *piece);
    TELL(second->set_words((*piece)->at, 0x5EC2E7, (*piece)->bytes / 4));
    ::_exit(0);
}

TEST_F(CudaSim, what_the_wipes_own_context_lies_on_is_wiped_too) {
    const auto wipe = [](bool whole) {
        return [whole] {
            const auto driver = cuda::Driver::open(BULKHEAD_CUDA_SIM);
            TELL(driver);
            const auto report = cuda::scrub(*driver, {.ordinal = 0, .key = key, .survey = true});
            TELL(report && report->verified);
            TELL(whole || report->bytes_found == 0);  // nobody can look under a context that lives
            TELL(report->bytes_left < 4 << 20);       // parts of pages
            TELL((report->bytes_total - report->bytes_reached < 8 << 20) == whole);
            TELL(report->why_context_stays.empty() == whole);
            return 0;
        };
    };
    const auto secret_is_there = [&] {
        std::ifstream file{node_ / "state.bin", std::ios::binary};
        const auto model = driver::Model::from_bytes(std::string{std::istreambuf_iterator<char>{file}, {}});
        EXPECT_TRUE(model);
        return std::ranges::any_of(model->gpu(0).contents.all(), [](const auto& run) {
            return run.second.pattern == driver::Pattern::of_word(0x5EC2E7);
        });
    };
    ASSERT_EQ(gpusim("keep-residue", ""), 0);
    ASSERT_EQ(in_a_process("0", leave_a_secret_under_the_next_context), 0);
    ASSERT_TRUE(secret_is_there());
    // Red: where memory cannot be held beyond a context, it stays, and the report says how much was not reached.
    ASSERT_EQ(gpusim("fault", "--call cuMemCreate --kind fail --value 801"), 0);
    EXPECT_EQ(in_a_process("0", wipe(false)), 0);
    EXPECT_TRUE(secret_is_there());
    EXPECT_EQ(in_a_process("0", wipe(true)), 0);
    EXPECT_FALSE(secret_is_there());
}

TEST_F(CudaSim, memory_that_is_no_contexts_outlives_them_and_is_reached_where_it_is_mapped) {
    EXPECT_EQ(in_a_process("0",
                           [] {
                               const auto driver = cuda::Driver::open(BULKHEAD_CUDA_SIM);
                               TELL(driver);
                               auto first = std::optional{driver->context(0)};
                               TELL(*first);
                               TELL((*first)->can_hold());
                               TELL(!(*first)->hold((2 << 20) + 1));
                               auto held = (*first)->hold(64 << 20);
                               TELL(held && *held);
                               const cuda::Piece piece = (*held)->piece();
                               TELL((*first)->set_words(piece.at, 7, piece.bytes / 4));
                               auto second = driver->context(0);
                               TELL(second);
                               first.reset();
                               std::uint32_t word = 0;
                               const auto out = std::as_writable_bytes(std::span{&word, 1});
                               TELL(second->copy_out(out, piece.at + piece.bytes - 4));
                               TELL(word == 7);
                               TELL(!second->copy_out(out, piece.at + piece.bytes));  // beyond it
                               const auto before = second->memory();
                               (*held).reset();
                               TELL(second->memory()->free == before->free + piece.bytes);
                               TELL(!second->copy_out(out, piece.at));
                               return 0;
                           }),
              0);
}

TEST_F(CudaSim, a_store_that_did_not_arrive_fails_the_wipe) {
    ASSERT_EQ(gpusim("fault", "--call cuLaunchKernel --kind lie"), 0);  // the overwrite says it was done
    EXPECT_EQ(in_a_process("0",
                           [] {
                               const auto driver = cuda::Driver::open(BULKHEAD_CUDA_SIM);
                               TELL(driver);
                               const auto report = cuda::scrub(*driver, {.ordinal = 0, .key = key, .survey = false});
                               TELL(report);
                               TELL(!report->verified);
                               TELL(report->bytes_other > 0);
                               return 0;
                           }),
              0);
}

TEST_F(CudaSim, a_process_is_shown_what_it_may_see) {
    EXPECT_EQ(in_a_process("",
                           [] {
                               const auto driver = cuda::Driver::open(BULKHEAD_CUDA_SIM);
                               TELL(driver && driver->version() == 13000);
                               TELL(driver->devices()->size() == 2 && driver->devices()->front().name == "NVIDIA H200");
                               TELL(driver->devices()->front().multiprocessors == 132);
                               return 0;
                           }),
              0);
    EXPECT_EQ(in_a_process("1,7",
                           [] { return cuda::Driver::open(BULKHEAD_CUDA_SIM)->devices()->size() == 1 ? 0 : __LINE__; }),
              0);
    EXPECT_EQ(in_a_process("GPU-none", [] { return cuda::Driver::open(BULKHEAD_CUDA_SIM) ? __LINE__ : 0; }), 0);
}

TEST_F(CudaSim, a_mig_device_is_one_gpu_with_its_instances_memory) {
    const std::string uuid = cut_one();
    EXPECT_EQ(in_a_process(uuid,
                           [&] {
                               const auto driver = cuda::Driver::open(BULKHEAD_CUDA_SIM);
                               TELL(driver);
                               const auto devices = driver->devices();
                               TELL(devices && devices->size() == 1);
                               TELL(devices->front().uuid == uuid);
                               TELL(devices->front().multiprocessors == 16);
                               TELL(devices->front().bytes == std::uint64_t{16384} << 20);
                               const auto report = cuda::scrub(*driver, {.ordinal = 0, .key = key, .survey = true});
                               TELL(report && report->verified);
                               return 0;
                           }),
              0);
}

TEST_F(CudaSim, memory_of_a_living_process_is_seen_by_nvml_and_by_nobody_else) {
    const auto before = memory(device()).used;
    EXPECT_EQ(
        in_a_process("0",
                     [&] {
                         const auto driver = cuda::Driver::open(BULKHEAD_CUDA_SIM);
                         TELL(driver);
                         auto context = driver->context(0);
                         TELL(context);
                         const auto piece = context->allocate(std::uint64_t{1} << 30);
                         TELL(piece && *piece);
                         TELL(memory(device()).used == before + (std::uint64_t{1} << 30) + (std::uint64_t{512} << 20));
                         std::array<std::byte, 8> bytes{};
                         TELL(context->copy_out(bytes, (*piece)->at));
                         TELL(!context->copy_out(bytes, (*piece)->at + (std::uint64_t{1} << 30)));
                         return 0;
                     }),
        0);
    EXPECT_EQ(memory(device()).used, before);
}

// Whether anybody has asked how it ended is nothing to the driver.
TEST_F(CudaSim, a_process_that_has_ended_holds_nothing_even_before_its_parent_knows) {
    const pid_t child = ::fork();
    if (child == 0) {
        const auto driver = cuda::Driver::open(BULKHEAD_CUDA_SIM);
        auto context = driver->context(0);
        const bool taken = context && context->allocate(std::uint64_t{1} << 30).has_value();
        ::kill(::getpid(), taken ? SIGKILL : SIGTERM);
    }
    siginfo_t ended{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(ended.si_status, SIGKILL);
    std::uint32_t count = 0;
    EXPECT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device(), &count, nullptr), nvml::Return::success);
    EXPECT_EQ(count, 0u);
    ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace bulkhead::nvml_sim
