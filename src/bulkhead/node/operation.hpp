// One thing done to hardware, and how it went. The executor decides; whoever owns the hardware (a model, NVML, a drive)
// carries out, in any time it takes, and answers by the operation's number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bulkhead/model/terms.hpp"
#include "bulkhead/node/order.hpp"
#include "bulkhead/node/report.hpp"

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
    FabricPort port = {};  // without an address: there is no fabric to set it for
};
struct DetachFunction {
    std::uint16_t function = 0;
};
struct StartTenant {
    Key lease = 0;
    Tier tier{};
    std::vector<GpuPart> gpus;
    std::vector<std::uint16_t> drives, functions;
    std::string tenant;
    Mechanism mechanism{};
    Program program;
    std::vector<FabricPort> ports = {};
};
struct StopTenant {  // verified: when it answers ok, none of its processes or VMs is left
    Key lease = 0;
    Duration save;  // how long saving its work may take before; 0: it is not saved
};
struct Wipe {  // memory: fill; drive: erase; function: forget its addresses; host: reboot to the known image
    UnitKind kind{};
    std::uint16_t device = 0;
    std::uint8_t start = 0, size = 1;
    bool burn_in = false;  // memory: it was out of use; show at length that it holds what is written, and computes
};
struct Verify {  // read back: what a wipe left
    UnitKind kind{};
    std::uint16_t device = 0;
    std::uint8_t start = 0, size = 1;
    std::uint64_t sample_seed = 0;  // which places a drive is sampled at
};
// The GPU anew, as after power-on, with everything on it gone. Whoever carries it out looks that nobody is on it, nor
// on one that is joined to it.
struct ResetGpu {
    std::uint16_t gpu = 0;
};

struct Operation {
    std::int64_t number = 0;  // unique while the agent's process lives
    std::variant<CreateInstance, DestroyInstance, AttachDrive, DetachDrive, AttachFunction, DetachFunction, StartTenant,
                 StopTenant, Wipe, Verify, ResetGpu>
        what;
};

struct OperationResult {
    std::int64_t number = 0;
    bool ok = false;
    std::string why;                    // of one that failed
    bool untouched = false;             // of one that failed: nothing was done to the hardware
    PartFault fault = PartFault::none;  // of a StartTenant that failed
    // Of a Wipe or Verify:
    std::string device_identity;  // GPU UUID, drive serial
    std::string model;
    std::string board, serial, driver, vbios;  // of a GPU, where its driver tells
    std::string method;
    std::int64_t bytes = 0;          // reached by the wipe, or read back
    std::int64_t bytes_residue = 0;  // found by Verify: anything but 0 fails
    // Of a Wipe, where its hardware can tell; for the evidence.
    std::optional<std::int64_t> bytes_found;  // that were not zero before
    std::int64_t bytes_unreachable = 0;
    std::string unreachable;     // whose those are
    std::string digest;          // of a Verify: of what was read back
    std::optional<Saved> saved;  // of a StopTenant that was to save the work
    // Of a drive; for the evidence.
    std::optional<Grade> grade;        // how this device's results are known; nothing: as the node's others are
    std::string firmware;              // of the drive
    std::string command;               // as it was sent
    std::string status;                // what the drive answered
    std::vector<std::string> skipped;  // stronger methods, and why not by them
    std::string samples;               // where was looked, and what that can miss
    std::string claim;                 // what may be said of it once it is verified
};

}  // namespace bulkhead
