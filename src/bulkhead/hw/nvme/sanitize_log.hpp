// Log page 81h: how the drive's last Sanitize goes or went. It survives resets and power loss, as Sanitize does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "bulkhead/base/result.hpp"

namespace bulkhead::nvme {

inline constexpr std::size_t sanitize_log_bytes = 512;

struct SanitizeLog {
    enum class State : std::uint8_t { never, succeeded, in_progress, failed, succeeded_without_deallocation, unknown };
    std::uint16_t sprog = 0xFFFF, sstat = 0;
    std::uint32_t scdw10 = 0;  // the command it is about
    // How long it expects to take; nothing: it does not say.
    std::optional<std::chrono::seconds> overwrite = {}, block_erase = {}, crypto_erase = {};

    State state() const;
    bool succeeded() const { return state() == State::succeeded || state() == State::succeeded_without_deallocation; }
    bool nothing_written_since() const { return (sstat & 0x100U) != 0; }
    bool purged() const { return (sstat & 0x800U) != 0; }  // newer drives, in the words of IEEE 2883
    unsigned thousandths() const { return static_cast<unsigned>(sprog * 1000ULL / 65'536); }
    friend bool operator==(const SanitizeLog&, const SanitizeLog&) = default;
};

Result<SanitizeLog> parse_sanitize_log(std::span<const std::uint8_t> page);
std::string print(const SanitizeLog& log);  // "SSTAT 0101h SCDW10 00000004h SPROG FFFFh"

}  // namespace bulkhead::nvme
