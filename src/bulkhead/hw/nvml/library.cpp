#include "bulkhead/hw/nvml/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace bulkhead::nvml {

// Shut down while the code is mapped, then unload.
Library::~Library() {
    if (started && nvmlShutdown != nullptr) nvmlShutdown();
    if (handle != nullptr) ::dlclose(handle);
}

namespace {

struct Meaning {
    Code code;
    const char* remedy;
};

Meaning meaning_of(Return code) {
    switch (code) {
        case Return::invalid_argument:
            return {Code::invalid, "ask for what `nvidia-smi mig -lgip` and -lgipp list for this GPU"};
        case Return::not_supported:
            return {Code::invalid,
                    "this GPU, its mode or its driver has no such thing; `nvidia-smi -q` says what it has"};
        case Return::no_permission:
            return {Code::denied, "run the agent's helper as root, or give it access to the MIG configuration"};
        case Return::not_found:
            return {Code::not_found, "look again: instances and devices come and go"};
        case Return::insufficient_resources:
            return {Code::exhausted,
                    "the place is taken or the maximum is reached; `nvidia-smi mig -lgi` lists instances"};
        case Return::in_use:
            return {Code::conflict, "somebody still uses it; `nvidia-smi` lists processes"};
        case Return::gpu_is_lost:
            return {Code::unavailable, "the GPU has fallen off the bus: drain the node, and reset or replace it"};
        case Return::reset_required:
            return {Code::unavailable, "reset the GPU, or reboot the host"};
        default:
            return {Code::unavailable, "see dmesg for what the driver says"};
    }
}

}  // namespace

Result<> Library::check(Return code, const std::string& doing) const {
    if (code == Return::success) return {};
    const Meaning meaning = meaning_of(code);
    const char* text = nvmlErrorString != nullptr ? nvmlErrorString(code) : nullptr;
    return fail(meaning.code,
                fmt::format("NVML could not {}: {} ({})", doing, text != nullptr ? text : "no words for it",
                            static_cast<std::uint32_t>(code)),
                meaning.remedy);
}

}  // namespace bulkhead::nvml
