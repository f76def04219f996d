// Where each GPU sits: beside which CPUs, below which bridges, near which others, joined to whom.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "bulkhead/agent/gpu_hardware.hpp"
#include "bulkhead/hw/topology/topology.hpp"

namespace bulkhead::agent {

namespace {

void place(GpuPosition& position, const topology::Machine& machine, const std::vector<nvml::Gpu>& gpus) {
    const std::string& bus = gpus[static_cast<std::size_t>(position.gpu)].bus_id;
    const auto found = machine.position(bus);
    if (!found) return;
    position.bus = found->bus;
    position.numaNode = found->numa;
    position.cpus = found->cpus;
    position.bridges = found->bridges;
    for (std::size_t other = 0; other < gpus.size(); ++other) {
        if (std::cmp_equal(other, position.gpu) || gpus[other].lost) continue;
        const auto meeting = machine.meeting(bus, gpus[other].bus_id);
        if (!meeting) continue;
        std::vector<std::int64_t>& near = *meeting == topology::Meeting::bridge   ? position.sameSwitch
                                          : *meeting == topology::Meeting::numa   ? position.sameNuma
                                          : *meeting == topology::Meeting::socket ? position.sameSocket
                                                                                  : position.otherSockets;
        near.push_back(static_cast<std::int64_t>(other));
    }
}

bool leads_to_switch(const nvml::Link& link) { return link.to == nvml::NvLinkDevice::nvswitch; }

std::int64_t whole_number(auto count) { return static_cast<std::int64_t>(count); }

}  // namespace

// What cannot be learned is left out: work runs without it, only perhaps further from its data.
std::vector<GpuPosition> GpuHardware::positions() const {
    const auto machine = topology::Machine::open();
    const std::vector<nvml::Gpu> gpus = gpus_->all();
    std::map<std::size_t, std::vector<nvml::Link>> links;
    for (std::size_t index = 0; index < gpus.size(); ++index)
        if (!gpus[index].lost)
            if (auto found = nvml_.links(gpus[index].uuid)) links[index] = *std::move(found);
    std::vector<GpuPosition> all;
    for (std::size_t index = 0; index < gpus.size(); ++index) {
        if (gpus[index].lost) continue;
        GpuPosition position{.gpu = static_cast<std::int64_t>(index), .bus = gpus[index].bus_id};
        if (machine) place(position, *machine, gpus);
        const std::vector<nvml::Link>& mine = links[index];
        position.nvlinks = whole_number(mine.size());
        const std::int64_t switched = whole_number(std::ranges::count_if(mine, leads_to_switch));
        position.nvlinkSwitched = switched > 0;
        for (const auto& [other, theirs] : links) {
            if (other == index) continue;
            // To a neighbour directly; or by switches, which join whoever has links to them, as widely as the narrower.
            const std::int64_t direct = whole_number(std::ranges::count(mine, gpus[other].bus_id, &nvml::Link::bus_id));
            const std::int64_t through =
                std::min(switched, whole_number(std::ranges::count_if(theirs, leads_to_switch)));
            if (direct + through > 0)
                position.nvlinkPeers.push_back({.gpu = static_cast<std::int64_t>(other), .links = direct + through});
        }
        all.push_back(std::move(position));
    }
    return all;
}

std::string GpuHardware::cpus_beside(const std::vector<GpuPart>& gpus) const {
    const auto machine = topology::Machine::open();
    if (!machine) return {};
    std::set<std::string> lists;
    for (const GpuPart& part : gpus) {
        const auto gpu = this->gpu(part.gpu);
        const auto place = gpu ? machine->position((*gpu)->bus_id) : std::nullopt;
        if (!place || place->cpus.empty()) return {};  // beside one of them, and nobody knows where the other is
        lists.insert(place->cpus);
    }
    std::string all;
    for (const std::string& list : lists) all += (all.empty() ? "" : ",") + list;
    return all;
}

}  // namespace bulkhead::agent
