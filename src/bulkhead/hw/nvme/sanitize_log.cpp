#include "bulkhead/hw/nvme/sanitize_log.hpp"

#include <fmt/format.h>

#include "bulkhead/hw/nvme/bytes.hpp"

namespace bulkhead::nvme {

namespace {

std::optional<std::chrono::seconds> estimate(std::uint32_t seconds) {
    if (seconds == 0xFFFF'FFFF) return std::nullopt;
    return std::chrono::seconds{seconds};
}

}  // namespace

SanitizeLog::State SanitizeLog::state() const {
    const unsigned state = sstat & 7U;
    return state < static_cast<unsigned>(State::unknown) ? static_cast<State>(state) : State::unknown;
}

Result<SanitizeLog> parse_sanitize_log(std::span<const std::uint8_t> page) {
    if (page.size() != sanitize_log_bytes)
        return fail(Code::corrupt, fmt::format("a Sanitize log has {} bytes", page.size()),
                    "compare with `nvme sanitize-log`");
    return SanitizeLog{.sprog = number_at<std::uint16_t>(page, 0),
                       .sstat = number_at<std::uint16_t>(page, 2),
                       .scdw10 = number_at<std::uint32_t>(page, 4),
                       .overwrite = estimate(number_at<std::uint32_t>(page, 8)),
                       .block_erase = estimate(number_at<std::uint32_t>(page, 12)),
                       .crypto_erase = estimate(number_at<std::uint32_t>(page, 16))};
}

std::string print(const SanitizeLog& log) {
    return fmt::format("SSTAT {:04X}h SCDW10 {:08X}h SPROG {:04X}h{}", log.sstat, log.scdw10, log.sprog,
                       log.purged() ? ", purged" : "");
}

}  // namespace bulkhead::nvme
