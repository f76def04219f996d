#include "bulkhead/agent/gpu_nccl.hpp"

#include <fmt/core.h>
#include <sys/stat.h>

#include <filesystem>

#include "bulkhead/hw/container/durable.hpp"
#include "bulkhead/render/nccl_environment.hpp"
#include "bulkhead/render/nccl_topology.hpp"

namespace bulkhead::agent {

namespace {

std::string nccl_folder(const std::string& folder, Key lease) { return fmt::format("{}/nccl/{}", folder, lease); }

// The folder it lies in.
Result<std::string> draw_topology(const std::string& place, const GpuNodeStatus& inventory,
                                  const render::NodePart& part) {
    const auto topology = render::nccl_topology(inventory, part);
    if (!topology) return std::unexpected(topology.error());
    std::error_code failed;
    std::filesystem::create_directories(place, failed);
    if (failed) return fail(Code::unavailable, fmt::format("{} cannot be made: {}", place, failed.message()), "");
    const std::string file = fmt::format("{}/{}", place, render::nccl_topology_name);
    if (auto written = container::write_durably(file, *topology); !written) return std::unexpected(written.error());
    // What lies above is closed to everybody; the tenant gets this folder alone, and reads it as itself.
    ::chmod(place.c_str(), 0755);
    ::chmod(file.c_str(), 0644);
    return place;
}

}  // namespace

Result<NcclView> show_nccl(const std::string& folder, const GpuNodeStatus& inventory, const StartTenant& what,
                           std::optional<unsigned> gid_index) {
    NcclView view;
    if (what.functions.empty()) return view;
    const render::NodePart part = render::part_of(what);
    const std::string path{render::nccl_topology_path};
    const auto place = draw_topology(nccl_folder(folder, what.lease), inventory, part);
    // The file is advice: without it NCCL draws its own, out of what it sees. Which devices are its own it must be
    // told.
    if (!place && place.error().code != Code::exhausted && place.error().code != Code::unavailable)
        return std::unexpected(place.error());
    const auto lines = render::nccl_environment(
        inventory, part, {.topology_file = place ? path : std::string{}, .gid_index = gid_index});
    if (!lines) return std::unexpected(lines.error());
    for (const std::string& line : *lines) {
        const std::size_t equals = line.find('=');
        view.environment.emplace_back(line.substr(0, equals), line.substr(equals + 1));
    }
    if (place) view.mounts.push_back({*place, path.substr(0, path.rfind('/'))});
    return view;
}

void forget_nccl(const std::string& folder, Key lease) {
    std::error_code ignored;  // a file about devices that the tenant knew; the next start writes its own
    std::filesystem::remove_all(nccl_folder(folder, lease), ignored);
}

}  // namespace bulkhead::agent
