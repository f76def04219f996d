// Whatever the bytes: a file or a list of errors, never a crash; and a file keeps the rules that were promised.
#include <cstddef>
#include <cstdint>

#include "bulkhead/base/result.hpp"
#include "bulkhead/codec/mig_parted.hpp"

using namespace bulkhead;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto read = read_mig_parted("fuzz", {reinterpret_cast<const char*>(data), size});
    if (!read) {
        invariant(!read.error().empty(), "a refusal says why");
        return 0;
    }
    for (const MigPartedConfig& config : read->configs) {
        invariant(!config.devices.empty(), "every configuration has an entry");
        for (const MigPartedDevices& entry : config.devices) {
            invariant(entry.mig_enabled || entry.mig_devices.empty(), "no instances where MIG is off");
            invariant(!entry.all_devices || entry.devices.empty(), "all devices, or a list of them");
            for (const MigPartedCount& count : entry.mig_devices)
                invariant(count.count >= 0, "counts are not negative");
        }
    }
    return 0;
}
