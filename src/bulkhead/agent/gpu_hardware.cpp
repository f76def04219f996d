#include "bulkhead/agent/gpu_hardware.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "bulkhead/base/hash.hpp"

namespace bulkhead::agent {

namespace {

std::string first_line(const std::string& path) {
    std::ifstream file{path};
    std::string line;
    std::getline(file, line);
    return line;
}

// What is clean, and what is leased, is known by a GPU's number. NVML counts anew when one vanishes or is exchanged, so
// the numbers are the node's own: a UUID keeps the one it had first, and a GPU that is gone leaves its place empty.
Result<std::vector<nvml::Gpu>> in_their_places(const std::string& path, std::vector<nvml::Gpu> there) {
    std::vector<nvml::Gpu> placed;
    std::ifstream file{path};
    for (std::string uuid; file >> uuid;) {
        const auto found = std::ranges::find(there, uuid, &nvml::Gpu::uuid);
        placed.push_back(found != there.end() ? *found : nvml::Gpu{.uuid = uuid, .lost = true});
    }
    const std::size_t known = placed.size();
    for (const nvml::Gpu& gpu : there)
        if (!gpu.lost && std::ranges::find(placed, gpu.uuid, &nvml::Gpu::uuid) == placed.end()) placed.push_back(gpu);
    for (std::size_t i = 0; i < placed.size(); ++i) placed[i].index = static_cast<unsigned>(i);
    if (placed.size() == known) return placed;
    std::string text;
    for (const nvml::Gpu& gpu : placed) text += gpu.uuid + "\n";
    const std::string draft = path + ".new";
    const int handle = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool written = handle >= 0 &&
                         ::write(handle, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                         ::fsync(handle) == 0;
    if (handle >= 0) ::close(handle);
    if (!written || ::rename(draft.c_str(), path.c_str()) != 0)
        return fail(Code::unavailable, path + " cannot be written", "see whether the disk is full");
    return placed;
}

Result<std::unique_ptr<Machines>> open_machines(MachineSettings settings, const std::string& run_folder) {
    if (settings.uri.empty()) return fail(Code::unavailable, "this agent was told of no libvirt", "--libvirt");
    if (settings.folder.empty()) settings.folder = run_folder + "/machines";
    return Machines::open(std::move(settings));
}

}  // namespace

HostPlaces host_places(const std::string& agent_folder) {
    const Hash apart = sha256(agent_folder);
    const std::string name = "bulkhead/" + to_hex(bytes_of(apart)).substr(0, 16);
    return {.run_folder = "/run/" + name, .cgroups = name};
}

GpuHardware::GpuHardware(GpuHardwareSettings settings, nvml::Nvml nvml, std::vector<nvml::Gpu> gpus,
                         container::Tenants tenants, std::unique_ptr<Drives> drives)
    : settings_{std::move(settings)},
      run_folder_{host_places(settings_.folder).run_folder},
      nvml_{std::move(nvml)},
      watch_{nvml_.watch()},
      gpus_{std::move(gpus)},
      drives_{std::move(drives)},
      boot_{first_line("/proc/sys/kernel/random/boot_id")},
      machines_{open_machines(settings_.machines, run_folder_)},
      tenants_{std::move(tenants)},
      watcher_{[this] { watch_for_errors(); }},
      daemons_{[this] { watch_daemons(); }},
      sampler_{[this] { watch_counters(); }} {}

Result<std::unique_ptr<GpuHardware>> GpuHardware::open(GpuHardwareSettings settings) {
    auto nvml = nvml::Nvml::open(settings.nvml);
    if (!nvml) return std::unexpected(nvml.error());
    auto there = nvml->gpus();
    if (!there) return std::unexpected(there.error());
    auto gpus = in_their_places(settings.folder + "/gpus", *std::move(there));
    if (!gpus) return std::unexpected(gpus.error());
    if (gpus->empty())
        return fail(Code::not_found, "NVML is here and shows no GPU", "`nvidia-smi -L` lists GPUs; see dmesg");
    settings.drives.folder = settings.folder;
    auto drives = Drives::open(settings.drives);
    if (!drives) return std::unexpected(drives.error());
    const HostPlaces places = host_places(settings.folder);
    std::error_code failed;
    std::filesystem::create_directories(places.run_folder + "/tenants", failed);
    if (failed)
        return fail(Code::unavailable, fmt::format("{} cannot be made: {}", places.run_folder, failed.message()),
                    "run the agent as root: it starts tenants as other users");
    auto tenants = container::Tenants::open({.directory = places.run_folder + "/tenants",
                                             .program = settings.tenant_program,
                                             .cgroup_parent = places.cgroups,
                                             .runtime = settings.runtime,
                                             .cdi = places.run_folder + "/cdi"});
    if (!tenants) return std::unexpected(tenants.error());
    FunctionsSettings of_nics{
        .nics = {}, .run_folder = places.run_folder, .nft = settings.nft, .soft_roce = settings.soft_roce};
    for (const std::string& text : settings.nics) {
        auto nic = parse_tenant_nic(text);
        if (!nic) return std::unexpected(nic.error());
        of_nics.nics.push_back(*std::move(nic));
    }
    auto functions = of_nics.nics.empty() ? Result<std::unique_ptr<Functions>>{} : Functions::open(std::move(of_nics));
    if (!functions) return std::unexpected(functions.error());
    std::unique_ptr<GpuHardware> hardware{new GpuHardware{std::move(settings), *std::move(nvml), *std::move(gpus),
                                                          *std::move(tenants), *std::move(drives)}};
    hardware->functions_ = *std::move(functions);
    if (const auto returned = hardware->return_to_modes(); !returned) return std::unexpected(returned.error());
    hardware->end_unused_daemons();
    return hardware;
}

GpuHardware::~GpuHardware() {
    {
        const std::scoped_lock lock{mutex_};
        stopping_ = true;
    }
    drives_->stop();
    watcher_.join();
    daemons_.join();
    sampler_.join();
    for (auto& [number, thread] : threads_) thread.join();
}

OperationResult GpuHardware::none_here(std::string_view what) {
    return {.ok = false, .why = fmt::format("this agent has no {} to give", what)};
}

Result<const nvml::Gpu*> GpuHardware::gpu(std::uint16_t index) const {
    if (index >= gpus_.size())
        return fail(Code::not_found, fmt::format("there is no GPU {} here; there are {}", index, gpus_.size()), "");
    if (gpus_[index].lost)
        return fail(Code::unavailable, fmt::format("GPU {} has fallen off the bus", index), "reset or replace it");
    return &gpus_[index];
}

// While something is under way, soon: what waits for it is a tenant's lease, or its end.
std::optional<Instant> GpuHardware::next_due() const {
    constexpr Duration soon{10};
    return threads_.empty() ? std::nullopt : std::optional{polled_ + soon};
}

Result<> GpuHardware::begin(Instant now, const Operation& operation) {
    polled_ = now;
    if (const auto* start = std::get_if<StartTenant>(&operation.what)) starting_[operation.number] = start->lease;
    threads_[operation.number] = std::thread{[this, operation] {
        OperationResult result = std::visit([this](const auto& what) { return carry(what); }, operation.what);
        result.number = operation.number;
        const std::scoped_lock lock{mutex_};
        news_.results.push_back(std::move(result));
    }};
    return {};
}

Result<Hardware::News> GpuHardware::poll(Instant now) {
    polled_ = now;
    News news;
    {
        const std::scoped_lock lock{mutex_};
        std::swap(news, news_);
    }
    for (const OperationResult& result : news.results) {
        const auto done = threads_.find(result.number);
        done->second.join();  // it has nothing left to do
        threads_.erase(done);
    }
    look_at_tenants(news);
    look_at_machines(news);
    for (const OperationResult& result : news.results) starting_.erase(result.number);
    return news;
}

}  // namespace bulkhead::agent
