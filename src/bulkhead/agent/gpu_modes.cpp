// Which GPUs are to be cut. Ampere keeps its MIG mode over a reboot; Hopper and what came after forget it, and would
// come back whole. What was wanted last is therefore kept here, and wanted again when an agent starts.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "bulkhead/agent/disk.hpp"
#include "bulkhead/agent/gpu_hardware.hpp"

namespace bulkhead::agent {

namespace {

constexpr std::string_view modes_file = "/mig-modes";  // in the agent's folder; a line for each GPU: UUID on|off

}  // namespace

// Of a GPU that is handed out or wiped whole too, whatever its mode is now: a wish that was never granted must not come
// true under its next tenant.
Result<> GpuHardware::want_mig(const std::string& uuid, bool on) {
    const std::scoped_lock lock{mutex_};
    const auto known = modes_.find(uuid);
    if (known == modes_.end() ? !on : known->second == on) return {};
    std::map<std::string, bool> wanted = modes_;
    wanted[uuid] = on;
    std::string text;
    for (const auto& [gpu, mode] : wanted) text += fmt::format("{} {}\n", gpu, mode ? "on" : "off");
    const std::string path = settings_.folder + std::string{modes_file};
    if (const auto written = write_whole(path, text); !written) return written;
    if (const auto synced = sync_directory(path); !synced) return synced;
    modes_ = std::move(wanted);
    return {};
}

// Written down first: whoever is killed in between finds what it was about to do.
Result<> GpuHardware::set_mig(const std::string& uuid, bool on) {
    if (auto kept = want_mig(uuid, on); !kept) return kept;
    return nvml_.set_mig(uuid, on);
}

// A GPU that somebody is on stays as it is, and so does one whose driver refuses: whoever needs it cut asks again, and
// is told why not.
Result<> GpuHardware::return_to_modes() {
    const std::string path = settings_.folder + std::string{modes_file};
    std::ifstream file{path};
    for (std::string uuid, mode; file >> uuid;) {
        if (!(file >> mode) || (mode != "on" && mode != "off"))
            return fail(Code::corrupt, path + " is damaged",
                        "remove it: GPUs are then cut when they are next asked for");
        modes_[uuid] = mode == "on";
    }
    const auto tenants = tenants_.leases();  // gone with a reboot; while there are any, nothing was forgotten
    if (!tenants || !tenants->empty()) return {};
    for (const nvml::Gpu& gpu : gpus_->all()) {
        const auto wanted = modes_.find(gpu.uuid);
        if (gpu.lost || gpu.mig != nvml::MigMode::disabled || wanted == modes_.end() || !wanted->second) continue;
        const auto users = nvml_.processes(gpu.uuid);
        if (users && users->empty()) static_cast<void>(nvml_.set_mig(gpu.uuid, true));
    }
    return {};
}

}  // namespace bulkhead::agent
