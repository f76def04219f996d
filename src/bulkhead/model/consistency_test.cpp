#include "bulkhead/model/consistency.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace bulkhead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Tenant tenant(std::string name, std::string parent = "") {
    Tenant out;
    out.metadata.name = std::move(name);
    out.spec.parent = std::move(parent);
    out.spec.tenantClass = "research";
    return out;
}

// A small fleet in which everything holds. Each row below changes one thing.
Snapshot fleet() {
    Snapshot out;
    FleetPolicy& policy = out.policies.emplace_back();
    policy.metadata.name = "fleet";
    policy.spec.sites = {{"ber", "de"}, {"par", "fr"}};
    policy.spec.trustDomains = {{"vision", {"acme", "beta"}}};
    policy.spec.exceptions = {{"lab",
                               {"acme", "globex"},
                               Tier::container,
                               "Eve",
                               {{"acme", "Ada", {}}, {"globex", "Grace", {}}},
                               {},
                               "a paper"}};
    TenantClass& own = out.classes.emplace_back();
    own.metadata.name = "own";
    own.spec.mechanisms = {Mechanism::mig, Mechanism::whole};
    out.tenants = {tenant("acme"), tenant("beta"), tenant("globex"), tenant("globex-a", "globex")};
    for (int i = 0; i < 2; ++i)
        out.tenants[static_cast<std::size_t>(i)].spec.trustDomain = {"vision", Consent{"Ada", {}}};
    out.tenants[2].spec.quota = {.guarantee = Gpus::whole(8), .limit = Gpus::whole(16), .weight = 1};
    out.tenants[3].spec.quota = {.guarantee = Gpus::whole(8), .limit = Gpus::whole(12), .weight = 1};
    out.tenants[3].spec.tenantClass = "own";
    GpuWorkload& workload = out.workloads.emplace_back();
    workload.metadata.name = "job";
    workload.spec.tenant = "acme";
    workload.spec.gpu.count = 8;
    workload.spec.placement = {{"ber"}, {"de"}};
    GpuNode& node = out.nodes.emplace_back();
    node.metadata.name = "n1";
    node.spec.site = "ber";
    node.status.gpus = {{"h200", 7, {}}, {"h200", 1, {{"3g.71gb", 0, CleanState::available, ""}}}};
    node.status.capabilities = {{Capability::mig, Grade::silicon, {}}, {Capability::mps, Grade::silicon, {}}};
    node.status.versions = {{Component::driver, "580.95.05"}, {Component::dcgm, "4.2.0"}};
    GpuLease& lease = out.leases.emplace_back();
    lease.metadata.name = "l1";
    lease.spec = {.tenant = "acme", .workload = "job", .mechanism = Mechanism::whole, .tier = Tier::vm};
    lease.spec.slices = {{.node = "n1"}};
    return out;
}

struct Row {
    std::string_view says;
    std::function<void(Snapshot&)> change;
    std::string_view where = {};  // "Tenant acme /spec/class"; empty: nothing is wrong
    std::string_view what = {};
};

void expect_each(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
        Snapshot snapshot = fleet();
        row.change(snapshot);
        const std::vector<Finding> findings = inconsistencies(snapshot);
        if (row.where.empty()) {
            EXPECT_THAT(findings, IsEmpty()) << row.says << ": " << (findings.empty() ? "" : findings[0].what);
            continue;
        }
        ASSERT_EQ(findings.size(), 1u) << row.says << (findings.empty() ? "" : findings[1].what);
        const Finding& finding = findings[0];
        EXPECT_EQ(std::string{finding.kind} + " " + finding.name + " " + finding.path, row.where) << row.says;
        EXPECT_THAT(finding.what, HasSubstr(std::string{row.what})) << row.says;
        EXPECT_FALSE(finding.remedy.empty()) << row.says;
    }
}

TEST(Consistency, a_sound_fleet_has_nothing_to_say) { EXPECT_THAT(inconsistencies(fleet()), IsEmpty()); }

TEST(Consistency, one_policy_where_anything_needs_one) {
    EXPECT_THAT(inconsistencies({}), IsEmpty()) << "an empty snapshot needs nothing";
    Snapshot classes;
    classes.classes = fleet().classes;
    EXPECT_THAT(inconsistencies(classes), IsEmpty()) << "classes stand alone";
    Snapshot tenants;
    tenants.tenants = {tenant("acme")};
    ASSERT_EQ(inconsistencies(tenants).size(), 1u);
    EXPECT_EQ(inconsistencies(tenants)[0].kind, "FleetPolicy");
    EXPECT_THAT(inconsistencies(tenants)[0].what, HasSubstr("1 tenants"));
    expect_each(
        {{"two policies are one too many", [](Snapshot& s) { s.policies.emplace_back().metadata.name = "other"; },
          "FleetPolicy other /metadata/name", "this is one of 2; the first is fleet"}});
}

TEST(Consistency, names_are_unique_within_a_kind) {
    Snapshot snapshot = fleet();
    snapshot.tenants.push_back(snapshot.tenants[0]);
    const auto findings = inconsistencies(snapshot);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].occurrence, 1u) << "the second is the one that must change";
    expect_each({
        {"kinds have names of their own",
         [](Snapshot& s) {
             s.nodes[0].metadata.name = "acme";
             s.leases[0].spec.slices[0].node = "acme";
         }},
        {"a class twice", [](Snapshot& s) { s.classes.push_back(s.classes[0]); }, "TenantClass own /metadata/name",
         "number 2"},
        {"a workload twice", [](Snapshot& s) { s.workloads.push_back(s.workloads[0]); },
         "GpuWorkload job /metadata/name", "taken"},
        {"a node twice", [](Snapshot& s) { s.nodes.push_back(s.nodes[0]); }, "GpuNode n1 /metadata/name", "taken"},
        {"a lease twice", [](Snapshot& s) { s.leases.push_back(s.leases[0]); }, "GpuLease l1 /metadata/name", "taken"},
    });
}

TEST(Consistency, parents_form_a_tree) {
    expect_each({
        {"a root has no parent", [](Snapshot& s) { s.tenants[3].spec.parent = ""; }},
        {"a parent that does not exist", [](Snapshot& s) { s.tenants[3].spec.parent = "globx"; },
         "Tenant globex-a /spec/parent", "\"globx\" does not exist"},
        {"nobody is its own parent", [](Snapshot& s) { s.tenants[0].spec.parent = "acme"; }, "Tenant acme /spec/parent",
         "a circle of 1: acme -> acme"},
        {"a circle is told once, and named",
         [](Snapshot& s) {
             s.tenants[1].spec.parent = "acme";
             s.tenants[0].spec.parent = "beta";
         },
         "Tenant acme /spec/parent", "a circle of 2: acme -> beta -> acme"},
        {"what leads into a circle is not part of it",
         [](Snapshot& s) {
             s.tenants[0].spec.parent = "beta";
             s.tenants[1].spec.parent = "globex";
             s.tenants[2].spec.parent = "beta";
             s.tenants[2].spec.quota = s.tenants[3].spec.quota = {};
         },
         "Tenant beta /spec/parent", "a circle of 2: beta -> globex -> beta"},
    });
    Snapshot chain = fleet();
    for (int i = 0; i < 20'000; ++i)
        chain.tenants.push_back(tenant("t" + std::to_string(i), i == 0 ? "" : "t" + std::to_string(i - 1)));
    EXPECT_THAT(inconsistencies(chain), IsEmpty()) << "a chain of 20,000 is odd, but quick to check";
}

TEST(Consistency, classes_exist_and_make_sense) {
    expect_each({
        {"a shipped class need not be declared", [](Snapshot& s) { s.tenants[0].spec.tenantClass = "slo-serving"; }},
        {"a shipped class may be declared anew",
         [](Snapshot& s) {
             s.classes[0].metadata.name = "batch";
             s.tenants[3].spec.tenantClass = "batch";
         }},
        {"an unknown class", [](Snapshot& s) { s.tenants[0].spec.tenantClass = "reserch"; }, "Tenant acme /spec/class",
         "no class \"reserch\"; there are frontier-training"},
        {"a class without mechanisms", [](Snapshot& s) { s.classes[0].spec.mechanisms.clear(); },
         "TenantClass own /spec/mechanisms", "allows no mechanism"},
        {"a mechanism twice", [](Snapshot& s) { s.classes[0].spec.mechanisms.push_back(Mechanism::mig); },
         "TenantClass own /spec/mechanisms/2", "mechanism mig is listed twice"},
        {"usual may equal highest", [](Snapshot& s) { s.classes[0].spec.priority = {7, 7}; }},
        {"usual above highest", [](Snapshot& s) { s.classes[0].spec.priority = {8, 7}; },
         "TenantClass own /spec/priority", "usual priority 8 is above its highest 7"},
    });
}

TEST(Consistency, trust_takes_both_sides) {
    expect_each({
        {"no domain is no claim",
         [](Snapshot& s) {
             s.tenants[1].spec.trustDomain.reset();
             s.policies[0].spec.trustDomains[0].members = {"acme"};
         }},
        {"a domain nobody declared",
         [](Snapshot& s) { s.tenants[2].spec.trustDomain = {"vison", Consent{"Grace", {}}}; },
         "Tenant globex /spec/trustDomain/name", "declares no trust domain \"vison\"; it declares 1"},
        {"a domain that does not list the tenant",
         [](Snapshot& s) { s.tenants[2].spec.trustDomain = {"vision", Consent{"Grace", {}}}; },
         "Tenant globex /spec/trustDomain/name", "does not list it among its 2 members"},
        {"a membership without consent", [](Snapshot& s) { s.tenants[0].spec.trustDomain->consent.reset(); },
         "Tenant acme /spec/trustDomain", "without its consent"},
        {"a consent by nobody", [](Snapshot& s) { s.tenants[0].spec.trustDomain->consent->by.clear(); },
         "Tenant acme /spec/trustDomain", "without its consent"},
        {"a member that does not exist",
         [](Snapshot& s) { s.policies[0].spec.trustDomains[0].members.push_back("gama"); },
         "FleetPolicy fleet /spec/trustDomains/0/members/2", "lists \"gama\""},
        {"a member that names no domain",
         [](Snapshot& s) { s.policies[0].spec.trustDomains[0].members.push_back("globex"); },
         "FleetPolicy fleet /spec/trustDomains/0/members/2", "names no domain"},
        {"a member that names another",
         [](Snapshot& s) { s.policies[0].spec.trustDomains.push_back({"audio", {"acme"}}); },
         "FleetPolicy fleet /spec/trustDomains/1/members/0", "names the domain vision"},
        {"a member twice", [](Snapshot& s) { s.policies[0].spec.trustDomains[0].members.push_back("acme"); },
         "FleetPolicy fleet /spec/trustDomains/0/members/2", "member \"acme\" is listed twice"},
        {"a domain twice", [](Snapshot& s) { s.policies[0].spec.trustDomains.push_back({"vision", {"acme"}}); },
         "FleetPolicy fleet /spec/trustDomains/1", "trust domain \"vision\" is listed twice"},
        {"a site twice", [](Snapshot& s) { s.policies[0].spec.sites.push_back({"ber", "fr"}); },
         "FleetPolicy fleet /spec/sites/2", "site \"ber\" is listed twice"},
    });
}

TEST(Consistency, an_exception_carries_every_consent_and_no_other) {
    const auto change = [](std::function<void(TierException&)> each) {
        return [each](Snapshot& s) { each(s.policies[0].spec.exceptions[0]); };
    };
    const std::string_view policy = "FleetPolicy fleet ";
    const auto at = [&](std::string_view path) {
        return std::string{policy} + "/spec/exceptions/0" + std::string{path};
    };
    const std::string tenants = at("/tenants"), second = at("/tenants/1"), third = at("/tenants/2"), tier = at("/tier"),
                      by = at("/consents/0/by"), extra = at("/consents/2/tenant"), granted = at("/grantedBy"),
                      reason = at("/reason");
    expect_each({
        {"process is lower still", change([](auto& e) { e.tier = Tier::process; })},
        {"one tenant needs no exception", change([](auto& e) { e.tenants.pop_back(), e.consents.pop_back(); }), tenants,
         "covers 1 tenants; it takes at least 2"},
        {"a tenant twice", change([](auto& e) { e.tenants.push_back("acme"); }), third,
         "tenant \"acme\" is listed twice"},
        {"a tenant that does not exist",
         change([](auto& e) { e.tenants.push_back("glob"), e.consents.push_back({"glob", "X", {}}); }), third,
         "there is no such tenant"},
        {"a consent missing", change([](auto& e) { e.consents.pop_back(); }), second,
         "covers globex without its consent; 1 of 2 tenants consent"},
        {"a consent of a stranger", change([](auto& e) { e.consents.push_back({"beta", "Bob", {}}); }), extra,
         "a consent of beta, which it does not cover"},
        {"a consent twice", change([](auto& e) { e.consents.push_back(e.consents[0]); }), extra,
         "two consents of acme"},
        {"a consent by nobody", change([](auto& e) { e.consents[0].by.clear(); }), by, "nobody is named"},
        {"a tier that is not lower", change([](auto& e) { e.tier = Tier::vm; }), tier, "only lowers"},
        {"granted by nobody", change([](auto& e) { e.grantedBy.clear(); }), granted, "granted by nobody"},
        {"no reason", change([](auto& e) { e.reason.clear(); }), reason, "has no reason"},
        {"a name twice", [](Snapshot& s) { s.policies[0].spec.exceptions.push_back(s.policies[0].spec.exceptions[0]); },
         "FleetPolicy fleet /spec/exceptions/1", "exception \"lab\" is listed twice"},
    });
}

TEST(Consistency, what_children_are_owed_their_parent_has) {
    expect_each({
        {"a guarantee in whole nodes; how many GPUs that is, is asked in policy",
         [](Snapshot& s) { s.tenants[0].spec.quota.guaranteeUnit = "8-gpu-node"; }},
        {"a unit that there is not", [](Snapshot& s) { s.tenants[0].spec.quota.guaranteeUnit = "nodes"; },
         "Tenant acme /spec/quota/guaranteeUnit", "\"nodes\" is no unit of a guarantee"},
        {"half a node",
         [](Snapshot& s) {
             s.tenants[0].spec.quota.guaranteeUnit = "node";
             s.tenants[0].spec.quota.guarantee = Gpus::of_thousandths(500);
         },
         "Tenant acme /spec/quota/guarantee", "in units of node is a whole number, not 0.5"},
        {"a limit may equal the guarantee",
         [](Snapshot& s) {
             s.tenants[0].spec.quota = {.guarantee = Gpus::whole(4), .limit = Gpus::whole(4), .weight = 1};
         }},
        {"a limit below the guarantee",
         [](Snapshot& s) {
             s.tenants[0].spec.quota = {.guarantee = Gpus::whole(4), .limit = Gpus::of_thousandths(3500), .weight = 1};
         },
         "Tenant acme /spec/quota/limit", "limit of 3.5 GPUs is below its guarantee of 4"},
        {"two children together",
         [](Snapshot& s) {
             s.tenants.push_back(tenant("globex-b", "globex"));
             s.tenants.back().spec.quota.guarantee = Gpus::of_thousandths(500);
         },
         "Tenant globex /spec/quota/guarantee",
         "its 2 children are guaranteed 8.5 GPUs together, and it is guaranteed 8"},
        {"a parent with nothing", [](Snapshot& s) { s.tenants[2].spec.quota.guarantee = {}; },
         "Tenant globex /spec/quota/guarantee", "guaranteed nothing itself"},
        {"sums that would wrap round",
         [](Snapshot& s) {
             s.tenants.push_back(tenant("globex-b", "globex"));
             s.tenants.back().spec.quota.guarantee = {std::numeric_limits<std::int64_t>::max()};
         },
         "Tenant globex /spec/quota/guarantee", "2 children"},
        {"a child may have no limit of its own", [](Snapshot& s) { s.tenants[3].spec.quota.limit.reset(); }},
        {"a child's limit above its parent's", [](Snapshot& s) { s.tenants[3].spec.quota.limit = Gpus::whole(17); },
         "Tenant globex-a /spec/quota/limit", "17 GPUs is above the 16 of its parent globex"},
    });
}

TEST(Consistency, work_says_what_it_needs_once) {
    const auto gpu = [](std::function<void(GpuRequest&)> each) {
        return [each](Snapshot& s) { each(s.workloads[0].spec.gpu); };
    };
    const auto grouped = [](std::int64_t tasks, std::optional<std::int64_t> least, std::optional<std::int64_t> group,
                            TopologyLevel within) {
        return [=](Snapshot& s) {
            s.workloads[0].spec.tasks = tasks;
            s.workloads[0].spec.minTasks = least;
            s.workloads[0].spec.topology.groupTasks = group;
            s.workloads[0].spec.topology.groupWithin = within;
        };
    };
    expect_each({
        {"a slice instead", gpu([](auto& g) { g.count.reset(), g.profile = "1g.10gb"; })},
        {"a fraction instead", gpu([](auto& g) { g.count.reset(), g.fraction = Gpus::of_thousandths(500); })},
        {"memory instead", gpu([](auto& g) { g.count.reset(), g.memory = ByteSize{1}; })},
        {"nothing", gpu([](auto& g) { g.count.reset(); }), "GpuWorkload job /spec/gpu", "does not say how much"},
        {"two ways", gpu([](auto& g) { g.fraction = Gpus::of_thousandths(500); }), "GpuWorkload job /spec/gpu",
         "in 2 ways: count and fraction"},
        {"a tenant that does not exist",
         [](Snapshot& s) {
             s.workloads[0].spec.tenant = s.leases[0].spec.tenant = "globex-b";
             s.leases.clear();
         },
         "GpuWorkload job /spec/tenant", "\"globex-b\" does not exist"},
        {"as few as all", [](Snapshot& s) { s.workloads[0].spec.minTasks = 1; }},
        {"more than all", [](Snapshot& s) { s.workloads[0].spec.minTasks = 2; }, "GpuWorkload job /spec/minTasks",
         "at least 2 tasks and asks for 1"},
        {"groups that come out even", grouped(4, {}, 2, TopologyLevel::rack)},
        {"groups that do not", grouped(4, {}, 3, TopologyLevel::rack), "GpuWorkload job /spec/topology/groupTasks",
         "groups of 3 do not divide its tasks 4"},
        {"nor when it shrinks", grouped(4, 3, 2, TopologyLevel::rack), "GpuWorkload job /spec/topology/groupTasks",
         "groups of 2 do not divide its minTasks 3"},
        {"groups within nothing", grouped(4, {}, 2, TopologyLevel::none), "GpuWorkload job /spec/topology",
         "by 2 and does not say within what"},
        {"groups of nobody knows how many", grouped(4, {}, {}, TopologyLevel::rack), "GpuWorkload job /spec/topology",
         "within rack and it does not say how many"},
    });
}

TEST(Consistency, work_is_checked_against_a_fleet_again_and_again_as_if_for_the_first_time) {
    Snapshot sound = fleet();
    sound.leases.clear();
    const std::vector<GpuWorkload> good = std::exchange(sound.workloads, {});
    Snapshot unsound = sound, empty;
    unsound.nodes[0].spec.site = "nowhere";
    GpuWorkload bad = good[0];
    bad.spec.tenant = "nobody";
    bad.spec.minTasks = 2;
    bad.spec.placement = {{"nowhere"}, {}};
    for (Snapshot* snapshot : {&sound, &unsound, &empty}) {
        WorkCheck check{*snapshot};
        for (int round = 0; round < 2; ++round)
            for (const std::vector<GpuWorkload>& work :
                 {std::vector<GpuWorkload>{}, good, {bad}, {good[0], good[0]}, {bad, good[0], bad}}) {
                snapshot->workloads = work;
                EXPECT_EQ(check.inconsistencies(), inconsistencies(*snapshot));
            }
    }
}

TEST(Consistency, sites_are_those_of_the_policy) {
    expect_each({
        {"without sites any node will do",
         [](Snapshot& s) {
             s.policies[0].spec.sites.clear(), s.workloads[0].spec.placement = {}, s.nodes[0].spec.site = "moon";
         }},
        {"a node somewhere else", [](Snapshot& s) { s.nodes[0].spec.site = "bre"; }, "GpuNode n1 /spec/site",
         "declares no site \"bre\"; it declares ber, par"},
        {"work somewhere else", [](Snapshot& s) { s.workloads[0].spec.placement.sites.push_back("muc"); },
         "GpuWorkload job /spec/placement/sites/1", "is called \"muc\"; it declares 2 sites"},
        {"a tenant under another law", [](Snapshot& s) { s.tenants[0].spec.placement.jurisdictions = {"us"}; },
         "Tenant acme /spec/placement/jurisdictions/0", "jurisdiction \"us\""},
    });
}

TEST(Consistency, a_node_says_nothing_twice) {
    expect_each({
        {"slices of several GPUs at once", [](Snapshot& s) { s.nodes[0].status.gpus[1].count = 2; },
         "GpuNode n1 /status/gpus/1/slices", "1 slices are listed for 2 GPUs"},
        {"a capability twice",
         [](Snapshot& s) { s.nodes[0].status.capabilities.push_back({Capability::mig, Grade::assumed, {}}); },
         "GpuNode n1 /status/capabilities/2/name", "capability mig is listed twice"},
        {"a component twice", [](Snapshot& s) { s.nodes[0].status.versions.push_back({Component::dcgm, "4"}); },
         "GpuNode n1 /status/versions/2/component", "component dcgm is listed twice"},
    });
}

TEST(Consistency, leases_refer_to_what_is_there) {
    expect_each({
        {"leases alone are a fair question", [](Snapshot& s) { s.nodes.clear(); }},
        {"a tenant that does not exist",
         [](Snapshot& s) {
             s.leases[0].spec.tenant = "acne";
             s.workloads.clear();
         },
         "GpuLease l1 /spec/tenant", "\"acne\" does not exist"},
        {"a workload that does not exist", [](Snapshot& s) { s.leases[0].spec.workload = "jbo"; },
         "GpuLease l1 /spec/workload", "\"jbo\" does not exist"},
        {"a workload of someone else", [](Snapshot& s) { s.leases[0].spec.tenant = "beta"; },
         "GpuLease l1 /spec/tenant", "held by beta, and its workload job belongs to acme"},
        {"a node that does not exist", [](Snapshot& s) { s.leases[0].spec.slices[0].node = "n2"; },
         "GpuLease l1 /spec/slices/0/node", "\"n2\" does not exist"},
    });
}

TEST(Consistency, a_price_is_there_once_and_in_a_currency) {
    const auto priced = [](auto change) {
        return [change](Snapshot& s) {
            Pricing& pricing = s.policies[0].spec.pricing;
            pricing.currency = "EUR";
            pricing.lists = {{"first", {1000}, {}, {{"h200", "", false, "", {1}}, {"h200", "", false, "own", {2}}}},
                             {"second", {2000}, {}, {{"h200", "", true, "", {3}}}}};
            change(pricing);
        };
    };
    expect_each({
        {"whole, shared and of a class are three prices", priced([](Pricing&) {})},
        {"twice the same", priced([](Pricing& p) { p.lists[0].prices[1].tenantClass.clear(); }),
         "FleetPolicy fleet /spec/pricing/lists/0/prices/1", "two prices for h200"},
        {"a class that does not exist", priced([](Pricing& p) { p.lists[0].prices[1].tenantClass = "onw"; }),
         "FleetPolicy fleet /spec/pricing/lists/0/prices/1/class", "\"onw\""},
        {"two lists of one name", priced([](Pricing& p) { p.lists[1].name = "first"; }),
         "FleetPolicy fleet /spec/pricing/lists/1", "listed twice"},
        {"two lists from one moment", priced([](Pricing& p) { p.lists[1].validFrom = {1000}; }),
         "FleetPolicy fleet /spec/pricing/lists/1/validFrom", "only one can be in force"},
        {"no currency", priced([](Pricing& p) { p.currency.clear(); }), "FleetPolicy fleet /spec/pricing/currency",
         "no currency"},
        {"no such currency", priced([](Pricing& p) { p.currency = "euro"; }),
         "FleetPolicy fleet /spec/pricing/currency", "three capital letters"},
    });
}

TEST(Consistency, every_finding_is_told_and_the_nearest_name_proposed) {
    Snapshot snapshot = fleet();
    snapshot.tenants[0].spec.tenantClass = "reserch";
    snapshot.tenants[3].spec.parent = "globx";
    const auto findings = inconsistencies(snapshot);
    ASSERT_EQ(findings.size(), 2u);
    EXPECT_THAT(findings[0].remedy, HasSubstr("research, or "));
    EXPECT_THAT(findings[1].remedy, HasSubstr("globex, or "));
}

}  // namespace
}  // namespace bulkhead
