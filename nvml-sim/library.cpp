// Beginning, end, and what the system as a whole says.
#include <fmt/format.h>
#include <signal.h>

#include <fstream>
#include <iterator>

#include "exports.hpp"
#include "session.hpp"

namespace bulkhead::nvml {

namespace {

Return system_text(std::string_view call, char* out, std::uint32_t length,
                   const std::function<std::string(const driver::Model&)>& text) {
    return Session::get().answer(call, Session::Access::read,
                                 [&](const driver::Model& model) { return put_text(out, length, text(model)); });
}

}  // namespace

extern "C" {

// Whoever must know that nothing here is hardware looks for this symbol; no driver has it.
extern __attribute__((visibility("default"))) const char bulkhead_nvml_sim[];
const char bulkhead_nvml_sim[] = "simulated";

Return nvmlInit() { return Session::get().init(0); }
Return nvmlInit_v2() { return Session::get().init(0); }
Return nvmlInitWithFlags(std::uint32_t flags) { return Session::get().init(flags); }
Return nvmlShutdown() { return Session::get().shutdown(); }

// The driver's own words, which clients print and some compare.
const char* nvmlErrorString(Return result) {
    static constexpr const char* text[] = {"Success",
                                           "Uninitialized",
                                           "Invalid Argument",
                                           "Not Supported",
                                           "Insufficient Permissions",
                                           "Already Initialized",
                                           "Not Found",
                                           "Insufficient Size",
                                           "Insufficient External Power",
                                           "Driver Not Loaded",
                                           "Timeout",
                                           "Interrupt Request Issue",
                                           "NVML Shared Library Not Found",
                                           "Function Not Found",
                                           "Corrupted infoROM",
                                           "GPU is lost",
                                           "GPU requires reset",
                                           "GPU access blocked by the operating system",
                                           "Driver/library version mismatch",
                                           "In use by another client",
                                           "Insufficient Memory",
                                           "No data",
                                           "vGPU ECC not supported",
                                           "Insufficient Resources",
                                           "Invalid Frequency",
                                           "Argument version mismatch",
                                           "Requested functionality has been deprecated",
                                           "System is not in ready state",
                                           "No supported GPUs were found",
                                           "Resource not in correct state to perform requested operation",
                                           "Reset type is not supported for given device"};
    const auto number = static_cast<std::uint32_t>(result);
    return number < std::size(text) ? text[number] : "Unknown Error";
}

Return nvmlSystemGetDriverVersion(char* version, std::uint32_t length) {
    return system_text("nvmlSystemGetDriverVersion", version, length,
                       [](const driver::Model& model) { return model.spec().driver; });
}

Return nvmlSystemGetNVMLVersion(char* version, std::uint32_t length) {
    return system_text("nvmlSystemGetNVMLVersion", version, length, [](const driver::Model& model) {
        return fmt::format("{}.{}", model.spec().cuda / 1000, model.spec().driver);
    });
}

// Both answer without nvmlInit on a real node; here there is no node before it.
Return nvmlSystemGetCudaDriverVersion(std::int32_t* version) {
    return Session::get().answer("nvmlSystemGetCudaDriverVersion", Session::Access::read,
                                 [&](const driver::Model& model) { return put(version, model.spec().cuda); });
}
Return nvmlSystemGetCudaDriverVersion_v2(std::int32_t* version) {
    return Session::get().answer("nvmlSystemGetCudaDriverVersion_v2", Session::Access::read,
                                 [&](const driver::Model& model) { return put(version, model.spec().cuda); });
}

Return nvmlSystemGetProcessName(std::uint32_t pid, char* name, std::uint32_t length) {
    return Session::get().answer("nvmlSystemGetProcessName", Session::Access::read, [&](const driver::Model&) {
        std::ifstream file{fmt::format("/proc/{}/cmdline", pid)};
        if (!file) return Return::not_found;
        std::string line{std::istreambuf_iterator<char>{file}, {}};
        line = line.substr(0, line.find('\0'));
        if (name == nullptr || length == 0) return Return::invalid_argument;
        return put_text(name, length, line.substr(0, length - 1));
    });
}

Return nvmlUnitGetCount(std::uint32_t* count) {
    return Session::get().answer("nvmlUnitGetCount", Session::Access::read,
                                 [&](const driver::Model&) { return put(count, 0u); });
}

}  // extern "C"

}  // namespace bulkhead::nvml
