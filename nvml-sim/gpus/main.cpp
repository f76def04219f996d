// bulkhead-gpus: lists the GPUs that this process has, as `nvidia-smi -L` would, through whatever NVML it finds; and
// says when that NVML is our simulation. Agents of simulated nodes give it to their tenants.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

constexpr int driver_missing = 12, driver_refuses = 9;

template <class Call>
Call* call(void* library, const char* name) {
    auto* const found = reinterpret_cast<Call*>(::dlsym(library, name));
    if (found != nullptr) return found;
    std::fprintf(stderr, "bulkhead-gpus: this NVML has no %s\n", name);
    std::exit(driver_missing);
}

// Whole GPUs and MIG devices alike are named by their UUIDs, parted by commas. No list: all GPUs are this process's.
bool is_given(std::string_view list, std::string_view uuid) {
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t end = std::min(list.find(',', at), list.size());
        if (list.substr(at, end - at) == uuid) return true;
        at = end + 1;
    }
    return false;
}

}  // namespace

int main() {
    void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        std::fprintf(stderr, "bulkhead-gpus: there is no GPU driver here: %s\n", ::dlerror());
        return driver_missing;
    }
    using Device = void*;
    if (const int result = call<int()>(library, "nvmlInit_v2")(); result != 0) {
        std::fprintf(stderr, "bulkhead-gpus: nvmlInit_v2 answers %d\n", result);
        return driver_refuses;
    }
    const bool simulated = ::dlsym(library, "bulkhead_nvml_sim") != nullptr;
    if (simulated) std::puts("simulated: these GPUs are a model of a driver; nothing computes on them");
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    unsigned count = 0, listed = 0;
    call<int(unsigned*)>(library, "nvmlDeviceGetCount_v2")(&count);
    auto* const by_index = call<int(unsigned, Device*)>(library, "nvmlDeviceGetHandleByIndex_v2");
    auto* const name_of = call<int(Device, char*, unsigned)>(library, "nvmlDeviceGetName");
    auto* const uuid_of = call<int(Device, char*, unsigned)>(library, "nvmlDeviceGetUUID");
    for (unsigned i = 0; i < count; ++i) {
        Device device = nullptr;
        std::array<char, 128> name{}, uuid{};
        if (by_index(i, &device) != 0 || name_of(device, name.data(), name.size() - 1) != 0 ||
            uuid_of(device, uuid.data(), uuid.size() - 1) != 0)
            continue;
        if (visible != nullptr && !is_given(visible, uuid.data())) continue;
        std::printf("GPU %u: %s (UUID: %s)%s\n", listed++, name.data(), uuid.data(), simulated ? ", simulated" : "");
    }
    // MIG devices are not in the driver's list of GPUs: their UUIDs come from the lease.
    for (std::string_view list = visible == nullptr ? "" : visible; !list.empty();) {
        const std::size_t end = std::min(list.find(','), list.size());
        if (const std::string one{list.substr(0, end)}; one.starts_with("MIG-")) {
            std::printf("MIG device %s%s\n", one.c_str(), simulated ? ", simulated" : "");
            ++listed;
        }
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    call<int()>(library, "nvmlShutdown")();
    if (listed != 0) return 0;
    std::fputs("bulkhead-gpus: this process has no GPU\n", stderr);
    return 6;
}
