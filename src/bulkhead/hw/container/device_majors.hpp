// Which driver has which major device number on this kernel: the text of /proc/devices, read strictly. Some numbers are
// given out at load time (nvidia-uvm, nvidia-caps), so they are looked up and never remembered.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"

namespace bulkhead::container {

struct DeviceMajors {
    std::map<std::string, std::uint32_t> characters, blocks;  // by driver; of a name with several numbers, the first
    friend bool operator==(const DeviceMajors&, const DeviceMajors&) = default;
};

Result<DeviceMajors> parse_device_majors(std::string_view proc_devices);

}  // namespace bulkhead::container
