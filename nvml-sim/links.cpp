// PCIe, NVLink and where a device sits in the machine.
#include <fmt/format.h>

#include "exports.hpp"
#include "session.hpp"
#include "topology_file.hpp"

namespace bulkhead::nvml {

namespace {

using nvml_sim::cores_per_socket;

std::uint32_t socket_of(const driver::Model& model, std::uint16_t gpu) { return gpu / model.spec().gpus_per_socket; }

bool has_nvlink(const driver::Model& model, std::uint16_t gpu) {
    return model.spec().fabric == driver::Fabric::nvlink && model.product(gpu).links.nvlinks > 0 && !model.gpu(gpu).mig;
}

// A GPU without links in use answers "not supported" for every link, as a single H200 in a virtual machine did.
Return ask_link(std::string_view call, Device device, std::uint32_t link,
                const std::function<Return(const driver::Model&, std::uint16_t)>& work) {
    return ask_gpu(call, device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (!has_nvlink(model, gpu)) return Return::not_supported;
        return link < model.product(gpu).links.nvlinks ? work(model, gpu) : Return::invalid_argument;
    });
}

// Boards of one node are joined by switches; the model has four, and links go to them in turn.
Return remote_pci(std::string_view call, Device device, std::uint32_t link, PciInfo* pci) {
    return ask_link(call, device, link, [&](const driver::Model&, std::uint16_t) {
        if (pci == nullptr) return Return::invalid_argument;
        *pci = {};
        pci->bus = 5 + link % 4;
        pci->device_id = 0x22A310DE;
        copy_text(pci->bus_id_legacy, fmt::format("0000:{:02X}:00.0", pci->bus));
        copy_text(pci->bus_id, fmt::format("00000000:{:02X}:00.0", pci->bus));
        return Return::success;
    });
}

TopologyLevel distance(const driver::Model& model, std::uint16_t one, std::uint16_t other) {
    if (one == other) return TopologyLevel::internal;
    return socket_of(model, one) == socket_of(model, other) ? TopologyLevel::node : TopologyLevel::system;
}

Return pcie(std::string_view call, Device device, std::uint32_t* out, std::uint32_t driver::Links::* field) {
    return ask_gpu(call, device, [&](const driver::Model& model, std::uint16_t gpu) {
        return put(out, model.product(gpu).links.*field);
    });
}

// Bits in an array of 64-bit words of the caller's size.
Return put_bits(std::uint32_t words, std::uint64_t* out, std::uint32_t first, std::uint32_t count) {
    if (out == nullptr || words == 0) return Return::invalid_argument;
    for (std::uint32_t word = 0; word < words; ++word) out[word] = 0;
    for (std::uint32_t bit = first; bit < first + count && bit / 64 < words; ++bit)
        out[bit / 64] |= std::uint64_t{1} << bit % 64;
    return Return::success;
}

template <class Info>
void tell_fabric(const driver::Model& model, std::uint16_t gpu, Info& info) {
    // Only boards whose fabric is managed have a state; without one everything is zero.
    const bool managed = has_nvlink(model, gpu) && model.product(gpu).architecture >= driver::Architecture::hopper;
    info.status = Return::success;
    info.clique_id = 0;
    info.state = managed ? FabricState::completed : FabricState::not_supported;
}

}  // namespace

extern "C" {

Return nvmlDeviceGetMaxPcieLinkGeneration(Device device, std::uint32_t* generation) {
    return pcie("nvmlDeviceGetMaxPcieLinkGeneration", device, generation, &driver::Links::pcie_generation);
}
Return nvmlDeviceGetGpuMaxPcieLinkGeneration(Device device, std::uint32_t* generation) {
    return pcie("nvmlDeviceGetGpuMaxPcieLinkGeneration", device, generation, &driver::Links::pcie_generation);
}
Return nvmlDeviceGetCurrPcieLinkGeneration(Device device, std::uint32_t* generation) {
    return pcie("nvmlDeviceGetCurrPcieLinkGeneration", device, generation, &driver::Links::pcie_generation);
}
Return nvmlDeviceGetMaxPcieLinkWidth(Device device, std::uint32_t* width) {
    return pcie("nvmlDeviceGetMaxPcieLinkWidth", device, width, &driver::Links::pcie_width);
}
Return nvmlDeviceGetCurrPcieLinkWidth(Device device, std::uint32_t* width) {
    return pcie("nvmlDeviceGetCurrPcieLinkWidth", device, width, &driver::Links::pcie_width);
}
Return nvmlDeviceGetPcieSpeed(Device device, std::uint32_t* mbps) {
    return ask_gpu("nvmlDeviceGetPcieSpeed", device, [&](const driver::Model& model, std::uint16_t gpu) {
        return put(mbps, 1000u << model.product(gpu).links.pcie_generation);
    });
}
Return nvmlDeviceGetPcieLinkMaxSpeed(Device device, std::uint32_t* speed) {
    return pcie("nvmlDeviceGetPcieLinkMaxSpeed", device, speed, &driver::Links::pcie_generation);
}
Return nvmlDeviceGetPcieThroughput(Device device, PcieCounter counter, std::uint32_t* kib_per_s) {
    return ask_gpu("nvmlDeviceGetPcieThroughput", device, [&](const driver::Model& model, std::uint16_t gpu) {
        return counter > PcieCounter::rx_bytes ? Return::invalid_argument
                                               : put(kib_per_s, 700 + model.load(gpu).sm_percent * 1000);
    });
}
Return nvmlDeviceGetPcieReplayCounter(Device device, std::uint32_t* replays) {
    return ask_gpu("nvmlDeviceGetPcieReplayCounter", device,
                   [&](const driver::Model&, std::uint16_t) { return put(replays, 0u); });
}

Return nvmlDeviceGetTopologyCommonAncestor(Device one, Device other, TopologyLevel* level) {
    return ask_gpu("nvmlDeviceGetTopologyCommonAncestor", one, [&](const driver::Model& model, std::uint16_t gpu) {
        const auto second = Session::get().find_gpu(model, other);
        return second ? put(level, distance(model, gpu, second->gpu())) : second.error();
    });
}
Return nvmlDeviceGetTopologyNearestGpus(Device device, TopologyLevel level, std::uint32_t* count, Device* devices) {
    return ask_gpu("nvmlDeviceGetTopologyNearestGpus", device, [&](const driver::Model& model, std::uint16_t gpu) {
        std::vector<Device> near;
        for (std::uint16_t other = 0; other < model.gpus(); ++other)
            if (other != gpu && distance(model, gpu, other) == level) near.push_back(Session::get().device(other));
        return put_list(count, devices, near);
    });
}
Return nvmlDeviceGetP2PStatus(Device one, Device other, P2pCapability what, P2pStatus* status) {
    return ask_gpu("nvmlDeviceGetP2PStatus", one, [&](const driver::Model& model, std::uint16_t gpu) {
        const auto second = Session::get().find_gpu(model, other);
        if (!second) return second.error();
        if (what > P2pCapability::pci) return Return::invalid_argument;
        const bool linked = has_nvlink(model, gpu) && has_nvlink(model, second->gpu());
        return put(status, linked && what != P2pCapability::pci ? P2pStatus::ok : P2pStatus::not_supported);
    });
}

Return nvmlDeviceGetNvLinkState(Device device, std::uint32_t link, Feature* active) {
    return ask_link("nvmlDeviceGetNvLinkState", device, link,
                    [&](const driver::Model&, std::uint16_t) { return put(active, Feature::enabled); });
}
Return nvmlDeviceGetNvLinkVersion(Device device, std::uint32_t link, std::uint32_t* version) {
    return ask_link("nvmlDeviceGetNvLinkVersion", device, link, [&](const driver::Model& model, std::uint16_t gpu) {
        return put(version, model.product(gpu).links.nvlink_version);
    });
}
Return nvmlDeviceGetNvLinkCapability(Device device, std::uint32_t link, NvLinkCapability what, std::uint32_t* has) {
    return ask_link("nvmlDeviceGetNvLinkCapability", device, link, [&](const driver::Model&, std::uint16_t) {
        if (what > NvLinkCapability::valid) return Return::invalid_argument;
        return put(has, what == NvLinkCapability::sli_bridge ? 0u : 1u);
    });
}
Return nvmlDeviceGetNvLinkErrorCounter(Device device, std::uint32_t link, NvLinkErrorCounter what,
                                       std::uint64_t* errors) {
    return ask_link("nvmlDeviceGetNvLinkErrorCounter", device, link, [&](const driver::Model&, std::uint16_t) {
        return what > NvLinkErrorCounter::ecc_data ? Return::invalid_argument : put(errors, 0u);
    });
}
Return nvmlDeviceGetNvLinkRemoteDeviceType(Device device, std::uint32_t link, NvLinkDevice* type) {
    return ask_link("nvmlDeviceGetNvLinkRemoteDeviceType", device, link,
                    [&](const driver::Model&, std::uint16_t) { return put(type, NvLinkDevice::nvswitch); });
}
Return nvmlDeviceGetNvLinkRemotePciInfo(Device device, std::uint32_t link, PciInfo* pci) {
    return remote_pci("nvmlDeviceGetNvLinkRemotePciInfo", device, link, pci);
}
Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, std::uint32_t link, PciInfo* pci) {
    return remote_pci("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, pci);
}

Return nvmlDeviceGetGpuFabricInfo(Device device, FabricInfo* info) {
    return ask_gpu("nvmlDeviceGetGpuFabricInfo", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (info == nullptr) return Return::invalid_argument;
        *info = {};
        tell_fabric(model, gpu, *info);
        return Return::success;
    });
}
Return nvmlDeviceGetGpuFabricInfoV(Device device, void* versioned) {
    return ask_gpu("nvmlDeviceGetGpuFabricInfoV", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (versioned == nullptr) return Return::invalid_argument;
        const std::uint32_t version = *static_cast<std::uint32_t*>(versioned);
        if (version == fabric_info_v2) {
            auto& info = *static_cast<FabricInfoV2*>(versioned);
            info = {.version = version};
            tell_fabric(model, gpu, info);
            return Return::success;
        }
        if (version != fabric_info_v3) return Return::argument_version_mismatch;
        auto& info = *static_cast<FabricInfoV3*>(versioned);
        info = {.version = version};
        tell_fabric(model, gpu, info);
        info.health_summary = info.state == FabricState::completed ? 1 : 0;
        return Return::success;
    });
}

Return nvmlDeviceGetCpuAffinity(Device device, std::uint32_t words, std::uint64_t* cpus) {
    return ask_gpu("nvmlDeviceGetCpuAffinity", device, [&](const driver::Model& model, std::uint16_t gpu) {
        return put_bits(words, cpus, socket_of(model, gpu) * cores_per_socket, cores_per_socket);
    });
}
Return nvmlDeviceGetMemoryAffinity(Device device, std::uint32_t words, std::uint64_t* nodes, AffinityScope scope) {
    return ask_gpu("nvmlDeviceGetMemoryAffinity", device, [&](const driver::Model& model, std::uint16_t gpu) {
        return scope > AffinityScope::socket ? Return::invalid_argument
                                             : put_bits(words, nodes, socket_of(model, gpu), 1);
    });
}
// The GPU's own memory as a NUMA node: coherent platforms only, which the model has none of.
Return nvmlDeviceGetNumaNodeId(Device device, std::uint32_t*) {
    return ask_gpu("nvmlDeviceGetNumaNodeId", device,
                   [](const driver::Model&, std::uint16_t) { return Return::not_supported; });
}
Return nvmlDeviceGetC2cModeInfoV(Device device, std::uint32_t* enabled) {
    return ask_gpu("nvmlDeviceGetC2cModeInfoV", device,
                   [&](const driver::Model&, std::uint16_t) { return put(enabled, 0u); });
}

}  // extern "C"

}  // namespace bulkhead::nvml
