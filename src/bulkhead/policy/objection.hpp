// Every way a rule can say no, in the order people read them. One value is one rule's objection; the words, the remedy
// and the rule's number in docs/design stand in one table beside it.
#pragma once

#include <string_view>

#include "bulkhead/base/enum_set.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead {

enum class Objection : std::uint8_t {
    // About the request itself.
    shape_mechanism,            // the mechanism cannot give what was asked in that form
    class_mechanism,            // the class does not divide GPUs that way
    class_fraction,             // the class sells no fractions
    class_node_sharing,         // wider sharing of the node than the class allows
    class_gpu_sharing,          // wider sharing of the GPU than the class allows
    class_tier,                 // weaker than the class's floor
    threat_tier,                // weaker than the threat model's floor
    shared_kernel,              // distrusting tenants behind one kernel
    operator_untrusted,         // the operator must not be able to look, and in this tier can
    compliance_confidential,    // compliance mode `confidential` needs the confidential tier
    compliance_dedicated,       // compliance mode `dedicated` needs a node of its own
    compliance_gpu,             // no GPU is shared with another tenant under compliance mode
    pair_unavailable,           // no shipping software joins this mechanism and this tier
    pair_owns_gpu,              // in this tier a VM is given whole GPUs, and divides them inside
    soft_across_domains,        // MPS, time-slicing or time-sliced vGPU between distrusting tenants
    mig_without_vm,             // MIG instances of distrusting tenants without a VM around each
    distrusting_gpu,            // the threat model shares no GPU between distrusting tenants
    co_residency_not_accepted,  // the tenant has not accepted GPU co-residency
    soft_outside_tenant,        // the threat model keeps soft sharing inside one tenant
    fault_domain_not_accepted,  // the tenant has not accepted a shared fault domain
    slo_class,                  // the class sells no hard service level
    slo_soft_mechanism,         // a hard service level on a soft mechanism
    slo_resource,               // a hard service level on something the mechanism does not partition
    slo_guarantee,              // a hard service level without guaranteed quota
    slo_preemptible,            // a hard service level on work that may be stopped
    slo_cpu,                    // a hard service level without reserved CPU
    slo_nic,                    // a hard service level without a reserved NIC
    nvlink_mig,                 // NVLink across MIG instances
    nvlink_shared,              // NVLink from a GPU that is not wholly the task's
    confidential_rdma,          // RDMA from a confidential VM in the clear
    confidential_nvme,          // local NVMe from a confidential VM in the clear
    preemption_always,          // the class is preemptible by definition
    preemption_never,           // the class is never preempted
    priority_class,             // more priority than the class has
    priority_grant,             // more priority than anyone granted the tenant
    quota_limit,                // more GPUs than the tenant may ever hold
    // About one node; they refuse the request when every node has one.
    node_closed,
    node_site,
    node_jurisdiction,
    node_model,
    node_vendor,
    node_profile,
    node_gpus,
    node_host,  // too few cores or too little memory
    node_mechanism,
    node_vm,
    node_iommu,
    node_nvlink,
    node_nvlink_partition,
    node_nvlink_consent,
    node_confidential,        // lacks a confidential CPU or GPU
    node_confidential_count,  // one GPU, or the whole board: nothing between
    node_confidential_mode,   // confidential mode is host-wide, and set the other way
    node_unverified,          // a trust-raising capability known only by the node's word, or not lately
    node_reboot,
    node_rdma,
    node_fences,  // its own test got through the fences of its functions
    node_nvme,
    node_gate,    // an overdue advisory closes the tier
    node_escape,  // an open escape advisory voids the exception
    // About the fleet.
    fleet_capacity,  // no node objects, and all of them together are too few
};
using Objections = EnumSet<Objection>;

struct ObjectionText {
    std::string_view code;    // stable: "slo.soft-mechanism"
    int rule;                 // of the eight rules; 0: declared by class, quota or geometry
    std::string_view text;    // with {arguments}
    std::string_view remedy;  // with {arguments}; the operator's or tenant's next step
};

const ObjectionText& text_of(Objection objection);

constexpr bool is_about_a_node(Objection objection) {
    return objection >= Objection::node_closed && objection <= Objection::node_escape;
}

inline constexpr std::size_t objection_count = static_cast<std::size_t>(Objection::fleet_capacity) + 1;
static_assert(objection_count <= 64);

}  // namespace bulkhead
