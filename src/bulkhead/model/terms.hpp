// The words of the field, the same in files, code, API and docs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace bulkhead {

using Words = std::string_view;

// What two tenants are to each other. Ordered: a larger value is less trust.
enum class PeerTrust : std::uint8_t { same_tenant, same_domain, distrusting };
constexpr auto words(PeerTrust) { return std::to_array<Words>({"same-tenant", "same-domain", "distrusting"}); }

// What one tenant thinks of whoever runs the machines.
enum class OperatorTrust : std::uint8_t { trusted, untrusted };
constexpr auto words(OperatorTrust) { return std::to_array<Words>({"trusted", "untrusted"}); }

// What stands between a tenant's code and everything else. Ordered: a larger value is stronger.
enum class Tier : std::uint8_t { process, container, vm, confidential_vm };
constexpr auto words(Tier) { return std::to_array<Words>({"process", "container", "vm", "confidential-vm"}); }

// How the silicon is divided. A fraction of a GPU is packing over one of these, not a mechanism of its own.
enum class Mechanism : std::uint8_t { whole, mig, mps, time_slicing, vgpu, mig_vgpu, mps_in_mig, amd_partition };
constexpr auto words(Mechanism) {
    return std::to_array<Words>(
        {"whole", "mig", "mps", "time-slicing", "vgpu", "mig-vgpu", "mps-in-mig", "amd-partition"});
}

// Whether a service level holds whatever the neighbours do.
enum class Slo : std::uint8_t { soft, hard };
constexpr auto words(Slo) { return std::to_array<Words>({"soft", "hard"}); }

// What a mechanism may or may not keep apart on one GPU.
enum class Aspect : std::uint8_t {
    sm,                // compute units
    l2,                // last-level cache on the die
    memory_capacity,   // bytes of device memory
    memory_bandwidth,  // and the controllers that give it
    memory_content,    // whether one can read or write another's bytes
    copy_engines,
    media_engines,     // decoders, encoders, JPEG, optical flow: as the profile really has them
    faults,            // whether one's crash is another's
    power_and_clocks,  // one power budget, one clock, one heat sink
    pcie,              // the link to the host
    nvlink,            // the links to other GPUs
    observability,     // what one can measure of another through counters and free memory
};
constexpr auto words(Aspect) {
    return std::to_array<Words>({"sm", "l2", "memory-capacity", "memory-bandwidth", "memory-content", "copy-engines",
                                 "media-engines", "faults", "power-and-clocks", "pcie", "nvlink", "observability"});
}

enum class ThreatModel : std::uint8_t { internal, cloud, regulated };
constexpr auto words(ThreatModel) { return std::to_array<Words>({"internal", "cloud", "regulated"}); }

// The compliance switch: a tenant chooses one of two; there is no falling back from one to the other.
enum class Compliance : std::uint8_t { off, confidential, dedicated };
constexpr auto words(Compliance) { return std::to_array<Words>({"off", "confidential", "dedicated"}); }

enum class QuotaModel : std::uint8_t { hard, fair_share };
constexpr auto words(QuotaModel) { return std::to_array<Words>({"hard", "fair-share"}); }

// Whether a class's work may be stopped for someone else's.
enum class Preemption : std::uint8_t { never, allowed, always };
constexpr auto words(Preemption) { return std::to_array<Words>({"never", "allowed", "always"}); }

// What joins the nodes' NICs.
enum class FabricKind : std::uint8_t { ethernet, infiniband };
constexpr auto words(FabricKind) { return std::to_array<Words>({"ethernet", "infiniband"}); }

// How a claim is known. Ordered: a larger value is weaker. Nothing simulated ever reads like silicon.
enum class Grade : std::uint8_t { silicon, emulated, simulated, documented, assumed };
constexpr auto words(Grade) {
    return std::to_array<Words>({"silicon", "emulated", "simulated", "documented", "assumed"});
}

enum class Severity : std::uint8_t { low, medium, high, critical };
constexpr auto words(Severity) { return std::to_array<Words>({"low", "medium", "high", "critical"}); }

// A residual risk that a tenant may accept by name.
enum class Risk : std::uint8_t {
    shared_fault_domain,  // MPS or time-slicing beside another tenant of the trust domain
    gpu_co_residency,     // a MIG-backed vGPU beside a distrusting tenant's
    shared_nvlink,        // one NVLink partition with another tenant of the trust domain
};
constexpr auto words(Risk) {
    return std::to_array<Words>({"shared-fault-domain", "gpu-co-residency", "shared-nvlink"});
}

// What a node was found able to do.
enum class Capability : std::uint8_t {
    mig,
    mps,
    time_slicing,
    vgpu,      // vGPU manager and licence
    mig_vgpu,  // MIG-backed vGPU: SR-IOV functions over GPU instances
    amd_partition,
    virtual_machines,    // a hypervisor that can pass devices through
    iommu_groups,        // every device that may be given away has an IOMMU group of its own
    nvlink_partition,    // fabric partitions under our control
    verified_reboot,     // measured boot to a known image, checked before the next lease
    confidential_cpu,    // SEV-SNP or TDX
    confidential_gpu,    // one whole GPU per confidential VM
    confidential_board,  // the whole board in one confidential VM
    rdma,
    local_nvme,
};
constexpr auto words(Capability) {
    return std::to_array<Words>({"mig", "mps", "time-slicing", "vgpu", "mig-vgpu", "amd-partition", "virtual-machines",
                                 "iommu-groups", "nvlink-partition", "verified-reboot", "confidential-cpu",
                                 "confidential-gpu", "confidential-board", "rdma", "local-nvme"});
}

// How a node's GPUs are joined.
enum class NvLink : std::uint8_t { none, bridge, fabric };
constexpr auto words(NvLink) { return std::to_array<Words>({"none", "bridge", "fabric"}); }

// Confidential mode is set for a whole host.
enum class ConfidentialMode : std::uint8_t { off, on, devtools };
constexpr auto words(ConfidentialMode) { return std::to_array<Words>({"off", "on", "devtools"}); }

enum class TopologyLevel : std::uint8_t { none, nvlink_domain, node, leaf, rack, zone, site };
constexpr auto words(TopologyLevel) {
    return std::to_array<Words>({"none", "nvlink-domain", "node", "leaf", "rack", "zone", "site"});
}

// Software whose version decides which tiers a node can still protect.
enum class Component : std::uint8_t {
    driver,
    vgpu_manager,
    container_toolkit,
    gpu_operator,
    device_plugin,
    mig_manager,
    dcgm,
    vbios,
    gsp_firmware,
};
constexpr auto words(Component) {
    return std::to_array<Words>({"driver", "vgpu-manager", "container-toolkit", "gpu-operator", "device-plugin",
                                 "mig-manager", "dcgm", "vbios", "gsp-firmware"});
}

// The public states of a slice of silicon.
enum class CleanState : std::uint8_t { available, in_use, sanitizing, quarantined };
constexpr auto words(CleanState) { return std::to_array<Words>({"available", "in_use", "sanitizing", "quarantined"}); }

// Where a workload stands.
enum class WorkloadPhase : std::uint8_t { pending, refused, starting, running, stopping, finished, failed };
constexpr auto words(WorkloadPhase) {
    return std::to_array<Words>({"pending", "refused", "starting", "running", "stopping", "finished", "failed"});
}

// Whether work whose command failed is run again.
enum class RestartPolicy : std::uint8_t { never, on_failure };
constexpr auto words(RestartPolicy) { return std::to_array<Words>({"never", "on-failure"}); }

// Why a run of a workload ended before its work was done. The last three are not the work's fault and do not count
// against its backoffLimit.
enum class FailureReason : std::uint8_t {
    exited,                  // its command ended with another status than 0
    killed,                  // its command was ended by a signal that the control plane did not ask for
    program_not_found,       // the tier has no such program: 127
    program_not_executable,  // the program may not be executed: 126
    program_invalid,         // its variables, user or working directory cannot be used
    start_failed,            // its part could not be prepared or started, and the node's own start works
    deadline_exceeded,       // activeDeadline has passed
    node_unfit,              // the node cannot start anything, not even its own test
    node_refused,            // the node's own gate said no: nothing was done
    interrupted,             // evicted, drained, frozen, a device or a node was lost
};
constexpr auto words(FailureReason) {
    return std::to_array<Words>({"exited", "killed", "program-not-found", "program-not-executable", "program-invalid",
                                 "start-failed", "deadline-exceeded", "node-unfit", "node-refused", "interrupted"});
}
constexpr bool is_fault_of_work(FailureReason reason) { return reason < FailureReason::node_unfit; }

// Where a lease stands.
enum class LeasePhase : std::uint8_t { preparing, active, ending, closed };
constexpr auto words(LeasePhase) { return std::to_array<Words>({"preparing", "active", "ending", "closed"}); }

// How far the control plane trusts what it knows of a node.
enum class NodePhase : std::uint8_t { enrolled, reconciling, ready, fenced };
constexpr auto words(NodePhase) { return std::to_array<Words>({"enrolled", "reconciling", "ready", "fenced"}); }

enum class TenantPhase : std::uint8_t { active, frozen, leaving };
constexpr auto words(TenantPhase) { return std::to_array<Words>({"active", "frozen", "leaving"}); }

}  // namespace bulkhead
