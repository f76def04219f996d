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
        {"nobody is owed anything", {}, {}},
        {"all of the ordinary GPUs", {tenant("a", 16)}, {}},
        {"one more than there are: the confidential node serves nobody else", {tenant("a", 17)}, {"a"}},
        {"a European takes its own site, the other the rest", {tenant("a", 8), european}, {}},
        {"each could be kept alone, both cannot", {tenant("a", 9), european}, {"european"}},
        {"an untrusted operator leaves the confidential node", {tenant("a", 16), wary}, {}},
        {"and not more than it has", {greedy_wary}, {"wary"}},
        {"a parent's guarantee covers its children's", {tenant("p", 16), tenant("c", 10, "p")}, {}},
    };
    for (const Row& row : rows) {
        const auto unkept = short_of(fleet(row.tenants));
        EXPECT_EQ(unkept.empty(), row.unkept.empty()) << row.says;
        // Who of several competitors is named first depends on the order of search; that somebody is, and with numbers,
        // not.
        if (row.tenants.size() == 1) {
            EXPECT_EQ(unkept, row.unkept) << row.says;
        }
    }
}

TEST(Guarantees, a_shortfall_names_the_competitors_and_the_numbers) {
    Tenant european = tenant("european", 8);
    european.spec.placement.jurisdictions = {"eu"};
    const auto findings = unkeepable_guarantees(fleet({tenant("anywhere", 9), european}), now);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].path, "/spec/quota/guarantee");
    for (const char* part : {"anywhere", "european", "17", "16"})
        EXPECT_NE(findings[0].what.find(part), std::string::npos) << part << " in: " << findings[0].what;
}

}  // namespace
}  // namespace bulkhead
