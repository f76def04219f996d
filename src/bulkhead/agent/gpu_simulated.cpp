// A node whose driver is simulated: its tenants find the driver's libraries, and a program that lists GPUs through
// them, in a folder of their own. It says that they are simulated. Real nodes have none of it.
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "bulkhead/agent/gpu_hardware.hpp"

namespace bulkhead::agent {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view simulation_folder = "/opt/bulkhead-sim";
constexpr std::string_view lister = "bulkhead-gpus";

// Where the driver's library that this process uses was found.
std::string folder_of_driver() {
    std::string found;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* into) {
            const std::string name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
            if (name.find("libnvidia-ml.so") == std::string::npos) return 0;
            *static_cast<std::string*>(into) = name;
            return 1;
        },
        &found);
    std::error_code failed;
    return found.empty() ? found : fs::absolute(found, failed).parent_path().string();
}

}  // namespace

void GpuHardware::show_simulation(container::TenantSpec& spec) const {
    const char* const node = std::getenv("BULKHEAD_SIM_NODE");
    const std::string libraries = folder_of_driver(), to{simulation_folder};
    std::error_code failed;
    if (node == nullptr || libraries.empty() || !fs::is_directory(node, failed)) return;
    spec.mounts.push_back({libraries, to + "/lib"});
    spec.mounts.push_back({fs::absolute(node, failed).string(), to + "/node"});
    const fs::path program = fs::path{settings_.tenant_program}.parent_path() / lister;
    if (fs::exists(program, failed)) spec.mounts.push_back({program.string(), to + "/bin/" + std::string{lister}});
    const auto prefix = [&](std::string_view name, const std::string& value) {
        for (auto& [known, text] : spec.environment)
            if (known == name) {
                text = value + ":" + text;
                return;
            }
        spec.environment.emplace_back(name, value);
    };
    prefix("PATH", to + "/bin");
    prefix("LD_LIBRARY_PATH", to + "/lib");
    spec.environment.emplace_back("BULKHEAD_SIM_NODE", to + "/node");
}

}  // namespace bulkhead::agent
