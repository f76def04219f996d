#include "bulkhead/render/nccl_topology.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "bulkhead/gpu/board.hpp"
#include "bulkhead/render/xml.hpp"

namespace bulkhead::render {

namespace {

constexpr std::string_view bridge_class = "0x060400", gpu_class = "0x030200", ethernet_class = "0x020000",
                           infiniband_class = "0x020700", nvswitch_class = "0x068000";
// How NCCL itself names a switch that is not to be seen from where it runs.
constexpr std::string_view unseen_switch = "fffffff:ffff:ff";

std::string lower(std::string text) {
    for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
}

// As sysfs writes it. NVML gives domains of eight digits: "00000000:1B:00.0".
std::string bus_id(std::string bus) {
    bus = lower(std::move(bus));
    if (bus.size() == 16 && bus.starts_with("0000")) bus.erase(0, 4);
    return bus;
}

std::optional<unsigned> take_cpu(std::string_view& text) {
    unsigned value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc{} || value > 65'535) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
    return value;
}

// "0-15,64-79" as "0000ffff,00000000,0000ffff": words of 32, the highest first. Empty: it says nothing one can read.
std::string affinity_of(std::string_view cpus) {
    std::vector<std::uint32_t> words;
    while (!cpus.empty()) {
        const auto first = take_cpu(cpus);
        if (!first) return {};
        unsigned last = *first;
        if (cpus.starts_with('-')) {
            cpus.remove_prefix(1);
            const auto end = take_cpu(cpus);
            if (!end || *end < *first) return {};
            last = *end;
        }
        if (words.size() <= last / 32) words.resize(last / 32 + 1);
        for (unsigned cpu = *first; cpu <= last; ++cpu) words[cpu / 32] |= 1u << (cpu % 32);
        if (cpus.empty()) break;
        if (!cpus.starts_with(',')) return {};
        cpus.remove_prefix(1);
    }
    std::string out;
    for (std::size_t i = words.size(); i-- > 0;) out += fmt::format("{}{:08x}", out.empty() ? "" : ",", words[i]);
    return out.size() > nccl_text_max ? std::string{} : out;
}

const gpu::Board* board_of(const GpuNodeStatus& node, std::int64_t index) {
    for (const NodeGpus& group : node.gpus) {
        if (index < group.count) {
            const auto board = gpu::find_board(group.model);
            return board ? *board : nullptr;
        }
        index -= group.count;
    }
    return nullptr;
}

// What a switch above such a GPU can do, at least: NCCL does not look at switches that the file names.
struct Link {
    std::string speed, width = "16";
};
Link link_of(const gpu::Board* board) {
    if (board == nullptr) return {"", "0"};  // as NCCL writes what it could not learn
    const std::string_view capability = board->compute_capability;
    if (capability >= "9.0" || capability.starts_with("1")) return {"32.0 GT/s PCIe", "16"};
    if (capability.starts_with("8.")) return {"16.0 GT/s PCIe", "16"};
    return {"", "0"};
}

// "9.0" as 90.
std::string sm_of(const gpu::Board* board) {
    std::string out;
    if (board != nullptr)
        for (const char c : board->compute_capability)
            if (c >= '0' && c <= '9') out += c;
    return out;
}

// As NCCL draws it: of each PCIe switch the port that looks up. From a device that is the second bridge above it, the
// fourth, and so on; what is directly below a root port has none.
std::vector<std::string> switches_above(const std::vector<std::string>& bridges) {
    std::vector<std::string> out;
    for (std::size_t i = bridges.size(); i >= 2; i -= 2) out.push_back(bus_id(bridges[i - 2]));
    std::ranges::reverse(out);
    return out;
}

class Drawing {
public:
    Drawing(const GpuNodeStatus& node, const NodePart& part) : node_(node), part_(part) {
        for (const GpuPosition& position : node.topology) positions_[position.gpu] = &position;
        system_.name = "system";
        system_.set("version", "1");
    }

    Result<Element> draw() {
        for (std::size_t i = 0; i < part_.gpus.size(); ++i)
            if (auto drawn = draw_gpu(part_.gpus[i], i); !drawn) return std::unexpected(drawn.error());
        const auto functions = functions_of(node_, part_);
        if (!functions) return std::unexpected(functions.error());
        for (std::size_t i = 0; i < functions->size(); ++i) draw_function((*functions)[i], i);
        return std::move(system_);
    }

private:
    Element& cpu(std::int64_t numa, std::string_view cpus) {
        const std::string id = std::to_string(numa);
        for (Element& child : system_.children)
            if (child.get("numaid") == id) return child;
        Element& made = system_.add("cpu");
        made.set("numaid", id);
        if (std::string affinity = affinity_of(cpus); !affinity.empty()) made.set("affinity", std::move(affinity));
        return made;
    }
    // The CPUs beside a function are those beside a GPU of the same NUMA node.
    std::string_view cpus_of(std::int64_t numa) const {
        for (const auto& [gpu, position] : positions_)
            if (position->numaNode == numa) return position->cpus;
        return {};
    }
    static Element& pci(Element& above, const std::string& bus, std::string_view device_class) {
        for (Element& child : above.children)
            if (child.name == "pci" && child.get("busid") == bus) return child;
        return above.add("pci").set("busid", bus).set("class", std::string{device_class});
    }
    Element& device(std::optional<std::int64_t> numa, const std::vector<std::string>& bridges, const std::string& bus,
                    std::string_view device_class) {
        const std::int64_t on = numa.value_or(0);
        Element* at = &cpu(on, cpus_of(on));
        const Link link = link_of(part_.gpus.empty() ? nullptr : board_of(node_, part_.gpus.front().gpu));
        for (const std::string& bridge : switches_above(bridges)) {
            at = &pci(*at, bridge, bridge_class);
            if (at->get("link_width").empty()) at->set("link_speed", link.speed).set("link_width", link.width);
        }
        return pci(*at, bus, device_class);
    }

    Result<> draw_gpu(const PartGpu& leased, std::size_t number) {
        const auto position = positions_.find(leased.gpu);
        if (position == positions_.end() || position->second->bus.empty())
            return fail(Code::unavailable, fmt::format("the node does not say where gpu{} is", leased.gpu),
                        "wait until its agent has reported again");
        const GpuPosition& here = *position->second;
        const gpu::Board* board = board_of(node_, leased.gpu);
        Element& bus = device(here.numaNode, here.bridges, bus_id(here.bus), gpu_class);
        bus.set("vendor", "0x10de");
        Element& gpu = bus.add("gpu");
        gpu.set("dev", std::to_string(number));
        if (std::string sm = sm_of(board); !sm.empty()) gpu.set("sm", std::move(sm));
        if (leased.whole) draw_nvlinks(gpu, here);
        return {};
    }

    // By a switch to whoever is behind it; else to each leased neighbour.
    void draw_nvlinks(Element& gpu, const GpuPosition& here) const {
        const auto link = [&](std::string_view target, std::int64_t count, std::string_view target_class) {
            gpu.add("nvlink")
                .set("target", std::string{target})
                .set("count", std::to_string(count))
                .set("tclass", std::string{target_class});
        };
        if (here.nvlinkSwitched) {
            if (here.nvlinks > 0) link(unseen_switch, here.nvlinks, nvswitch_class);
            return;
        }
        for (const NvLinkPeer& peer : here.nvlinkPeers) {
            const auto leased = std::ranges::find(part_.gpus, peer.gpu, &PartGpu::gpu);
            const auto there = positions_.find(peer.gpu);
            if (leased == part_.gpus.end() || !leased->whole || there == positions_.end() || peer.links <= 0) continue;
            link(bus_id(there->second->bus), peer.links, gpu_class);
        }
    }

    void draw_function(const KnownFunction& known, std::size_t number) {
        const NodeFunction& function = *known.function;
        const bool infiniband = known.port != nullptr && !known.port->port_guid.empty();
        Element& bus = device(function.numaNode, function.bridges, bus_id(function.address),
                              infiniband ? infiniband_class : ethernet_class);
        Element& net = bus.add("nic").add("net");
        net.set("name", function.device).set("dev", std::to_string(number)).set("port", "1");
        std::int64_t speed = function.speedMbps;
        if (known.port != nullptr && known.port->rate_mbps > 0)
            speed = speed == 0 ? known.port->rate_mbps : std::min(speed, known.port->rate_mbps);
        if (speed > 0) net.set("speed", std::to_string(speed));
    }

    const GpuNodeStatus& node_;
    const NodePart& part_;
    std::map<std::int64_t, const GpuPosition*> positions_;
    Element system_;
};

Result<> within_limits(const Element& element) {
    if (element.attributes.size() > nccl_attributes_max || element.children.size() > nccl_children_max)
        return fail(Code::exhausted, fmt::format("<{}> has more in it than NCCL reads", element.name));
    for (const auto& [key, value] : element.attributes)
        if (value.size() > nccl_text_max)
            return fail(Code::exhausted, fmt::format("{} of <{}> is longer than NCCL reads", key, element.name));
    for (const Element& child : element.children)
        if (auto within = within_limits(child); !within) return within;
    return {};
}

}  // namespace

Result<std::string> nccl_topology(const GpuNodeStatus& node, const NodePart& part) {
    if (part.gpus.empty()) return fail(Code::not_found, "the lease has no GPU on this node");
    auto drawn = Drawing{node, part}.draw();
    if (!drawn) return std::unexpected(drawn.error());
    if (const std::size_t count = drawn->count(); count > nccl_nodes_max)
        return fail(Code::exhausted,
                    fmt::format("{} elements are more than the {} that NCCL has room for", count, nccl_nodes_max),
                    "lease fewer functions on one node");
    if (auto within = within_limits(*drawn); !within) return std::unexpected(within.error());
    return to_xml(*drawn);
}

}  // namespace bulkhead::render
