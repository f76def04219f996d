// One thing done to hardware, and how it went. The executor decides; whoever owns the hardware (a model, NVML, a drive)
// carries out, in any time it takes, and answers by the operation's number.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "bulkhead/node/order.hpp"

namespace bulkhead {

struct CreateInstance {  // idempotent: an instance of that profile at that start is adopted
    std::uint16_t gpu = 0;
    std::string profile;
    std::uint8_t start = 0;
};
struct DestroyInstance {  // idempotent: absent is fine
    std::uint16_t gpu = 0;
    std::uint8_t start = 0;
};
struct AttachDrive {
    std::uint16_t drive = 0;
    Key lease = 0;
};
struct DetachDrive {
    std::uint16_t drive = 0;
};
struct AttachFunction {
    std::uint16_t function = 0;
    Key lease = 0;
    std::string tenant;
};
struct DetachFunction {
    std::uint16_t function = 0;
};
struct StartTenant {
    Key lease = 0;
    Tier tier{};
    std::vector<GpuPart> gpus;
    std::vector<std::uint16_t> drives, functions;
};
struct StopTenant {  // verified: when it answers ok, none of its processes or VMs is left
    Key lease = 0;
};
struct Wipe {  // memory: fill; drive: erase; function: forget its addresses; host: reboot to the known image
    UnitKind kind{};
    std::uint16_t device = 0;
    std::uint8_t start = 0, size = 1;
};
struct Verify {  // read back: what a wipe left
    UnitKind kind{};
    std::uint16_t device = 0;
    std::uint8_t start = 0, size = 1;
    std::uint64_t sample_seed = 0;  // which places a drive is sampled at
};

struct Operation {
    std::int64_t number = 0;  // unique while the agent's process lives
    std::variant<CreateInstance, DestroyInstance, AttachDrive, DetachDrive, AttachFunction, DetachFunction, StartTenant,
                 StopTenant, Wipe, Verify>
        what;
};

struct OperationResult {
    std::int64_t number = 0;
    bool ok = false;
    std::string why;  // of one that failed
    // Of a Wipe or Verify:
    std::string device_identity;  // GPU UUID, drive serial
    std::string model;
    std::string method;
    std::int64_t bytes = 0;          // reached by the wipe, or read back
    std::int64_t bytes_residue = 0;  // found by Verify: anything but 0 fails
};

}  // namespace bulkhead
