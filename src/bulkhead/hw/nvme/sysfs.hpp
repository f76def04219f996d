// Reading the kernel's small files. What is not there is empty: devices come and go while one looks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/hw/nvme/discover.hpp"

namespace bulkhead::nvme {

std::string first_line_of(const std::string& path);          // without spaces around it
std::string text_of(const std::string& path);                // all of it
std::vector<std::string> names_in(const std::string& path);  // sorted
std::string link_name(const std::string& path);              // the last word of where a link leads
std::optional<std::uint64_t> parse_number(std::string_view text, int base = 10);
struct DeviceNumber {
    std::uint32_t major = 0, minor = 0;
    friend auto operator<=>(const DeviceNumber&, const DeviceNumber&) = default;
};
std::optional<DeviceNumber> parse_device_number(std::string_view text);  // "259:3"

}  // namespace bulkhead::nvme
