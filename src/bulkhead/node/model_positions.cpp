#include "bulkhead/node/model_positions.hpp"

#include <fmt/format.h>

#include "bulkhead/node/model.hpp"

namespace bulkhead {

namespace {

constexpr std::int64_t links_to_switches = 18;  // of an H100 or H200; other boards have others

// No virtual function of the model, and no switch, has such a bus.
std::string gpu_address(std::int64_t gpu) { return fmt::format("0000:{:02x}:00.0", 0x81 + 2 * gpu); }

}  // namespace

std::vector<GpuPosition> model_positions(const NodeModelSpec& spec) {
    const std::int64_t gpus = spec.gpus, sockets = gpus > 1 && spec.cpu > 1 ? 2 : 1;
    const auto socket_of = [&](std::int64_t gpu) { return gpu * sockets / gpus; };
    const auto switch_of = [&](std::int64_t gpu) { return std::pair{socket_of(gpu), gpu / 2}; };
    std::vector<GpuPosition> all;
    for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
        const std::int64_t socket = socket_of(gpu);
        GpuPosition position{.gpu = gpu, .bus = gpu_address(gpu), .numaNode = socket};
        const std::int64_t first = socket * spec.cpu / sockets, last = (socket + 1) * spec.cpu / sockets - 1;
        if (last >= first) position.cpus = first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
        position.bridges = {fmt::format("0000:{:02x}:00.0", 0x80 + 2 * switch_of(gpu).second)};
        for (std::int64_t other = 0; other < gpus; ++other) {
            if (other == gpu) continue;
            if (switch_of(other) == switch_of(gpu))
                position.sameSwitch.push_back(other);
            else
                (socket_of(other) == socket ? position.sameNuma : position.otherSockets).push_back(other);
            if (spec.nvlink == NvLink::fabric)
                position.nvlinkPeers.push_back({.gpu = other, .links = links_to_switches});
        }
        position.nvlinkSwitched = spec.nvlink == NvLink::fabric;
        position.nvlinks = position.nvlinkSwitched ? links_to_switches : 0;
        all.push_back(std::move(position));
    }
    return all;
}

}  // namespace bulkhead
