// What an isolation request closes beyond the rules is written in the contract; what the rules demand is not.
#include <gtest/gtest.h>

#include "bulkhead/policy/compile.hpp"
#include "bulkhead/policy/fleet_fixture_test.hpp"

namespace bulkhead {
namespace {

struct Asked {
    const char* tenant_class = "research";
    ThreatModel threat = ThreatModel::internal;
    Compliance compliance = Compliance::off;
    bool in_domain = true;
    std::optional<PeerTrust> node = {}, gpu = {};
    const char* profile = "";
    std::optional<Mechanism> mechanism = {};
};

std::optional<AskedExclusivity> written(const Asked& asked) {
    std::vector<GpuNode> nodes = fixture::machines();
    Snapshot snapshot =
        fixture::fleet(asked.threat, {nodes.back()},
                       fixture::subject(asked.tenant_class, OperatorTrust::trusted, asked.compliance, true));
    if (!asked.in_domain) snapshot.tenants[0].spec.trustDomain.reset();
    GpuWorkload work;
    work.metadata.name = "w";
    work.spec.tenant = "subject";
    if (*asked.profile == 0 && asked.mechanism != Mechanism::mps)
        work.spec.gpu.count = 1;
    else if (*asked.profile == 0)
        work.spec.gpu.fraction = Gpus::of_thousandths(500);
    work.spec.gpu.profile = asked.profile;
    work.spec.gpu.mechanism = asked.mechanism;
    work.spec.isolation.node = asked.node;
    work.spec.isolation.gpu = asked.gpu;
    const Compiler compiler(snapshot, fixture::now);
    const Decision decision = compiler.compile(work);
    const Contract* contract = std::get_if<Contract>(&decision);
    EXPECT_NE(contract, nullptr) << std::get<Refusal>(decision).objections.front().says;
    return contract == nullptr ? std::nullopt : contract->exclusivity;
}

TEST(AskedExclusivity, a_node_for_one_tenant_where_the_rules_share_it_in_the_domain) {
    const auto found = written({.node = PeerTrust::same_tenant, .mechanism = Mechanism::whole});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->node, PeerTrust::same_domain);
    EXPECT_FALSE(found->gpu) << "a whole GPU is leased, not kept";
}

TEST(AskedExclusivity, what_the_rules_give_anyway_is_not_asked_for_beyond_them) {
    EXPECT_FALSE(written({}));
    EXPECT_FALSE(written({.node = PeerTrust::same_domain}));
    EXPECT_FALSE(written({.tenant_class = "frontier-training", .node = PeerTrust::same_tenant})) << "the class does";
    EXPECT_FALSE(written({.compliance = Compliance::dedicated, .node = PeerTrust::same_tenant})) << "the mode does";
    EXPECT_FALSE(written({.in_domain = false, .node = PeerTrust::same_tenant})) << "it trusts no other tenant";
}

TEST(AskedExclusivity, a_gpu_whose_other_slices_the_rules_would_share) {
    const auto found = written({.gpu = PeerTrust::same_tenant, .profile = "1g.10gb", .mechanism = Mechanism::mig});
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->node);
    EXPECT_EQ(found->gpu, PeerTrust::same_domain);
    EXPECT_FALSE(written({.gpu = PeerTrust::same_tenant, .mechanism = Mechanism::mps}))
        << "an MPS server serves one tenant by its nature";
}

TEST(AskedExclusivity, a_domain_of_its_own_where_the_rules_would_let_strangers_in) {
    const auto found = written({.tenant_class = "batch",
                                .threat = ThreatModel::cloud,
                                .node = PeerTrust::same_domain,
                                .mechanism = Mechanism::whole});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->node, PeerTrust::distrusting);
}

}  // namespace
}  // namespace bulkhead
