// Who functions are on the fabric: from the moment one is set until it is seen to have forgotten, no other tenant's is
// anything that it is, and no other function at all has its addresses.
#include <fmt/core.h>

#include <cstdio>

#include "sim/checkers.hpp"

namespace bulkhead::sim {

namespace {

struct Network {
    std::uint64_t from = 0, to = 0;
};
Network network_in(const std::string& text) {
    unsigned a = 0, b = 0, c = 0, d = 0, prefix = 0;
    if (std::sscanf(text.c_str(), "%u.%u.%u.%u/%u", &a, &b, &c, &d, &prefix) != 5) return {};
    const std::uint64_t from = std::uint64_t{a} << 24 | b << 16 | c << 8 | d;
    return {from, from + (std::uint64_t{1} << (32 - prefix))};
}

}  // namespace

void Checkers::check_port(const std::string& node, const AttachFunction& attach) {
    const FabricPort& mine = attach.port;
    if (mine.address.empty()) return;
    probe("a function was set for its tenant");
    const auto clash = [&](const std::string& who, const LivePort& other, std::string_view what) {
        violate(12, fmt::format("{} vf{} of {} gets the {} that {} of {} still has", node, attach.function,
                                attach.tenant, what, who, other.tenant));
    };
    const Network here = network_in(mine.subnet);
    if (here.to <= here.from) violate(12, fmt::format("{} vf{} has no subnet", node, attach.function));
    if (mine.vlan == 0 && mine.pkey == 0)
        violate(12, fmt::format("{} vf{} has neither VLAN nor partition", node, attach.function));
    for (const auto& [place, other] : live_ports_) {
        if (place.first == node && place.second == attach.function) continue;
        const std::string who = fmt::format("{} vf{}", place.first, place.second);
        if (mine.mac == other.port.mac) clash(who, other, "MAC");
        if (mine.address == other.port.address) clash(who, other, "address");
        if (attach.tenant == other.tenant) continue;
        const Network there = network_in(other.port.subnet);
        if (here.from < there.to && there.from < here.to) clash(who, other, "subnet");
        if (mine.vlan != 0 && mine.vlan == other.port.vlan) clash(who, other, "VLAN");
        if (mine.pkey != 0 && (mine.pkey & 0x7FFF) == (other.port.pkey & 0x7FFF)) clash(who, other, "partition key");
    }
    live_ports_[{node, attach.function}] = {attach.tenant, mine};
}

void Checkers::forget_port(const std::string& node, const NodeModel& model, std::uint16_t function) {
    // The operation says that it is wiped; what counts is what is there.
    if (model.read({UnitKind::vf, function, 0}) == 0) live_ports_.erase({node, function});
}

}  // namespace bulkhead::sim
