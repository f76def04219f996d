#include "bulkhead/agent/gpu_scrub.hpp"

#include <fmt/format.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <future>
#include <iterator>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/evidence/text.hpp"
#include "bulkhead/hw/nvml/nvml.hpp"

namespace bulkhead::agent {

namespace {

// More than this in use, and nobody listed who uses it, is somebody we cannot see (another container's process, another
// VM's). Less is bookkeeping that some drivers count as use.
constexpr std::uint64_t use_without_user_max = 64 << 20;

// What a context takes, and what lies between pieces, were 394 and 4 MiB on an H200. Far more is memory that was not
// wiped.
constexpr std::int64_t context_max = std::int64_t{2} << 30, left_max = 64 << 20;
// Of a context whose place was wiped by a second one.
constexpr std::int64_t former_context_max = 64 << 20;

struct Neighbourhood {  // as NVML saw it before we came
    nvml::Gpu gpu;
    std::string driver;
    nvml::MemoryUse memory;
    bool simulated = false;
    std::size_t processes = 0;
};

Result<Neighbourhood> look_around(const GpuScrubOptions& options) {
    const auto nvml = nvml::Nvml::open(options.nvml);
    if (!nvml) return std::unexpected(nvml.error());
    const auto gpus = nvml->gpus();
    if (!gpus) return std::unexpected(gpus.error());
    Neighbourhood around;
    around.simulated = nvml->is_simulated();
    const bool is_instance = options.gpu.starts_with("MIG-");
    if (is_instance) {
        around.gpu.uuid = options.gpu;
    } else {
        const auto found = std::ranges::find_if(*gpus, [&](const nvml::Gpu& gpu) {
            return gpu.uuid == options.gpu || std::to_string(gpu.index) == options.gpu;
        });
        if (found == gpus->end() || found->lost)
            return fail(Code::not_found,
                        fmt::format("there is no GPU {} here; there are {}", options.gpu, gpus->size()),
                        "`nvidia-smi -L` lists them, by index and by UUID");
        around.gpu = *found;
        if (found->mig == nvml::MigMode::enabled)
            return fail(
                Code::conflict,
                fmt::format("{} is cut into instances: as a whole it can be neither used nor wiped", found->uuid),
                "wipe each instance by its MIG- UUID, or turn MIG off first");
    }
    const auto memory = nvml->memory(around.gpu.uuid);
    if (!memory) return std::unexpected(memory.error());
    around.memory = *memory;
    const auto processes = nvml->processes(around.gpu.uuid);
    if (!processes) return std::unexpected(processes.error());
    around.processes = static_cast<std::size_t>(std::ranges::count_if(*processes, [](const nvml::Process& process) {
        return process.pid != static_cast<std::uint32_t>(::getpid());
    }));
    if (const auto versions = nvml->versions()) around.driver = versions->driver;
    return around;
}

// How long this process has lived, to a hundredth of a second, as the kernel counts.
double lived_ms() {
    std::ifstream file{"/proc/self/stat"};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    // The name in brackets may hold anything; what follows it has fixed places. The start is the 22nd of all.
    std::size_t at = text.rfind(')');
    for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
    if (at == std::string::npos) return 0;
    const double ticks = std::strtod(text.c_str() + at + 1, nullptr);
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    const double ms = static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
    return std::max(0.0, ms - ticks * 1e3 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

std::int64_t us(double ms) { return static_cast<std::int64_t>(ms * 1e3); }
std::int64_t whole(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }

void fill_in(GpuScrub& scrub, const cuda::ScrubReport& report, const Neighbourhood& around) {
    scrub.device = around.gpu.uuid;
    scrub.model = report.device.name;
    scrub.driver = around.driver;
    scrub.simulated = around.simulated;
    scrub.bytes_total = whole(around.memory.total);
    scrub.bytes_reached = whole(report.bytes_reached);
    scrub.bytes_others = whole(around.memory.used);
    scrub.bytes_left = whole(report.bytes_left);
    // What the driver keeps for itself shows as the difference between what NVML and what CUDA say there is.
    scrub.bytes_reserved = std::max<std::int64_t>(0, scrub.bytes_total - whole(report.bytes_total));
    scrub.bytes_context = std::max<std::int64_t>(
        0, scrub.bytes_total - scrub.bytes_reserved - scrub.bytes_reached - scrub.bytes_left - scrub.bytes_others);
    scrub.why_context_stays = report.why_context_stays;
    scrub.pieces = static_cast<std::int64_t>(report.pieces);
    if (report.bytes_found) scrub.bytes_found = whole(*report.bytes_found);
    scrub.burn_in_passes = static_cast<std::int64_t>(report.burn_in_passes);
    scrub.bytes_other = whole(report.bytes_other);
    scrub.bytes_verified = report.verified ? scrub.bytes_reached : whole(report.words_read * 4);
    scrub.survey_gpu_us = us(report.survey.ms);
    scrub.overwrite_gpu_us = us(report.overwrite.ms);
    scrub.verify_gpu_us = us(report.verify.ms);
    scrub.times.context = us(report.context_ms);
    scrub.times.module = us(report.module_ms);
    scrub.times.allocation = us(report.allocation_ms);
    scrub.times.survey = us(report.survey_ms);
    scrub.times.overwrite = us(report.overwrite_ms);
    scrub.times.verify = us(report.verify_ms);
    scrub.times.handover = us(report.handover_ms);
}

void judge(GpuScrub& scrub, const cuda::ScrubReport& report, const Neighbourhood& around) {
    if (!report.verified) {
        scrub.why_not = report.why_not;
    } else if (around.processes > 0) {
        scrub.why_not = fmt::format("{} processes were on it: what they hold was not wiped", around.processes);
    } else if (around.memory.used > use_without_user_max) {
        scrub.why_not = fmt::format("{} bytes were in use by somebody who is not listed", around.memory.used);
    } else if (scrub.bytes_left > left_max) {
        scrub.why_not = fmt::format("{} bytes were free and could not be had", scrub.bytes_left);
    } else if (scrub.bytes_context > (report.why_context_stays.empty() ? former_context_max : context_max)) {
        scrub.why_not = fmt::format("{} bytes are out of reach, more than a context takes: somebody else has them",
                                    scrub.bytes_context);
    } else if (report.device.uuid != around.gpu.uuid) {
        scrub.why_not = fmt::format("CUDA wiped {}, and NVML means {}", report.device.uuid, around.gpu.uuid);
    } else {
        scrub.verified = true;
    }
}

std::string digest_of(const cuda::ScrubReport& report, std::array<std::uint32_t, 4> key) {
    const Hash hash = sha256(fmt::format("bulkhead.dev/scrub/v1\n{}\n{}\n{:08x}{:08x}{:08x}{:08x}\n{}\n{}\n{:016x}\n",
                                         report.device.uuid, report.bytes_reached, key[0], key[1], key[2], key[3],
                                         report.words_read, report.bytes_other, report.sum_read));
    return to_hex(bytes_of(hash));
}

}  // namespace

std::string GpuScrub::unreachable() const {
    return fmt::format(
        "{} of the driver and its firmware, {} of the wiping program's own context{}, {} of other programs, {} in no "
        "piece that could be had",
        bytes_reserved, bytes_context, why_context_stays.empty() ? "" : " (" + why_context_stays + ")", bytes_others,
        bytes_left);
}

Result<GpuScrub> scrub_gpu(const GpuScrubOptions& options) {
    GpuScrub scrub;
    const double started = lived_ms();
    const auto began = std::chrono::steady_clock::now();
    const auto since_began = [&] {
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
    };
    scrub.times.start = us(started);
    // One GPU, counted as NVML counts; one queue to it, because the others only take memory, and half the time a
    // context takes to be made (docs/measurements/).
    ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    ::setenv("CUDA_VISIBLE_DEVICES", options.gpu.c_str(), 1);
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
    // Through an MPS server we would see what it lets its clients see; and there is one by default, in a folder of
    // /tmp.
    ::setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent/bulkhead", 1);
    for (const char* const name : {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                                   "CUDA_INJECTION64_PATH", "CUDA_MPS_SM_PARTITION"})
        ::unsetenv(name);
    // Both libraries wait for the kernel most of their start: side by side they take as long as the slower.
    auto around = std::async(std::launch::async, [&options] { return look_around(options); });
    const auto driver = cuda::Driver::open(options.cuda);
    const auto seen = around.get();
    if (!seen) return std::unexpected(seen.error());
    if (!driver) return std::unexpected(driver.error());
    scrub.times.driver = us(since_began());

    std::array<std::uint32_t, 4> key{};
    if (RAND_bytes(reinterpret_cast<unsigned char*>(key.data()), sizeof key) != 1)
        return fail(Code::unavailable, "the operating system gives no random bytes",
                    "see whether /dev/urandom can be read");
    std::vector<std::array<std::uint32_t, 4>> burn_in(static_cast<std::size_t>(options.burn_in));
    if (!burn_in.empty() && RAND_bytes(reinterpret_cast<unsigned char*>(burn_in.data()),
                                       static_cast<int>(burn_in.size() * sizeof key)) != 1)
        return fail(Code::unavailable, "the operating system gives no random bytes",
                    "see whether /dev/urandom can be read");
    const auto report = cuda::scrub(
        *driver,
        {.ordinal = 0, .key = key, .survey = options.survey, .burn_in = std::move(burn_in), .mishap = options.mishap});
    if (!report) return std::unexpected(report.error());
    fill_in(scrub, *report, *seen);
    // Who came while we were at it had memory that we did not.
    const auto after = look_around(options);
    if (!after) return std::unexpected(after.error());
    Neighbourhood all = *seen;
    all.processes = std::max(seen->processes, after->processes);
    judge(scrub, *report, all);
    scrub.digest = digest_of(*report, key);
    scrub.times.total = us(started + since_began());
    return scrub;
}

std::string scrub_text(const GpuScrub& scrub) { return evidence::compact_text(scrub); }

Result<GpuScrub> read_scrub(std::string_view text) { return evidence::read_text<GpuScrub>("scrub", text); }

}  // namespace bulkhead::agent
