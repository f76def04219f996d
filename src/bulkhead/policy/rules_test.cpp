#include "bulkhead/policy/rules.hpp"

#include <gtest/gtest.h>

#include <set>
#include <span>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead {
namespace {

using O = Objection;

// Somebody to whom nothing is forbidden by class or quota: what is left is the eight rules.
Circumstances anyone(ThreatModel threat = ThreatModel::cloud) {
    Circumstances c{.threat = threat,
                    .class_fractions = true,
                    .class_slo = Slo::hard,
                    .class_tier = Tier::process,
                    .class_node = PeerTrust::distrusting,
                    .class_gpu = PeerTrust::distrusting,
                    .class_priority = 100,
                    .priority_grant = 100,
                    .guarantee = 64'000};
    for (const Mechanism mechanism : every<Mechanism>()) c.class_mechanisms.insert(mechanism);
    return c;
}

Circumstances accepting(ThreatModel threat, EnumSet<Risk> risks) {
    Circumstances c = anyone(threat);
    c.accepts = risks;
    return c;
}

NodeTraits able_node() {
    NodeTraits node{.nvlink = NvLink::fabric, .gpus = 8};
    for (const Capability capability : every<Capability>()) node.has.insert(capability);
    node.has.erase(Capability::amd_partition);
    return node;
}

std::string codes(Objections objections) {
    std::string out;
    for (const Objection objection : objections) out += std::string{text_of(objection).code} + " ";
    return out;
}

struct Row {
    std::string_view says;
    Ask ask;
    Circumstances who;
    Objections objections;
};

void hold(std::span<const Row> rows) {
    for (const Row& row : rows) {
        const Objections said = objections_to(row.ask, row.who);
        EXPECT_EQ(said, row.objections) << row.says << "\n  said: " << codes(said);
    }
}

TEST(Rules, distrusting_tenants_never_meet_behind_one_kernel) {
    const auto stranger = PeerTrust::distrusting;
    Circumstances excepted = anyone();
    excepted.exception = Tier::container;
    Circumstances excepted_regulated = excepted;
    excepted_regulated.threat = ThreatModel::regulated;
    Circumstances excepted_compliant = excepted;
    excepted_compliant.compliance = Compliance::dedicated;
    const Row rows[] = {
        {"containers beside strangers share a kernel",
         {.tier = Tier::container, .share_node = stranger},
         anyone(),
         {O::threat_tier, O::shared_kernel}},
        {"VMs beside strangers do not", {.tier = Tier::vm, .share_node = stranger}, anyone(), {}},
        {"a live exception names the tier instead", {.tier = Tier::container, .share_node = stranger}, excepted, {}},
        {"and goes no lower than it says", {.tier = Tier::process, .share_node = stranger}, excepted, {O::threat_tier}},
        {"it is void in regulated",
         {.tier = Tier::container, .share_node = stranger},
         excepted_regulated,
         {O::threat_tier, O::shared_kernel}},
        {"it is void under compliance mode",
         {.tier = Tier::container, .share_node = stranger},
         excepted_compliant,
         {O::threat_tier, O::shared_kernel, O::compliance_dedicated}},
        {"alone on the node a container will do", {.tier = Tier::container}, anyone(), {}},
        {"a process will not, in a cloud", {.tier = Tier::process}, anyone(), {O::threat_tier}},
        {"inside one organisation it will", {.tier = Tier::process}, anyone(ThreatModel::internal), {}},
    };
    hold(rows);
}

TEST(Rules, soft_sharing_stays_inside_a_domain_and_needs_its_consent) {
    const EnumSet<Risk> fault{Risk::shared_fault_domain};
    const auto in_domain = [](Mechanism mechanism) {
        return Ask{.mechanism = mechanism,
                   .tier = Tier::container,
                   .share_node = PeerTrust::same_domain,
                   .share_gpu = PeerTrust::same_domain};
    };
    const Row rows[] = {
        {"two teams may share MPS if both accept",
         in_domain(Mechanism::mps),
         accepting(ThreatModel::internal, fault),
         {}},
        {"not unasked", in_domain(Mechanism::mps), anyone(ThreatModel::internal), {O::fault_domain_not_accepted}},
        {"never in a cloud, whoever accepts",
         in_domain(Mechanism::time_slicing),
         accepting(ThreatModel::cloud, fault),
         {O::soft_outside_tenant}},
        {"inside one tenant it is its own affair",
         {.mechanism = Mechanism::mps, .tier = Tier::container},
         anyone(),
         {}},
        {"across domains never, and there is more than one reason",
         {.mechanism = Mechanism::mps,
          .tier = Tier::container,
          .share_node = PeerTrust::distrusting,
          .share_gpu = PeerTrust::distrusting},
         anyone(ThreatModel::internal),
         {O::threat_tier, O::shared_kernel, O::soft_across_domains, O::co_residency_not_accepted}},
    };
    hold(rows);
}

TEST(Rules, distrusting_tenants_share_a_gpu_only_as_mig_instances_each_in_its_vm) {
    const EnumSet<Risk> accepted{Risk::gpu_co_residency};
    const Ask slice{.form = Form::profile,
                    .mechanism = Mechanism::mig_vgpu,
                    .tier = Tier::vm,
                    .share_node = PeerTrust::distrusting,
                    .share_gpu = PeerTrust::distrusting};
    Ask bare = slice;
    bare.mechanism = Mechanism::mig;
    Ask time_sliced = slice;
    time_sliced.mechanism = Mechanism::vgpu;
    Circumstances compliant = accepting(ThreatModel::cloud, accepted);
    compliant.compliance = Compliance::dedicated;
    const Row rows[] = {
        {"a MIG-backed vGPU, accepted by name", slice, accepting(ThreatModel::cloud, accepted), {}},
        {"not without the acceptance", slice, anyone(), {O::co_residency_not_accepted}},
        {"not in regulated", slice, accepting(ThreatModel::regulated, accepted), {O::distrusting_gpu}},
        {"not under compliance mode", slice, compliant, {O::compliance_dedicated, O::compliance_gpu}},
        {"not as a bare MIG instance: a VM owns its whole GPU",
         bare,
         accepting(ThreatModel::cloud, accepted),
         {O::pair_owns_gpu, O::mig_without_vm}},
        {"not as a time-sliced vGPU", time_sliced, accepting(ThreatModel::cloud, accepted), {O::soft_across_domains}},
    };
    hold(rows);
}

// A lease of a part hands the guest all of it by VFIO, with what others left or keep on the rest.
TEST(Rules, what_is_passed_through_to_a_vm_is_leased_whole) {
    const auto for_one_tenant = [](Mechanism mechanism, Form form, Tier tier) {
        return Ask{.form = form, .mechanism = mechanism, .tier = tier};
    };
    for (const Tier tier : {Tier::vm, Tier::confidential_vm}) {
        EXPECT_EQ(objections_to(for_one_tenant(Mechanism::whole, Form::count, tier), anyone()), Objections{})
            << word(tier);
        for (const Mechanism mechanism : every<Mechanism>())
            for (const Form form : {Form::count, Form::profile, Form::fraction}) {
                const bool is_vgpu = mechanism == Mechanism::vgpu || mechanism == Mechanism::mig_vgpu;
                if (!form_fits(form, mechanism) || mechanism == Mechanism::whole) continue;
                const Objections said = objections_to(for_one_tenant(mechanism, form, tier), anyone());
                EXPECT_EQ(said.empty(), is_vgpu && tier == Tier::vm)
                    << word(mechanism) << " in " << word(tier) << "\n  said: " << codes(said);
                if (tier == Tier::vm && !is_vgpu) {
                    EXPECT_TRUE(said.contains(O::pair_owns_gpu)) << word(mechanism) << "\n  said: " << codes(said);
                }
            }
    }
}

TEST(Rules, a_hard_level_needs_silicon_and_everything_around_it) {
    const EnumSet<Aspect> usual{Aspect::sm, Aspect::l2, Aspect::memory_bandwidth};
    const auto hard = [&](Mechanism mechanism, Form form) {
        return Ask{.form = form,
                   .mechanism = mechanism,
                   .tier = Tier::container,
                   .slo = Slo::hard,
                   .slo_resources = usual,
                   .cpu_reserved = true,
                   .nic_reserved = true,
                   .units = gpu_unit,
                   .least_units = gpu_unit};
    };
    Ask bare = hard(Mechanism::whole, Form::count);
    bare.cpu_reserved = bare.nic_reserved = false;
    bare.preemptible = true;
    Ask greedy = hard(Mechanism::mig, Form::profile);
    greedy.slo_resources.insert(Aspect::pcie);
    Ask large = hard(Mechanism::whole, Form::count);
    large.units = large.least_units = 65 * gpu_unit;
    const Row rows[] = {
        {"a whole GPU", hard(Mechanism::whole, Form::count), anyone(), {}},
        {"a MIG instance", hard(Mechanism::mig, Form::profile), anyone(), {}},
        {"a fraction that is a MIG instance", hard(Mechanism::mig, Form::fraction), anyone(), {}},
        {"not MPS", hard(Mechanism::mps, Form::fraction), anyone(), {O::slo_soft_mechanism, O::slo_resource}},
        {"not MPS inside MIG: the weakest layer counts",
         hard(Mechanism::mps_in_mig, Form::profile),
         anyone(),
         {O::slo_soft_mechanism, O::slo_resource}},
        {"PCIe is nobody's to promise", greedy, anyone(), {O::slo_resource}},
        {"CPU, NIC and staying are part of it", bare, anyone(), {O::slo_preemptible, O::slo_cpu, O::slo_nic}},
        {"and so is the quota", large, anyone(), {O::slo_guarantee}},
    };
    hold(rows);
}

TEST(Rules, an_untrusted_operator_and_compliance_demand_the_confidential_tier) {
    Circumstances wary = anyone();
    wary.operator_trust = OperatorTrust::untrusted;
    Circumstances compliant = anyone();
    compliant.compliance = Compliance::confidential;
    const Row rows[] = {
        {"a VM is open to whoever runs it", {.tier = Tier::vm}, wary, {O::operator_untrusted}},
        {"a confidential VM is not", {.tier = Tier::confidential_vm}, wary, {}},
        {"no falling back to dedicated", {.tier = Tier::vm}, compliant, {O::compliance_confidential}},
        {"no MIG instance per confidential VM",
         {.form = Form::profile, .mechanism = Mechanism::mig, .tier = Tier::confidential_vm},
         wary,
         {O::pair_unavailable}},
        {"RDMA leaves it in the clear", {.tier = Tier::confidential_vm, .rdma = true}, wary, {O::confidential_rdma}},
        {"unless the tenant encrypts", {.tier = Tier::confidential_vm, .rdma = true, .rdma_encrypted = true}, wary, {}},
    };
    hold(rows);
}

TEST(Rules, nodes_are_held_to_what_was_verified) {
    struct NodeRow {
        std::string_view says;
        Ask ask;
        NodeTraits node;
        Objections objections;
    };
    const auto without = [](Capability capability) {
        NodeTraits node = able_node();
        node.has.erase(capability);
        return node;
    };
    const auto unproven = [&](Capability capability) {
        NodeTraits node = without(capability);
        node.unverified.insert(capability);
        return node;
    };
    NodeTraits confidential = able_node();
    confidential.confidential = ConfidentialMode::on;
    NodeTraits devtools = able_node();
    devtools.confidential = ConfidentialMode::devtools;
    NodeTraits gated = able_node();
    gated.closed[static_cast<std::size_t>(Tier::container)].insert(Mechanism::whole);
    const Ask stranger{.tier = Tier::vm, .share_node = PeerTrust::distrusting};
    const auto guest = [](std::int64_t gpus) { return Ask{.tier = Tier::confidential_vm, .gpus_per_task = gpus}; };
    const NodeRow rows[] = {
        {"an able node serves a VM", stranger, able_node(), {}},
        {"without IOMMU groups one VM reaches another", stranger, without(Capability::iommu_groups), {O::node_iommu}},
        {"the node's word is not enough", stranger, unproven(Capability::iommu_groups), {O::node_unverified}},
        {"NVLink that cannot be cut joins strangers",
         stranger,
         without(Capability::nvlink_partition),
         {O::node_nvlink_partition}},
        {"one GPU in a confidential VM", guest(1), confidential, {}},
        {"the whole board in one", guest(8), confidential, {}},
        {"nothing between", guest(4), confidential, {O::node_confidential_count}},
        {"the mode is host-wide", guest(1), able_node(), {O::node_confidential_mode}},
        {"development mode is no confidence", guest(1), devtools, {O::node_confidential_mode}},
        {"and a confidential host serves nothing else", stranger, confidential, {O::node_confidential_mode}},
        {"an overdue advisory closes its tier", {.tier = Tier::container}, gated, {O::node_gate}},
        {"and no other", {.tier = Tier::vm}, gated, {}},
    };
    for (const NodeRow& row : rows) {
        const Objections said = objections_on(row.ask, anyone(), row.node);
        EXPECT_EQ(said, row.objections) << row.says << "\n  said: " << codes(said);
    }
}

TEST(Objections, every_one_has_a_code_of_its_own_and_words) {
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < objection_count; ++i) {
        const ObjectionText& text = text_of(static_cast<Objection>(i));
        EXPECT_TRUE(seen.insert(text.code).second) << text.code;
        EXPECT_FALSE(text.text.empty()) << text.code;
        EXPECT_FALSE(text.remedy.empty()) << text.code;
        EXPECT_EQ(is_about_a_node(static_cast<Objection>(i)), text.code.starts_with("node.")) << text.code;
    }
}

}  // namespace
}  // namespace bulkhead
