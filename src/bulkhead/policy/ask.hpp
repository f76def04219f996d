// What the rules look at, and nothing else: the request, who makes it under which policy, and what one node can do,
// each boiled down to small plain values so that a decision costs nanoseconds and can be tried for every combination.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "bulkhead/base/enum_set.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead {

// In which form a task asked for GPU.
enum class Form : std::uint8_t { count, profile, fraction };

struct Ask {
    Form form = Form::count;
    Mechanism mechanism = Mechanism::whole;
    Tier tier = Tier::process;
    PeerTrust share_node = PeerTrust::same_tenant;
    PeerTrust share_gpu = PeerTrust::same_tenant;
    Slo slo = Slo::soft;
    EnumSet<Aspect> slo_resources;
    bool preemptible = false;
    bool nvlink = false;
    bool rdma = false, rdma_encrypted = false;
    bool nvme = false, nvme_encrypted = false;
    bool cpu_reserved = false, nic_reserved = false;
    bool part_of_instance = false;  // a compute instance inside a GPU instance that other tasks share
    std::int64_t priority = 0;
    std::int64_t gpus_per_task = 1;  // as many GPUs as a task touches
    std::int64_t units = 0;          // Gpus::units, all tasks together: what quota counts
    std::int64_t least_units = 0;    // likewise, the fewest tasks that are worth running

    constexpr bool is_fraction() const { return form == Form::fraction; }
};

// Who asks, under which policy.
struct Circumstances {
    ThreatModel threat = ThreatModel::cloud;
    OperatorTrust operator_trust = OperatorTrust::trusted;
    Compliance compliance = Compliance::off;

    EnumSet<Mechanism> class_mechanisms;
    bool class_fractions = false;
    Slo class_slo = Slo::soft;
    Tier class_tier = Tier::process;
    PeerTrust class_node = PeerTrust::same_tenant;
    PeerTrust class_gpu = PeerTrust::same_tenant;
    Preemption preemption = Preemption::allowed;
    std::int64_t class_priority = 0;
    std::int64_t priority_grant = 0;

    std::int64_t guarantee = 0;         // Gpus::units
    std::optional<std::int64_t> limit;  // Gpus::units; a hard quota's guarantee is its limit
    EnumSet<Risk> accepts;
    std::optional<Tier> exception;  // the tier in force beside the tenants of a live exception
};

enum class Vendor : std::uint8_t { nvidia, amd };

// What one node can do, counting a trust-raising capability only where its evidence is fresh.
struct NodeTraits {
    EnumSet<Capability> has;
    EnumSet<Capability> unverified;  // claimed, but without fresh evidence
    Vendor vendor = Vendor::nvidia;
    NvLink nvlink = NvLink::none;
    ConfidentialMode confidential = ConfidentialMode::off;
    std::int64_t gpus = 0;
    bool confidential_silicon = true;  // the GPUs have a confidential mode at all
    bool escape_open = false;
    EnumSet<Tier> fabric_open;  // tiers whose fences its own test got through, where that is promised not to be
    std::array<EnumSet<Mechanism>, 4> closed{};  // by Tier: what overdue advisories close
    friend bool operator==(const NodeTraits&, const NodeTraits&) = default;
};

// Capabilities that raise trust: they need fresh verified evidence, not the node's word.
inline constexpr EnumSet<Capability> trust_raising{
    Capability::mig_vgpu,           Capability::iommu_groups,     Capability::nvlink_partition,
    Capability::verified_reboot,    Capability::confidential_cpu, Capability::confidential_gpu,
    Capability::confidential_board,
};

}  // namespace bulkhead
