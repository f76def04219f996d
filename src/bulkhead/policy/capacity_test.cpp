#include "bulkhead/policy/capacity.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

constexpr Instant now{1'800'000'000'000};

GpuNode node(const char* name, std::int64_t gpus, const char* site, bool confidential = false) {
    GpuNode made;
    made.metadata.name = name;
    made.spec.site = site;
    made.status.gpus = {{.model = "h100-80gb-sxm5", .count = gpus}};
    if (confidential) {
        made.status.confidentialMode = ConfidentialMode::on;
        for (const Capability capability :
             {Capability::virtual_machines, Capability::iommu_groups, Capability::confidential_cpu,
              Capability::confidential_gpu, Capability::confidential_board, Capability::nvlink_partition})
            made.status.capabilities.push_back({.name = capability, .grade = Grade::simulated, .verifiedAt = now});
    }
    return made;
}

Tenant tenant(const char* name, std::int64_t guarantee, const char* parent = "") {
    Tenant made;
    made.metadata.name = name;
    made.spec.parent = parent;
    made.spec.tenantClass = "frontier-training";
    made.spec.quota.guarantee = Gpus::whole(guarantee);
    return made;
}

Snapshot fleet(std::vector<Tenant> tenants) {
    Snapshot snapshot;
    FleetPolicy policy;
    policy.metadata.name = "fleet";
    policy.spec.sites = {{"fra", "eu"}, {"iad", "us"}};
    policy.spec.versionGate.shippedAdvisories = false;
    snapshot.policies.push_back(policy);
    snapshot.nodes = {node("a", 8, "fra"), node("b", 8, "iad"), node("t", 8, "fra", true)};
    snapshot.tenants = std::move(tenants);
    return snapshot;
}

std::vector<std::string> short_of(const Snapshot& snapshot) {
    std::vector<std::string> names;
    for (const Finding& finding : unkeepable_guarantees(snapshot, now)) names.push_back(finding.name);
    return names;
}

TEST(Guarantees, are_held_against_silicon_that_can_serve_the_tier_and_place) {
    Tenant european = tenant("european", 8);
    european.spec.placement.jurisdictions = {"eu"};
    Tenant wary = tenant("wary", 8);
    wary.spec.operatorTrust = OperatorTrust::untrusted;
    Tenant greedy_wary = wary;
    greedy_wary.spec.quota.guarantee = Gpus::whole(9);
    struct Row {
        std::string_view says;
        std::vector<Tenant> tenants;
        std::vector<std::string> unkept;
    };
    const Row rows[] = {
        {"no tenant is owed anything", {}, {}},
        {"all of the ordinary GPUs", {tenant("a", 16)}, {}},
        {"one more than there are: the confidential node serves no other tier", {tenant("a", 17)}, {"a"}},
        {"a European takes its own site, the other the rest", {tenant("a", 8), european}, {}},
        {"each could be kept alone, both cannot", {tenant("a", 9), european}, {"european"}},
        {"an untrusted operator leaves the confidential node", {tenant("a", 16), wary}, {}},
        {"and not more than it has", {greedy_wary}, {"wary"}},
        {"a parent's guarantee covers its children's", {tenant("p", 8), tenant("c", 8, "p")}, {}},
        {"a parent and its child that do not trust each other need nodes of their own",
         {tenant("p", 16), tenant("c", 10, "p")},
         {"c"}},
        {"three distrusting tenants and two nodes", {tenant("a", 4), tenant("b", 4), tenant("c", 4)}, {"c"}},
    };
    for (const Row& row : rows) EXPECT_EQ(short_of(fleet(row.tenants)), row.unkept) << row.says;
}

TEST(Guarantees, a_shortfall_names_the_competitors_the_numbers_and_what_would_fit) {
    Tenant european = tenant("european", 8);
    european.spec.placement.jurisdictions = {"eu"};
    const auto findings = unkeepable_guarantees(fleet({tenant("anywhere", 9), european}), now);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].path, "/spec/quota/guarantee");
    EXPECT_EQ(findings[0].what,
              "the guarantee of 8 GPUs in tier container cannot be kept together with anywhere: 3 nodes are needed "
              "(anywhere 2, european 1), and 2 nodes with 16 GPUs may serve them; guaranteed are 17 GPUs");
    EXPECT_EQ(
        findings[0].remedy,
        "lower the guarantee of european to 0 GPUs, or that of anywhere to 8 GPUs, or add nodes that can serve tier "
        "container where european may run");
}

TEST(Guarantees, nodes_that_may_not_serve_now_say_how_many_would_be_needed) {
    Snapshot snapshot = fleet({tenant("a", 12)});
    for (GpuNode& each : snapshot.nodes) each.spec.unschedulable = true;
    const auto findings = unkeepable_guarantees(snapshot, now);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].what,
              "the guarantee of 12 GPUs in tier container cannot be kept: 2 nodes are needed (a 2), and 0 nodes with 0 "
              "GPUs may serve it; guaranteed are 12 GPUs");
}

TEST(Guarantees, the_refusal_is_about_the_tenant_that_is_applied) {
    const std::vector<std::string> applied{"a"};
    const auto snapshot = fleet({tenant("a", 12), tenant("b", 4), tenant("c", 4)});
    EXPECT_EQ(unkeepable_guarantees(snapshot, now).front().name, "c");
    const auto findings = unkeepable_guarantees(snapshot, now, applied);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].name, "a");
    EXPECT_TRUE(findings[0].remedy.starts_with("lower the guarantee of a to 0 GPUs, or add nodes"))
        << "b and c need both nodes, and lowering one of them is not enough: " << findings[0].remedy;
}

// What does not compete is not named.
TEST(Guarantees, only_tenants_that_compete_are_named) {
    Tenant wary = tenant("wary", 8);
    wary.spec.operatorTrust = OperatorTrust::untrusted;
    const auto findings = unkeepable_guarantees(fleet({tenant("a", 8), wary, tenant("b", 9)}), now);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].name, "b");
    EXPECT_EQ(findings[0].what.find("wary"), std::string::npos) << findings[0].what;
}

TEST(Guarantees, of_one_trust_domain_share_the_nodes_of_the_domain) {
    std::vector<Tenant> tenants{tenant("a", 4), tenant("b", 4), tenant("c", 4)};
    for (Tenant& each : tenants) each.spec.tenantClass = "research";
    EXPECT_EQ(short_of(fleet(tenants)), std::vector<std::string>{"c"}) << "without a domain they distrust each other";
    for (Tenant& each : tenants) each.spec.trustDomain = DomainMembership{"lab", Consent{"head", now}};
    Snapshot snapshot = fleet(tenants);
    snapshot.policies[0].spec.trustDomains = {{"lab", {"a", "b", "c"}}};
    EXPECT_TRUE(short_of(snapshot).empty());
    for (Tenant& each : snapshot.tenants) each.spec.tenantClass = "frontier-training";
    EXPECT_EQ(short_of(snapshot), std::vector<std::string>{"c"}) << "this class bears no other tenant on its nodes";
    for (Tenant& each : snapshot.tenants) each.spec.tenantClass = "research";
    snapshot.tenants[0].spec.compliance = Compliance::dedicated;
    for (GpuNode& each : snapshot.nodes)
        each.status.capabilities.push_back(
            {.name = Capability::verified_reboot, .grade = Grade::simulated, .verifiedAt = now});
    EXPECT_TRUE(short_of(snapshot).empty()) << "one node for the dedicated tenant, one for its domain";
    snapshot.tenants[0].spec.quota.guarantee = Gpus::whole(9);
    EXPECT_FALSE(short_of(snapshot).empty());
}

TEST(Guarantees, tenants_that_always_run_in_vms_share_nodes_with_strangers) {
    TenantClass boxed;
    boxed.metadata.name = "boxed";
    boxed.spec.mechanisms = {Mechanism::whole};
    boxed.spec.tier = Tier::vm;
    boxed.spec.sharing = {PeerTrust::distrusting, PeerTrust::same_tenant};
    std::vector<Tenant> tenants{tenant("a", 4), tenant("b", 4), tenant("c", 4)};
    for (Tenant& each : tenants) each.spec.tenantClass = "boxed";
    Snapshot snapshot = fleet(tenants);
    snapshot.classes = {boxed};
    EXPECT_EQ(short_of(snapshot).size(), 3u) << "no node can run VMs";
    for (GpuNode& each : snapshot.nodes)
        for (const Capability capability : {Capability::virtual_machines, Capability::iommu_groups})
            each.status.capabilities.push_back({.name = capability, .grade = Grade::simulated, .verifiedAt = now});
    EXPECT_TRUE(short_of(snapshot).empty());
    snapshot.policies[0].spec.threatModel = ThreatModel::internal;
    EXPECT_EQ(short_of(snapshot).size(), 1u) << "inside one organisation no work is put beside strangers unasked";
    snapshot.policies[0].spec.threatModel = ThreatModel::cloud;
    snapshot.classes[0].spec.tier = Tier::container;
    EXPECT_EQ(short_of(snapshot).size(), 1u) << "in containers they close nodes";
}

TEST(Guarantees, a_node_without_verified_reboot_serves_the_trust_domain_of_its_users) {
    Snapshot snapshot = fleet({tenant("a", 8), tenant("b", 8)});
    EXPECT_TRUE(short_of(snapshot).empty()) << "nodes without users go to any domain, to one each";
    snapshot.nodes[0].status.host = NodeHost{.state = CleanState::in_use, .usedBy = {"a"}};
    EXPECT_TRUE(short_of(snapshot).empty());
    snapshot.nodes[1].status.host = NodeHost{.state = CleanState::in_use, .usedBy = {"a"}};
    EXPECT_EQ(short_of(snapshot), std::vector<std::string>{"b"});
    for (GpuNode& each : snapshot.nodes)
        each.status.capabilities.push_back(
            {.name = Capability::verified_reboot, .grade = Grade::simulated, .verifiedAt = now});
    EXPECT_TRUE(short_of(snapshot).empty()) << "a verified reboot opens them to any domain";
    snapshot.tenants[0].status = TenantStatus{.legalHold = true, .why = ""};
    EXPECT_EQ(short_of(snapshot), std::vector<std::string>{"b"}) << "a legal hold forbids the reboot";
    snapshot.tenants[0].status.reset();
    for (GpuNode& each : snapshot.nodes) each.status.capabilities.pop_back();
    snapshot.nodes[1].status.host->usedBy = {"a", "no longer known"};
    EXPECT_FALSE(short_of(snapshot).empty()) << "a node with users that do not trust each other serves none";
}

TEST(Guarantees, nodes_and_profiles_are_units_of_their_own) {
    const auto in = [](const char* unit, std::int64_t count, const char* name = "a") {
        Tenant made = tenant(name, count);
        made.spec.tenantClass = "slo-serving";
        made.spec.quota.guaranteeUnit = unit;
        return made;
    };
    struct Row {
        std::string_view says;
        std::vector<Tenant> tenants;
        std::size_t unkept;
    };
    const Row rows[] = {
        {"two ordinary nodes", {in("node", 2)}, 0},
        {"a third would have to be confidential", {in("node", 3)}, 1},
        {"nodes of at least 8 GPUs", {in("8-gpu-node", 2)}, 0},
        {"of 16 there is none", {in("16-gpu-node", 1)}, 1},
        {"a node of its own and GPUs of another", {in("node", 1), in("gpu", 8, "b")}, 0},
        {"9 GPUs need two nodes, so none is left", {in("node", 1), in("gpu", 9, "b")}, 1},
        {"seven 1g on each of 16 GPUs", {in("1g.10gb", 112)}, 0},
        {"and not one more", {in("1g.10gb", 113)}, 1},
        {"two 3g on each", {in("3g.40gb", 32)}, 0},
        {"not three, though compute slices were left", {in("3g.40gb", 33)}, 1},
        {"one 1g closes a node to strangers", {in("1g.10gb", 1), in("1g.10gb", 1, "b"), in("1g.10gb", 1, "c")}, 1},
        {"no node has this profile", {in("1g.6gb", 1)}, 1},
    };
    for (const Row& row : rows) {
        Snapshot snapshot = fleet(row.tenants);
        for (GpuNode& each : snapshot.nodes)
            each.status.capabilities.push_back({.name = Capability::mig, .grade = Grade::simulated, .verifiedAt = now});
        EXPECT_EQ(short_of(snapshot).size(), row.unkept) << row.says;
    }
}

TEST(Guarantees, different_profiles_of_one_domain_are_packed_on_the_same_gpus) {
    std::vector<Tenant> tenants{tenant("a", 16), tenant("b", 64)};
    tenants[0].spec.quota.guaranteeUnit = "3g.40gb";
    tenants[1].spec.quota.guaranteeUnit = "1g.10gb";
    for (Tenant& each : tenants) {
        each.spec.tenantClass = "research";
        each.spec.trustDomain = DomainMembership{"lab", Consent{"head", now}};
    }
    Snapshot snapshot = fleet(tenants);
    snapshot.policies[0].spec.trustDomains = {{"lab", {"a", "b"}}};
    for (GpuNode& each : snapshot.nodes)
        each.status.capabilities.push_back({.name = Capability::mig, .grade = Grade::simulated, .verifiedAt = now});
    EXPECT_TRUE(short_of(snapshot).empty()) << "a 3g and four 1g fit on one GPU, and there are 16";
    snapshot.tenants[1].spec.quota.guarantee = Gpus::whole(65);
    EXPECT_EQ(short_of(snapshot).size(), 1u);
}

}  // namespace
}  // namespace bulkhead
