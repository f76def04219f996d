#include "bulkhead/policy/rules.hpp"

#include <algorithm>

#include "bulkhead/policy/catalogue.hpp"
#include "bulkhead/policy/threat_model.hpp"

namespace bulkhead {

namespace {

using O = Objection;

// Neighbours on the GPU are kept apart by software alone.
constexpr EnumSet<Mechanism> soft_sharing{Mechanism::mps, Mechanism::time_slicing, Mechanism::vgpu,
                                          Mechanism::amd_partition};
constexpr EnumSet<Mechanism> over_mig{Mechanism::mig, Mechanism::mig_vgpu, Mechanism::mps_in_mig};

Tier threat_floor(PeerTrust share_node, const ThreatPreset& preset) {
    switch (share_node) {
        case PeerTrust::same_tenant:
            return preset.floor_alone;
        case PeerTrust::same_domain:
            return preset.floor_in_domain;
        case PeerTrust::distrusting:
            return preset.floor_distrusting;
    }
    return Tier::confidential_vm;
}

bool exception_counts(PeerTrust share_node, const Circumstances& c, const ThreatPreset& preset) {
    return share_node == PeerTrust::distrusting && c.exception && preset.exceptions && c.compliance == Compliance::off;
}

// The threat model's floor beside such tenants. An exception lowers the wall between strangers and no other: never
// below what even friends would need.
Tier floor_beside(PeerTrust share_node, const Circumstances& c, const ThreatPreset& preset) {
    if (exception_counts(share_node, c, preset)) return std::max(*c.exception, preset.floor_in_domain);
    return threat_floor(share_node, preset);
}

void object_to_class(const Ask& ask, const Circumstances& c, Objections& out) {
    out.insert_if(!form_fits(ask.form, ask.mechanism), O::shape_mechanism);
    out.insert_if(!c.class_mechanisms.contains(ask.mechanism), O::class_mechanism);
    out.insert_if(ask.is_fraction() && !c.class_fractions, O::class_fraction);
    out.insert_if(ask.share_node > c.class_node, O::class_node_sharing);
    out.insert_if(ask.share_gpu > c.class_gpu, O::class_gpu_sharing);
    out.insert_if(ask.preemptible && c.preemption == Preemption::never, O::preemption_never);
    out.insert_if(!ask.preemptible && c.preemption == Preemption::always, O::preemption_always);
    out.insert_if(ask.priority > c.class_priority, O::priority_class);
    out.insert_if(ask.priority > c.priority_grant, O::priority_grant);
    out.insert_if(c.limit && ask.least_units > *c.limit, O::quota_limit);
}

void object_to_tier(const Ask& ask, const Circumstances& c, Objections& out) {
    const ThreatPreset& preset = preset_of(c.threat);
    const bool excepted = exception_counts(ask.share_node, c, preset);
    out.insert_if(ask.tier < c.class_tier, O::class_tier);  // no exception lowers what the class sells
    out.insert_if(ask.tier < floor_beside(ask.share_node, c, preset), O::threat_tier);
    out.insert_if(ask.share_node == PeerTrust::distrusting && ask.tier < Tier::vm && !excepted, O::shared_kernel);
    out.insert_if(c.operator_trust == OperatorTrust::untrusted && ask.tier < Tier::confidential_vm,
                  O::operator_untrusted);
    out.insert_if(c.compliance == Compliance::confidential && ask.tier < Tier::confidential_vm,
                  O::compliance_confidential);
    out.insert_if(c.compliance == Compliance::dedicated && ask.share_node != PeerTrust::same_tenant,
                  O::compliance_dedicated);
}

void object_to_gpu_sharing(const Ask& ask, const Circumstances& c, Objections& out) {
    const ThreatPreset& preset = preset_of(c.threat);
    const Fit fit = pair_of(ask.mechanism, ask.tier).fit;
    out.insert_if(fit == Fit::no, O::pair_unavailable);
    // What is passed through is passed through whole: a lease of a part would hand the guest what the rest of the GPU
    // holds of others, kept or not yet wiped. That nobody else is on it now makes no difference.
    out.insert_if(fit == Fit::own_gpu, O::pair_owns_gpu);
    if (ask.mechanism == Mechanism::whole || ask.share_gpu == PeerTrust::same_tenant) return;  // nobody else is there

    out.insert_if(c.compliance != Compliance::off, O::compliance_gpu);
    const bool soft = soft_sharing.contains(ask.mechanism);
    if (ask.share_gpu == PeerTrust::distrusting) {
        // An exception lowers the tier between named tenants; it never puts them on one GPU.
        out.insert_if(soft, O::soft_across_domains);
        out.insert_if(!soft && (ask.mechanism != Mechanism::mig_vgpu || ask.tier < Tier::vm), O::mig_without_vm);
        out.insert_if(!preset.gpu_sharing_distrusting, O::distrusting_gpu);
        out.insert_if(!c.accepts.contains(Risk::gpu_co_residency), O::co_residency_not_accepted);
    } else if (soft) {
        out.insert_if(!preset.soft_sharing_in_domain, O::soft_outside_tenant);
        out.insert_if(!c.accepts.contains(Risk::shared_fault_domain), O::fault_domain_not_accepted);
    }
}

void object_to_slo(const Ask& ask, const Circumstances& c, Objections& out) {
    if (ask.slo != Slo::hard) return;
    out.insert_if(c.class_slo != Slo::hard, O::slo_class);
    const bool fraction = ask.is_fraction() && can_back_a_fraction(ask.mechanism);
    const MechanismEntry& entry = entry_of(ask.mechanism, fraction);
    // Compute instances of one GPU instance share its cache, memory and engines: the weakest layer counts.
    out.insert_if(entry.strongest_slo != Slo::hard || ask.part_of_instance, O::slo_soft_mechanism);
    for (const Aspect aspect : ask.slo_resources)
        out.insert_if(entry.claims[static_cast<std::size_t>(aspect)].strength != Strength::hard, O::slo_resource);
    // Also when the amount is unknown because no board here has the slice: then it is more than nothing.
    out.insert_if(c.guarantee < std::max<std::int64_t>(ask.units, 1), O::slo_guarantee);
    out.insert_if(ask.preemptible, O::slo_preemptible);
    out.insert_if(!ask.cpu_reserved, O::slo_cpu);
    out.insert_if(!ask.nic_reserved, O::slo_nic);
}

void object_to_links(const Ask& ask, Objections& out) {
    if (ask.nvlink) {
        out.insert_if(over_mig.contains(ask.mechanism), O::nvlink_mig);
        out.insert_if(!over_mig.contains(ask.mechanism) && ask.mechanism != Mechanism::whole, O::nvlink_shared);
    }
    if (ask.tier == Tier::confidential_vm) {
        out.insert_if(ask.rdma && !ask.rdma_encrypted, O::confidential_rdma);
        out.insert_if(ask.nvme && !ask.nvme_encrypted, O::confidential_nvme);
    }
}

std::optional<Capability> capability_for(Mechanism mechanism) {
    switch (mechanism) {
        case Mechanism::whole:
            return std::nullopt;
        case Mechanism::mig:
        case Mechanism::mps_in_mig:
            return Capability::mig;
        case Mechanism::mps:
            return Capability::mps;
        case Mechanism::time_slicing:
            return Capability::time_slicing;
        case Mechanism::vgpu:
            return Capability::vgpu;
        case Mechanism::mig_vgpu:
            return Capability::mig_vgpu;
        case Mechanism::amd_partition:
            return Capability::amd_partition;
    }
    return std::nullopt;
}

// A capability that is there but unproven gets its own objection: the next step is to verify, not to buy.
void demand(const NodeTraits& node, Capability capability, Objection missing, Objections& out) {
    if (node.has.contains(capability)) return;
    out.insert(node.unverified.contains(capability) ? O::node_unverified : missing);
}

void object_to_confidential_node(const Ask& ask, const NodeTraits& node, Objections& out) {
    // The mode is host-wide: a host in confidential mode serves nothing else, one without it serves no confidential VM.
    const bool on = node.confidential == ConfidentialMode::on;
    out.insert_if((ask.tier == Tier::confidential_vm) != on, O::node_confidential_mode);
    if (ask.tier != Tier::confidential_vm) return;
    out.insert_if(!node.confidential_silicon, O::node_confidential);
    demand(node, Capability::confidential_cpu, O::node_confidential, out);
    if (ask.gpus_per_task == 1)
        demand(node, Capability::confidential_gpu, O::node_confidential, out);
    else if (ask.gpus_per_task == node.gpus)
        demand(node, Capability::confidential_board, O::node_confidential, out);
    else
        out.insert(O::node_confidential_count);
}

void object_to_nvlink(const Ask& ask, const Circumstances& c, const NodeTraits& node, Objections& out) {
    out.insert_if(ask.nvlink && node.nvlink == NvLink::none, O::node_nvlink);
    if (node.nvlink == NvLink::none || node.has.contains(Capability::nvlink_partition)) return;
    // Without partition control the whole board belongs to one tenant, or to one consenting domain.
    if (ask.share_node == PeerTrust::distrusting)
        out.insert(node.unverified.contains(Capability::nvlink_partition) ? O::node_unverified
                                                                          : O::node_nvlink_partition);
    else if (ask.share_node == PeerTrust::same_domain && !over_mig.contains(ask.mechanism))  // MIG has no NVLink
        out.insert_if(!c.accepts.contains(Risk::shared_nvlink), O::node_nvlink_consent);
}

}  // namespace

bool form_fits(Form form, Mechanism mechanism) {
    switch (form) {
        case Form::count:
            return EnumSet{Mechanism::whole, Mechanism::mps, Mechanism::time_slicing}.contains(mechanism);
        case Form::profile:
            return (over_mig | EnumSet{Mechanism::vgpu, Mechanism::amd_partition}).contains(mechanism);
        case Form::fraction:
            return can_back_a_fraction(mechanism);
    }
    return false;
}

Objections objections_to(const Ask& ask, const Circumstances& circumstances) {
    Objections out;
    object_to_class(ask, circumstances, out);
    object_to_tier(ask, circumstances, out);
    object_to_gpu_sharing(ask, circumstances, out);
    object_to_slo(ask, circumstances, out);
    object_to_links(ask, out);
    return out;
}

Objections objections_on(const Ask& ask, const Circumstances& circumstances, const NodeTraits& node) {
    Objections out;
    out.insert_if((ask.mechanism == Mechanism::amd_partition) != (node.vendor == Vendor::amd) &&
                      ask.mechanism != Mechanism::whole && ask.mechanism != Mechanism::time_slicing,
                  O::node_vendor);
    if (const auto capability = capability_for(ask.mechanism)) demand(node, *capability, O::node_mechanism, out);
    if (ask.mechanism == Mechanism::mps_in_mig) demand(node, Capability::mps, O::node_mechanism, out);

    if (ask.tier >= Tier::vm) {
        demand(node, Capability::virtual_machines, O::node_vm, out);
        // A passed-through device reaches memory by DMA; without a group of its own it reaches everybody's.
        demand(node, Capability::iommu_groups, O::node_iommu, out);
    }
    object_to_confidential_node(ask, node, out);
    object_to_nvlink(ask, circumstances, node, out);

    const bool shares_host_kernel = ask.tier < Tier::vm;
    if (shares_host_kernel &&
        (preset_of(circumstances.threat).verified_reboot_required || circumstances.compliance != Compliance::off))
        demand(node, Capability::verified_reboot, O::node_reboot, out);
    out.insert_if(shares_host_kernel && ask.share_node == PeerTrust::distrusting && node.escape_open, O::node_escape);

    if (ask.rdma) demand(node, Capability::rdma, O::node_rdma, out);
    out.insert_if(ask.rdma && node.fabric_open.contains(ask.tier), O::node_fences);
    if (ask.nvme) demand(node, Capability::local_nvme, O::node_nvme, out);
    out.insert_if(node.closed[static_cast<std::size_t>(ask.tier)].contains(ask.mechanism), O::node_gate);
    return out;
}

Tier required_tier(PeerTrust share_node, const Circumstances& c) {
    if (c.operator_trust == OperatorTrust::untrusted || c.compliance == Compliance::confidential)
        return Tier::confidential_vm;
    return std::max(c.class_tier, floor_beside(share_node, c, preset_of(c.threat)));
}

EnumSet<Capability> capabilities_for(const Ask& ask) {
    EnumSet<Capability> needed;
    if (const auto capability = capability_for(ask.mechanism)) needed.insert(*capability);
    needed.insert_if(ask.mechanism == Mechanism::mps_in_mig, Capability::mps);
    needed.insert_if(ask.tier >= Tier::vm, Capability::virtual_machines);
    needed.insert_if(ask.tier >= Tier::vm, Capability::iommu_groups);
    needed.insert_if(ask.rdma, Capability::rdma);
    needed.insert_if(ask.nvme, Capability::local_nvme);
    if (ask.tier == Tier::confidential_vm) {
        needed.insert(Capability::confidential_cpu);
        needed.insert(ask.gpus_per_task == 1 ? Capability::confidential_gpu : Capability::confidential_board);
    }
    return needed;
}

PeerTrust instance_sharing(const Ask& ask) {
    switch (ask.mechanism) {
        case Mechanism::whole:
        case Mechanism::mig:
        case Mechanism::mig_vgpu:
        case Mechanism::mps_in_mig:
        case Mechanism::mps:  // a server serves one user at a time, so that its clients are one tenant's
            return PeerTrust::same_tenant;
        case Mechanism::time_slicing:
        case Mechanism::vgpu:
        case Mechanism::amd_partition:
            return ask.share_gpu;
    }
    return PeerTrust::same_tenant;
}

Neighbourhood neighbourhood(const Ask& ask, bool in_domain) {
    const auto in_fact = [&](PeerTrust scope) {
        return scope == PeerTrust::same_domain && !in_domain ? PeerTrust::same_tenant : scope;
    };
    const bool alone_on_gpu = ask.mechanism == Mechanism::whole || ask.mechanism == Mechanism::mps;
    return {.node = in_fact(ask.share_node), .gpu = alone_on_gpu ? PeerTrust::same_tenant : in_fact(ask.share_gpu)};
}

}  // namespace bulkhead
