#include "bulkhead/policy/terms.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "bulkhead/model/guarantee_unit.hpp"
#include "bulkhead/policy/catalogue.hpp"
#include "bulkhead/policy/explain.hpp"
#include "bulkhead/policy/fabric_terms.hpp"
#include "bulkhead/policy/guarantee.hpp"
#include "bulkhead/policy/return_bound.hpp"
#include "bulkhead/policy/rules.hpp"
#include "bulkhead/policy/slice.hpp"
#include "bulkhead/policy/threat_model.hpp"

namespace bulkhead {

namespace {

Held held(std::string_view subject, const Claim& claim) {
    return {.subject = std::string{subject},
            .strength = claim.strength,
            .grade = claim.grade,
            .says = std::string{claim.says},
            .source = std::string{claim.source}};
}

// What follows from how mechanism and tier are built, rather than from one measured or documented claim.
void disclose(Contract& contract, std::string_view subject, std::string_view says) {
    contract.open.push_back({.subject = std::string{subject},
                             .strength = Strength::none,
                             .grade = Grade::documented,
                             .says = std::string{says},
                             .source = "Bulkhead catalogue"});
}

// Hard claims are what the contract holds; everything softer is said to be open.
void write_claims(Contract& contract, const Ask& ask) {
    const MechanismEntry& mechanism = entry_of(ask.mechanism, contract.fraction);
    for (const Aspect aspect : every<Aspect>()) {
        Claim claim = mechanism.claims[static_cast<std::size_t>(aspect)];
        if (ask.part_of_instance && aspect != Aspect::sm && claim.strength == Strength::hard)
            claim = {Strength::none, Grade::documented,
                     "Compute instances of one GPU instance have their own SMs and share everything else of it.",
                     "NVIDIA MIG User Guide, Concepts"};
        (claim.strength == Strength::hard ? contract.isolates : contract.open).push_back(held(word(aspect), claim));
    }
    const TierEntry& tier = entry_of(ask.tier);
    for (const Wall wall : every<Wall>()) {
        const Claim& claim = tier.claims[static_cast<std::size_t>(wall)];
        (claim.strength == Strength::hard ? contract.isolates : contract.open).push_back(held(word(wall), claim));
    }
    disclose(contract, "fault-domain", mechanism.fault_domain);
    disclose(contract, "trusted-base", tier.trusted_base);
    if (ask.mechanism == Mechanism::mps && ask.share_gpu != PeerTrust::same_tenant)
        disclose(contract, "mps-one-user",
                 "an MPS server serves one user at a time: other tenants are never on this GPU together with this one, "
                 "though it would accept them");
    if (ask.share_gpu == PeerTrust::distrusting)
        disclose(
            contract, "gpu-co-residency",
            "a distrusting tenant's VM may hold another instance of the same GPU; the tenant accepted this by name");
    if (ask.tier == Tier::confidential_vm && ask.gpus_per_task > 1)
        disclose(
            contract, "confidential-nvlink",
            "on a Hopper board in protected-PCIe mode NVLink carries plain text between GPUs and switches: the board "
            "and its attested switches are inside the boundary");
    if (ask.tier == Tier::confidential_vm && (ask.rdma || ask.nvme))
        disclose(contract, "confidential-io",
                 "RDMA and local NVMe leave the confidential VM in plain text unless the tenant encrypts, as it says "
                 "it does");
}

void write_reclaim(Contract& contract, const Ask& ask) {
    const auto step = [&](const char* name, std::string says) {
        contract.reclaim.push_back({.name = name, .says = std::move(says)});
    };
    const bool instances = EnumSet{Mechanism::mig, Mechanism::mig_vgpu, Mechanism::mps_in_mig}.contains(ask.mechanism);
    step("stop", "every process of the workload is gone from the device, as the driver lists them");
    if (ask.mechanism == Mechanism::mps || ask.mechanism == Mechanism::mps_in_mig)
        step("mps-teardown", "the MPS server and its control daemon are gone, pipes and logs removed");
    step("vram-scrub",
         fmt::format("all reachable memory of the {} is overwritten and read back; what could not be reached "
                     "is reported; a scrub that cannot verify quarantines",
                     instances ? "GPU instance" : "GPU"));
    if (instances) step("instance-destroy", "the GPU instance is destroyed before its memory slices are leased again");
    if (ask.nvme)
        step("nvme-erase", "the drive's own cryptographic erase, its log page checked and sampled blocks read back");
    if (ask.rdma)
        step("rdma-identity", "the virtual function, its addresses and keys are detached and seen to be gone");
    switch (contract.handover) {
        case Handover::own_kernel:
            step("vm-destroy", "the VM is destroyed, its disks and memory wiped, the device reset and rebound");
            break;
        case Handover::verified_reboot:
            step("host-reboot", "before a distrusting tenant: reboot to a known image, measured and verified");
            break;
        case Handover::same_domain_only:
            step("host-stays", "the node cannot prove what it boots, so it is leased only within this trust domain");
            break;
        case Handover::excepted_only:
            step(
                "host-stays",
                "the node cannot prove what it boots, so it is leased only within this trust domain and to the tenants "
                "that the exception names");
            break;
    }
    if (ask.tier == Tier::confidential_vm)
        step("re-attest", "CPU and GPU are attested again before the next key is released");
    if (contract.compliance != Compliance::off)
        step("certificate", "an erase certificate per device is in the log before anything is leased again");
}

void write_slices(Contract& contract, const GpuWorkload& workload, const FleetView& fleet, const Verdict& verdict) {
    for (std::size_t i = 0; i < fleet.pools.size(); ++i) {
        const Pool& pool = fleet.pools[i];
        if (!verdict.on_pool[i].empty()) continue;
        if (std::ranges::any_of(contract.slices, [&](const Slice& s) { return s.model == pool.model; })) continue;
        if (const auto facts = slice_on(pool.silicon, workload.spec.gpu, verdict.ask.mechanism)) {
            SliceText text = slice_text(pool.silicon, workload.spec.gpu, verdict.ask.mechanism);
            contract.slices.push_back(
                {.model = std::string{pool.model}, .slice = std::move(text.slice), .engines = std::move(text.engines)});
            if (!workload.spec.gpu.profile.empty() || contract.fraction)
                contract.grade = std::max(contract.grade, facts->grade);
        }
    }
}

// The weakest grade among the claims, and beside it what is known of the nodes: a simulated capability is no documented
// one, so the two are never folded into one word.
void write_grade(Contract& contract, const FleetView& fleet, const Verdict& verdict) {
    const Ask& ask = verdict.ask;
    contract.grade = std::max(contract.grade, pair_of(ask.mechanism, ask.tier).grade);
    for (const Held& claim : contract.isolates) contract.grade = std::max(contract.grade, claim.grade);
    EnumSet<Capability> needed = capabilities_for(ask);
    needed.insert_if(contract.handover == Handover::verified_reboot, Capability::verified_reboot);
    for (const Capability capability : needed) {
        std::optional<Grade> weakest;
        for (std::size_t i = 0; i < fleet.pools.size(); ++i)
            if (verdict.on_pool[i].empty())
                for (const DetectedCapability& detected : fleet.pools[i].capabilities)
                    if (detected.name == capability)
                        weakest = std::max(weakest.value_or(detected.grade), detected.grade);
        if (!weakest) continue;
        contract.reliesOn.push_back({capability, *weakest});
        contract.grade = std::max(contract.grade, *weakest);
    }
}

std::vector<std::string> nodes_with(const FleetView& fleet, const Verdict& verdict, Objections exactly) {
    const auto serves = [&](Objections objections) { return objections == exactly; };
    const bool several = std::ranges::count_if(verdict.on_pool, serves) > 1;
    std::vector<std::string> nodes;
    std::set<std::string_view> known;
    for (std::size_t i = 0; i < fleet.pools.size(); ++i)
        if (serves(verdict.on_pool[i]))
            for (const std::string& node : fleet.pools[i].nodes)  // one with two models is in two pools
                if (!several || known.insert(node).second) nodes.push_back(node);
    return nodes;
}

std::vector<std::string> serving_nodes(const FleetView& fleet, const Verdict& verdict) {
    return nodes_with(fleet, verdict, {});
}

Handover handover_of(const FleetView& fleet, const Verdict& verdict) {
    if (verdict.ask.tier >= Tier::vm) return Handover::own_kernel;
    for (std::size_t i = 0; i < fleet.pools.size(); ++i)
        if (verdict.on_pool[i].empty() && !fleet.pools[i].traits.has.contains(Capability::verified_reboot))
            // the promise must hold on every node that may serve it
            return verdict.ask.share_node == PeerTrust::distrusting ? Handover::excepted_only
                                                                    : Handover::same_domain_only;
    return Handover::verified_reboot;
}

// Each part is the most that policy and nodes allow, so that the sum is kept unless an operation fails. Drives and
// functions that the work itself needs are wiped before it gets them.
StartBound start_bound(const FleetView& fleet, const Verdict& verdict, const TenantClassSpec& sells) {
    bool reboots = false;
    for (std::size_t i = 0; i < fleet.pools.size(); ++i)
        reboots |= verdict.on_pool[i].empty() && fleet.pools[i].traits.has.contains(Capability::verified_reboot);
    ReturnBound bound = return_bound(fleet.policy, fleet.longest_min_runtime, reboots);
    if (verdict.ask.nvme) bound.wipe.ms += OperationLimits{}.wipe_drive.ms;
    if (verdict.ask.rdma) bound.wipe.ms += OperationLimits{}.wipe_function.ms;
    return {.minRuntime = bound.run,
            .save = bound.save,
            .stop = bound.stop,
            .wipe = bound.wipe,
            .reboot = bound.reboot,
            .total = bound.sum(),
            .aim = sells.reclaimBound};
}

// What the same request without its isolation would share, on the same mechanism. Where the rules accept no such
// request, the isolation is no more than they demand.
std::optional<AskedExclusivity> exclusivity_of(const GpuWorkload& workload, const Asker& asker, const FleetView& fleet,
                                               const Ask& ask) {
    if (workload.spec.isolation == IsolationRequest{}) return std::nullopt;
    GpuWorkloadSpec by_rule = workload.spec;
    by_rule.isolation = {};
    by_rule.gpu.mechanism = ask.mechanism;
    const Verdict verdict = judge(by_rule, asker, fleet);
    if (!verdict.accepted()) return std::nullopt;
    const bool in_domain = asker.tenant->spec.trustDomain.has_value();
    const Neighbourhood rules = neighbourhood(verdict.ask, in_domain), asked = neighbourhood(ask, in_domain);
    AskedExclusivity out;
    if (asked.node < rules.node) out.node = rules.node;
    if (asked.gpu < rules.gpu) out.gpu = rules.gpu;
    return out.any() ? std::optional{out} : std::nullopt;
}

}  // namespace

Contract write_contract(const GpuWorkload& workload, const Asker& asker, const FleetView& fleet, const Verdict& verdict,
                        const Writing& writing) {
    const Ask& ask = verdict.ask;
    const Tenant& tenant = *asker.tenant;
    Contract contract{.workload = workload.metadata.name,
                      .tenant = tenant.metadata.name,
                      .tenantClass = asker.tenant_class->metadata.name,
                      .threatModel = fleet.policy.threatModel,
                      .asOf = fleet.now,
                      .mechanism = ask.mechanism,
                      .fraction = ask.is_fraction(),
                      .tasks = workload.spec.tasks,
                      .gpus = Gpus{ask.units},
                      .tier = ask.tier,
                      .requiredTier = required_tier(ask.share_node, asker.circumstances),
                      .slo = ask.slo,
                      .quota = asker.tenant_class->spec.quota,
                      .guarantee = Gpus{asker.circumstances.guarantee},
                      .guaranteed = writing.written == Written::in_full ? print_guarantee(tenant.spec.quota) : "",
                      .entitlement = {},
                      .bound = start_bound(fleet, verdict, asker.tenant_class->spec),
                      .preemptible = ask.preemptible,
                      .priority = ask.priority,
                      .compliance = tenant.spec.compliance};
    contract.sharing = {
        .node = ask.share_node,
        .gpu = ask.share_gpu,
        .instance = instance_sharing(ask),
        // One tenant, unless a domain consented to share a board that cannot be partitioned.
        .nvlink = ask.share_node == PeerTrust::same_domain && asker.circumstances.accepts.contains(Risk::shared_nvlink)
                      ? PeerTrust::same_domain
                      : PeerTrust::same_tenant};
    contract.exclusivity = exclusivity_of(workload, asker, fleet, ask);
    contract.handover = handover_of(fleet, verdict);
    for (const Aspect aspect : ask.slo_resources) contract.sloResources.push_back(aspect);
    if (tenant.spec.compliance != Compliance::off)
        contract.surchargePercent = fleet.policy.pricing.surcharge_percent(fleet.now);
    write_slices(contract, workload, fleet, verdict);
    if (ask.share_node == PeerTrust::distrusting && ask.tier < Tier::vm) {
        const TierException* exception = fleet.exception_of(tenant.metadata.name);
        invariant(exception != nullptr, "distrusting tenants share a kernel only under a named exception");
        contract.exceptions.push_back({.name = exception->name,
                                       .tenants = exception->tenants,
                                       .tier = exception->tier,
                                       .expires = exception->expires});
    }
    if (writing.written == Written::in_full) {
        contract.entitlement = entitlements(fleet.snapshot).at(tenant.metadata.name);
        write_claims(contract, ask);
        if (ask.rdma) {
            const std::vector<std::string> nodes{writing.placed.begin(), writing.placed.end()};
            write_fabric(contract, ask, fleet, {nodes.empty() ? serving_nodes(fleet, verdict) : nodes, writing.reader});
        }
        write_reclaim(contract, ask);
        for (const KeyControl& control : preset_of(fleet.policy.threatModel).controls)
            contract.controls.emplace_back(control.id);
        write_grade(contract, fleet, verdict);
        contract.excluded = Explainer{workload.spec, asker, fleet, verdict, writing.reader}.excluded();
    }
    if (writing.reader == Audience::fleet_operator) {
        contract.nodes = serving_nodes(fleet, verdict);
        contract.closed_nodes = nodes_with(fleet, verdict, {Objection::node_closed});
    }
    return contract;
}

}  // namespace bulkhead
