#include "bulkhead/hw/nvme/transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace bulkhead::nvme {

namespace {

struct StatusName {
    std::uint16_t status;
    std::string_view name;
};
constexpr auto status_names = std::to_array<StatusName>({
    {0x00, "success"},
    {0x01, "invalid command opcode"},
    {0x02, "invalid field in command"},
    {0x06, "internal error"},
    {0x07, "abort requested"},
    {0x0B, "invalid namespace or format"},
    {0x0C, "command sequence error"},
    {0x1C, "Sanitize failed"},
    {0x1D, "Sanitize in progress"},
    {0x20, "namespace is write protected"},
    {0x23, "prohibited by lockdown"},
    {0x84, "Format in progress"},
    {0x10A, "invalid format"},
    {0x118, "namespace already attached"},
    {0x11A, "namespace not attached"},
});

}  // namespace

std::string print_status(std::uint16_t status) {
    const auto* const found = std::ranges::find(status_names, status, &StatusName::status);
    if (found == status_names.end()) return fmt::format("{:02X}h", status);
    return fmt::format("{:02X}h ({})", status, found->name);
}

}  // namespace bulkhead::nvme
