// Sharing: the MPS daemon of a device, started for its first lease and taken down with its last. One that is busy or
// hangs may take a minute to answer, so nobody holds up the other tenants while he asks it: who is about to join is
// counted beforehand, and who leaves looks at records and counts alone to know whether he is the last.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>

#include "bulkhead/agent/gpu_hardware.hpp"
#include "bulkhead/hw/mps/control.hpp"

namespace bulkhead::agent {

namespace {

constexpr std::string_view mps_folder = "/mps";  // as a tenant sees it
constexpr Key nobody = 0;                        // no lease has this key

// A name that is a file name, whatever a device is called.
std::string file_name(const std::string& text) {
    std::string out;
    for (const char c : text) out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ? c : '_';
    return out;
}

// The server's own limits: variables of a client are the client's to drop. They hold for a server that starts after
// them, which is the tenant's first.
Result<> start_daemon(const mps::Settings& settings, const mps::Limits& limits) {
    auto control = mps::Control::start(settings);
    if (!control) return std::unexpected(control.error());
    return control->limit(limits);
}

Result<> stop_daemon(const mps::Settings& settings) {
    auto control = mps::Control::adopt(settings);
    if (!control) return std::unexpected(control.error());
    return *control ? (*control)->stop() : Result<>{};
}

}  // namespace

Result<> GpuHardware::begin_shared(const StartTenant& what, const Devices& devices) {
    if (devices.uuids.size() != 1)
        return fail(Code::invalid, fmt::format("MPS shares one device, and the lease has {}", devices.uuids.size()),
                    "ask for one GPU, or for whole ones");
    const std::string& uuid = devices.uuids.front();
    const std::int64_t share = what.gpus.front().share;
    const auto memory = nvml_.memory(uuid);
    if (!memory) return std::unexpected(memory.error());
    const auto percent = std::max<std::int64_t>(1, share / 10);
    const std::uint64_t mib = memory->total / 1000 * static_cast<std::uint64_t>(share) >> 20;
    const std::string above = run_folder_ + "/mps", folder = above + "/" + file_name(uuid);
    ::mkdir(above.c_str(), 0755);
    // As the tenant sees them: the folder itself lies where tenants have nothing. The client's own variables can only
    // tighten what its server allows.
    const Shared shared{.environment = {{"CUDA_MPS_PIPE_DIRECTORY", fmt::format("{}/pipe", mps_folder)},
                                        {"CUDA_MPS_LOG_DIRECTORY", fmt::format("{}/log", mps_folder)},
                                        {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", std::to_string(percent)},
                                        {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", fmt::format("0={}M", mib)}},
                        .mounts = {{folder, std::string{mps_folder}}}};
    Sharing& sharing = join(folder);
    Result<> begun;
    {
        const std::scoped_lock alone{sharing.daemon};
        begun = start_daemon({.program = settings_.mps, .folder = folder, .device = uuid},
                             {.thread_percentage = static_cast<unsigned>(percent), .memory_mib = mib});
    }
    if (begun) begun = begin_start(what, devices, shared);
    {
        const std::scoped_lock lock{tenants_mutex_};
        --sharing.joining;  // its record says now that it is there, or it is not
    }
    // What it failed of is what is told; a daemon that does not go either is found by whoever is next on that device.
    if (!begun) static_cast<void>(leave_daemon(folder, nobody, [] { return Result<>{}; }));
    return begun;
}

GpuHardware::Sharing& GpuHardware::join(const std::string& folder) {
    const std::scoped_lock lock{tenants_mutex_};
    Sharing& sharing = sharing_[folder];
    ++sharing.joining;
    return sharing;
}

// Where the pipes of the MPS daemon are that a lease's tenant talks to; empty: it shares with nobody. Its record says
// so, which outlives this agent.
Result<std::string> GpuHardware::pipes_of(Key lease) const {
    const auto spec = tenants_.spec(lease);
    if (!spec) return std::unexpected(spec.error());
    if (*spec)
        for (const container::ReadOnlyMount& mount : (*spec)->mounts)
            if (mount.target == mps_folder) return mount.source;
    return std::string{};
}

Result<bool> GpuHardware::others_on(const std::string& folder, Key leaving) {
    if (sharing_[folder].joining > 0) return true;
    const auto leases = tenants_.leases();
    if (!leases) return std::unexpected(leases.error());
    return std::ranges::any_of(*leases, [&](Key other) {
        if (other == leaving) return false;
        const auto theirs = pipes_of(other);
        return !theirs || *theirs == folder;  // one that cannot be read may well be on it
    });
}

// Whoever leaves is forgotten in the same moment in which others are seen to stay, or once the daemon is gone: of two
// who leave at once, one is the last.
Result<> GpuHardware::leave_daemon(const std::string& folder, Key leaving, const std::function<Result<>()>& forget) {
    for (;;) {
        std::unique_lock lock{tenants_mutex_};
        std::unique_lock alone{sharing_[folder].daemon, std::try_to_lock};
        const auto others = others_on(folder, leaving);
        if (!others) return std::unexpected(others.error());
        if (*others) return forget();
        lock.unlock();
        if (alone) {
            auto stopped = stop_daemon({.program = settings_.mps, .folder = folder, .device = {}});
            lock.lock();
            return stopped ? forget() : stopped;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{10});  // somebody else takes it down
    }
}

// Called once nothing of the lease runs; its record goes last.
Result<> GpuHardware::leave(Key lease) {
    const auto forget = [&]() -> Result<> {
        if (auto removed = tenants_.remove(lease); !removed) return removed;
        ended_.erase(lease);
        return {};
    };
    std::string folder;
    {
        const std::scoped_lock lock{tenants_mutex_};
        const auto pipes = pipes_of(lease);
        if (!pipes) return std::unexpected(pipes.error());
        if (pipes->empty()) return forget();
        folder = *pipes;
    }
    return leave_daemon(folder, lease, forget);
}

// Daemons that an agent started and was killed before anybody was on them.
void GpuHardware::end_unused_daemons() {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator{run_folder_ + "/mps", none})
        static_cast<void>(leave_daemon(entry.path().string(), nobody, [] { return Result<>{}; }));
}

}  // namespace bulkhead::agent
