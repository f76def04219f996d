#include "bulkhead/policy/guarantee.hpp"

#include <gtest/gtest.h>

#include "bulkhead/gpu/board.hpp"
#include "bulkhead/policy/mig_cover.hpp"
#include "bulkhead/policy/node_sizes.hpp"

namespace bulkhead::guarantee_test {
namespace {

GpuNode node_with(const char* name, const char* model, std::int64_t gpus, const char* site = "fra") {
    GpuNode made;
    made.metadata.name = name;
    made.spec.site = site;
    made.status.gpus = {{.model = model, .count = gpus}};
    return made;
}

Tenant tenant_with(const char* name, std::int64_t guarantee, const char* unit = "gpu", const char* parent = "") {
    Tenant made;
    made.metadata.name = name;
    made.spec.parent = parent;
    made.spec.tenantClass = "research";
    made.spec.quota.guarantee = Gpus::whole(guarantee);
    made.spec.quota.guaranteeUnit = unit;
    return made;
}

Snapshot two_sites(std::vector<Tenant> tenants) {
    Snapshot snapshot;
    FleetPolicy policy;
    policy.metadata.name = "fleet";
    policy.spec.sites = {{"fra", "eu"}, {"iad", "us"}};
    snapshot.policies = {policy};
    snapshot.nodes = {node_with("a", "h100-80gb-sxm5", 8), node_with("b", "h100-80gb-sxm5", 8, "iad"),
                      node_with("c", "a30-24gb", 4, "iad")};
    snapshot.tenants = std::move(tenants);
    return snapshot;
}

TEST(GuaranteeUnit, is_counted_in_gpus_for_quota) {
    Tenant european = tenant_with("t", 2, "node");
    european.spec.placement.jurisdictions = {"eu"};
    struct Row {
        std::string_view says;
        Tenant tenant;
        Gpus gpus;
        std::string_view text;
    };
    const Row rows[] = {
        {"GPUs are GPUs", tenant_with("t", 3), Gpus::whole(3), "3 GPUs"},
        {"a node counts as the smallest where it may run", tenant_with("t", 2, "node"), Gpus::whole(8), "2 nodes"},
        {"in Europe nodes have 8", european, Gpus::whole(16), "2 nodes"},
        {"a size that is named does not depend on the fleet", tenant_with("t", 1, "8-gpu-node"), Gpus::whole(8),
         "1 node of 8 GPUs"},
        {"a 1g is a seventh", tenant_with("t", 7, "1g.10gb"), Gpus::whole(1), "7 x 1g.10gb"},
        {"of an A30 a quarter", tenant_with("t", 4, "1g.6gb"), Gpus::whole(1), "4 x 1g.6gb"},
        {"of a board that is not in this fleet", tenant_with("t", 7, "1g.18gb"), Gpus::whole(1), "7 x 1g.18gb"},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(guaranteed_gpus(row.tenant, two_sites({})), row.gpus) << row.says;
        EXPECT_EQ(print_guarantee(row.tenant.spec.quota), row.text) << row.says;
    }
}

TEST(GuaranteeUnit, is_one_of_four_forms) {
    for (const char* unit : {"gpu", "node", "8-gpu-node", "64-gpu-node", "1g.10gb", "1c.3g.40gb", "1g.10gb+me"})
        EXPECT_TRUE(parse_guarantee_unit(unit)) << unit;
    for (const char* unit :
         {"", "gpus", "GPU", "nodes", "0-gpu-node", "65-gpu-node", "-gpu-node", "-1-gpu-node", "x-gpu-node",
          "8-gpu-nodes", "10gb", "g.10gb", "1g.10GB", "1g.10gb 2", "9999999999999999999999-gpu-node"})
        EXPECT_FALSE(parse_guarantee_unit(unit)) << unit;
}

TEST(GuaranteeUnit, misfits_are_found_in_gpus) {
    struct Row {
        std::string_view says;
        std::vector<Tenant> tenants;
        std::string_view path, what;
    };
    Tenant limited = tenant_with("t", 2, "8-gpu-node");
    limited.spec.quota.limit = Gpus::whole(15);
    const Row rows[] = {
        {"a parent's GPUs cover a child's nodes",
         {tenant_with("p", 16), tenant_with("c", 2, "8-gpu-node", "p")},
         "",
         ""},
        {"or do not",
         {tenant_with("p", 15), tenant_with("c", 2, "8-gpu-node", "p")},
         "/spec/quota/guarantee",
         "its 1 children are guaranteed 16 GPUs together, and its own guarantee of 15 GPUs is 15 GPUs"},
        {"a parent's nodes cover a child's GPUs",
         {tenant_with("p", 2, "8-gpu-node"), tenant_with("c", 16, "gpu", "p")},
         "",
         ""},
        {"a limit is in GPUs",
         {limited},
         "/spec/quota/limit",
         "its limit of 15 GPUs is below its guarantee of 2 nodes of 8 GPUs, which are 16 GPUs"},
        {"a profile of no board",
         {tenant_with("t", 1, "5g.99gb")},
         "/spec/quota/guaranteeUnit",
         "no board has the MIG profile 5g.99gb"},
    };
    for (const Row& row : rows) {
        const auto findings = misfit_guarantees(two_sites(row.tenants));
        ASSERT_EQ(findings.size(), row.path.empty() ? 0u : 1u) << row.says;
        if (findings.empty()) continue;
        EXPECT_EQ(findings[0].path, row.path) << row.says;
        EXPECT_EQ(findings[0].what, row.what) << row.says;
    }
}

TEST(Entitlement, is_the_guarantee_of_the_domain_in_whole_nodes_by_parts) {
    Snapshot snapshot = two_sites(
        {tenant_with("alone", 3), tenant_with("p", 6), tenant_with("c", 2, "gpu", "p"), tenant_with("none", 0)});
    auto entitled = entitlements(snapshot);
    EXPECT_EQ(entitled.at("alone"), Gpus::whole(4)) << "the node of 4 is enough";
    EXPECT_EQ(entitled.at("c"), Gpus::whole(4));
    EXPECT_EQ(entitled.at("p"), Gpus::whole(8)) << "parent and child distrust each other: a node each";
    EXPECT_EQ(entitled.at("none"), Gpus{});
    for (const char* name : {"p", "c"})
        for (Tenant& each : snapshot.tenants)
            if (each.metadata.name == name) each.spec.trustDomain = DomainMembership{"lab", Consent{"head", {}}};
    entitled = entitlements(snapshot);
    EXPECT_EQ(entitled.at("p"), Gpus::whole(8)) << "six GPUs of one domain are one node";
    EXPECT_EQ(entitled.at("c"), (Gpus{(8 * gpu_unit + 2) / 3})) << "two of six GPUs: a third of it";
}

TEST(NodeSizes, are_summed_to_the_smallest_set_that_is_enough) {
    struct Row {
        std::map<std::int64_t, std::int64_t> nodes;
        std::int64_t gpus, closes;
    };
    const Row rows[] = {
        {{{8, 4}}, 9, 16},
        {{{8, 1}}, 9, 16},
        {{{4, 1}, {8, 1}}, 3, 4},
        {{{4, 1}, {8, 1}}, 5, 8},
        {{{4, 1}, {8, 1}}, 9, 12},
        {{{4, 1}, {8, 3}}, 14, 16},
        {{{4, 2}, {6, 1}}, 8, 8},
        {{{4, 1}, {6, 1}}, 8, 10},
        {{{4, 1}, {8, 1}}, 13, 16},
        {{{4, 9'000}, {8, 9'000}}, 5'001, 5'008},
        {{}, 3, 3},
    };
    for (const Row& row : rows) EXPECT_EQ(gpus_of_fewest_nodes(row.nodes, row.gpus), row.closes) << row.gpus;
}

TEST(MigCover, counts_the_fewest_gpus) {
    const gpu::Board& board = **gpu::find_board("h100-80gb-sxm5");
    const auto index = [&](std::string_view name) {
        for (std::size_t i = 0; i < board.profiles.size(); ++i)
            if (board.profiles[i].name == name) return i;
        return std::size_t{99};
    };
    struct Row {
        std::int64_t one, three, gpus;
    };
    for (const Row& row : {Row{7, 0, 1}, Row{8, 0, 2}, Row{0, 2, 1}, Row{0, 3, 2}, Row{4, 1, 1}, Row{5, 1, 2},
                           Row{16, 4, 4}, Row{70'000, 0, 10'000}}) {
        const std::vector<InstanceCount> wanted{{index("1g.10gb"), row.one}, {index("3g.40gb"), row.three}};
        EXPECT_EQ(gpus_for_instances(board, wanted), row.gpus) << row.one << " and " << row.three;
    }
}

}  // namespace
}  // namespace bulkhead::guarantee_test
