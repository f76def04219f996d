#include "topology_file.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bulkhead::nvml_sim {

namespace {

constexpr std::size_t gpus_per_switch = 2;
constexpr std::uint64_t memory_per_socket = std::uint64_t{512} << 30;

// Bits [first, first + count) as hwloc writes a set: words of 32 bits, the highest first.
std::string set_of(std::uint32_t first, std::uint32_t count) {
    std::string text;
    for (std::uint32_t word = (first + count - 1) / 32 + 1; word-- > 0;) {
        std::uint32_t bits = 0;
        for (std::uint32_t bit = 0; bit < 32; ++bit)
            if (word * 32 + bit >= first && word * 32 + bit < first + count) bits |= 1u << bit;
        text += fmt::format("{}0x{:08x}", text.empty() ? "" : ",", bits);
    }
    return text;
}

class Printing {
public:
    explicit Printing(const driver::Spec& spec) : spec_{spec} {}

    std::string take() {
        const auto per_socket = std::max<std::uint32_t>(1, spec_.gpus_per_socket);
        const auto gpus = static_cast<std::uint32_t>(spec_.gpus.size());
        const std::uint32_t sockets = (gpus + per_socket - 1) / per_socket;
        text_ =
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
            "<topology version=\"2.0\">\n";
        const std::string cpus = set_of(0, sockets * cores_per_socket), nodes = set_of(0, sockets);
        text_ +=
            fmt::format("<object type=\"Machine\" os_index=\"0\" {} allowed_cpuset=\"{}\" allowed_nodeset=\"{}\" {}>\n",
                        sets(0, sockets * cores_per_socket, 0, sockets), cpus, nodes, number());
        for (std::uint32_t socket = 0; socket < sockets; ++socket) {
            const std::uint32_t first = socket * per_socket;
            print_socket(socket, first, std::min(gpus, first + per_socket));
        }
        return text_ + "</object>\n</topology>\n";
    }

private:
    std::string number() { return fmt::format("gp_index=\"{}\"", ++numbers_); }
    static std::string sets(std::uint32_t cpu, std::uint32_t cpus, std::uint32_t node, std::uint32_t nodes) {
        const std::string cpuset = set_of(cpu, cpus), nodeset = set_of(node, nodes);
        return fmt::format("cpuset=\"{0}\" complete_cpuset=\"{0}\" nodeset=\"{1}\" complete_nodeset=\"{1}\"", cpuset,
                           nodeset);
    }
    void print_socket(std::uint32_t socket, std::uint32_t gpu, std::uint32_t end) {
        const std::uint32_t cpu = socket * cores_per_socket;
        const std::string all = sets(cpu, cores_per_socket, socket, 1);
        text_ += fmt::format("<object type=\"Package\" os_index=\"{}\" {} {}>\n", socket, all, number());
        text_ += fmt::format("<object type=\"NUMANode\" os_index=\"{}\" {} {} local_memory=\"{}\"/>\n", socket, all,
                             number(), memory_per_socket);
        for (std::uint32_t core = cpu; core < cpu + cores_per_socket; ++core) {
            const std::string one = sets(core, 1, socket, 1);
            text_ += fmt::format("<object type=\"Core\" os_index=\"{}\" {} {}>\n", core, one, number());
            text_ += fmt::format("<object type=\"PU\" os_index=\"{}\" {} {}/>\n</object>\n", core, one, number());
        }
        text_ += fmt::format(
            "<object type=\"Bridge\" {} bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-ff]\">\n", number());
        for (; gpu < end; gpu += gpus_per_switch)
            print_switch(gpu, std::min<std::uint32_t>(end, gpu + gpus_per_switch));
        text_ += "</object>\n</object>\n";
    }
    // The port and the switch above the GPUs lie on the buses just below that of the first; on the root's own bus, as
    // in a virtual machine, there are none.
    void print_switch(std::uint32_t first, std::uint32_t end) {
        const driver::GpuSpec& one = spec_.gpus[first];
        const bool bridged = one.pci_bus >= 2;
        if (bridged) print_bridge(one, one.pci_bus - 2, 1);
        if (bridged) print_bridge(one, one.pci_bus - 1, 2);
        for (std::uint32_t gpu = first; gpu < end; ++gpu) {
            const driver::GpuSpec& it = spec_.gpus[gpu];
            text_ += fmt::format(
                "<object type=\"PCIDev\" {} pci_busid=\"{:04x}:{:02x}:{:02x}.0\" pci_type=\"0302 [10de:0000] "
                "[10de:0000] a1\" pci_link_speed=\"0.000000\"/>\n",
                number(), it.pci_domain, it.pci_bus, it.pci_device);
        }
        if (bridged) text_ += "</object>\n</object>\n";
    }
    void print_bridge(const driver::GpuSpec& below, std::uint32_t bus, unsigned depth) {
        text_ += fmt::format(
            "<object type=\"Bridge\" {} bridge_type=\"1-1\" depth=\"{}\" bridge_pci=\"{:04x}:[{:02x}-{:02x}]\" "
            "pci_busid=\"{:04x}:{:02x}:00.0\" pci_type=\"0604 [1000:c030] [0000:0000] b0\" "
            "pci_link_speed=\"0.000000\">\n",
            number(), depth, below.pci_domain, bus + 1, 0xFF, below.pci_domain, bus);
    }

    const driver::Spec& spec_;
    std::string text_;
    std::uint32_t numbers_ = 0;
};

}  // namespace

std::string print_topology(const driver::Spec& spec) { return Printing{spec}.take(); }

}  // namespace bulkhead::nvml_sim
