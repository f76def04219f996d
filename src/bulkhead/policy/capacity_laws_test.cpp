// Admission against every way to give single nodes to tenants, in random small fleets: five nodes and five tenants at
// most, with trust domains, classes, sites, units, hosts with users, and nodes with and without verified reboot. The
// expected answer is derived from the manifests by rules written down here, not by the code under test.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>

#include "bulkhead/policy/capacity.hpp"

namespace bulkhead::admission_law {
namespace {

constexpr Instant judged_at{1'800'000'000'000};

struct SmallNode {
    std::int64_t gpus = 8;
    bool europe = true, reboots = false, vms = false;
    std::vector<std::size_t> users;
};
struct SmallTenant {
    enum class Unit : std::uint8_t { gpu, node, big_node, slice };
    std::size_t domain = 0;  // 0: none
    enum class Kind : std::uint8_t { alone, mates, boxed } kind = Kind::alone;
    Unit unit = Unit::gpu;
    std::int64_t halves = 0;  // of GPUs, or twice the number of nodes or slices
    bool europe_only = false;
};
struct SmallFleet {
    std::vector<SmallNode> nodes;
    std::vector<SmallTenant> tenants;
};

using Unit = SmallTenant::Unit;
using Kind = SmallTenant::Kind;

SmallFleet random_fleet(std::mt19937_64& rng) {
    const auto below = [&](std::uint64_t n) { return rng() % n; };
    SmallFleet fleet;
    fleet.tenants.resize(1 + below(5));
    std::int64_t gpus = 0;
    fleet.nodes.resize(1 + below(5));
    for (SmallNode& node : fleet.nodes) {
        node.gpus = std::int64_t{1} << below(4);
        gpus += node.gpus;
        node.europe = below(3) != 0;
        node.reboots = below(2) == 0;
        node.vms = below(2) == 0;
        if (below(3) == 0) node.users.push_back(below(fleet.tenants.size()));
        if (below(6) == 0) node.users.push_back(below(fleet.tenants.size()));
    }
    for (SmallTenant& tenant : fleet.tenants) {
        tenant.domain = below(3);
        tenant.kind = static_cast<Kind>(below(3));
        const std::uint64_t pick = below(10);
        tenant.unit = pick < 6 ? Unit::gpu : pick < 8 ? Unit::node : pick == 8 ? Unit::big_node : Unit::slice;
        if (tenant.unit == Unit::slice) tenant.kind = Kind::mates;  // the class that sells slices here
        const std::int64_t most = tenant.unit == Unit::gpu ? 1 + 3 * gpus / std::ssize(fleet.tenants) : 2;
        const auto some = static_cast<std::int64_t>(1 + below(static_cast<std::uint64_t>(most)));
        tenant.halves = tenant.unit == Unit::gpu && tenant.kind == Kind::mates ? some
                        : tenant.unit == Unit::slice ? 2 * (1 + static_cast<std::int64_t>(below(20)))
                                                     : 2 * ((some + 1) / 2);
        tenant.europe_only = tenant.kind != Kind::mates && below(4) == 0;
    }
    return fleet;
}

Snapshot manifests_of(const SmallFleet& fleet) {
    Snapshot out;
    FleetPolicy policy;
    policy.metadata.name = "fleet";
    policy.spec.sites = {{"fra", "eu"}, {"iad", "us"}};
    policy.spec.versionGate.shippedAdvisories = false;
    for (std::size_t d = 1; d <= 2; ++d) policy.spec.trustDomains.push_back({"d" + std::to_string(d), {}});
    const auto sold = [](const char* name, Tier tier, PeerTrust node, PeerTrust gpu) {
        TenantClass made;
        made.metadata.name = name;
        made.spec.mechanisms = {Mechanism::whole, Mechanism::mig};
        made.spec.tier = tier;
        made.spec.sharing = {node, gpu};
        return made;
    };
    out.classes = {sold("alone", Tier::container, PeerTrust::same_tenant, PeerTrust::same_tenant),
                   sold("mates", Tier::container, PeerTrust::same_domain, PeerTrust::same_domain),
                   sold("boxed", Tier::vm, PeerTrust::distrusting, PeerTrust::same_tenant)};
    const auto name = [](std::size_t t) { return "t" + std::to_string(t); };
    for (std::size_t t = 0; t < fleet.tenants.size(); ++t) {
        const SmallTenant& said = fleet.tenants[t];
        Tenant tenant;
        tenant.metadata.name = name(t);
        tenant.spec.tenantClass = said.kind == Kind::alone ? "alone" : said.kind == Kind::mates ? "mates" : "boxed";
        if (said.domain != 0) {
            tenant.spec.trustDomain = DomainMembership{"d" + std::to_string(said.domain), Consent{"head", judged_at}};
            policy.spec.trustDomains[said.domain - 1].members.push_back(name(t));
        }
        tenant.spec.quota.guarantee.units = said.halves * gpu_unit / 2;
        tenant.spec.quota.guaranteeUnit = said.unit == Unit::gpu        ? "gpu"
                                          : said.unit == Unit::node     ? "node"
                                          : said.unit == Unit::big_node ? "4-gpu-node"
                                                                        : "1g.10gb";
        if (said.europe_only) tenant.spec.placement.jurisdictions = {"eu"};
        out.tenants.push_back(std::move(tenant));
    }
    out.policies = {policy};
    for (const SmallNode& said : fleet.nodes) {
        GpuNode node;
        node.metadata.name = "n" + std::to_string(out.nodes.size());
        node.spec.site = said.europe ? "fra" : "iad";
        node.status.gpus = {{.model = "h100-80gb-sxm5", .count = said.gpus}};
        const auto can = [&](Capability capability) {
            node.status.capabilities.push_back(
                {.name = capability, .grade = Grade::simulated, .verifiedAt = judged_at});
        };
        can(Capability::mig);
        if (said.reboots) can(Capability::verified_reboot);
        if (said.vms) can(Capability::virtual_machines);
        if (said.vms) can(Capability::iommu_groups);
        node.status.host.emplace();
        for (const std::size_t user : said.users) node.status.host->usedBy.push_back(name(user));
        out.nodes.push_back(std::move(node));
    }
    return out;
}

class EveryWay {
public:
    explicit EveryWay(const SmallFleet& fleet) : fleet_{fleet}, given_(fleet.nodes.size()) {
        for (std::size_t n = 0; n < fleet.nodes.size(); ++n) {
            ways_.emplace_back();
            for (unsigned set = 0; set < 1u << fleet.tenants.size(); ++set)
                if (may_be_together(set, fleet.nodes[n])) ways_.back().push_back(set);
        }
    }
    bool keepable(std::size_t node = 0) {
        if (node == given_.size()) return served();
        return std::ranges::any_of(ways_[node], [&](unsigned way) {
            given_[node] = way;
            return keepable(node + 1);
        });
    }

private:
    bool trust(std::size_t a, std::size_t b) const {
        return a == b || (fleet_.tenants[a].domain != 0 && fleet_.tenants[a].domain == fleet_.tenants[b].domain);
    }
    bool counts_nodes(std::size_t t) const {
        return fleet_.tenants[t].unit == Unit::node || fleet_.tenants[t].unit == Unit::big_node;
    }
    bool may_be_on(std::size_t t, const SmallNode& node) const {
        const SmallTenant& tenant = fleet_.tenants[t];
        if (tenant.europe_only && !node.europe) return false;
        if (tenant.kind == Kind::boxed && !node.vms) return false;
        if (tenant.unit == Unit::big_node && node.gpus < 4) return false;
        return node.reboots || std::ranges::all_of(node.users, [&](std::size_t user) { return trust(t, user); });
    }
    bool may_be_together(unsigned set, const SmallNode& node) const {
        for (std::size_t a = 0; a < fleet_.tenants.size(); ++a) {
            if ((set >> a & 1) == 0) continue;
            if (!may_be_on(a, node)) return false;
            for (std::size_t b = 0; b < a; ++b) {
                if ((set >> b & 1) == 0) continue;
                const Kind one = fleet_.tenants[a].kind, other = fleet_.tenants[b].kind;
                if (counts_nodes(a) || counts_nodes(b) || one == Kind::alone || other == Kind::alone) return false;
                if (!trust(a, b) && (one != Kind::boxed || other != Kind::boxed)) return false;
            }
        }
        return true;
    }
    // Tenants of the class `mates` put halves of GPUs together, and slices, by sevens; others take whole GPUs.
    std::int64_t gpus_asked(unsigned set) const {
        std::map<std::size_t, std::pair<std::int64_t, std::int64_t>> mates;  // halves and slices, by domain
        std::int64_t gpus = 0;
        for (std::size_t t = 0; t < fleet_.tenants.size(); ++t) {
            if ((set >> t & 1) == 0) continue;
            const SmallTenant& tenant = fleet_.tenants[t];
            auto& [halves, slices] = mates[tenant.domain != 0 ? tenant.domain : 100 + t];
            if (tenant.unit == Unit::slice)
                slices += tenant.halves / 2;
            else if (tenant.kind == Kind::mates)
                halves += tenant.halves;
            else
                gpus += tenant.halves / 2;
        }
        for (const auto& [domain, sums] : mates) gpus += (sums.first + 1) / 2 + (sums.second + 6) / 7;
        return gpus;
    }
    bool served() const {
        for (unsigned set = 1; set < 1u << fleet_.tenants.size(); ++set) {
            const bool one = std::popcount(set) == 1;
            const auto first = static_cast<std::size_t>(std::countr_zero(set));
            bool nodes_asked = false;
            for (std::size_t t = 0; t < fleet_.tenants.size(); ++t)
                nodes_asked |= (set >> t & 1) != 0 && counts_nodes(t);
            if (nodes_asked && !one) continue;
            std::int64_t has = 0;
            for (std::size_t n = 0; n < given_.size(); ++n)
                if ((given_[n] & set) != 0) has += nodes_asked ? 1 : fleet_.nodes[n].gpus;
            if (has < (nodes_asked ? fleet_.tenants[first].halves / 2 : gpus_asked(set))) return false;
        }
        return true;
    }

    const SmallFleet& fleet_;
    std::vector<unsigned> given_;
    std::vector<std::vector<unsigned>> ways_;
};

TEST(AdmissionLaw, guarantees_are_accepted_exactly_when_some_way_to_give_nodes_keeps_them_all) {
    std::map<bool, int> seen;
    for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
        std::mt19937_64 rng{seed};
        const SmallFleet fleet = random_fleet(rng);
        const bool keepable = EveryWay{fleet}.keepable();
        const auto findings = unkeepable_guarantees(manifests_of(fleet), judged_at);
        ASSERT_EQ(findings.empty(), keepable)
            << "seed " << seed << ": " << (findings.empty() ? "accepted" : findings[0].name + ": " + findings[0].what);
        ++seen[keepable];
    }
    EXPECT_GT(seen[true], 500);
    EXPECT_GT(seen[false], 500);
}

// "lower the guarantee of t3 to 4 GPUs": that is accepted, and one GPU more is not.
TEST(AdmissionLaw, the_largest_guarantee_that_a_refusal_names_is_accepted) {
    int tried = 0;
    for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
        std::mt19937_64 rng{seed};
        Snapshot snapshot = manifests_of(random_fleet(rng));
        const auto findings = unkeepable_guarantees(snapshot, judged_at);
        if (findings.size() != 1 || !findings[0].remedy.starts_with("lower the guarantee")) continue;
        Tenant* tenant = nullptr;
        for (Tenant& each : snapshot.tenants)
            if (each.metadata.name == findings[0].name) tenant = &each;
        const std::string& says = findings[0].remedy;
        const std::size_t number = says.find(" to ") + 4;
        const std::int64_t named = std::stoll(says.substr(number));
        tenant->spec.quota.guarantee = Gpus::whole(named);
        EXPECT_TRUE(unkeepable_guarantees(snapshot, judged_at).empty()) << "seed " << seed << ": " << says;
        tenant->spec.quota.guarantee = Gpus::whole(named + 1);
        EXPECT_FALSE(unkeepable_guarantees(snapshot, judged_at).empty()) << "seed " << seed << ": " << says;
        ++tried;
    }
    EXPECT_GT(tried, 100);
}

}  // namespace
}  // namespace bulkhead::admission_law
