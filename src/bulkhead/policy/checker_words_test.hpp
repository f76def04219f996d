// The few words both halves of the checker use: what a mechanism is, what a node must show for it, what stays shared.
#pragma once

#include <algorithm>
#include <array>

#include "bulkhead/policy/checker_test.hpp"

namespace bulkhead::checker {

using M = Mechanism;

inline bool contains(const auto& list, const auto& value) {
    return std::ranges::find(list, value) != std::ranges::end(list);
}

inline void object(Breaches& out, bool broken, std::string_view rule, std::string_view says, Objections heard_as = {},
                   std::string_view where = {}) {
    if (broken) [[unlikely]]
        out.push_back({rule, says, heard_as, where});
}

// What divides silicon in hardware, so that neither NVLink nor a neighbour's memory is within reach.
inline bool over_mig(M m) { return m == M::mig || m == M::mig_vgpu || m == M::mps_in_mig; }
inline bool needs_nvidia(M m) { return over_mig(m) || m == M::mps || m == M::vgpu; }
inline bool is_vgpu(M m) { return m == M::vgpu || m == M::mig_vgpu; }
// Sharing that only software, a scheduler or a shared memory domain keeps apart.
inline bool is_soft(M m) { return m == M::mps || m == M::time_slicing || m == M::vgpu || m == M::amd_partition; }
// Divided inside the VM that was given the GPU, so one tenant has it all.
inline bool divided_by_the_guest(M m) { return !is_vgpu(m) && m != M::whole; }

inline EnumSet<Capability> needed_for(M m) {
    switch (m) {
        case M::whole:
            return {};
        case M::mig:
            return {Capability::mig};
        case M::mps:
            return {Capability::mps};
        case M::time_slicing:
            return {Capability::time_slicing};
        case M::vgpu:
            return {Capability::vgpu};
        case M::mig_vgpu:
            return {Capability::mig_vgpu};
        case M::mps_in_mig:
            return {Capability::mig, Capability::mps};
        case M::amd_partition:
            return {Capability::amd_partition};
    }
    return {};
}

// Rule 7: no node is believed about these.
inline constexpr EnumSet<Capability> needs_proof{Capability::mig_vgpu,          Capability::iommu_groups,
                                                 Capability::nvlink_partition,  Capability::verified_reboot,
                                                 Capability::confidential_cpu,  Capability::confidential_gpu,
                                                 Capability::confidential_board};

// facts/gpu-partitioning.md, section 8, column "still shared".
inline EnumSet<Aspect> still_shared(M m) {
    using enum Aspect;
    switch (m) {
        case M::whole:
        case M::mig:
        case M::mig_vgpu:
            return {power_and_clocks, pcie};
        case M::mps:
        case M::mps_in_mig:
            return {power_and_clocks, pcie, faults, l2, memory_bandwidth};
        case M::time_slicing:
            return {power_and_clocks, pcie, faults, l2, memory_capacity, sm};
        case M::vgpu:
            return {power_and_clocks, pcie, sm, l2, memory_bandwidth, copy_engines, media_engines};
        case M::amd_partition:
            return {power_and_clocks, pcie, memory_bandwidth};
    }
    return {};
}

// Floors of the three threat models: alone on a node, beside one's own domain, beside strangers.
inline std::array<Tier, 3> floors(ThreatModel threat) {
    switch (threat) {
        case ThreatModel::internal:
            return {Tier::process, Tier::container, Tier::vm};
        case ThreatModel::cloud:
            return {Tier::container, Tier::container, Tier::vm};
        case ThreatModel::regulated:
            return {Tier::container, Tier::vm, Tier::vm};
    }
    return {Tier::confidential_vm, Tier::confidential_vm, Tier::confidential_vm};
}

inline bool accepts(const TenantSpec& tenant, Risk risk) {
    return std::ranges::any_of(tenant.accepts, [&](const AcceptedRisk& accepted) { return accepted.risk == risk; });
}

}  // namespace bulkhead::checker
