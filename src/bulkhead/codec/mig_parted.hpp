// Reads the files of NVIDIA's mig-parted as strictly as mig-parted does, and says where each mistake is. Whether a
// layout exists on a board is geometry and is asked of gpu/; here only the file's own rules are kept.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/codec/diagnostic.hpp"

namespace bulkhead {

struct MigPartedCount {
    std::string profile;  // as written: "1g.10gb+me"
    int count = 0;
    Position where;
};

struct MigPartedDevices {
    std::vector<std::string> device_filter;  // "0x233010DE"; empty: any board
    bool all_devices = false;
    std::vector<unsigned> devices;  // when not all
    bool mig_enabled = false;
    std::vector<MigPartedCount> mig_devices;
    Position where;
};

struct MigPartedConfig {
    std::string name;
    std::vector<MigPartedDevices> devices;
    Position where;
};

struct MigPartedFile {
    std::vector<MigPartedConfig> configs;  // in the order of the file
};

std::expected<MigPartedFile, std::vector<Diagnostic>> read_mig_parted(std::string_view file, std::string_view text);

}  // namespace bulkhead
