#include "bulkhead/probe/scene.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>

namespace bulkhead::probe {

Result<Scene> set_up(const Options& options, std::string probe) {
    auto nvml = nvml::Nvml::open(options.nvml);
    if (!nvml) return std::unexpected(nvml.error());
    const auto gpus = nvml->gpus();
    if (!gpus) return std::unexpected(gpus.error());
    const auto gpu = std::ranges::find_if(*gpus, [&](const nvml::Gpu& each) {
        return each.uuid == options.gpu || std::to_string(each.index) == options.gpu;
    });
    if (gpu == gpus->end() || gpu->lost)
        return fail(Code::not_found, fmt::format("there is no GPU {} here; there are {}", options.gpu, gpus->size()),
                    "`nvidia-smi -L` lists them, by index and by UUID");
    if (const auto processes = nvml->processes(gpu->uuid); processes && !processes->empty())
        return fail(Code::conflict,
                    fmt::format("{} processes use {}: a probe would measure them, and disturb them", processes->size(),
                                gpu->uuid),
                    "drain it first, or name another GPU");
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    const auto versions = nvml->versions();
    Scene scene{.nvml = *std::move(nvml), .gpu = *gpu, .options = options, .report = {}};
    scene.options.gpu = gpu->uuid;
    scene.report = {.probe = std::move(probe),
                    .device = gpu->uuid,
                    .model = gpu->name,
                    .driver = versions ? versions->driver : std::string{},
                    .host = host.data(),
                    .at = {std::chrono::duration_cast<std::chrono::milliseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count()},
                    .grade = scene.nvml.is_simulated() ? Grade::simulated : Grade::silicon,
                    .findings = {}};
    return scene;
}

Finding not_tried(std::string what, std::string setting, const Error& why) {
    return {.what = std::move(what), .setting = std::move(setting), .figures = {}, .says = {}, .not_tried = why.what};
}

Result<OwnMps> OwnMps::start(const Options& options) {
    OwnMps mps;
    std::string folder = (std::filesystem::temp_directory_path() / "bulkhead-mps-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr)
        return fail(Code::unavailable, fmt::format("no folder {} can be made", folder), "see whether the disk is full");
    std::error_code ignored;
    std::filesystem::permissions(folder, std::filesystem::perms{0755}, ignored);
    auto control = mps::Control::start({.program = options.mps, .folder = folder, .device = options.gpu});
    if (!control) {
        std::filesystem::remove_all(folder, ignored);
        return std::unexpected(control.error());
    }
    mps.control_ = *std::move(control);
    mps.folder_ = folder;
    return mps;
}

OwnMps::~OwnMps() {
    if (folder_.empty()) return;
    if (control_) (void)control_->stop();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

}  // namespace bulkhead::probe
