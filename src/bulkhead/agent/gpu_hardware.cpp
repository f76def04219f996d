#include "bulkhead/agent/gpu_hardware.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "bulkhead/agent/machine_domain.hpp"
#include "bulkhead/base/hash.hpp"

namespace bulkhead::agent {

namespace {

std::string first_line(const std::string& path) {
    std::ifstream file{path};
    std::string line;
    std::getline(file, line);
    return line;
}

std::string machines_folder(const MachineSettings& settings, const std::string& run_folder) {
    return settings.folder.empty() ? run_folder + "/machines" : settings.folder;
}

Result<std::unique_ptr<Machines>> open_machines(MachineSettings settings, const std::string& run_folder) {
    if (settings.uri.empty()) return fail(Code::unavailable, "this agent was told of no libvirt", "--libvirt");
    settings.folder = machines_folder(settings, run_folder);
    return Machines::open(std::move(settings));
}

}  // namespace

HostPlaces host_places(const std::string& agent_folder) {
    const Hash apart = sha256(agent_folder);
    const std::string name = "bulkhead/" + to_hex(bytes_of(apart)).substr(0, 16);
    return {.run_folder = "/run/" + name, .cgroups = name};
}

GpuHardware::GpuHardware(GpuHardwareSettings settings, nvml::Nvml nvml, std::unique_ptr<GpuPlaces> gpus,
                         container::Tenants tenants, std::unique_ptr<Drives> drives,
                         Result<std::unique_ptr<Functions>> functions)
    : settings_{std::move(settings)},
      run_folder_{host_places(settings_.folder).run_folder},
      nvml_{std::move(nvml)},
      watch_{nvml_.watch()},
      gpus_{std::move(gpus)},
      drives_{std::move(drives)},
      boot_{first_line("/proc/sys/kernel/random/boot_id")},
      functions_{std::move(functions)},
      records_{machines_folder(settings_.machines, run_folder_)},
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
    const HostPlaces places = host_places(settings.folder);
    const MachineRecords records{machines_folder(settings.machines, places.run_folder)};
    auto gpus = GpuPlaces::open(settings.folder + "/gpus", *there,
                                [&](const nvml::Gpu& gpu) { return records.holds(kernel_address(gpu.bus_id)); });
    if (!gpus) return std::unexpected(gpus.error());
    if ((*gpus)->size() == 0)
        return fail(Code::not_found, "NVML is here and shows no GPU", "`nvidia-smi -L` lists GPUs; see dmesg");
    settings.drives.folder = settings.folder;
    auto drives = Drives::open(settings.drives);
    if (!drives) return std::unexpected(drives.error());
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
    settings.functions.run_folder = places.run_folder;
    settings.functions.order = settings.folder + "/functions";
    for (const std::string& text : settings.nics) {
        auto nic = parse_tenant_nic(text);
        if (!nic) return std::unexpected(nic.error());
        settings.functions.nics.push_back(*std::move(nic));
    }
    // Tenants that run here are looked after with or without functions.
    std::vector<FaultReport> stuck;
    auto functions = settings.nics.empty()   ? Result<std::unique_ptr<Functions>>{}
                     : settings.no_functions ? std::unexpected(*settings.no_functions)
                                             : Functions::open(settings.functions);
    if (functions && *functions) stuck = take_back_tests(**functions);
    settings.functions.lock_patience = {};  // whoever looks again has other things to look at
    settings.functions.must_fence = settings.no_functions.has_value();
    std::unique_ptr<GpuHardware> hardware{new GpuHardware{std::move(settings), *std::move(nvml), *std::move(gpus),
                                                          *std::move(tenants), *std::move(drives),
                                                          std::move(functions)}};
    if (const auto returned = hardware->return_to_modes(); !returned) return std::unexpected(returned.error());
    hardware->end_unused_daemons();
    const std::scoped_lock lock{hardware->mutex_};  // its threads look already
    std::ranges::move(stuck, std::back_inserter(hardware->news_.faults));
    return hardware;
}

GpuHardware::~GpuHardware() {
    {
        const std::scoped_lock lock{mutex_};
        stopping_ = true;
    }
    drives_->stop();
    if (functions() != nullptr) functions()->end_tests();
    if (tester_.joinable()) tester_.join();
    watcher_.join();
    daemons_.join();
    sampler_.join();
    for (auto& [number, thread] : threads_) thread.join();
}

OperationResult GpuHardware::none_here(std::string_view what) {
    return {.ok = false, .why = fmt::format("this agent has no {} to give", what)};
}

Machines* GpuHardware::machines() const {
    const std::scoped_lock lock{machines_mutex_};
    return machines_ ? machines_->get() : nullptr;
}

Result<Machines*> GpuHardware::reach_machines() {
    const std::scoped_lock one_at_a_time{reaching_};
    if (Machines* const there = machines()) return there;
    auto opened = open_machines(settings_.machines, run_folder_);
    const std::scoped_lock lock{machines_mutex_};
    machines_ = std::move(opened);
    if (!machines_) return std::unexpected(machines_.error());
    return machines_->get();
}

// Also what becomes true later: libvirt comes up, somebody opens /dev/kvm, another agent ends.
void GpuHardware::look_for_machines() {
    if (settings_.machines.uri.empty()) return;
    const auto reached = reach_machines();
    const auto may = reached ? (*reached)->may_start() : std::unexpected(reached.error());
    const std::string why = may ? "" : fmt::format("{}; {}", may.error().what, may.error().remedy);
    const std::scoped_lock lock{mutex_};
    if (std::exchange(no_machines_, why) == why) return;
    news_.notes.push_back(may ? "machines for tenants can be had now" : "no machines for tenants: " + why);
    news_.stock_changed = news_.stock_changed || may.has_value();
}

Result<const nvml::Gpu*> GpuHardware::gpu(std::uint16_t index) const {
    if (index >= gpus_->size())
        return fail(Code::not_found, fmt::format("there is no GPU {} here; there are {}", index, gpus_->size()), "");
    if (gpus_->is_away(index))  // it may be back: from a machine, or from wherever it was
        if (const auto there = nvml_.gpus()) gpus_->see(*there);
    const nvml::Gpu* const found = gpus_->at(index);
    if (found->lost)
        return fail(Code::unavailable, fmt::format("GPU {} has fallen off the bus", index), "reset or replace it");
    return found;
}

// While something is under way, soon: what waits for it is a tenant's lease, or its end.
std::optional<Instant> GpuHardware::next_due() const {
    constexpr Duration soon{10};
    const std::scoped_lock lock{mutex_};
    return threads_.empty() && !testing_ ? std::nullopt : std::optional{polled_ + soon};
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
