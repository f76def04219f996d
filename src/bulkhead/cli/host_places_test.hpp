// What agents of a test may leave on the host: tenants, control groups, pipes of MPS daemons.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <ranges>
#include <set>
#include <thread>
#include <vector>

#include "bulkhead/agent/gpu_hardware.hpp"
#include "bulkhead/hw/container/hierarchies.hpp"
#include "bulkhead/hw/container/tenants.hpp"

namespace bulkhead::cli {

inline Result<container::Tenants> tenants_in(const agent::HostPlaces& places) {
    return container::Tenants::open(
        {.directory = places.run_folder + "/tenants",
         .program = std::filesystem::path{BULKHEAD_PROGRAM}.parent_path() / "bulkhead-tenant",
         .cgroup_parent = places.cgroups});
}

// Also after a test that failed half way: the next one on this machine must not find its processes.
inline void clear(const agent::HostPlaces& places) {
    namespace fs = std::filesystem;
    std::error_code none;
    if (auto tenants = tenants_in(places))
        for (const auto lease : tenants->leases().value_or(std::vector<container::LeaseKey>{})) {
            EXPECT_TRUE(tenants->begin_stop(lease, Duration{0}));
            const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{60};
            while (!tenants->stopped(lease).value_or(false) && std::chrono::steady_clock::now() < until)
                std::this_thread::sleep_for(std::chrono::milliseconds{10});
            EXPECT_TRUE(tenants->remove(lease)) << "lease " << lease;
        }
    for (fs::directory_iterator at{places.run_folder + "/mps", none}, end; !none && at != end; at.increment(none))
        if (pid_t daemon = 0; std::ifstream{at->path() / "pipe/nvidia-cuda-mps-control.pid"} >> daemon && daemon > 1)
            ::kill(daemon, SIGKILL);
    fs::remove_all(places.run_folder, none);
    // Groups of a lease that was killed before it had a record are nobody's.
    const auto trees = container::find_hierarchies();
    for (const std::string& tree : trees ? trees->all() : std::set<std::string>{}) {
        const fs::path ours = tree + "/" + places.cgroups;
        std::vector<fs::path> groups{ours};
        for (fs::recursive_directory_iterator at{ours, none}, end; !none && at != end; at.increment(none))
            if (at->is_directory(none)) groups.push_back(at->path());
        for (const fs::path& group : groups | std::views::reverse) ::rmdir(group.c_str());
    }
}

}  // namespace bulkhead::cli
