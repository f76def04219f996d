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
#include "bulkhead/gpu/profile_name.hpp"
#include "bulkhead/hw/mps/control.hpp"

namespace bulkhead::agent {

namespace {

constexpr std::string_view mps_folder = "/mps";  // as a tenant sees it
constexpr Key nobody = 0;                        // no lease has this key
constexpr std::chrono::seconds answer_within{10};

// A name that is a file name, whatever a device is called.
std::string file_name(const std::string& text) {
    std::string out;
    for (const char c : text) out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ? c : '_';
    return out;
}

std::string device_of(const std::string& folder) { return folder.substr(folder.rfind('/') + 1); }
bool is_whole(const std::string& uuid) { return uuid.starts_with("GPU-"); }

// One of the variables a tenant was given, as a number.
std::uint64_t number_in(const container::TenantSpec& spec, std::string_view name, std::string_view before) {
    for (const auto& [variable, value] : spec.environment)
        if (variable == name && value.starts_with(before))
            return std::strtoull(value.c_str() + before.size(), nullptr, 10);
    return 0;
}

}  // namespace

// The server's own limits: variables of a client are the client's to drop. And its own device: with a mode in which
// nobody else makes a context there, and a server that has one before the first client comes, who drops the way to it
// finds the GPU taken. Instances have no mode. The folder comes first: it says that something may have to be undone.
Result<> GpuHardware::begin_daemon(const std::string& folder, const Company& company) const {
    const std::string uuid = device_of(folder);
    ::mkdir(folder.c_str(), 0755);
    if (is_whole(uuid))
        if (const auto alone = nvml_.set_exclusive(uuid, true); !alone) return alone;
    auto control = mps::Control::start({.program = settings_.mps, .folder = folder, .device = uuid});
    if (!control) return std::unexpected(control.error());
    if (const auto limited = control->limit(company.limits); !limited) return limited;
    const auto servers = control->servers();
    if (!servers) return std::unexpected(servers.error());
    return servers->empty() ? control->serve(company.user) : Result<>{};
}

// In this order: what is still there says to the next agent that something is left to do. A GPU that is lost has no
// mode, and keeps nobody.
Result<> GpuHardware::end_daemon(const std::string& folder) const {
    const std::string uuid = device_of(folder);
    if (auto control = mps::Control::adopt({.program = settings_.mps, .folder = folder, .device = uuid}))
        if (const auto gone = control->stop(); !gone) return gone;
    const auto gpus = nvml_.gpus();
    if (!gpus) return std::unexpected(gpus.error());
    const auto gpu = std::ranges::find(*gpus, uuid, &nvml::Gpu::uuid);
    if (gpu != gpus->end() && !gpu->lost)
        if (const auto open = nvml_.set_exclusive(uuid, false); !open) return open;
    std::error_code failed;
    std::filesystem::remove_all(folder, failed);
    if (failed)
        return fail(Code::unavailable, fmt::format("{} cannot be removed: {}", folder, failed.message()),
                    "see who has it open");
    return {};
}

// All clients of a server are one tenant's, as a contract has it; what one of its leases may have, the server lets all
// have, and each is held to its own by its variables.
GpuHardware::Company GpuHardware::company_on(const std::string& folder, Key but) {
    const std::scoped_lock lock{tenants_mutex_};
    Company company;
    for (const Key lease : tenants_.leases().value_or(std::vector<Key>{})) {
        const auto pipes = pipes_of(lease);
        const auto spec = tenants_.spec(lease);
        if (lease == but || !pipes || *pipes != folder || !spec || !*spec) continue;
        ++company.leases;
        company.user = (*spec)->ids.first;
        company.widen(
            {.thread_percentage = static_cast<unsigned>(number_in(**spec, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "")),
             .memory_mib = number_in(**spec, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=")});
    }
    return company;
}

void GpuHardware::Company::widen(const mps::Limits& other) {
    limits.thread_percentage = std::max(limits.thread_percentage.value_or(0), other.thread_percentage.value_or(0));
    limits.memory_mib = std::max(limits.memory_mib.value_or(0), other.memory_mib.value_or(0));
}

Result<> GpuHardware::begin_shared(const StartTenant& what, const Devices& devices) {
    if (devices.uuids.size() != 1)
        return fail(Code::invalid, fmt::format("MPS shares one device, and the lease has {}", devices.uuids.size()),
                    "ask for one GPU, or for whole ones");
    const std::string& uuid = devices.uuids.front();
    const std::int64_t share = what.gpus.front().share;
    const auto memory = nvml_.memory(uuid);
    if (!memory) return std::unexpected(memory.error());
    const auto percent = std::max<std::int64_t>(1, share / 10);
    // Thousandths that are a rounded third or seventh of the GPU stand for all of that third or seventh.
    const auto thousandths = static_cast<std::uint64_t>(std::clamp<std::int64_t>(share, 1, 1000));
    const std::uint64_t parts = 1000 / thousandths;
    const std::uint64_t bytes =
        1000 / parts == thousandths ? memory->total / parts : memory->total / 1000 * thousandths;
    const std::uint64_t mib = bytes >> 20;
    const auto user = [&]() -> Result<std::uint32_t> {
        const std::scoped_lock lock{tenants_mutex_};
        const auto ids = ids_of(what.tenant);
        if (!ids) return std::unexpected(ids.error());
        return ids->first;
    }();
    if (!user) return std::unexpected(user.error());
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
        // Until its record is written: who comes next counts with it.
        const std::scoped_lock alone{sharing.daemon};
        Company company = company_on(folder, what.lease);
        company.widen({.thread_percentage = static_cast<unsigned>(percent), .memory_mib = mib});
        company.user = *user;
        begun = has_room(what.gpus.front(), company.leases);
        if (begun) begun = begin_daemon(folder, company);
        if (begun) begun = begin_start(what, devices, shared);
    }
    {
        const std::scoped_lock lock{tenants_mutex_};
        --sharing.joining;  // its record says now that it is there, or it is not
    }
    // What it failed of is what is told; a daemon that does not go either is found by whoever is next on that device.
    if (!begun) static_cast<void>(leave_daemon(folder, nobody, [] { return Result<>{}; }));
    return begun;
}

// A server refuses clients beyond a number that its generation and its driver have; an instance has its part of it.
Result<> GpuHardware::has_room(const GpuPart& part, std::size_t leases) const {
    const auto gpu = this->gpu(part.gpu);
    if (!gpu) return std::unexpected(gpu.error());
    const auto major = nvml_.capability_major((*gpu)->uuid);
    const auto versions = nvml_.versions();
    if (!major) return std::unexpected(major.error());
    if (!versions) return std::unexpected(versions.error());
    unsigned most = mps::clients_max(*major, versions->cuda);
    if (const auto name = gpu::parse_profile_name(part.profile)) most = std::max(1U, most * name->gpu / 7);
    if (leases < most) return {};
    return fail(Code::exhausted, fmt::format("an MPS server of {} takes {} clients", (*gpu)->uuid, most),
                "stop one, or use another GPU");
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
            auto stopped = end_daemon(folder);
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

// One that has died, or hangs, takes no clients any more; another does.
void GpuHardware::look_after_daemons() {
    std::set<std::string> folders;
    {
        const std::scoped_lock lock{tenants_mutex_};
        for (const Key lease : tenants_.leases().value_or(std::vector<Key>{}))
            if (const auto pipes = pipes_of(lease); pipes && !pipes->empty()) folders.insert(*pipes);
    }
    for (const std::string& folder : folders) {
        {
            const std::scoped_lock lock{mutex_};
            if (stopping_) return;
        }
        Sharing* const sharing = [&] {
            const std::scoped_lock lock{tenants_mutex_};
            return &sharing_[folder];
        }();
        const std::scoped_lock alone{sharing->daemon};  // nobody takes it down meanwhile
        const Company company = company_on(folder, nobody);
        if (company.leases == 0) continue;
        auto control = mps::Control::adopt(
            {.program = settings_.mps, .folder = folder, .device = device_of(folder), .patience = answer_within});
        if (control && control->answers()) continue;
        if (const auto begun = begin_daemon(folder, company); !begun)
            fmt::print(stderr, "the MPS daemon of {} is gone: {}\n", device_of(folder), begun.error().what);
    }
}

// Before a signal ends it: killing a client whose work is queued has no defined result.
void GpuHardware::end_clients(Key lease, const std::string& folder) {
    const auto until = std::chrono::steady_clock::now() + answer_within;
    auto control = mps::Control::adopt(
        {.program = settings_.mps, .folder = folder, .device = device_of(folder), .patience = answer_within});
    const auto inside = tenants_.processes(lease);
    const auto clients = control ? control->clients() : Result<std::vector<mps::Client>>{};
    if (!inside || !clients) return;
    for (const mps::Client& client : *clients)
        if (std::ranges::find(*inside, client.pid) != inside->end() && std::chrono::steady_clock::now() < until)
            (void)control->end_client(client);
}

void GpuHardware::watch_daemons() {
    while (true) {
        const auto next = std::chrono::steady_clock::now() + std::chrono::milliseconds{settings_.health_every.ms};
        while (std::chrono::steady_clock::now() < next) {
            {
                const std::scoped_lock lock{mutex_};
                if (stopping_) return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{200});
        }
        look_after_daemons();
        end_unused_daemons();
    }
}

// Daemons that nobody is on: of an agent that was killed before anybody was, or that did not go when they should.
void GpuHardware::end_unused_daemons() {
    std::error_code none;
    std::vector<std::string> folders;
    for (std::filesystem::directory_iterator at{run_folder_ + "/mps", none}, end; !none && at != end;
         at.increment(none))
        folders.push_back(at->path().string());
    for (const std::string& folder : folders)
        static_cast<void>(leave_daemon(folder, nobody, [] { return Result<>{}; }));
}

}  // namespace bulkhead::agent
