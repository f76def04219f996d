// GpuNode: one machine, as its agent found it. A capability is what was detected, with how it is known; one that
// raises trust counts only with evidence that is fresh.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/model/fences.hpp"
#include "bulkhead/model/meta.hpp"

namespace bulkhead {

struct GpuSlice {
    std::string profile;
    std::int64_t start = 0;
    CleanState state = CleanState::sanitizing;
    std::string lease;

    static constexpr void describe(auto&& field) {
        field("profile", &GpuSlice::profile, "What it is: 3g.40gb; empty: memory without an instance.");
        field("start", &GpuSlice::start, "Its first memory slice.", Rule{.min = 0, .max = 64});
        field("state", &GpuSlice::state, "Whether it may be leased.");
        field("lease", &GpuSlice::lease, "The lease that holds it, if any.");
    }
    friend bool operator==(const GpuSlice&, const GpuSlice&) = default;
};

struct NodeGpus {
    std::string model;
    std::int64_t count = 1;
    std::vector<GpuSlice> slices;
    std::string draining = {};

    static constexpr void describe(auto&& field) {
        field("model", &NodeGpus::model, "The GPU model, as `bulkhead mig profiles` lists them.",
              Rule{.required = true, .format = Format::name});
        field("count", &NodeGpus::count, "How many such GPUs in the same state, with consecutive indexes.",
              Rule{.min = 1, .max = 64});
        field("slices", &NodeGpus::slices, "How the GPU is cut now; only with count 1.");
        field("draining", &NodeGpus::draining,
              "Why nobody new comes to it until it has passed a burn-in; empty: it is not drained.");
    }
    friend bool operator==(const NodeGpus&, const NodeGpus&) = default;
};

struct DetectedCapability {
    Capability name{};
    Grade grade = Grade::assumed;
    std::optional<Instant> verifiedAt;

    static constexpr void describe(auto&& field) {
        field("name", &DetectedCapability::name, "What the node can do.", Rule{.required = true});
        field("grade", &DetectedCapability::grade, "How that is known.");
        field("verifiedAt", &DetectedCapability::verifiedAt,
              "When evidence for it was last verified by the control plane; none: the node's word alone.");
    }
    friend bool operator==(const DetectedCapability&, const DetectedCapability&) = default;
};

// As a version: looked for, and not there. An agent that runs containers without NVIDIA's toolkit says so of the
// toolkit.
inline constexpr std::string_view not_installed = "none";

struct InstalledVersion {
    Component component{};
    std::string version;

    static constexpr void describe(auto&& field) {
        field("component", &InstalledVersion::component, "The software.", Rule{.required = true});
        field("version", &InstalledVersion::version,
              "Its version, as it names itself: 580.159.04; none: it is not installed.",
              Rule{.required = true, .format = Format::line});
    }
    friend bool operator==(const InstalledVersion&, const InstalledVersion&) = default;
};

struct NodeDrive {
    std::string serial;
    ByteSize size;
    CleanState state = CleanState::sanitizing;
    std::string lease;
    std::string why = {};

    static constexpr void describe(auto&& field) {
        field("serial", &NodeDrive::serial, "The drive's serial number, by which it is known.",
              Rule{.required = true, .format = Format::line});
        field("size", &NodeDrive::size, "Its capacity.", Rule{.min = 0});
        field("state", &NodeDrive::state, "Whether it may be leased.");
        field("lease", &NodeDrive::lease, "The lease that holds it, if any.");
        field("why", &NodeDrive::why, "Why it is quarantined, and what to do then; empty: it is not.");
    }
    friend bool operator==(const NodeDrive&, const NodeDrive&) = default;
};

// A virtual function of a NIC. Beside its address everything is left out that the node cannot tell.
struct NodeFunction {
    std::string address;
    CleanState state = CleanState::sanitizing;
    std::string lease;
    std::string device, netdev, physical, guid;
    std::optional<std::int64_t> numaNode;
    std::vector<std::string> bridges;
    std::int64_t speedMbps = 0;

    static constexpr void describe(auto&& field) {
        field("address", &NodeFunction::address, "The virtual function's address: 0000:3b:00.2.",
              Rule{.required = true, .format = Format::line});
        field("state", &NodeFunction::state, "Whether it may be leased.");
        field("lease", &NodeFunction::lease, "The lease that holds it, if any.");
        field("device", &NodeFunction::device, "Its RDMA device: mlx5_2.");
        field("netdev", &NodeFunction::netdev, "Its network interface: enp59s0f0v0.");
        field("physical", &NodeFunction::physical, "The address of the NIC it is a function of: 0000:3b:00.0.");
        field("guid", &NodeFunction::guid, "Of that NIC's port, as its driver tells it: 0xb83fd20300a1b2c3.");
        field("numaNode", &NodeFunction::numaNode, "The NUMA node it hangs on.", Rule{.min = 0, .max = 65535});
        field("bridges", &NodeFunction::bridges, "PCI bridges above it, from the root down.",
              Rule{.format = Format::line});
        field("speedMbps", &NodeFunction::speedMbps, "What its port can send: 400000 Mbit/s; 0: unknown.",
              Rule{.min = 0, .max = 10'000'000});
    }
    friend bool operator==(const NodeFunction&, const NodeFunction&) = default;
};

struct NvLinkPeer {
    std::int64_t gpu = 0;
    std::int64_t links = 0;

    static constexpr void describe(auto&& field) {
        field("gpu", &NvLinkPeer::gpu, "The other GPU's index.", Rule{.min = 0, .max = 63});
        field("links", &NvLinkPeer::links, "How many NVLinks lead there.", Rule{.min = 0, .max = 256});
    }
    friend bool operator==(const NvLinkPeer&, const NvLinkPeer&) = default;
};

// Where one GPU sits in its machine. What is not known is left out: a GPU that appears in none of another's four lists
// is as far from it as anybody cares to assume.
struct GpuPosition {
    std::int64_t gpu = 0;
    std::string bus;
    std::optional<std::int64_t> numaNode;
    std::string cpus;
    std::vector<std::string> bridges;
    std::vector<std::int64_t> sameSwitch, sameNuma, sameSocket, otherSockets;
    std::int64_t nvlinks = 0;
    bool nvlinkSwitched = false;
    std::vector<NvLinkPeer> nvlinkPeers;

    static constexpr void describe(auto&& field) {
        field("gpu", &GpuPosition::gpu, "Its index.", Rule{.min = 0, .max = 63});
        field("bus", &GpuPosition::bus, "Its PCI address: 0000:3b:00.0.", Rule{.format = Format::line});
        field("numaNode", &GpuPosition::numaNode, "The NUMA node it hangs on; none: the machine does not say.",
              Rule{.min = 0, .max = 65535});
        field("cpus", &GpuPosition::cpus, "The CPUs beside it: 0-15,64-79; empty: unknown.");
        field("bridges", &GpuPosition::bridges, "PCI bridges above it, from the root down.",
              Rule{.format = Format::line});
        field("sameSwitch", &GpuPosition::sameSwitch, "GPUs below the same PCIe switch.", Rule{.min = 0, .max = 63});
        field("sameNuma", &GpuPosition::sameNuma, "Further GPUs of the same NUMA node.", Rule{.min = 0, .max = 63});
        field("sameSocket", &GpuPosition::sameSocket, "Further GPUs of the same socket.", Rule{.min = 0, .max = 63});
        field("otherSockets", &GpuPosition::otherSockets, "GPUs of other sockets.", Rule{.min = 0, .max = 63});
        field("nvlinks", &GpuPosition::nvlinks, "NVLinks that are up.", Rule{.min = 0, .max = 256});
        field("nvlinkSwitched", &GpuPosition::nvlinkSwitched, "They lead to switches, and by them to every peer.");
        field("nvlinkPeers", &GpuPosition::nvlinkPeers, "GPUs they reach.");
    }
    friend bool operator==(const GpuPosition&, const GpuPosition&) = default;
};

// RAM, kernel and firmware modes: what tenants of the process and container tiers share.
struct NodeHost {
    CleanState state = CleanState::sanitizing;
    std::vector<std::string> usedBy;

    static constexpr void describe(auto&& field) {
        field("state", &NodeHost::state, "Whether a tenant that trusts nobody may use its kernel.");
        field("usedBy", &NodeHost::usedBy, "Tenants whose code ran on its kernel since the last verified reboot.");
    }
    friend bool operator==(const NodeHost&, const NodeHost&) = default;
};

struct GpuNodeSpec {
    std::string site;
    std::string zone;
    std::string rack;
    std::string leaf;
    std::string nvlinkDomain;
    bool unschedulable = false;

    static constexpr void describe(auto&& field) {
        field("site", &GpuNodeSpec::site, "A site of the FleetPolicy.", Rule{.required = true, .format = Format::name});
        field("zone", &GpuNodeSpec::zone, "Zone within the site.");
        field("rack", &GpuNodeSpec::rack, "Rack within the zone.");
        field("leaf", &GpuNodeSpec::leaf, "The fabric switch it hangs on.");
        field("nvlinkDomain", &GpuNodeSpec::nvlinkDomain, "The NVLink domain it is part of, where that spans nodes.");
        field("unschedulable", &GpuNodeSpec::unschedulable, "Closed to new leases.");
    }
    friend bool operator==(const GpuNodeSpec&, const GpuNodeSpec&) = default;
};

struct GpuNodeStatus {
    std::optional<Instant> observedAt;
    std::vector<NodeGpus> gpus;
    std::vector<GpuPosition> topology;
    std::int64_t cpu = 0;
    ByteSize memory;
    NvLink nvlink = NvLink::none;
    ConfidentialMode confidentialMode = ConfidentialMode::off;
    std::vector<DetectedCapability> capabilities;
    std::vector<InstalledVersion> versions;
    std::optional<bool> profilingRestricted;
    std::optional<bool> runsCommands;
    std::vector<NodeDrive> drives;
    std::vector<NodeFunction> functions;
    std::optional<NodeHost> host;
    std::optional<NodePhase> phase;
    std::string unfit;
    std::vector<NodeFabricTest> fabricTests;
    std::optional<FabricTestRequest> fabricTestRequest;

    static constexpr void describe(auto&& field) {
        field("phase", &GpuNodeStatus::phase, "How far the control plane trusts what it knows of it.");
        field("unfit", &GpuNodeStatus::unfit,
              "Why it drained itself: a start of its own failed. Until `bulkhead undrain`; empty: it did not.");
        field("observedAt", &GpuNodeStatus::observedAt, "When the agent last reported.");
        field("gpus", &GpuNodeStatus::gpus, "The GPUs it has.");
        field("topology", &GpuNodeStatus::topology, "Where each GPU sits in the machine, and which are near it.");
        field("cpu", &GpuNodeStatus::cpu, "CPU cores.", Rule{.min = 0, .max = 65536});
        field("memory", &GpuNodeStatus::memory, "Host memory.", Rule{.min = 0});
        field("nvlink", &GpuNodeStatus::nvlink, "How its GPUs are joined.");
        field("confidentialMode", &GpuNodeStatus::confidentialMode, "Confidential mode, which is host-wide.");
        field("capabilities", &GpuNodeStatus::capabilities, "What was detected.");
        field("versions", &GpuNodeStatus::versions, "Software that the version gate looks at.");
        field("profilingRestricted", &GpuNodeStatus::profilingRestricted,
              "Whether its driver keeps performance counters from whoever is not root; absent: it does not say.");
        field("runsCommands", &GpuNodeStatus::runsCommands,
              "Whether commands of workloads run on it; false: it is a model of a node, which takes work and runs "
              "nothing. Absent: it does not say.");
        field("drives", &GpuNodeStatus::drives, "Its drives for tenants.");
        field("functions", &GpuNodeStatus::functions, "Its NICs' virtual functions for tenants.");
        field("host", &GpuNodeStatus::host, "The host itself.");
        field("fabricTests", &GpuNodeStatus::fabricTests,
              "What its attacks on its own fences found, by NIC and fence.");
        field("fabricTestRequest", &GpuNodeStatus::fabricTestRequest, "The last test that somebody asked for.");
    }
    friend bool operator==(const GpuNodeStatus&, const GpuNodeStatus&) = default;
};

struct GpuNode {
    static constexpr std::string_view kind = "GpuNode";
    static constexpr std::string_view about = "One machine with GPUs; its status is written by its agent.";
    Metadata metadata;
    GpuNodeSpec spec;
    GpuNodeStatus status;

    static constexpr void describe(auto&& field) {
        field("metadata", &GpuNode::metadata, "Name and labels.", Rule{.required = true});
        field("spec", &GpuNode::spec, "Where it stands.", Rule{.required = true});
        field("status", &GpuNode::status, "What was found on it.");
    }
    friend bool operator==(const GpuNode&, const GpuNode&) = default;
};

}  // namespace bulkhead
