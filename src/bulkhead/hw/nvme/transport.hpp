// The line between us and an NVMe drive: admin commands as the kernel passes them through, and blocks past every cache.
// kernel_transport.hpp is the kernel's; tests put a scripted drive behind the same commands and bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "bulkhead/base/result.hpp"

namespace bulkhead::nvme {

struct Command {
    std::uint8_t opcode = 0;
    std::uint32_t nsid = 0, cdw10 = 0, cdw11 = 0;
    std::span<std::uint8_t> data = {};  // filled by the drive, or sent to it, by the opcode's lowest bits
    std::chrono::milliseconds timeout{10'000};
};

struct Completion {
    std::uint16_t status = 0;  // type and code: SCT << 8 | SC; 0: success
    std::uint32_t result = 0;
};

namespace status {
inline constexpr std::uint16_t sanitize_failed = 0x1C, sanitize_in_progress = 0x1D;
}
std::string print_status(std::uint16_t status);  // "84h (Format in progress)"

class Transport {
public:
    virtual ~Transport() = default;
    // An error: it could not be sent, or nobody answered in time. A drive that says no has answered.
    virtual Result<Completion> admin(const Command& command) = 0;
    // Has the kernel look for namespaces anew.
    virtual Result<> rescan() = 0;
    // As after power-on: the controller is reset, and nothing that the kernel remembers of the contents is left.
    // Returns when it answers again.
    virtual Result<> fresh() = 0;
    // Nobody mounts these namespaces, nor opens one to have it alone (O_EXCL), until this object is gone; the kernel
    // still lets anybody open one along with us. `conflict`: somebody has one already, in either way. What the kernel
    // had yet to write to them is written when this returns.
    virtual Result<> hold(std::span<const std::uint32_t> namespaces) = 0;
    // Of a namespace that is held; whole blocks.
    virtual Result<> read(std::uint32_t nsid, std::uint64_t offset, std::span<std::uint8_t> into) = 0;
    virtual Result<> write(std::uint32_t nsid, std::uint64_t offset, std::span<const std::uint8_t> from) = 0;
    // What was written has left every cache that a loss of power empties.
    virtual Result<> flush(std::uint32_t nsid) = 0;
};

}  // namespace bulkhead::nvme
