// Who checks the checker: contracts made by hand, one good and many bad, each bad in one way. A checker that accepts
// everything, or that looks away from one rule, fails here.
#include <gtest/gtest.h>

#include <functional>

#include "bulkhead/policy/checker_test.hpp"
#include "bulkhead/policy/fleet_fixture_test.hpp"

namespace bulkhead {

namespace {

using checker::Breaches;
using checker::Checker;

struct Case {
    Snapshot snapshot;
    GpuWorkload work;
    Contract contract;

    TenantSpec& tenant() { return snapshot.tenants[0].spec; }
    FleetPolicySpec& policy() { return snapshot.policies[0].spec; }
    GpuNode& node() { return snapshot.nodes[0]; }
    Breaches judge() const { return Checker(snapshot, fixture::now).of(work, contract); }
};

std::vector<Held> open_aspects(std::initializer_list<Aspect> aspects) {
    std::vector<Held> made{
        {"gpu-driver", Strength::none, Grade::documented, "One driver and firmware, trusted.", "vendor"}};
    for (const Aspect aspect : aspects)
        made.push_back({std::string(word(aspect)), Strength::none, Grade::documented, "Shared, and felt.", "vendor"});
    return made;
}

// A hard MIG slice in a container beside the tenant's own domain, on a board whose NVLink is partitioned.
Case good_mig() {
    Case made;
    made.snapshot = fixture::fleet(ThreatModel::cloud, {fixture::machines()[1]},
                                   fixture::subject("slo-serving", OperatorTrust::trusted, Compliance::off, false));
    made.work = fixture::request({Mechanism::mig, fixture::Form::profile}, Tier::container,
                                 {PeerTrust::same_domain, PeerTrust::same_domain}, fixture::Level::hard_reserved);
    Contract& c = made.contract;
    c.workload = "work";
    c.tenant = "subject";
    c.tenantClass = "slo-serving";
    c.threatModel = ThreatModel::cloud;
    c.asOf = fixture::now;
    c.mechanism = Mechanism::mig;
    c.slices = {{"h100-80gb-sxm5", "1g.10gb", "16 SMs"}};
    c.gpus = {gpu_unit / 7};
    c.tier = c.requiredTier = Tier::container;
    c.sharing = {PeerTrust::same_domain, PeerTrust::same_domain, PeerTrust::same_tenant, PeerTrust::same_tenant};
    c.handover = Handover::same_domain_only;
    c.slo = Slo::hard;
    c.sloResources = {Aspect::sm, Aspect::l2, Aspect::memory_capacity, Aspect::memory_bandwidth};
    c.quota = QuotaModel::hard;
    c.guarantee = Gpus::whole(8);
    c.priority = 80;
    c.isolates = {{"sm", Strength::hard, Grade::documented, "Its own SMs.", "vendor"}};
    c.open = open_aspects({Aspect::pcie, Aspect::power_and_clocks});
    c.reclaim = {{"scrub", "VRAM is overwritten and read back."}};
    c.grade = Grade::documented;
    c.nodes = {"hgx-walls"};
    return made;
}

// A MIG-backed vGPU beside strangers, which needs a yes from everyone.
Case good_co_residency() {
    Case made = good_mig();
    made.node() = fixture::machines()[3];
    made.tenant().accepts = fixture::every_risk();
    made.work = fixture::request({Mechanism::mig_vgpu, fixture::Form::profile}, Tier::vm,
                                 {PeerTrust::distrusting, PeerTrust::distrusting}, fixture::Level::hard_reserved);
    Contract& c = made.contract;
    c.mechanism = Mechanism::mig_vgpu;
    c.tier = c.requiredTier = Tier::vm;
    c.sharing = {PeerTrust::distrusting, PeerTrust::distrusting, PeerTrust::same_tenant, PeerTrust::same_tenant};
    c.handover = Handover::own_kernel;
    c.slices[0].model = "h100-80gb-pcie";
    c.nodes = {"vgpu-host"};
    return made;
}

// One whole GPU in a confidential VM, under compliance mode, with a surcharge.
Case good_confidential() {
    Case made = good_mig();
    made.node() = fixture::machines()[4];
    made.tenant() = fixture::subject("slo-serving", OperatorTrust::untrusted, Compliance::confidential, false);
    made.work = fixture::request({Mechanism::whole, fixture::Form::count}, Tier::confidential_vm,
                                 {PeerTrust::distrusting, PeerTrust::same_tenant}, fixture::Level::soft);
    Contract& c = made.contract;
    c.mechanism = Mechanism::whole;
    c.slo = Slo::soft;
    c.sloResources.clear();
    c.gpus = Gpus::whole(1);
    c.tier = c.requiredTier = Tier::confidential_vm;
    c.sharing = {PeerTrust::distrusting, PeerTrust::same_tenant, PeerTrust::same_tenant, PeerTrust::same_tenant};
    c.handover = Handover::own_kernel;
    c.compliance = Compliance::confidential;
    c.surchargePercent = 12;
    c.slices = {{"h100-80gb-pcie", "whole GPU", ""}};
    c.nodes = {"cc-single"};
    return made;
}

// MPS by a tenant that would accept others of its domain on its GPU, and that they fall together.
Case good_mps() {
    Case made = good_mig();
    made.policy().threatModel = made.contract.threatModel = ThreatModel::internal;
    made.tenant() = fixture::subject("research", OperatorTrust::trusted, Compliance::off, true);
    made.work = fixture::request({Mechanism::mps, fixture::Form::fraction}, Tier::container,
                                 {PeerTrust::same_domain, PeerTrust::same_domain}, fixture::Level::soft);
    Contract& c = made.contract;
    c.tenantClass = "research";
    c.mechanism = Mechanism::mps;
    c.fraction = true;
    c.gpus = {gpu_unit / 8};
    c.sharing.instance = PeerTrust::same_tenant;
    c.slo = Slo::soft;
    c.sloResources.clear();
    c.quota = QuotaModel::fair_share;
    c.priority = 20;
    c.isolates = {{"memory-content", Strength::soft, Grade::documented, "Its own address space.", "vendor"}};
    c.open =
        open_aspects({Aspect::pcie, Aspect::power_and_clocks, Aspect::faults, Aspect::l2, Aspect::memory_bandwidth});
    return made;
}

// Named strangers behind one kernel, by an exception that everyone signed.
Case good_exception() {
    Case made = good_mig();
    made.policy().exceptions = {
        {.name = "migration-week",
         .tenants = {"subject", "rival"},
         .tier = Tier::container,
         .grantedBy = "security-admin",
         .consents = {{"subject", "ciso", fixture::two_days_ago}, {"rival", "ciso", fixture::two_days_ago}},
         .expires = {fixture::now.ms + 1000},
         .reason = "moving house"}};
    made.work.spec.isolation.node = made.contract.sharing.node = PeerTrust::distrusting;
    made.contract.exceptions = {{"migration-week", {"subject", "rival"}, Tier::container, {fixture::now.ms + 1000}}};
    return made;
}

Advisory flaw(bool escape, Instant due) {
    return {.id = "CVE-0000-0001",
            .component = Component::container_toolkit,
            .fixed = {{"", "1.17.8"}},
            .escape = escape,
            .closesTiers = {Tier::container},
            .published = fixture::two_days_ago,
            .due = due};
}

TEST(Checker, accepts_contracts_that_keep_every_rule) {
    EXPECT_EQ(print(good_mig().judge()), "");
    EXPECT_EQ(print(good_co_residency().judge()), "");
    EXPECT_EQ(print(good_confidential().judge()), "");
    EXPECT_EQ(print(good_mps().judge()), "");
    EXPECT_EQ(print(good_exception().judge()), "");
}

struct Bad {
    std::string_view rule, says;
    Case (*good)();
    std::function<void(Case&)> spoil;
};

void expect_each_is_seen(const std::vector<Bad>& rows) {
    for (const Bad& row : rows) {
        Case spoilt = row.good();
        row.spoil(spoilt);
        const Breaches broken = spoilt.judge();
        EXPECT_TRUE(names(broken, row.rule)) << row.rule << ": " << row.says << "\nbut it sees only\n" << print(broken);
    }
}

TEST(Checker, sees_each_of_the_eight_rules_broken) {
    expect_each_is_seen({
        {"rule 1", "strangers behind one kernel", good_mig,
         [](Case& c) { c.contract.sharing.node = *(c.work.spec.isolation.node = PeerTrust::distrusting); }},
        {"rule 1", "a VM without IOMMU groups", good_co_residency,
         [](Case& c) {
             std::erase_if(c.node().status.capabilities, [](auto& d) { return d.name == Capability::iommu_groups; });
         }},
        {"rule 1", "strangers on one GPU in containers", good_mig,
         [](Case& c) { c.contract.sharing.gpu = c.contract.sharing.node = PeerTrust::distrusting; }},
        {"rule 1", "strangers on one GPU in `regulated`", good_co_residency,
         [](Case& c) { c.policy().threatModel = c.contract.threatModel = ThreatModel::regulated; }},
        {"rule 1", "co-residency not accepted", good_co_residency, [](Case& c) { c.tenant().accepts.clear(); }},
        {"rule 1", "a host in `regulated` that cannot prove what it booted", good_mig,
         [](Case& c) {
             c.policy().threatModel = c.contract.threatModel = ThreatModel::regulated;
             c.contract.sharing = {};
         }},
        {"rule 1", "a VM handed over like a host", good_co_residency,
         [](Case& c) { c.contract.handover = Handover::verified_reboot; }},
        {"rule 1", "an exception not printed", good_exception, [](Case& c) { c.contract.exceptions.clear(); }},
        {"rule 1", "an exception nobody granted", good_exception, [](Case& c) { c.policy().exceptions.clear(); }},
        {"rule 1", "an expired exception", good_exception,
         [](Case& c) { c.policy().exceptions[0].expires = c.contract.exceptions[0].expires = fixture::an_hour_ago; }},
        {"rule 1", "an exception in `regulated`", good_exception,
         [](Case& c) { c.policy().threatModel = c.contract.threatModel = ThreatModel::regulated; }},
        {"rule 1", "an exception under compliance mode", good_exception,
         [](Case& c) { c.tenant().compliance = c.contract.compliance = Compliance::dedicated; }},
        {"rule 1", "an exception for others", good_exception,
         [](Case& c) { c.policy().exceptions[0].tenants = c.contract.exceptions[0].tenants = {"friend", "rival"}; }},
        {"rule 1", "an exception that someone did not sign", good_exception,
         [](Case& c) { c.policy().exceptions[0].consents.pop_back(); }},
        {"rule 1", "an exception while an escape is open", good_exception,
         [](Case& c) {
             c.policy().versionGate.advisories = {flaw(true, {fixture::now.ms + 1})};
             c.node().status.versions = {{Component::container_toolkit, "1.17.7"}};
         }},
        {"rule 2", "MPS between strangers", good_mps,
         [](Case& c) { c.contract.sharing.gpu = c.contract.sharing.node = PeerTrust::distrusting; }},
        {"rule 2", "MPS between tenants in `cloud`", good_mps,
         [](Case& c) { c.policy().threatModel = c.contract.threatModel = ThreatModel::cloud; }},
        {"rule 2", "a fault domain nobody accepted", good_mps, [](Case& c) { c.tenant().accepts.clear(); }},
        {"rule 2", "two tenants in one MIG instance", good_mig,
         [](Case& c) { c.contract.sharing.instance = PeerTrust::same_domain; }},
        {"rule 3", "a hard level on MPS", good_mps,
         [](Case& c) {
             c.work.spec.slo.level = c.contract.slo = Slo::hard;
             c.contract.sloResources = {Aspect::sm};
         }},
        {"rule 3", "a hard level on PCIe", good_mig, [](Case& c) { c.contract.sloResources.push_back(Aspect::pcie); }},
        {"rule 3", "a hard level on clocks", good_mig,
         [](Case& c) { c.contract.sloResources = {Aspect::power_and_clocks}; }},
        {"rule 3", "a hard level on what counters show", good_mig,
         [](Case& c) { c.contract.sloResources = {Aspect::observability}; }},
        {"rule 3", "a hard level beyond the guarantee", good_mig,
         [](Case& c) { c.tenant().quota.guarantee = c.contract.guarantee = Gpus::of_thousandths(100); }},
        {"rule 3", "a hard level on work that may be stopped", good_mig,
         [](Case& c) { c.contract.preemptible = true; }},
        {"rule 3", "a hard level without CPU", good_mig, [](Case& c) { c.work.spec.cpu.reset(); }},
        {"rule 3", "a hard level without NIC", good_mig, [](Case& c) { c.work.spec.network.reserved = false; }},
        {"rule 4", "strangers on one NVLink", good_co_residency,
         [](Case& c) { c.node().status.nvlink = NvLink::bridge; }},
        {"rule 4", "an NVLink shared in the domain unasked", good_mps,
         [](Case& c) {
             c.tenant().accepts = {{Risk::shared_fault_domain, "ciso", fixture::two_days_ago}};
             std::erase_if(c.node().status.capabilities,
                           [](auto& d) { return d.name == Capability::nvlink_partition; });
         }},
        {"rule 4", "an NVLink shared and not said", good_mps,
         [](Case& c) {
             std::erase_if(c.node().status.capabilities,
                           [](auto& d) { return d.name == Capability::nvlink_partition; });
         }},
        {"rule 4", "NVLink across MIG instances", good_mig, [](Case& c) { c.work.spec.gpu.nvlink = true; }},
        {"rule 5", "compliance `confidential` in a plain VM", good_confidential,
         [](Case& c) { c.contract.tier = *(c.work.spec.isolation.tier = Tier::vm); }},
        {"rule 5", "compliance `dedicated` on a shared node", good_confidential,
         [](Case& c) { c.tenant().compliance = c.contract.compliance = Compliance::dedicated; }},
        {"rule 5", "a GPU shared under compliance mode", good_confidential,
         [](Case& c) { c.contract.sharing.gpu = PeerTrust::same_domain; }},
        {"rule 5", "two GPUs in a confidential VM", good_confidential,
         [](Case& c) { c.contract.gpus = Gpus::whole(*(c.work.spec.gpu.count = 2)); }},
        {"rule 5", "a confidential VM on a host with the mode off", good_confidential,
         [](Case& c) { c.node().status.confidentialMode = ConfidentialMode::off; }},
        {"rule 5", "a confidential VM on a host in devtools mode", good_confidential,
         [](Case& c) { c.node().status.confidentialMode = ConfidentialMode::devtools; }},
        {"rule 5", "a plain container on a host with the mode on", good_mig,
         [](Case& c) { c.node().status.confidentialMode = ConfidentialMode::on; }},
        {"rule 5", "RDMA in the clear", good_confidential, [](Case& c) { c.work.spec.network.rdma = true; }},
        {"rule 5", "local NVMe in the clear", good_confidential,
         [](Case& c) { c.work.spec.storage.localNvme = ByteSize{1}; }},
        {"rule 6", "an operator who can look", good_mig,
         [](Case& c) { c.tenant().operatorTrust = OperatorTrust::untrusted; }},
        {"rule 7", "a MIG-backed vGPU on the node's word", good_co_residency,
         [](Case& c) {
             for (auto& d : c.node().status.capabilities) d.verifiedAt.reset();
         }},
        {"rule 7", "a MIG-backed vGPU on old evidence", good_co_residency,
         [](Case& c) {
             for (auto& d : c.node().status.capabilities) d.verifiedAt = fixture::two_days_ago;
         }},
        {"rule 7", "a MIG-backed vGPU on evidence from the future", good_co_residency,
         [](Case& c) {
             for (auto& d : c.node().status.capabilities) d.verifiedAt = Instant{fixture::now.ms + 1};
         }},
        {"rule 7", "a reboot nobody verified", good_mig,
         [](Case& c) { c.contract.handover = Handover::verified_reboot; }},
        {"rule 8", "more GPUs than there are", good_mig, [](Case& c) { c.contract.gpus = Gpus::whole(9); }},
        {"rule 8", "more GPUs per task than a node has", good_confidential,
         [](Case& c) { c.contract.gpus = Gpus::whole(*(c.work.spec.gpu.count = 9)); }},
    });
}

TEST(Checker, sees_class_place_gate_and_disclosure_broken) {
    expect_each_is_seen({
        {"class", "a mechanism the class does not sell", good_mps,
         [](Case& c) { c.tenant().tenantClass = c.contract.tenantClass = "slo-serving"; }},
        {"class", "a fraction the class does not sell", good_mps,
         [](Case& c) { c.tenant().tenantClass = c.contract.tenantClass = "frontier-training"; }},
        {"class", "a tier below the class", good_mps,
         [](Case& c) {
             c.tenant().tenantClass = c.contract.tenantClass = "batch";
             c.contract.tier = *(c.work.spec.isolation.tier = Tier::process);
         }},
        {"class", "more priority than the class has", good_mig, [](Case& c) { c.contract.priority = 101; }},
        {"class", "preemptible in a class that never is", good_mig, [](Case& c) { c.contract.preemptible = true; }},
        {"P2", "a priority nobody granted", good_mig, [](Case& c) { c.tenant().priorityGrant = 79; }},
        {"P3", "a process in `cloud`", good_mig, [](Case& c) { c.contract.tier = Tier::process; }},
        {"facts 1.3", "MIG in a confidential VM", good_confidential,
         [](Case& c) { c.contract.mechanism = *(c.work.spec.gpu.mechanism = Mechanism::mig); }},
        {"facts 1.3", "a vGPU in a container", good_co_residency,
         [](Case& c) { c.contract.tier = *(c.work.spec.isolation.tier = Tier::container); }},
        {"S1", "a GPU passed to a VM and shared", good_mig,
         [](Case& c) { c.contract.tier = *(c.work.spec.isolation.tier = Tier::vm); }},
        {"S1", "a whole GPU with a guest", good_confidential,
         [](Case& c) { c.contract.sharing.gpu = PeerTrust::same_domain; }},
        {"Q1", "more than a hard quota", good_mig, [](Case& c) { c.contract.gpus = Gpus::of_thousandths(8001); }},
        {"quota", "more than the limit", good_mps, [](Case& c) { c.tenant().quota.limit = Gpus::of_thousandths(124); }},
        {"node", "no node at all", good_mig, [](Case& c) { c.contract.nodes.clear(); }},
        {"node", "a node that does not exist", good_mig, [](Case& c) { c.contract.nodes = {"atlantis"}; }},
        {"node", "a node closed to leases", good_mig, [](Case& c) { c.node().spec.unschedulable = true; }},
        {"node", "another model", good_mig, [](Case& c) { c.work.spec.gpu.models = {"h200-141gb"}; }},
        {"node", "a slice the board does not have", good_mig, [](Case& c) { c.work.spec.gpu.profile = "1g.18gb"; }},
        {"node", "a MIG slice by time-sliced vGPU", good_co_residency,
         [](Case& c) { c.contract.mechanism = *(c.work.spec.gpu.mechanism = Mechanism::vgpu); }},
        {"rule 8", "more cores than the host has", good_mig, [](Case& c) { c.work.spec.cpu = 129; }},
        {"P6", "outside the tenant's sites", good_mig, [](Case& c) { c.tenant().placement.sites = {"ashburn"}; }},
        {"P6", "outside the workload's jurisdictions", good_mig,
         [](Case& c) { c.work.spec.placement.jurisdictions = {"us"}; }},
        {"I10", "an overdue advisory", good_mig,
         [](Case& c) {
             c.policy().versionGate.advisories = {flaw(false, fixture::an_hour_ago)};
             c.node().status.versions = {{Component::container_toolkit, "1.9.12"}};
         }},
        {"P4", "PCIe not disclosed", good_mig,
         [](Case& c) { std::erase_if(c.contract.open, [](auto& held) { return held.subject == "pcie"; }); }},
        {"P4", "power not disclosed", good_mig,
         [](Case& c) {
             std::erase_if(c.contract.open, [](auto& held) { return held.subject == "power-and-clocks"; });
         }},
        {"P4", "the driver not disclosed", good_mig,
         [](Case& c) { std::erase_if(c.contract.open, [](auto& held) { return held.subject == "gpu-driver"; }); }},
        {"P4", "shared faults of MPS not disclosed", good_mps,
         [](Case& c) { std::erase_if(c.contract.open, [](auto& held) { return held.subject == "faults"; }); }},
        {"P4", "shared faults of MPS called hard", good_mps,
         [](Case& c) { c.contract.isolates.push_back({"faults", Strength::hard, Grade::silicon, "Kept.", "we say"}); }},
        {"E6", "a simulated capability that reads like silicon", good_co_residency,
         [](Case& c) {
             for (auto& d : c.node().status.capabilities) d.grade = Grade::simulated;
             c.contract.grade = Grade::silicon;
         }},
        {"E6", "a claim without a source", good_mig, [](Case& c) { c.contract.isolates[0].source.clear(); }},
        {"I5", "no scrub", good_mig, [](Case& c) { c.contract.reclaim.clear(); }},
        {"I4", "no erase", good_mig, [](Case& c) { c.work.spec.storage.localNvme = ByteSize{1}; }},
        {"P5", "a surcharge without compliance mode", good_mig, [](Case& c) { c.contract.surchargePercent = 12; }},
        {"P5", "compliance mode for free", good_confidential, [](Case& c) { c.contract.surchargePercent = 0; }},
        {"request", "the mechanism swapped", good_mig, [](Case& c) { c.work.spec.gpu.mechanism = Mechanism::whole; }},
        {"request", "a lower tier than asked", good_mig, [](Case& c) { c.work.spec.isolation.tier = Tier::vm; }},
        {"request", "wider sharing than asked", good_mig,
         [](Case& c) { c.work.spec.isolation.gpu = PeerTrust::same_tenant; }},
        {"request", "a softer level than asked", good_mps, [](Case& c) { c.work.spec.slo.level = Slo::hard; }},
        {"request", "another time", good_mig, [](Case& c) { c.contract.asOf = fixture::an_hour_ago; }},
        {"request", "a required tier above the tier", good_mig, [](Case& c) { c.contract.requiredTier = Tier::vm; }},
    });
}

TEST(Checker, sees_refusals_without_cause_without_words_and_proposals_that_give_something_away) {
    const Case good = good_mig();
    const Checker checker(good.snapshot, fixture::now);
    const Objected spoken{std::string(text_of(Objection::slo_nic).code), 3, "No NIC is reserved.", "Reserve one."};
    Refusal refusal;
    refusal.workload = "work";
    refusal.tenant = "subject";
    refusal.objections = {spoken};
    refusal.without_proposal = "nothing would do";
    EXPECT_TRUE(names(checker.of(good.work, refusal), "P2")) << "a refusal although no rule objects";

    GpuWorkload bare = good.work;
    bare.spec.network.reserved = false;
    EXPECT_EQ(print(checker.of(bare, refusal)), "") << "an honest refusal";
    GpuWorkload barer = bare;
    barer.spec.cpu.reset();
    EXPECT_TRUE(names(checker.of(barer, refusal), "rule 3")) << "a second objection kept back";

    const auto refused = [&](auto&& spoil) {
        Refusal spoilt = refusal;
        spoil(spoilt);
        return checker.of(bare, spoilt);
    };
    EXPECT_TRUE(names(refused([](Refusal& r) { r.objections.clear(); }), "P2")) << "no objection";
    EXPECT_TRUE(names(refused([](Refusal& r) { r.objections[0].remedy.clear(); }), "P2")) << "no remedy";
    EXPECT_TRUE(names(refused([](Refusal& r) { r.without_proposal.clear(); }), "P2")) << "no proposal, and no word why";

    const auto offered = [&](auto&& change, std::vector<Change> listed) {
        Refusal spoilt = refusal;
        spoilt.without_proposal.clear();
        spoilt.proposal = Proposal{std::move(listed), bare};
        change(spoilt.proposal->request.spec);
        return checker.of(bare, spoilt);
    };
    const Change nic{"spec.network.reserved", "false", "true"};
    EXPECT_EQ(print(offered([](auto& s) { s.network.reserved = true; }, {nic})), "") << "an honest proposal";
    EXPECT_TRUE(names(offered([](auto&) {}, {}), "P2")) << "no change";
    EXPECT_TRUE(names(offered([](auto& s) { s.network.reserved = true; }, {}), "P2")) << "a change not listed";
    EXPECT_TRUE(names(
        offered([](auto& s) { s.isolation.tier = Tier::process; }, {{"spec.isolation.tier", "container", "process"}}),
        "P2"))
        << "a lower tier";
    EXPECT_TRUE(names(offered([](auto& s) { s.isolation.node = PeerTrust::distrusting; },
                              {{"spec.isolation.node", "same-domain", "distrusting"}}),
                      "P2"))
        << "wider sharing";
    EXPECT_TRUE(names(offered([](auto& s) { s.tenant = "friend"; }, {{"spec.tenant", "subject", "friend"}}), "P2"))
        << "another tenant";
    EXPECT_TRUE(names(
        offered([](auto& s) { s.placement.sites = {"ashburn"}; }, {{"spec.placement.sites", "any", "ashburn"}}), "P6"))
        << "another place";
}

}  // namespace

}  // namespace bulkhead
