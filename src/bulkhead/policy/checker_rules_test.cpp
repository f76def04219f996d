// The rules themselves, as this checker reads them in the design: about a request wherever it goes, then about one
// machine.
#include <algorithm>
#include <array>
#include <limits>

#include "bulkhead/policy/checker_words_test.hpp"
#include "bulkhead/policy/shipped_classes.hpp"

namespace bulkhead::checker {

namespace {

using enum Objection;

// The slices this checker knows by heart (facts/gpu-partitioning.md), vGPU types of one board only; of other boards it
// has no opinion.
bool known_not_to_exist(M mechanism, std::string_view model, std::string_view profile) {
    using Names = std::vector<std::string_view>;
    static const Names vgpu_of_h100{"H100-4C",  "H100-5C",  "H100-8C",  "H100-10C",
                                    "H100-16C", "H100-20C", "H100-40C", "H100-80C"};
    static const std::vector<std::pair<std::string_view, Names>> boards{
        {"h100-80gb", {"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}},
        {"h200-141gb", {"1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"}},
        {"a100-40gb", {"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}},
        {"mi300x", {"spx_nps1", "dpx_nps1", "dpx_nps2", "qpx_nps1", "cpx_nps1", "cpx_nps4"}}};
    for (const auto& [board, slices] : boards)
        if (model.starts_with(board) && mechanism != M::vgpu) return !contains(slices, profile);
    return mechanism == M::vgpu && (!model.starts_with("h100-80gb") || !contains(vgpu_of_h100, profile));
}

ByteSize memory_of(std::string_view model) {
    for (const auto& [name, gb] : {std::pair{"h100-80gb", 80}, {"a100-40gb", 40}, {"h200", 141}, {"mi300x", 192}})
        if (model.starts_with(name)) return {gb * std::int64_t{1} << 30};
    return {std::numeric_limits<std::int64_t>::max()};
}

std::vector<std::int64_t> numbers_in(std::string_view version) {
    std::vector<std::int64_t> numbers;
    bool inside = false;
    for (const char c : version) {
        const bool digit = c >= '0' && c <= '9';
        if (digit && !inside) numbers.push_back(0);
        if (digit) numbers.back() = numbers.back() * 10 + (c - '0');
        inside = digit;
    }
    return numbers;
}

bool older(std::string_view a, std::string_view b) {
    const auto x = numbers_in(a), y = numbers_in(b);
    return std::ranges::lexicographical_compare(x, y);
}

}  // namespace

// --- what is known of the fleet ---

Checker::Checker(const Snapshot& snapshot, Instant now)
    : snapshot_(snapshot), policy_(snapshot.policies.at(0).spec), now_(now) {
    for (const GpuNode& node : snapshot.nodes) {
        Facts& facts = facts_.emplace_back();
        facts.node = &node;
        for (const DetectedCapability& detected : node.status.capabilities)
            (fresh(detected) ? facts.has : facts.stale).insert(detected.name);
        for (const NodeGpus& gpus : node.status.gpus) {
            facts.gpus += gpus.count;
            facts.amd = facts.amd || gpus.model.starts_with("mi3");
        }
        for (const Site& site : policy_.sites)
            if (site.name == node.spec.site) facts.jurisdiction = site.jurisdiction;
        for (const Advisory& advisory : policy_.versionGate.advisories) {
            if (!open(advisory, node)) continue;
            facts.escape_open = facts.escape_open || advisory.escape;
            if (overdue(advisory)) facts.overdue.push_back(&advisory);
        }
    }
}

bool Checker::fresh(const DetectedCapability& capability) const {
    if (!needs_proof.contains(capability.name)) return true;
    return capability.verifiedAt && *capability.verifiedAt <= now_ &&
           now_ - *capability.verifiedAt <= policy_.evidenceMaxAge;
}

bool Checker::open(const Advisory& advisory, const GpuNode& node) const {
    bool named = false;
    for (const InstalledVersion& installed : node.status.versions) {
        if (installed.component != advisory.component) continue;
        named = true;
        const FixedVersion* fix = nullptr;
        for (const FixedVersion& fixed : advisory.fixed)
            if (fixed.branch.empty() || installed.version.starts_with(fixed.branch + '.')) fix = &fixed;
        if (fix == nullptr || older(installed.version, fix->version)) return true;
    }
    // I10, rule 7: what containers with an NVIDIA driver stand on counts as vulnerable where nobody names its version.
    const auto can = [&](Capability capability) {
        return std::ranges::any_of(node.status.capabilities,
                                   [&](const auto& found) { return found.name == capability; });
    };
    const bool drives =
        (can(Capability::mig) || can(Capability::mps)) && !can(Capability::vgpu) && !can(Capability::mig_vgpu);
    return !named && drives &&
           (advisory.component == Component::driver || advisory.component == Component::container_toolkit);
}

bool Checker::overdue(const Advisory& advisory) const {
    const DueDays& days = policy_.versionGate.dueDays;
    const std::array by_severity{days.low, days.medium, days.high, days.critical};
    const Instant due = advisory.due.value_or(advisory.published +
                                              Duration::days(by_severity[static_cast<std::size_t>(advisory.severity)]));
    return now_ > due;
}

Checker::Who Checker::who(const GpuWorkload& asked) const {
    const Tenant* const tenant = snapshot_.find<Tenant>(asked.spec.tenant);
    invariant(tenant != nullptr, "a test asks for a tenant that exists");
    const TenantClass* tenant_class = snapshot_.find<TenantClass>(tenant->spec.tenantClass);
    for (const TenantClass& shipped : shipped_tenant_classes())
        if (tenant_class == nullptr && shipped.metadata.name == tenant->spec.tenantClass) tenant_class = &shipped;
    invariant(tenant_class != nullptr, "a test's tenant has a class that exists");
    return {asked.spec, tenant->spec, tenant_class->spec, tenant->metadata.name};
}

// A live exception for this tenant that reaches down to this tier, if the policy lets any count. It needs someone it is
// not void for on the other side; who reads it strictly wants that of everyone it names.
const TierException* Checker::exception_for(const Who& who, Tier tier, bool all_of_them) const {
    if (policy_.threatModel == ThreatModel::regulated || who.tenant.compliance != Compliance::off) return nullptr;
    const auto in_force_for = [&](const std::string& name) {
        const Tenant* const other = snapshot_.find<Tenant>(name);
        return other != nullptr && other->spec.compliance == Compliance::off;
    };
    for (const TierException& exception : policy_.exceptions) {
        const auto others = std::ranges::count_if(
            exception.tenants, [&](const std::string& name) { return name != who.name && in_force_for(name); });
        const auto wanted = all_of_them ? std::ssize(exception.tenants) - 1 : 1;
        if (exception.expires > now_ && exception.tier <= tier && contains(exception.tenants, who.name) &&
            others >= wanted)
            return &exception;
    }
    return nullptr;
}

// The most a tenant may ever hold: its own limit, and that of everyone it is part of.
Gpus Checker::ceiling(const Who& who) const {
    Gpus most{std::numeric_limits<std::int64_t>::max()};
    for (const Tenant* tenant = snapshot_.find<Tenant>(who.name); tenant != nullptr;
         tenant = snapshot_.find<Tenant>(tenant->spec.parent))
        if (tenant->spec.quota.limit) most = std::min(most, *tenant->spec.quota.limit);
    return most;
}

bool Checker::relies_on_exception(const Terms& terms) const {
    return terms.node == PeerTrust::distrusting && terms.tier < Tier::vm;
}

// --- the rules about a request, wherever it goes ---

void Checker::request_rules(const Terms& terms, const Who& who, Breaches& out) const {
    const TenantClassSpec& sold = who.tenant_class;
    object(out, !contains(sold.mechanisms, terms.mechanism), "class", "a mechanism the class does not sell",
           {class_mechanism});
    object(out, terms.fraction && !sold.fractions, "class", "a fraction in a class without fractions",
           {class_fraction});
    object(out, terms.fraction && terms.mechanism == M::whole, "class", "a fraction of a GPU nobody divides",
           {shape_mechanism});
    object(out, terms.node > sold.sharing.node, "class", "a node shared wider than the class", {class_node_sharing});
    object(out, terms.gpu > sold.sharing.gpu, "class", "a GPU shared wider than the class", {class_gpu_sharing});
    object(out, terms.tier < sold.tier, "class", "a tier below the class's floor", {class_tier});
    object(out, terms.slo > sold.slo, "class", "a service level the class does not sell", {slo_class});
    object(out, sold.preemption == Preemption::always && !terms.preemptible, "class",
           "a batch class that cannot be stopped", {preemption_always});
    object(out, sold.preemption == Preemption::never && terms.preemptible, "class",
           "work that is stopped in a class that never is", {preemption_never});
    object(out, terms.priority > sold.priority.highest, "class", "more priority than the class has", {priority_class});
    object(out, terms.priority > who.tenant.priorityGrant, "P2", "a priority nobody granted", {priority_grant});
    tier_rules(terms, who, out);
    sharing_rules(terms, who, out);
    if (terms.slo == Slo::hard) slo_rules(terms, who, out);

    // An elastic gang may run with its fewest tasks.
    const Gpus least{terms.gpus.units / who.asked.tasks * who.asked.minTasks.value_or(who.asked.tasks)};
    object(out, least > ceiling(who), "quota", "more than the tenant may hold", {quota_limit});
    object(out, sold.quota == QuotaModel::hard && least > who.tenant.quota.guarantee, "Q1",
           "more than a hard quota guarantees", {quota_limit, slo_guarantee});
    object(out, who.asked.gpu.nvlink && over_mig(terms.mechanism), "rule 4", "NVLink across MIG instances",
           {nvlink_mig});
    object(out, who.asked.gpu.nvlink && !over_mig(terms.mechanism) && terms.mechanism != M::whole, "rule 4",
           "NVLink from a GPU that is not wholly the task's", {nvlink_shared});
    const bool confidential = terms.tier == Tier::confidential_vm;
    object(out, confidential && who.asked.network.rdma && !who.asked.network.encrypted, "rule 5",
           "RDMA in the clear from a confidential VM", {confidential_rdma});
    object(out, confidential && who.asked.storage.localNvme && !who.asked.storage.encrypted, "rule 5",
           "local NVMe in the clear from a confidential VM", {confidential_nvme});
}

void Checker::tier_rules(const Terms& terms, const Who& who, Breaches& out) const {
    const auto [alone, in_domain, beside_strangers] = floors(policy_.threatModel);
    const Tier floor = terms.node == PeerTrust::same_tenant ? alone : in_domain;
    object(out, terms.tier < floor, "P3", "a tier below the threat model's floor", {threat_tier, shared_kernel});
    object(out,
           relies_on_exception(terms) && terms.tier < beside_strangers &&
               exception_for(who, terms.tier, terms.at_its_word) == nullptr,
           "rule 1", "distrusting tenants behind one kernel", {shared_kernel, threat_tier});
    object(out, who.tenant.operatorTrust == OperatorTrust::untrusted && terms.tier < Tier::confidential_vm, "rule 6",
           "an untrusted operator who can look", {operator_untrusted});
    const Compliance compliance = who.tenant.compliance;
    object(out, compliance == Compliance::confidential && terms.tier < Tier::confidential_vm, "rule 5",
           "compliance `confidential` outside the confidential tier", {compliance_confidential});
    object(out, compliance == Compliance::dedicated && terms.node != PeerTrust::same_tenant, "rule 5",
           "compliance `dedicated` on a shared node", {compliance_dedicated});
    object(out, compliance != Compliance::off && terms.gpu != PeerTrust::same_tenant, "rule 5",
           "a GPU shared under compliance mode", {compliance_gpu, compliance_dedicated});
}

void Checker::sharing_rules(const Terms& terms, const Who& who, Breaches& out) const {
    const M m = terms.mechanism;
    const bool shared = terms.gpu != PeerTrust::same_tenant;
    const bool strangers = terms.gpu == PeerTrust::distrusting;
    object(out, terms.gpu > terms.node, "S1", "a GPU shared wider than its node",
           {class_node_sharing, shape_mechanism});
    object(out, terms.instance > terms.gpu, "S1", "a GPU instance shared wider than its GPU");
    object(out, m == M::whole && shared, "S1", "a whole GPU with someone else on it", {shape_mechanism});

    // facts/confidential.md 1.3: what ships.
    object(out, is_vgpu(m) && terms.tier != Tier::vm, "facts 1.3", "a vGPU outside tier vm", {pair_unavailable});
    object(out, terms.tier == Tier::confidential_vm && (m == M::mig || m == M::mps_in_mig || m == M::amd_partition),
           "facts 1.3", "a partitioned GPU in a confidential VM", {pair_unavailable});
    object(out, terms.tier >= Tier::vm && divided_by_the_guest(m), "S1",
           "a GPU leased to be divided, and passed to a VM that gets all of it", {pair_owns_gpu, pair_unavailable});

    object(out, strangers && (m != M::mig_vgpu || terms.tier != Tier::vm), "rule 1",
           "distrusting tenants on one GPU other than as MIG instances each in its own VM",
           {soft_across_domains, mig_without_vm, pair_owns_gpu, pair_unavailable, distrusting_gpu});
    object(out, strangers && policy_.threatModel == ThreatModel::regulated, "rule 1",
           "a GPU shared with strangers in `regulated`",
           {distrusting_gpu, soft_across_domains, mig_without_vm, pair_owns_gpu});
    object(out, strangers && m == M::mig_vgpu && !accepts(who.tenant, Risk::gpu_co_residency), "rule 1",
           "a co-residency that the tenant has not accepted", {co_residency_not_accepted, distrusting_gpu});

    // Rule 2. MPS inside a MIG instance is soft inside the instance and MIG around it; taken at its word it is soft.
    const bool may_share_memory = is_soft(m) || m == M::mps_in_mig;
    object(out, !may_share_memory && terms.instance != PeerTrust::same_tenant, "rule 2",
           "two tenants in one GPU instance");
    object(out, (m == M::mps || m == M::mps_in_mig) && terms.instance != PeerTrust::same_tenant, "rule 2",
           "two tenants on one MPS server, which serves one user at a time");
    const PeerTrust soft = is_soft(m)           ? terms.gpu
                           : m == M::mps_in_mig ? (terms.at_its_word ? terms.gpu : terms.instance)
                                                : PeerTrust::same_tenant;
    object(out, soft == PeerTrust::distrusting, "rule 2", "soft sharing across trust domains",
           {soft_across_domains, mig_without_vm, pair_owns_gpu, pair_unavailable});
    object(out, soft == PeerTrust::same_domain && policy_.threatModel != ThreatModel::internal, "rule 2",
           "soft sharing between tenants outside `internal`",
           {soft_outside_tenant, soft_across_domains, pair_owns_gpu});
    object(out, soft == PeerTrust::same_domain && !accepts(who.tenant, Risk::shared_fault_domain), "rule 2",
           "a shared fault domain that the tenant has not accepted",
           {fault_domain_not_accepted, soft_outside_tenant, soft_across_domains, pair_owns_gpu});
}

void Checker::slo_rules(const Terms& terms, const Who& who, Breaches& out) const {
    const M m = terms.mechanism;
    const bool partitions = m == M::whole || m == M::mig || m == M::mig_vgpu;
    object(out, !partitions, "rule 3", "a hard service level on a soft mechanism", {slo_soft_mechanism});
    using enum Aspect;
    const EnumSet<Aspect> never{pcie, power_and_clocks}, never_in_mig{nvlink, observability};
    object(out, !(terms.resources & never).empty(), "rule 3", "a hard level on PCIe, power or clocks", {slo_resource});
    object(out, (m != M::whole || terms.at_its_word) && !(terms.resources & never_in_mig).empty(), "rule 3",
           "a hard level on something MIG does not partition", {slo_resource, slo_soft_mechanism});
    object(out, partitions && !(terms.resources & still_shared(m)).empty(), "rule 3",
           "a hard level on what is still shared", {slo_resource});
    object(out, terms.gpus > who.tenant.quota.guarantee || who.tenant.quota.guarantee == Gpus{}, "rule 3",
           "a hard level without guaranteed quota", {slo_guarantee});
    object(out, terms.preemptible, "rule 3", "a hard level on work that may be stopped", {slo_preemptible});
    object(out, !who.asked.cpu, "rule 3", "a hard level without reserved CPU", {slo_cpu});
    object(out, !who.asked.network.reserved, "rule 3", "a hard level without a reserved NIC", {slo_nic});
}

// --- the rules about one machine ---

void Checker::node_rules(const Terms& terms, const Who& who, const Facts& facts, Breaches& out) const {
    const GpuNode& node = *facts.node;
    const std::string_view name = node.metadata.name;
    object(out, node.spec.unschedulable, "node", "closed to new leases", {node_closed}, name);
    for (const Whereabouts* const where : {&who.tenant.placement, &who.asked.placement}) {
        object(out, !where->sites.empty() && !contains(where->sites, node.spec.site), "P6", "another site", {node_site},
               name);
        object(out, !where->jurisdictions.empty() && !contains(where->jurisdictions, facts.jurisdiction), "P6",
               "another jurisdiction", {node_jurisdiction}, name);
    }
    const GpuRequest& gpu = who.asked.gpu;
    const bool model_fits = gpu.models.empty() || std::ranges::any_of(node.status.gpus, [&](const NodeGpus& some) {
                                return contains(gpu.models, some.model);
                            });
    object(out, !model_fits, "node", "none of the models asked for", {node_model}, name);
    object(out, terms.mechanism == M::amd_partition && !facts.amd, "node", "AMD partitions on another vendor's GPU",
           {node_vendor, node_mechanism, node_profile}, name);
    object(out, needs_nvidia(terms.mechanism) && facts.amd, "node", "an NVIDIA mechanism on AMD's GPU",
           {node_vendor, node_mechanism, node_profile}, name);
    object(out, !facts.has.contains_all(needed_for(terms.mechanism)), "rule 7",
           "a mechanism the node is not shown to have", {node_mechanism, node_vendor, node_unverified}, name);
    object(out, terms.mechanism == M::mps && gpu.count.value_or(1) > 1, "node", "an MPS server of several GPUs",
           {node_profile, node_vendor}, name);
    if (!gpu.profile.empty())
        object(out,
               std::ranges::all_of(
                   node.status.gpus,
                   [&](const NodeGpus& some) { return known_not_to_exist(terms.mechanism, some.model, gpu.profile); }),
               "node", "a slice this GPU cannot be cut into", {node_profile, node_vendor}, name);
    object(out,
           gpu.memory && std::ranges::all_of(node.status.gpus,
                                             [&](const NodeGpus& some) { return *gpu.memory > memory_of(some.model); }),
           "node", "more memory than a GPU here has", {node_profile, node_vendor, node_model}, name);
    object(out, terms.gpus_per_task > facts.gpus, "rule 8", "more GPUs per task than the node has",
           {node_gpus, node_confidential_count}, name);
    object(out,
           who.asked.cpu.value_or(0) > node.status.cpu || who.asked.memory.value_or(ByteSize{}) > node.status.memory,
           "rule 8", "more of the host than it has", {node_host}, name);
    object(out, who.asked.gpu.nvlink && node.status.nvlink == NvLink::none, "rule 4", "no NVLink here", {node_nvlink},
           name);
    object(out, who.asked.network.rdma && !facts.has.contains(Capability::rdma), "rule 7", "no RDMA here", {node_rdma},
           name);
    for (const NodeFabricTest& test : node.status.fabricTests) {
        // On our kernel every fence is ours to keep; in a machine of its own a tenant is promised its VLAN.
        const bool ours = terms.tier == Tier::process || terms.tier == Tier::container;
        const bool broken = ours ? test.fence == FabricFence::on && !test.through.empty()
                                 : test.fence == FabricFence::nic && contains(test.through, "foreign-tenant");
        object(out, who.asked.network.rdma && broken, "rule 1", "fences that the node itself got through",
               {node_fences}, name);
    }
    object(out, who.asked.storage.localNvme && !facts.has.contains(Capability::local_nvme), "rule 7",
           "no local NVMe here", {node_nvme}, name);
    for (const Advisory* const flaw : facts.overdue)
        object(out,
               (flaw->closesTiers.empty() || contains(flaw->closesTiers, terms.tier)) &&
                   (flaw->closesMechanisms.empty() || contains(flaw->closesMechanisms, terms.mechanism)),
               "I10", "an overdue advisory closes this tier", {node_gate}, name);
    wall_rules(terms, who, facts, out);
}

void Checker::wall_rules(const Terms& terms, const Who& who, const Facts& facts, Breaches& out) const {
    using C = Capability;
    const std::string_view name = facts.node->metadata.name;
    const auto lacks = [&](C capability) { return !facts.has.contains(capability); };
    if (terms.tier >= Tier::vm) {
        object(out, lacks(C::virtual_machines), "rule 7", "a VM without a hypervisor", {node_vm, node_confidential},
               name);
        object(out, lacks(C::iommu_groups), "rule 1", "a VM without IOMMU groups of its own",
               {node_iommu, node_unverified}, name);
    } else {
        object(out,
               (policy_.threatModel == ThreatModel::regulated || who.tenant.compliance != Compliance::off) &&
                   lacks(C::verified_reboot),
               "rule 1", "a host that cannot prove what it booted", {node_reboot, node_unverified}, name);
        object(out, relies_on_exception(terms) && facts.escape_open, "rule 1", "an exception while an escape is open",
               {node_escape, shared_kernel}, name);
    }

    const bool confidential = terms.tier == Tier::confidential_vm;
    const ConfidentialMode mode = facts.node->status.confidentialMode;
    object(out, confidential != (mode == ConfidentialMode::on), "rule 5", "confidential mode is set the other way",
           {node_confidential_mode}, name);
    if (confidential) {
        // facts 1.1: Hopper and Blackwell; nothing older, nothing of AMD's, nothing unknown.
        const auto has_mode = [](const NodeGpus& gpus) {
            for (const char* const family : {"h100", "h200", "gh200", "b200", "gb200", "b300", "gb300", "rtx-pro-6000"})
                if (gpus.model.starts_with(family)) return true;
            return false;
        };
        object(out, !std::ranges::all_of(facts.node->status.gpus, has_mode), "rule 5",
               "GPUs without a confidential mode", {node_confidential}, name);
        object(out, lacks(C::confidential_cpu), "rule 5", "no confidential CPU", {node_confidential, node_unverified},
               name);
        const bool one = terms.gpus_per_task == 1 && !lacks(C::confidential_gpu);
        const bool all = terms.gpus_per_task == facts.gpus && facts.gpus > 1 && !lacks(C::confidential_board);
        object(out, !one && !all, "rule 5", "neither one confidential GPU nor the whole board",
               {node_confidential, node_confidential_count, node_unverified}, name);
    }

    if (facts.node->status.nvlink == NvLink::none || !lacks(C::nvlink_partition)) return;
    object(out, terms.node == PeerTrust::distrusting, "rule 4", "strangers on one board with NVLink not partitioned",
           {node_nvlink_partition, node_unverified}, name);
    object(
        out,
        terms.node == PeerTrust::same_domain && !over_mig(terms.mechanism) && !accepts(who.tenant, Risk::shared_nvlink),
        "rule 4", "an NVLink shared in the domain without consent",
        {node_nvlink_consent, node_nvlink_partition, node_unverified}, name);
}

void Checker::capacity_rule(const Terms& terms, const Who& who, const std::vector<const Facts*>& nodes,
                            Breaches& out) const {
    std::int64_t tasks = 0, gpus = 0;
    for (const Facts* const facts : nodes) {
        tasks += facts->gpus / terms.gpus_per_task;
        gpus += facts->gpus;
    }
    object(out, terms.mechanism == M::whole && tasks < who.asked.tasks, "rule 8",
           "more tasks than the fleet has room for", {fleet_capacity});
    // Tasks that take turns on one GPU or instance may be more than there are; nothing else may.
    const bool takes_turns =
        !terms.at_its_word && !terms.fraction &&
        (terms.mechanism == M::mps || terms.mechanism == M::time_slicing || terms.mechanism == M::mps_in_mig);
    // A slice may be a larger part of one board than of another, and quota counts the larger.
    const bool uneven = !who.asked.gpu.count && std::ranges::any_of(nodes, [&](const Facts* facts) {
        return facts->node->status.gpus[0].model != nodes[0]->node->status.gpus[0].model;
    });
    object(out, !takes_turns && !uneven && terms.gpus > Gpus::whole(gpus), "rule 8",
           "more GPUs than the capable nodes have", {fleet_capacity});
}

// --- a request nobody has answered yet ---

Terms Checker::terms_of(const Who& who, bool at_its_word) const {
    const GpuWorkloadSpec& asked = who.asked;
    const TenantClassSpec& sold = who.tenant_class;
    invariant(asked.gpu.mechanism && asked.isolation.tier && asked.isolation.node && asked.isolation.gpu,
              "only a request that leaves nothing open has one meaning");
    Terms terms;
    terms.at_its_word = at_its_word;
    terms.mechanism = *asked.gpu.mechanism;
    terms.fraction = asked.gpu.fraction || asked.gpu.memory;
    terms.tier = *asked.isolation.tier;
    terms.node = *asked.isolation.node;
    terms.gpu = *asked.isolation.gpu;
    const bool owns_it =
        terms.mechanism == M::whole || (terms.tier >= Tier::vm && divided_by_the_guest(terms.mechanism));
    if (!at_its_word) terms.gpu = owns_it ? PeerTrust::same_tenant : std::min(terms.gpu, terms.node);
    if (terms.mechanism == M::time_slicing) terms.instance = terms.gpu;
    terms.slo = asked.slo.level;
    for (const Aspect aspect : asked.slo.resources) terms.resources.insert(aspect);
    const bool when_open =
        sold.preemption == Preemption::always || (sold.preemption == Preemption::allowed && at_its_word);
    terms.preemptible = asked.preemptible.value_or(when_open);
    const std::int64_t usual = sold.priority.usual;
    terms.priority = asked.priority.value_or(at_its_word ? usual : std::min(usual, who.tenant.priorityGrant));
    terms.gpus_per_task = asked.gpu.count.value_or(1);
    const std::int64_t slice =
        at_its_word ? gpu_unit : 0;  // how much quota a slice counts is not this checker's business
    // A fraction over hardware slices takes the slice that holds it, at worst all of a GPU.
    const bool rounded = at_its_word && (over_mig(terms.mechanism) || terms.mechanism == M::amd_partition);
    const std::int64_t each = asked.gpu.count                  ? *asked.gpu.count * gpu_unit
                              : asked.gpu.fraction && !rounded ? asked.gpu.fraction->units
                                                               : slice;
    terms.gpus = {each * asked.tasks};
    return terms;
}

Expected Checker::expected(const GpuWorkload& asked) const {
    const Who who = this->who(asked);
    Expected expected;
    std::vector<const Facts*> clean;
    Breaches here;
    for (const bool literal : {false, true}) {
        Breaches& out = literal ? expected.literally : expected.surely;
        const Terms terms = terms_of(who, literal);
        request_rules(terms, who, out);
        clean.clear();
        here.clear();
        for (const Facts& facts : facts_) {
            const std::size_t before = here.size();
            node_rules(terms, who, facts, here);
            if (here.size() == before) clean.push_back(&facts);
        }
        if (clean.empty())
            out.insert(out.end(), here.begin(), here.end());
        else if (out.empty())
            capacity_rule(terms, who, clean, out);
    }
    return expected;
}

}  // namespace bulkhead::checker
