#include "bulkhead/node/model_topology.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace bulkhead {

namespace {

constexpr unsigned gpus_per_switch = 2, switches_per_socket = 2;
constexpr std::int64_t nvlinks = 18;  // of an H100 or H200; other boards have others

// Bus numbers below one switch: the switch itself, then its GPUs, then its NICs.
unsigned switch_of(unsigned place) { return place / gpus_per_switch; }
unsigned bus_base(unsigned place) { return 0x10 + 0x18 * (switch_of(place) % 8); }
std::string domain_of(unsigned place) { return fmt::format("{:04x}", switch_of(place) / 8); }
unsigned slot_of(unsigned place) { return place % gpus_per_switch; }

std::vector<std::string> bridges_above(unsigned place, unsigned downstream) {
    const std::string domain = domain_of(place);
    const unsigned base = bus_base(place);
    return {fmt::format("{}:{:02x}:01.0", domain, base), fmt::format("{}:{:02x}:00.0", domain, base + 1),
            fmt::format("{}:{:02x}:{:02x}.0", domain, base + 2, downstream)};
}

std::int64_t numa_of(unsigned place) { return switch_of(place) / switches_per_socket; }

unsigned nics_of(const NodeModelSpec& spec) { return std::max<unsigned>(1, std::min<unsigned>(spec.gpus, 8)); }
unsigned nic_bus(unsigned nic) { return bus_base(nic) + 5 + slot_of(nic); }

}  // namespace

std::vector<GpuPosition> model_positions(const NodeModelSpec& spec) {
    std::vector<GpuPosition> all;
    const unsigned sockets = static_cast<unsigned>(numa_of(std::max(1u, unsigned{spec.gpus}) - 1)) + 1;
    const std::int64_t cores = std::max<std::int64_t>(spec.cpu / sockets, 1);
    for (unsigned gpu = 0; gpu < spec.gpus; ++gpu) {
        const std::int64_t numa = numa_of(gpu);
        GpuPosition position{.gpu = gpu,
                             .bus = fmt::format("{}:{:02x}:00.0", domain_of(gpu), bus_base(gpu) + 3 + slot_of(gpu)),
                             .numaNode = numa,
                             .cpus = fmt::format("{}-{}", numa * cores, (numa + 1) * cores - 1),
                             .bridges = bridges_above(gpu, 4 * slot_of(gpu))};
        for (unsigned other = 0; other < spec.gpus; ++other) {
            if (other == gpu) continue;
            auto& list = switch_of(other) == switch_of(gpu) ? position.sameSwitch
                         : numa_of(other) == numa           ? position.sameNuma
                                                            : position.otherSockets;
            list.push_back(other);
            if (spec.nvlink == NvLink::fabric) position.nvlinkPeers.push_back({.gpu = other, .links = nvlinks});
        }
        position.nvlinkSwitched = spec.nvlink == NvLink::fabric;
        position.nvlinks = position.nvlinkSwitched ? nvlinks : 0;
        all.push_back(std::move(position));
    }
    return all;
}

// Functions go round the NICs, so that the first of them are of different ones.
std::string model_function_address(const NodeModelSpec& spec, unsigned function) {
    const unsigned nic = function % nics_of(spec), number = 1 + function / nics_of(spec);
    return fmt::format("{}:{:02x}:{:02x}.{}", domain_of(nic), nic_bus(nic), number / 8, number % 8);
}

NodeFunction model_function(const NodeModelSpec& spec, unsigned function) {
    const unsigned nics = nics_of(spec), nic = function % nics, number = function / nics;
    return {.address = model_function_address(spec, function),
            .lease = {},
            .device = fmt::format("mlx5_{}", nics + function),
            .netdev = fmt::format("rail{}v{}", nic, number),
            .physical = fmt::format("{}:{:02x}:00.0", domain_of(nic), nic_bus(nic)),
            .guid = fmt::format("0x{:016x}", 0x0200'0000'0000'0000 + std::uint64_t{nic}),
            .numaNode = numa_of(nic),
            .bridges = bridges_above(nic, 8 + 4 * slot_of(nic)),
            .speedMbps = 400'000};
}

}  // namespace bulkhead
