// Which capability node opens which MIG instance: the text of /proc/driver/nvidia-caps/mig-minors, read strictly. Lines
// are "config 1", "monitor 2", "gpu0/gi3/access 30", "gpu0/gi3/ci0/access 31"; the GPU is named by its device minor.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "bulkhead/base/result.hpp"

namespace bulkhead::container {

struct MigInstance {
    std::uint32_t gpu = 0, gpu_instance = 0;
    std::optional<std::uint32_t> compute_instance;  // none: the GPU instance itself
    friend auto operator<=>(const MigInstance&, const MigInstance&) = default;
};

struct MigMinors {
    std::optional<std::uint32_t> config, monitor;
    std::map<MigInstance, std::uint32_t> access;
    friend bool operator==(const MigMinors&, const MigMinors&) = default;
};

Result<MigMinors> parse_mig_minors(std::string_view mig_minors);

}  // namespace bulkhead::container
