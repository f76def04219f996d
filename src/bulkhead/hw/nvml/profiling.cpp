#include "bulkhead/hw/nvml/profiling.hpp"

#include <fstream>
#include <string_view>

namespace bulkhead::nvml {

std::optional<bool> profiling_is_restricted(const std::string& parameters) {
    constexpr std::string_view name = "RmProfilingAdminOnly:";
    std::ifstream file{parameters};
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(name)) return line.find('1', name.size()) != std::string::npos;
    return std::nullopt;
}

}  // namespace bulkhead::nvml
