#include "bulkhead/hw/nvml/profiling.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace bulkhead::nvml {
namespace {

TEST(Profiling, is_restricted_open_or_unknown) {
    const auto path = std::filesystem::temp_directory_path() / ("nvidia-params-" + std::to_string(::getpid()));
    EXPECT_EQ(profiling_is_restricted(path), std::nullopt);
    const auto says = [&](const char* text) {
        std::ofstream{path} << text;
        return profiling_is_restricted(path);
    };
    EXPECT_EQ(says("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n"), true);
    EXPECT_EQ(says("RmProfilingAdminOnly: 0\nModifyDeviceFiles: 1\n"), false);
    EXPECT_EQ(says("ModifyDeviceFiles: 1\n"), std::nullopt);
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace bulkhead::nvml
