// What this node has, as NVML and the kernel tell it.
#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "bulkhead/agent/gpu_hardware.hpp"
#include "bulkhead/gpu/board.hpp"
#include "bulkhead/hw/nvml/profiling.hpp"
#include "bulkhead/hw/program/program.hpp"

namespace bulkhead::agent {

namespace {

// The board as our tables call it; a product we do not know by its own name, as a name: "NVIDIA L4" is "nvidia-l4".
std::string model_of(const nvml::Gpu& gpu) {
    if (const gpu::Board* board = gpu::find_board_by_pci(fmt::format("0x{:08X}", gpu.pci_device)))
        return std::string{board->id};
    std::string name;
    for (const char c : gpu.name) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) != 0) {
            name += static_cast<char>(std::tolower(byte));
        } else if (!name.empty() && name.back() != '-') {
            name += '-';
        }
    }
    while (!name.empty() && name.back() == '-') name.pop_back();
    return name.empty() ? "unknown" : name;
}

bool is_program(const std::string& name) {
    if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0;
    const char* const path = ::getenv("PATH");
    std::string_view left = path != nullptr ? path : "";
    while (!left.empty()) {
        const std::string folder{left.substr(0, left.find(':'))};
        left.remove_prefix(std::min(left.size(), folder.size() + 1));
        if (!folder.empty() && ::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
    }
    return false;
}

std::string toolkit_version() {
    if (!is_program("nvidia-ctk")) return std::string{not_installed};
    const auto ran = program::run({"nvidia-ctk", "--version"}, {}, "", std::chrono::seconds{10});
    if (!ran) return "unreadable";  // closes what it would close
    // "NVIDIA Container Toolkit CLI version 1.17.8"
    const std::size_t at = ran->output.find("version ");
    if (at == std::string::npos) return "unreadable";
    return ran->output.substr(at + 8, ran->output.find_first_of("\r\n", at) - at - 8);
}

}  // namespace

Result<GpuNodeStatus> GpuHardware::inventory() {
    GpuNodeStatus status;
    const auto capability = [&](Capability name) { status.capabilities.push_back({name, grade(), std::nullopt}); };
    bool mig = false, fabric = false;
    for (const nvml::Gpu& gpu : gpus_->all()) {
        const std::string model = gpu.lost ? "lost" : model_of(gpu);
        mig = mig || gpu.mig.has_value();
        fabric = fabric || gpu.nvlinks > 0;
        if (!status.gpus.empty() && status.gpus.back().model == model) {
            ++status.gpus.back().count;
        } else {
            status.gpus.push_back({.model = model, .count = 1, .slices = {}});
        }
    }
    status.topology = positions();
    if (const Functions* const functions = this->functions()) {
        status.functions = functions->inventory();
        if (functions->have_rdma())
            status.capabilities.push_back({Capability::rdma, functions->grade(0), std::nullopt});
    } else if (!settings_.nics.empty()) {
        // Without the capability nobody new is sent here for them; whoever has one keeps it.
        status.functions = Functions::remembered(settings_.functions.order);
    }
    struct sysinfo host{};
    ::sysinfo(&host);
    status.cpu = ::sysconf(_SC_NPROCESSORS_ONLN);
    status.memory = {static_cast<std::int64_t>(host.totalram) * host.mem_unit};
    status.nvlink = fabric ? NvLink::fabric : NvLink::none;
    capability(Capability::time_slicing);
    if (mig) capability(Capability::mig);
    if (is_program(settings_.mps)) capability(Capability::mps);
    status.drives = drives_->inventory();
    if (const auto known = drives_->grade())
        status.capabilities.push_back({Capability::local_nvme, *known, std::nullopt});
    add_machines(status);
    const auto versions = nvml_.versions();
    if (versions && !versions->driver.empty()) status.versions.push_back({Component::driver, versions->driver});
    // One board of several may be of another day.
    std::set<std::string> vbios, gsp;
    for (const nvml::Gpu& gpu : gpus_->all()) {
        if (!gpu.vbios.empty()) vbios.insert(gpu.vbios);
        if (!gpu.gsp_firmware.empty()) gsp.insert(gpu.gsp_firmware);
    }
    if (!vbios.empty()) status.versions.push_back({Component::vbios, fmt::format("{}", fmt::join(vbios, ", "))});
    if (!gsp.empty()) status.versions.push_back({Component::gsp_firmware, fmt::format("{}", fmt::join(gsp, ", "))});
    status.profilingRestricted = nvml::profiling_is_restricted();
    status.runsCommands = true;
    // Our container tier stands on the OCI runtime and on device lists of our own; NVIDIA's toolkit is a risk where it
    // is.
    status.versions.push_back({Component::container_toolkit, toolkit_version()});
    return status;
}

}  // namespace bulkhead::agent
