#include "bulkhead/hw/nvml/nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <utility>

#include "bulkhead/hw/nvml/library.hpp"

namespace bulkhead::nvml {

namespace {

// A string a call writes; empty where it has none.
template <class Call>
std::string text_of(Call* call, Device device) {
    std::array<char, 256> text{};
    if (call == nullptr || call(device, text.data(), static_cast<std::uint32_t>(text.size() - 1)) != Return::success)
        return {};
    return text.data();
}

Gpu describe_gpu(const Library& library, Device device, unsigned index) {
    Gpu gpu{.index = index};
    gpu.uuid = text_of(library.nvmlDeviceGetUUID, device);
    gpu.serial = text_of(library.nvmlDeviceGetSerial, device);
    gpu.name = text_of(library.nvmlDeviceGetName, device);
    gpu.vbios = text_of(library.nvmlDeviceGetVbiosVersion, device);
    if (library.nvmlDeviceGetGspFirmwareVersion != nullptr) {
        std::array<char, 256> text{};
        if (library.nvmlDeviceGetGspFirmwareVersion(device, text.data()) == Return::success)
            gpu.gsp_firmware = text.data();
    }
    if (library.nvmlDeviceGetMinorNumber != nullptr) library.nvmlDeviceGetMinorNumber(device, &gpu.minor);
    PciInfo pci{};
    if (library.nvmlDeviceGetPciInfo_v3 != nullptr &&
        library.nvmlDeviceGetPciInfo_v3(device, &pci) == Return::success) {
        gpu.bus_id = pci.bus_id.data();
        gpu.pci_device = pci.device_id;
    }
    MigMode current{}, pending{};
    if (library.nvmlDeviceGetMigMode != nullptr &&
        library.nvmlDeviceGetMigMode(device, &current, &pending) == Return::success) {
        gpu.mig = current;
        gpu.mig_pending = pending;
    }
    for (std::uint32_t link = 0; library.nvmlDeviceGetNvLinkState != nullptr && link < nvlink_links_max; ++link) {
        Feature up{};
        if (library.nvmlDeviceGetNvLinkState(device, link, &up) != Return::success) break;
        gpu.nvlinks += up == Feature::enabled ? 1 : 0;
    }
    return gpu;
}

}  // namespace

Result<Nvml> Nvml::open(const std::string& soname) {
    auto library = std::make_shared<Library>();
    library->handle = ::dlopen(soname.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library->handle == nullptr)
        return fail(Code::unavailable, fmt::format("there is no NVML here: {}", ::dlerror()),
                    "install the NVIDIA driver, or name its library with --nvml");
#define BULKHEAD_NVML_LOOK_UP(symbol, type) \
    library->symbol = reinterpret_cast<call::symbol*>(::dlsym(library->handle, #symbol));
    BULKHEAD_NVML_CALLS(BULKHEAD_NVML_LOOK_UP)
#undef BULKHEAD_NVML_LOOK_UP
    if (library->nvmlInit_v2 == nullptr || library->nvmlShutdown == nullptr ||
        library->nvmlDeviceGetCount_v2 == nullptr || library->nvmlDeviceGetHandleByIndex_v2 == nullptr ||
        library->nvmlDeviceGetHandleByUUID == nullptr)
        return fail(Code::invalid, fmt::format("{} is not NVML", soname), "check --nvml");
    if (const auto ready = library->check(library->nvmlInit_v2(), "start"); !ready)
        return std::unexpected(ready.error());
    library->started = true;
    Nvml nvml;
    nvml.library_ = std::move(library);
    return nvml;
}

Result<Device> Nvml::find(const std::string& uuid) const {
    Device device{};
    if (const auto found = library_->check(library_->nvmlDeviceGetHandleByUUID(uuid.c_str(), &device), "find " + uuid);
        !found)
        return std::unexpected(found.error());
    return device;
}

// The simulator exports this, and nothing of NVIDIA's does.
bool Nvml::is_simulated() const { return ::dlsym(library_->handle, "bulkhead_nvml_sim") != nullptr; }

Result<Versions> Nvml::versions() const {
    Versions versions;
    std::array<char, 128> text{};
    if (library_->nvmlSystemGetDriverVersion != nullptr &&
        library_->nvmlSystemGetDriverVersion(text.data(), text.size() - 1) == Return::success)
        versions.driver = text.data();
    text = {};
    if (library_->nvmlSystemGetNVMLVersion != nullptr &&
        library_->nvmlSystemGetNVMLVersion(text.data(), text.size() - 1) == Return::success)
        versions.nvml = text.data();
    if (library_->nvmlSystemGetCudaDriverVersion_v2 != nullptr)
        library_->nvmlSystemGetCudaDriverVersion_v2(&versions.cuda);
    return versions;
}

Result<std::vector<Gpu>> Nvml::gpus() const {
    std::uint32_t count = 0;
    if (const auto counted = library_->check(library_->nvmlDeviceGetCount_v2(&count), "count GPUs"); !counted)
        return std::unexpected(counted.error());
    std::vector<Gpu> found;
    for (std::uint32_t index = 0; index < count; ++index) {
        Device device{};
        const Return code = library_->nvmlDeviceGetHandleByIndex_v2(index, &device);
        if (code == Return::gpu_is_lost || code == Return::unknown) {
            found.push_back({.index = index, .lost = true});
            continue;
        }
        if (const auto had = library_->check(code, fmt::format("find GPU {}", index)); !had)
            return std::unexpected(had.error());
        found.push_back(describe_gpu(*library_, device, index));
    }
    return found;
}

Result<MemoryUse> Nvml::memory(const std::string& uuid) const {
    const auto device = find(uuid);
    if (!device) return std::unexpected(device.error());
    MemoryV2 v2{};
    v2.version = memory_v2;
    if (library_->nvmlDeviceGetMemoryInfo_v2 != nullptr &&
        library_->nvmlDeviceGetMemoryInfo_v2(*device, &v2) == Return::success)
        return MemoryUse{v2.total, v2.reserved, v2.used, v2.free};
    Memory v1{};  // counts what is reserved as used
    if (library_->nvmlDeviceGetMemoryInfo == nullptr)
        return fail(Code::invalid, "this NVML cannot tell a GPU's memory", "use a driver of R450 or later");
    if (const auto told =
            library_->check(library_->nvmlDeviceGetMemoryInfo(*device, &v1), "tell the memory of " + uuid);
        !told)
        return std::unexpected(told.error());
    return MemoryUse{v1.total, 0, v1.used, v1.free};
}

Result<> Nvml::set_exclusive(const std::string& uuid, bool on) const {
    const auto device = find(uuid);
    if (!device) return std::unexpected(device.error());
    const std::string doing = fmt::format("set the compute mode of {}", uuid);
    if (library_->nvmlDeviceSetComputeMode == nullptr)
        return fail(Code::unavailable, "this NVML cannot " + doing, "use a driver of R450 or later");
    return library_->check(
        library_->nvmlDeviceSetComputeMode(*device, on ? ComputeMode::exclusive_process : ComputeMode::normal), doing);
}

Result<bool> Nvml::is_exclusive(const std::string& uuid) const {
    const auto device = find(uuid);
    if (!device) return std::unexpected(device.error());
    ComputeMode mode = ComputeMode::normal;
    if (library_->nvmlDeviceGetComputeMode == nullptr) return false;
    const auto told =
        library_->check(library_->nvmlDeviceGetComputeMode(*device, &mode), "tell the compute mode of " + uuid);
    if (!told) return std::unexpected(told.error());
    return mode == ComputeMode::exclusive_process;
}

Result<int> Nvml::capability_major(const std::string& uuid) const {
    const auto device = find(uuid);
    if (!device) return std::unexpected(device.error());
    std::int32_t major = 0, minor = 0;
    if (library_->nvmlDeviceGetCudaComputeCapability == nullptr) return 0;
    const auto told = library_->check(library_->nvmlDeviceGetCudaComputeCapability(*device, &major, &minor),
                                      "tell the generation of " + uuid);
    if (!told) return std::unexpected(told.error());
    return major;
}

Result<std::vector<Process>> Nvml::processes(const std::string& uuid) const {
    const auto device = find(uuid);
    if (!device) return std::unexpected(device.error());
    // Who cannot be asked for is not nobody.
    if (library_->nvmlDeviceGetComputeRunningProcesses_v3 == nullptr)
        return fail(Code::unavailable, "this NVML cannot list the processes on " + uuid,
                    "use a driver of R510 or later");
    std::vector<Process> found;
    for (auto* const list :
         {library_->nvmlDeviceGetComputeRunningProcesses_v3, library_->nvmlDeviceGetGraphicsRunningProcesses_v3,
          library_->nvmlDeviceGetMPSComputeRunningProcesses_v3}) {
        if (list == nullptr) continue;
        std::vector<ProcessInfo> rows(64);
        Return code = Return::insufficient_size;
        // More may start between two calls; a node on which hundreds do is told so.
        for (int attempts = 0; attempts < 5 && code == Return::insufficient_size; ++attempts) {
            if (attempts > 0) rows.resize(rows.size() * 2);
            auto count = static_cast<std::uint32_t>(rows.size());
            code = list(*device, &count, rows.data());
            if (code == Return::success) rows.resize(count);
        }
        if (code == Return::not_supported) continue;
        if (const auto told = library_->check(code, "list the processes on " + uuid); !told)
            return std::unexpected(told.error());
        for (const ProcessInfo& row : rows) {
            Process process{.pid = row.pid};
            if (row.used_memory != value_not_available) process.bytes = row.used_memory;
            if (row.gpu_instance != no_instance) process.gpu_instance = row.gpu_instance;
            if (row.compute_instance != no_instance) process.compute_instance = row.compute_instance;
            found.push_back(process);
        }
    }
    return found;
}

Result<Load> Nvml::load(const std::string& uuid) const {
    const auto device = find(uuid);
    if (!device) return std::unexpected(device.error());
    Load load;
    Utilization use{};
    if (library_->nvmlDeviceGetUtilizationRates != nullptr &&
        library_->nvmlDeviceGetUtilizationRates(*device, &use) == Return::success) {
        load.gpu_percent = use.gpu;
        load.memory_percent = use.memory;
    }
    if (library_->nvmlDeviceGetPowerUsage != nullptr) library_->nvmlDeviceGetPowerUsage(*device, &load.power_mw);
    if (library_->nvmlDeviceGetClockInfo != nullptr)
        library_->nvmlDeviceGetClockInfo(*device, ClockType::sm, &load.sm_mhz);
    if (library_->nvmlDeviceGetTemperature != nullptr)
        library_->nvmlDeviceGetTemperature(*device, TemperatureSensor::gpu, &load.celsius);
    return load;
}

Result<Health> Nvml::health(const std::string& uuid) const {
    const auto device = find(uuid);
    if (!device) return std::unexpected(device.error());
    Health health;
    // A GPU without ECC, or without rows to remap, answers not_supported: then there is nothing to report.
    const auto told = [](Return code) { return code == Return::success; };
    std::uint64_t errors = 0;
    if (library_->nvmlDeviceGetTotalEccErrors != nullptr) {
        if (told(library_->nvmlDeviceGetTotalEccErrors(*device, MemoryErrorType::uncorrected, EccCounter::since_reset,
                                                       &errors)))
            health.uncorrected_since_reset = errors;
        if (told(library_->nvmlDeviceGetTotalEccErrors(*device, MemoryErrorType::corrected, EccCounter::since_reset,
                                                       &errors)))
            health.corrected_since_reset = errors;
    }
    std::uint32_t corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    if (library_->nvmlDeviceGetRemappedRows != nullptr &&
        told(library_->nvmlDeviceGetRemappedRows(*device, &corrected, &uncorrected, &pending, &failed))) {
        health.remap_pending = pending != 0;
        health.remap_failed = failed != 0;
    }
    Feature retirement{};
    if (library_->nvmlDeviceGetRetiredPagesPendingStatus != nullptr &&
        told(library_->nvmlDeviceGetRetiredPagesPendingStatus(*device, &retirement)))
        health.retirement_pending = retirement == Feature::enabled;
    return health;
}

Result<std::vector<Link>> Nvml::links(const std::string& uuid) const {
    const auto device = find(uuid);
    if (!device) return std::unexpected(device.error());
    std::vector<Link> found;
    for (std::uint32_t number = 0; library_->nvmlDeviceGetNvLinkState != nullptr && number < nvlink_links_max;
         ++number) {
        Feature up{};
        if (library_->nvmlDeviceGetNvLinkState(*device, number, &up) != Return::success) break;
        if (up != Feature::enabled) continue;
        Link link;
        if (library_->nvmlDeviceGetNvLinkRemoteDeviceType != nullptr)
            library_->nvmlDeviceGetNvLinkRemoteDeviceType(*device, number, &link.to);
        PciInfo pci{};
        if (library_->nvmlDeviceGetNvLinkRemotePciInfo_v2 != nullptr &&
            library_->nvmlDeviceGetNvLinkRemotePciInfo_v2(*device, number, &pci) == Return::success)
            link.bus_id = pci.bus_id.data();
        found.push_back(std::move(link));
    }
    return found;
}

std::optional<std::string> Health::unfit() const {
    if (remap_failed) return "a row of its memory is broken and no spare is left";
    if (uncorrected_since_reset > 0)
        return fmt::format("{} memory errors that ECC could not correct since its last reset", uncorrected_since_reset);
    if (remap_pending) return "rows of its memory are to be replaced at the next reset";
    if (retirement_pending) return "pages of its memory are to be retired at the next reset";
    return std::nullopt;
}

Result<Nvml::Watch> Nvml::watch() const {
    if (library_->nvmlEventSetCreate == nullptr || library_->nvmlDeviceRegisterEvents == nullptr ||
        (library_->nvmlEventSetWait_v2 == nullptr && library_->nvmlEventSetWait == nullptr) ||
        library_->nvmlEventSetFree == nullptr)
        return fail(Code::invalid, "this NVML has no events", "use a driver of R450 or later");
    EventSet set{};
    if (const auto made = library_->check(library_->nvmlEventSetCreate(&set), "make a set of events"); !made)
        return std::unexpected(made.error());
    Watch watch;
    watch.library_ = library_;
    watch.events_ = {set,
                     [library = library_](void* events) { library->nvmlEventSetFree(static_cast<EventSet>(events)); }};
    const auto all = gpus();
    if (!all) return std::unexpected(all.error());
    for (const Gpu& gpu : *all) {
        if (gpu.lost) continue;
        const auto device = find(gpu.uuid);
        if (!device) return std::unexpected(device.error());
        const Return code = library_->nvmlDeviceRegisterEvents(*device, event_xid | event_double_bit_ecc, set);
        if (code == Return::not_supported) continue;
        if (const auto registered = library_->check(code, "watch " + gpu.uuid); !registered)
            return std::unexpected(registered.error());
    }
    return watch;
}

Result<std::optional<Xid>> Nvml::Watch::wait(unsigned timeout_ms) const {
    EventData data{};
    auto* const call =
        library_->nvmlEventSetWait_v2 != nullptr ? library_->nvmlEventSetWait_v2 : library_->nvmlEventSetWait;
    const Return code = call(static_cast<EventSet>(events_.get()), &data, timeout_ms);
    if (code == Return::timeout) return std::optional<Xid>{};
    if (const auto waited = library_->check(code, "wait for events"); !waited) return std::unexpected(waited.error());
    if ((data.type & (event_xid | event_double_bit_ecc)) == 0) return std::optional<Xid>{};
    Xid xid{.uuid = text_of(library_->nvmlDeviceGetUUID, data.device), .number = data.data};
    if ((data.type & event_double_bit_ecc) != 0) xid.number = 48;
    return std::optional{xid};
}

}  // namespace bulkhead::nvml
