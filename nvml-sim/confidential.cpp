// Confidential computing: what the node can, and whether it was booted so. Certificates and attestation reports are not
// exported: a simulated one would be a lie about the very thing they prove.
#include <algorithm>

#include "exports.hpp"
#include "session.hpp"

namespace bulkhead::nvml {

namespace {

bool capable(const driver::Model& model) {
    for (std::uint16_t gpu = 0; gpu < model.gpus(); ++gpu)
        if (!model.product(gpu).conf_compute) return false;
    return true;
}

// A simulated node says so, even here.
ConfComputeEnvironment environment(const driver::Model& model) {
    return model.spec().confidential ? ConfComputeEnvironment::simulated : ConfComputeEnvironment::unavailable;
}

CpuConfCompute cpu(const driver::Model& model) {
    switch (model.spec().cpu_protection) {
        case driver::CpuProtection::none:
            return CpuConfCompute::none;
        case driver::CpuProtection::sev_snp:
            return CpuConfCompute::amd_sev_snp;
        case driver::CpuProtection::tdx:
            return CpuConfCompute::intel_tdx;
    }
    return CpuConfCompute::none;
}

Return ask_system(std::string_view call, const std::function<Return(const driver::Model&)>& work) {
    return Session::get().answer(call, Session::Access::read, work);
}

// Off, all that users can have counts as unprotected.
std::uint64_t usable_kib(const driver::Product& product) {
    return (product.memory_bytes() - product.reserved_bytes()) / 1024;
}

}  // namespace

extern "C" {

Return nvmlSystemGetConfComputeCapabilities(ConfComputeCaps* caps) {
    return ask_system("nvmlSystemGetConfComputeCapabilities", [&](const driver::Model& model) {
        if (caps == nullptr) return Return::invalid_argument;
        *caps = {cpu(model), capable(model) ? 1u : 0u};
        return Return::success;
    });
}
Return nvmlSystemGetConfComputeState(ConfComputeState* state) {
    return ask_system("nvmlSystemGetConfComputeState", [&](const driver::Model& model) {
        if (state == nullptr) return Return::invalid_argument;
        *state = {environment(model), model.spec().confidential ? 1u : 0u, 0};
        return Return::success;
    });
}
Return nvmlSystemGetConfComputeSettings(ConfComputeSettings* settings) {
    return ask_system("nvmlSystemGetConfComputeSettings", [&](const driver::Model& model) {
        if (settings == nullptr) return Return::invalid_argument;
        if (settings->version != conf_compute_settings_v1) return Return::argument_version_mismatch;
        *settings = {conf_compute_settings_v1, environment(model), model.spec().confidential ? 1u : 0u, 0, 0};
        return Return::success;
    });
}
Return nvmlSystemGetConfComputeGpusReadyState(std::uint32_t* ready) {
    return ask_system("nvmlSystemGetConfComputeGpusReadyState", [&](const driver::Model& model) {
        return put(ready, model.spec().confidential && model.ready() ? 1u : 0u);
    });
}
Return nvmlSystemSetConfComputeGpusReadyState(std::uint32_t ready) {
    return Session::get().answer("nvmlSystemSetConfComputeGpusReadyState", Session::Access::change,
                                 [&](driver::Model& model) {
                                     if (ready > 1) return Return::invalid_argument;
                                     if (!model.spec().confidential) return Return::not_supported;
                                     model.set_ready(ready == 1);
                                     return Return::success;
                                 });
}
Return nvmlDeviceGetConfComputeMemSizeInfo(Device device, ConfComputeMemory* memory) {
    return ask_gpu("nvmlDeviceGetConfComputeMemSizeInfo", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (memory == nullptr) return Return::invalid_argument;
        const std::uint64_t all = usable_kib(model.product(gpu));
        *memory = model.spec().confidential ? ConfComputeMemory{all, 0} : ConfComputeMemory{0, all};
        return Return::success;
    });
}
Return nvmlDeviceGetConfComputeProtectedMemoryUsage(Device device, Memory* memory) {
    return ask_gpu("nvmlDeviceGetConfComputeProtectedMemoryUsage", device,
                   [&](const driver::Model& model, std::uint16_t gpu) {
                       if (memory == nullptr) return Return::invalid_argument;
                       *memory = {};
                       if (!model.spec().confidential) return Return::success;
                       const driver::MemoryUse use = model.memory({.gpu = gpu});
                       *memory = {use.total - use.reserved, use.free(), use.used};
                       return Return::success;
                   });
}

}  // extern "C"

}  // namespace bulkhead::nvml
