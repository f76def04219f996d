// Where each GPU sits: beside which CPUs, below which bridges, near which others, joined to whom.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "bulkhead/agent/gpu_hardware.hpp"
#include "bulkhead/agent/machine_domain.hpp"
#include "bulkhead/hw/container/durable.hpp"
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

// Beside which CPUs each GPU was when the machine last said so, in a file: one that has fallen off its bus keeps its
// part of them, or those of the others would move while machines are pinned to where they were.
class RememberedCpus {
public:
    explicit RememberedCpus(std::string path) : path_{std::move(path)} {
        std::ifstream file{path_};
        std::string uuid, numa, cpus;
        while (file >> uuid >> numa >> cpus) known_[uuid] = {numa, cpus};
    }
    // Takes down what is known of it, or fills in what was.
    void meet(const std::string& uuid, GpuPosition& position) {
        if (!position.cpus.empty()) {
            const Line now{position.numaNode ? std::to_string(*position.numaNode) : "-", position.cpus};
            changed_ |= std::exchange(known_[uuid], now) != now;
        } else if (const auto found = known_.find(uuid); found != known_.end()) {
            position.cpus = found->second.second;
            std::int64_t numa = 0;
            const std::string& text = found->second.first;
            if (std::from_chars(text.data(), text.data() + text.size(), numa).ec == std::errc{})
                position.numaNode = numa;
        }
    }
    void keep() const {  // what cannot be kept is learned again, as long as the GPU is there
        if (!changed_) return;
        std::string text;
        for (const auto& [uuid, line] : known_) text += fmt::format("{} {} {}\n", uuid, line.first, line.second);
        (void)container::write_durably(path_, text);
    }

private:
    using Line = std::pair<std::string, std::string>;  // its NUMA node, its CPUs
    std::string path_;
    std::map<std::string, Line> known_;
    bool changed_ = false;
};

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
    RememberedCpus remembered{settings_.folder + "/gpu-cpus"};
    std::vector<GpuPosition> all;
    for (std::size_t index = 0; index < gpus.size(); ++index) {
        GpuPosition position{.gpu = static_cast<std::int64_t>(index), .bus = kernel_address(gpus[index].bus_id)};
        if (machine && !gpus[index].lost) place(position, *machine, gpus);
        remembered.meet(gpus[index].uuid, position);
        if (gpus[index].lost) {  // its place alone, and only where another has not taken it
            const auto has_its_bus = [&](const nvml::Gpu& one) {
                return !one.lost && kernel_address(one.bus_id) == position.bus;
            };
            if (position.cpus.empty() || std::ranges::any_of(gpus, has_its_bus)) continue;
            all.push_back(std::move(position));
            continue;
        }
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
    remembered.keep();
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
