// The driver itself, devices and contexts.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "process.hpp"

namespace bulkhead::cuda_sim {

namespace {

enum Attribute {
    threads_per_block = 1,
    warp = 10,
    multiprocessors = 16,
    pci_bus = 33,
    pci_device = 34,
    major = 75,
    minor = 76,
    virtual_memory = 102
};

struct Words {
    int code;
    const char *name, *text;
};
constexpr Words results[] = {
    {success, "CUDA_SUCCESS", "no error"},
    {invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {device_unavailable, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {no_device, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {invalid_image, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {not_found, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {launch_failed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {not_supported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {unknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

int say(int result, const char** out, const char* Words::* which) {
    if (out == nullptr) return invalid_value;
    for (const Words& words : results)
        if (words.code == result) {
            *out = words.*which;
            return success;
        }
    *out = nullptr;
    return invalid_value;
}

template <class Out, class In>
int put(Out* out, In value) {
    if (out == nullptr) return invalid_value;
    *out = static_cast<Out>(value);
    return success;
}

int ask_device(std::string_view call, int ordinal,
               const std::function<int(const driver::Model&, const Visible&)>& work) {
    return Process::get().answer(call, false, [&](const driver::Model& model) {
        const Visible* device = Process::get().device(ordinal);
        return device == nullptr ? static_cast<int>(invalid_device) : work(model, *device);
    });
}

std::uint32_t sms_of(const driver::Model& model, const Visible& device) {
    const auto mig = model.mig_device_by_uuid(device.uuid);
    if (!mig) return model.product(device.where.gpu).sms;
    for (const driver::ComputeProfile& profile : model.compute_profiles_of(device.where.gpu, mig->instance->id))
        if (profile.id == mig->compute->profile) return profile.sms;
    return 0;
}

int uuid_of(std::string_view call, unsigned char* out, int ordinal, bool of_instance) {
    return ask_device(call, ordinal, [&](const driver::Model& model, const Visible& device) {
        if (out == nullptr) return static_cast<int>(invalid_value);
        const std::string& text = of_instance ? device.uuid : model.spec().gpus[device.where.gpu].uuid;
        std::string digits;
        for (const char c : text.substr(4))
            if (c != '-') digits += c;
        for (std::size_t i = 0; i < 16; ++i)
            out[i] = static_cast<unsigned char>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
        return static_cast<int>(success);
    });
}

int make_context(std::string_view call, Handle* out, int ordinal, bool primary) {
    return Process::get().answer(call, true, [&](driver::Model& model) {
        Process& process = Process::get();
        const Visible* device = process.device(ordinal);
        if (device == nullptr) return static_cast<int>(invalid_device);
        if (out == nullptr) return static_cast<int>(invalid_value);
        for (const auto& there : process.contexts)
            if (primary && there->primary && there->ordinal == static_cast<std::size_t>(ordinal)) {
                ++there->users;
                *out = there.get();
                return static_cast<int>(success);
            }
        const int entered = process.enter(model, {static_cast<std::size_t>(ordinal), primary}, out);
        if (entered != success) return entered;
        if (!primary) Process::current() = static_cast<Context*>(*out);
        return static_cast<int>(success);
    });
}

}  // namespace

extern "C" {

// Whoever must know that nothing here is hardware looks for this symbol; no driver has it.
extern __attribute__((visibility("default"))) const char bulkhead_cuda_sim[];
const char bulkhead_cuda_sim[] = "simulated";

int cuInit(unsigned flags) { return flags == 0 ? Process::get().init() : invalid_value; }
int cuDriverGetVersion(int* version) {
    if (Process::get().init() != success) return put(version, 13000);
    return Process::get().answer("cuDriverGetVersion", false,
                                 [&](const driver::Model& model) { return put(version, model.spec().cuda); });
}
int cuGetErrorName(int result, const char** name) { return say(result, name, &Words::name); }
int cuGetErrorString(int result, const char** text) { return say(result, text, &Words::text); }

int cuGetProcAddress_v2(const char* name, void** address, int, std::uint64_t, int* why) {
    if (name == nullptr || address == nullptr) return invalid_value;
    const std::string_view asked = name;
    *address = nullptr;
    // Asked without a version, the newest is meant.
#define BULKHEAD_LOOK(symbol, type) \
    if (asked == #symbol || std::string{asked} + "_v2" == #symbol) *address = reinterpret_cast<void*>(&symbol);
    BULKHEAD_CUDA_CALLS(BULKHEAD_LOOK)
#undef BULKHEAD_LOOK
    if (why != nullptr) *why = *address == nullptr ? 1 : 0;  // 1: there is no such symbol
    return *address == nullptr ? not_found : success;
}
int cuGetProcAddress(const char* name, void** address, int version, std::uint64_t flags) {
    return cuGetProcAddress_v2(name, address, version, flags, nullptr);
}

int cuDeviceGetCount(int* count) {
    return Process::get().answer("cuDeviceGetCount", false,
                                 [&](const driver::Model&) { return put(count, Process::get().devices().size()); });
}
int cuDeviceGet(int* device, int ordinal) {
    return ask_device("cuDeviceGet", ordinal,
                      [&](const driver::Model&, const Visible&) { return put(device, ordinal); });
}
int cuDeviceGetName(char* name, int length, int device) {
    return ask_device("cuDeviceGetName", device, [&](const driver::Model& model, const Visible& shown) {
        if (name == nullptr || length < 1) return static_cast<int>(invalid_value);
        std::string text{model.product(shown.where.gpu).name};
        if (const auto mig = model.mig_device_by_uuid(shown.uuid))
            text += fmt::format(" MIG {}", model.profile(shown.where.gpu, mig->instance->profile_id)->name);
        const std::size_t size = std::min(text.size(), static_cast<std::size_t>(length) - 1);
        std::memcpy(name, text.data(), size);
        name[size] = '\0';
        return static_cast<int>(success);
    });
}
int cuDeviceGetUuid(unsigned char* uuid, int device) { return uuid_of("cuDeviceGetUuid", uuid, device, false); }
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) { return uuid_of("cuDeviceGetUuid_v2", uuid, device, true); }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    return ask_device("cuDeviceGetAttribute", device, [&](const driver::Model& model, const Visible& shown) {
        const driver::Product& product = model.product(shown.where.gpu);
        const driver::GpuSpec& spec = model.spec().gpus[shown.where.gpu];
        switch (attribute) {
            case threads_per_block:
                return put(value, 1024);
            case warp:
                return put(value, 32);
            case multiprocessors:
                return put(value, sms_of(model, shown));
            case pci_bus:
                return put(value, spec.pci_bus);
            case pci_device:
                return put(value, spec.pci_device);
            case virtual_memory:
                return put(value, 1);
            case major:
                return put(value, product.capability_major);
            case minor:
                return put(value, product.capability_minor);
            default:
                return static_cast<int>(invalid_value);  // one that the model knows nothing about
        }
    });
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
    return ask_device("cuDeviceTotalMem_v2", device, [&](const driver::Model& model, const Visible& shown) {
        return put(bytes, model.memory(shown.where).total - model.memory(shown.where).reserved);
    });
}

int cuDevicePrimaryCtxRetain(Handle* context, int device) {
    return make_context("cuDevicePrimaryCtxRetain", context, device, true);
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    return Process::get().answer("cuDevicePrimaryCtxRelease_v2", true, [&](driver::Model& model) {
        Process& process = Process::get();
        for (const auto& context : process.contexts)
            if (context->primary && device >= 0 && context->ordinal == static_cast<std::size_t>(device)) {
                if (--context->users == 0) process.leave(model, context.get());
                return static_cast<int>(success);
            }
        return static_cast<int>(invalid_context);
    });
}
int cuCtxCreate_v2(Handle* context, unsigned, int device) {
    return make_context("cuCtxCreate_v2", context, device, false);
}
int cuCtxDestroy_v2(Handle handle) {
    return Process::get().answer("cuCtxDestroy_v2", true, [&](driver::Model& model) {
        Context* context = one_of(Process::get().contexts, handle);
        if (context == nullptr || context->primary) return static_cast<int>(invalid_context);
        if (Process::current() == context) Process::current() = nullptr;
        Process::get().leave(model, context);
        return static_cast<int>(success);
    });
}
int cuCtxSetCurrent(Handle handle) {
    return Process::get().answer("cuCtxSetCurrent", false, [&](const driver::Model&) {
        Context* context = one_of(Process::get().contexts, handle);
        if (context == nullptr && handle != nullptr) return static_cast<int>(invalid_context);
        Process::current() = context;
        return static_cast<int>(success);
    });
}
int cuCtxGetCurrent(Handle* context) {
    return Process::get().answer("cuCtxGetCurrent", false,
                                 [&](const driver::Model&) { return put(context, Process::current()); });
}
int cuCtxGetDevice(int* device) {
    return Process::get().in_context("cuCtxGetDevice", false, [&](driver::Model&, const Visible&) {
        return put(device, Process::current()->ordinal);
    });
}
// Stacks and heaps are not simulated: what a kernel here needs, the host has.
int cuCtxSetLimit(int limit, std::size_t) {
    return Process::get().in_context("cuCtxSetLimit", false, [&](driver::Model&, const Visible&) {
        return static_cast<int>(limit >= 0 && limit <= 6 ? success : invalid_value);
    });
}
int cuCtxSynchronize() {
    return Process::get().in_context("cuCtxSynchronize", false,
                                     [](driver::Model&, const Visible&) { return static_cast<int>(success); });
}

}  // extern "C"

}  // namespace bulkhead::cuda_sim
