#include "bulkhead/hw/container/device_majors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace bulkhead::container {

namespace {

constexpr std::size_t proc_devices_bytes_max = 1 << 20;

std::unexpected<Error> unreadable(std::size_t line, std::string_view text) {
    return fail(
        Code::corrupt,
        fmt::format("/proc/devices, line {}: '{}' is not a number and a driver's name", line, text.substr(0, 80)),
        "this kernel writes it otherwise than we know; report the file");
}

}  // namespace

Result<DeviceMajors> parse_device_majors(std::string_view proc_devices) {
    if (proc_devices.size() > proc_devices_bytes_max)
        return fail(Code::corrupt, fmt::format("/proc/devices of {} bytes", proc_devices.size()), "look at it");
    DeviceMajors majors;
    std::map<std::string, std::uint32_t>* section = nullptr;
    for (std::size_t line = 1; !proc_devices.empty(); ++line) {
        const std::size_t end = std::min(proc_devices.find('\n'), proc_devices.size());
        const std::string_view text = proc_devices.substr(0, end);
        proc_devices.remove_prefix(std::min(end + 1, proc_devices.size()));
        if (text.empty()) continue;
        if (text == "Character devices:" || text == "Block devices:") {
            section = text.front() == 'C' ? &majors.characters : &majors.blocks;
            continue;
        }
        const std::size_t number_at = std::min(text.find_first_not_of(' '), text.size());
        std::uint32_t major = 0;
        const auto [stop, wrong] = std::from_chars(text.data() + number_at, text.data() + text.size(), major);
        const std::string_view name = text.substr(static_cast<std::size_t>(stop - text.data()));
        if (section == nullptr || wrong != std::errc{} || major > 4'095 || name.size() < 2 || name.front() != ' ')
            return unreadable(line, text);
        section->try_emplace(std::string{name.substr(1)}, major);
    }
    return majors;
}

}  // namespace bulkhead::container
