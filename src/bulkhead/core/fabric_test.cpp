// Who a tenant is on the fabric, from its first work there until the last function that had one of its numbers is
// wiped.
#include "bulkhead/core/fabric.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/core/plane_test.hpp"
#include "bulkhead/node/leased_port.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

FabricPolicy small_fabric() {
    return {.pool = "10.128.0.0/16",
            .tenantPrefix = 20,
            .vlans = NumberRange{100, 131},
            .partitionKeys = NumberRange{256, 300},
            .classes = {{.tenantClass = "", .rateMbps = 50'000, .dscp = 10},
                        {.tenantClass = "research", .rateMbps = 100'000, .dscp = 26}}};
}

TEST(FabricNumbers, are_drawn_until_none_is_left_and_never_twice) {
    for (const FabricKind kind : every<FabricKind>()) {
        FabricPolicy policy = small_fabric();
        policy.kind = kind;
        std::vector<fabric::Numbers> taken;
        while (const auto drawn = fabric::draw(policy, taken, "secret", fmt::format("t{}", taken.size()))) {
            for (const fabric::Numbers& other : taken) {
                EXPECT_FALSE(other.subnet.overlaps(drawn->subnet));
                EXPECT_FALSE(kind == FabricKind::ethernet && other.vlan == drawn->vlan);
                EXPECT_FALSE(kind == FabricKind::infiniband && other.partition_key == drawn->partition_key);
            }
            EXPECT_TRUE(parse_subnet(policy.pool)->contains(drawn->subnet.base));
            EXPECT_EQ(drawn->vlan != 0, kind == FabricKind::ethernet);
            EXPECT_EQ(drawn->partition_key != 0, kind == FabricKind::infiniband);
            taken.push_back(*drawn);
        }
        EXPECT_EQ(taken.size(), 16u) << "as many as the pool has subnets";
    }
}

TEST(FabricNumbers, run_out_with_the_first_kind_that_does) {
    FabricPolicy policy = small_fabric();
    policy.vlans = NumberRange{100, 102};
    std::vector<fabric::Numbers> taken;
    while (const auto drawn = fabric::draw(policy, taken, "secret", fmt::format("t{}", taken.size())))
        taken.push_back(*drawn);
    EXPECT_EQ(taken.size(), 3u);
}

// A subnet of another size, from before the policy changed, is in the way of all it overlaps.
TEST(FabricNumbers, keep_clear_of_what_is_taken_whatever_its_size) {
    const std::vector<fabric::Numbers> taken{{*parse_subnet("10.128.0.0/17"), 100, 0}};
    for (int i = 0; i < 64; ++i) {
        const auto drawn = fabric::draw(small_fabric(), taken, "secret", fmt::format("t{}", i));
        ASSERT_TRUE(drawn);
        EXPECT_GE(drawn->subnet.base, 0x0A808000u);
    }
}

TEST(FabricNumbers, tell_nobody_how_many_others_there_are) {
    // The same tenant in fleets with other secrets, alone: its numbers are everywhere, not at the beginning.
    std::set<std::uint32_t> subnets;
    std::set<std::uint16_t> vlans;
    for (int i = 0; i < 64; ++i) {
        const auto drawn = fabric::draw(small_fabric(), {}, fmt::format("secret {}", i), "acme");
        subnets.insert(drawn->subnet.base);
        vlans.insert(drawn->vlan);
    }
    EXPECT_GE(subnets.size(), 14u);
    EXPECT_GE(vlans.size(), 20u);
}

TEST(FabricPorts, are_made_of_their_address) {
    const fabric::Numbers numbers{*parse_subnet("10.128.16.0/20"), 117, 0x123};
    FabricPolicy policy = small_fabric();
    const LeasedPort port = fabric::port_of(policy, numbers, {"n0", 3, 5}, "research");
    EXPECT_EQ(port.address, "10.128.16.5/20");
    EXPECT_EQ(port.mac, "02:42:0a:80:10:05");
    EXPECT_EQ(port.vlan, 117);
    EXPECT_EQ(port.rateMbps, 100'000);
    EXPECT_EQ(port.dscp, 26);
    EXPECT_EQ(port.portGuid, "") << "Ethernet has none";
    policy.kind = FabricKind::infiniband;
    const LeasedPort guid = fabric::port_of(policy, numbers, {"n0", 3, 5}, "batch");
    EXPECT_EQ(guid.portGuid, "02:42:50:00:0a:80:10:05");
    EXPECT_NE(guid.nodeGuid, guid.portGuid);
    EXPECT_EQ(guid.partitionKey, 0x8123);
    EXPECT_EQ(guid.rateMbps, 50'000) << "as everybody who is of no class that is listed";
    EXPECT_EQ(as_told(port).subnet, "10.128.16.0/20");
}

TEST(FabricPorts, the_lowest_address_that_is_free_is_next) {
    const Subnet subnet = *parse_subnet("10.128.16.0/29");
    EXPECT_EQ(fabric::hosts_of(subnet), 5);
    EXPECT_EQ(fabric::next_host(subnet, {}), 2);
    EXPECT_EQ(fabric::next_host(subnet, {2, 3, 5}), 4);
    EXPECT_EQ(fabric::next_host(subnet, {3}), 2);
}

// ---- in the control plane

std::string fleet_of(const std::string& fabric) {
    return "apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n"
           "  threatModel: internal\n  sites: [{name: fra, jurisdiction: eu}]\n"
           "  versionGate: {shippedAdvisories: false}\n" +
           fabric;
}
const std::string two_subnets = "  fabric: {pool: 10.128.0.0/19, tenantPrefix: 20, vlans: {first: 100, last: 131}}\n";

const std::string one_subnet = "  fabric: {pool: 10.128.0.0/20, tenantPrefix: 20, vlans: {first: 104, last: 104}}\n";

struct Fabric : Plane {
    explicit Fabric(const std::string& fabric = two_subnets, int count = 3) : Plane{count} {
        const Answer answer = apply(fleet_of(fabric));
        EXPECT_TRUE(answer.outcome) << answer.outcome.error().what;
    }
    void tenant(const std::string& name) {
        const Answer answer = apply("apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: " + name +
                                    "}\nspec: {class: research}\n");
        EXPECT_TRUE(answer.outcome) << answer.outcome.error().what;
    }
    void work(const std::string& name, const std::string& owner, int tasks = 1) {
        const Answer answer = apply(fmt::format(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {{name: {}}}\nspec: {{tenant: {}, "
            "tasks: {}, gpu: {{count: 1, mechanism: whole}}, network: {{rdma: true}}}}\n",
            name, owner, tasks));
        EXPECT_TRUE(answer.outcome) << answer.outcome.error().what;
        settle();
    }
    void end(const std::string& name) {
        EXPECT_TRUE(remove(ObjectKind::workload, name).outcome);
        settle();
    }
    GpuLeaseStatus lease_of(const std::string& name) {
        return find<GpuLease>(workload(name).status->lease).status.value_or(GpuLeaseStatus{});
    }
    std::string subnet_of(const std::string& name) {
        const GpuLeaseStatus status = lease_of(name);
        return status.ports.empty() ? std::string{} : as_told(status.ports[0]).subnet;
    }
    // As it is, but for what it says of functions.
    void lie(const std::string& name, std::vector<KnownPort> ports) {
        Node& node = *nodes[name];
        Hello hello = node.executor->hello(node.model.inventory(), node.model.boot_id());
        hello.ports = std::move(ports);
        node.session += 1000;
        event(AgentHello{name, node.session, hello});
    }
    std::size_t fabric_rows() const {
        return static_cast<std::size_t>(
            std::ranges::count(rows, Table::fabric, [](const auto& row) { return row.first.first; }));
    }
};

TEST(TenantFabric, every_function_of_a_lease_is_somebody_and_its_node_is_told) {
    Fabric plane;
    plane.tenant("acme");
    plane.work("train", "acme", 4);
    const GpuLeaseStatus lease = plane.lease_of("train");
    ASSERT_EQ(lease.phase, LeasePhase::active);
    ASSERT_EQ(lease.ports.size(), 4u);
    std::set<std::string> addresses, macs, subnets;
    for (const LeasedPort& port : lease.ports) {
        addresses.insert(port.address);
        macs.insert(port.mac);
        subnets.insert(as_told(port).subnet);
        EXPECT_GE(port.vlan, 100);
    }
    EXPECT_EQ(addresses.size(), 4u);
    EXPECT_EQ(macs.size(), 4u);
    EXPECT_EQ(subnets.size(), 1u);
    std::size_t told = 0;
    for (const Order& order : plane.orders)
        if (const Prepare* prepare = std::get_if<Prepare>(&order.what)) {
            EXPECT_EQ(prepare->ports.size(), prepare->functions.size());
            told += prepare->ports.size();
        }
    EXPECT_EQ(told, 4u);
}

TEST(TenantFabric, a_new_process_gives_the_same_orders) {
    Fabric plane;
    plane.tenant("acme");
    plane.nodes["n0"]->reachable = plane.nodes["n1"]->reachable = plane.nodes["n2"]->reachable = false;
    plane.work("train", "acme", 2);
    const std::vector<Order> before = plane.orders;
    ASSERT_TRUE(std::holds_alternative<Prepare>(before.back().what));
    plane.restart(2);
    plane.orders.clear();
    for (auto& [name, node] : plane.nodes) {
        node->reachable = true;
        plane.hello(name);
    }
    int again = 0;
    for (const Order& order : plane.orders)
        if (const Prepare* prepare = std::get_if<Prepare>(&order.what)) {
            ++again;
            EXPECT_FALSE(prepare->ports.empty());
            EXPECT_TRUE(std::ranges::any_of(before, [&](const Order& old) {
                const Prepare* first = std::get_if<Prepare>(&old.what);
                return first != nullptr && *first == *prepare;
            }));
        }
    EXPECT_GE(again, 1);
    plane.settle();
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::running);
}

TEST(TenantFabric, a_tenant_stays_who_it_is_while_it_is_a_tenant) {
    Fabric plane;
    plane.tenant("acme");
    plane.work("first", "acme");
    const std::string subnet = plane.subnet_of("first");
    ASSERT_NE(subnet, "");
    plane.end("first");
    plane.restart(2);
    for (const auto& [name, node] : plane.nodes) plane.hello(name);
    plane.work("second", "acme");
    EXPECT_EQ(plane.subnet_of("second"), subnet);
    EXPECT_EQ(plane.lease_of("second").ports[0].address, fmt::format("{}2/20", subnet.substr(0, subnet.size() - 4)))
        << "the first one's function was wiped: its address is free again";
}

TEST(TenantFabric, who_comes_when_no_subnet_is_left_waits_and_learns_of_nobody) {
    Fabric plane;
    for (const char* name : {"acme", "beta"}) {
        plane.tenant(name);
        plane.work(fmt::format("{}-job", name), name);
    }
    ASSERT_NE(plane.subnet_of("acme-job"), plane.subnet_of("beta-job"));
    // A third tenant is more than the pool has subnets for.
    plane.tenant("late");
    plane.work("late-job", "late");
    const GpuWorkloadStatus status = *plane.workload("late-job").status;
    EXPECT_EQ(status.phase, WorkloadPhase::pending);
    ASSERT_EQ(status.reasons.size(), 1u);
    EXPECT_EQ(status.reasons[0], "the fabric has no subnet, VLAN or partition left for its tenant");
    // Without work, beta is still a tenant, and its functions are its own until they are wiped.
    plane.end("beta-job");
    EXPECT_EQ(plane.workload("late-job").status->phase, WorkloadPhase::pending);
    ASSERT_TRUE(plane.remove(ObjectKind::tenant, "beta").outcome);
    plane.settle(90);
    EXPECT_EQ(plane.workload("late-job").status->phase, WorkloadPhase::running);
    EXPECT_EQ(plane.fabric_rows(), 2u);
}

TEST(TenantFabric, a_subnet_goes_to_nobody_while_a_function_may_still_have_it) {
    Fabric plane;
    plane.tenant("acme");
    plane.work("acme-job", "acme");
    const LeasedPort port = plane.lease_of("acme-job").ports.at(0);
    const auto function = static_cast<std::uint16_t>(port.function);
    plane.nodes[port.node]->model.faults({UnitKind::vf, function}) = {.lie = 2};
    plane.end("acme-job");
    const auto state_of = [&] { return plane.node(port.node).status.functions.at(function).state; };
    ASSERT_EQ(state_of(), CleanState::quarantined);
    ASSERT_TRUE(plane.remove(ObjectKind::tenant, "acme").outcome);
    EXPECT_EQ(plane.fabric_rows(), 1u) << "there is no such tenant any more, but a function that may have its numbers";
    for (const char* name : {"beta", "late"}) {
        plane.tenant(name);
        plane.work(fmt::format("{}-job", name), name);
    }
    EXPECT_EQ(plane.workload("beta-job").status->phase, WorkloadPhase::running);
    EXPECT_EQ(plane.workload("late-job").status->phase, WorkloadPhase::pending);
    ASSERT_TRUE(plane.ask(command::Repair{.node = port.node, .kind = UnitKind::vf, .device = function}).outcome);
    plane.settle(90);
    EXPECT_EQ(state_of(), CleanState::available);
    EXPECT_EQ(plane.workload("late-job").status->phase, WorkloadPhase::running);
}

TEST(TenantFabric, what_a_backup_has_forgotten_the_nodes_remember) {
    Fabric plane{one_subnet};
    plane.tenant("acme");
    plane.tenant("beta");
    plane.settle();
    const auto backup = plane.rows;
    plane.work("acme-job", "acme");
    const LeasedPort port = plane.lease_of("acme-job").ports.at(0);
    plane.nodes[port.node]->model.faults({UnitKind::vf, static_cast<std::uint16_t>(port.function)}) = {.lie = 9};
    plane.rows = backup;
    plane.restart(5, true);
    EXPECT_EQ(plane.fabric_rows(), 0u);
    for (const auto& [name, node] : plane.nodes) plane.hello(name);
    plane.settle();
    EXPECT_EQ(plane.fabric_rows(), 1u) << "its function could not be wiped: it may still be that on the wire";
    plane.work("beta-job", "beta");
    EXPECT_EQ(plane.workload("beta-job").status->phase, WorkloadPhase::pending) << "there is but the one subnet";
    EXPECT_EQ(plane.fabric_rows(), 1u);
}

// The backup has a tenant without work; since then it was deleted, and another has its numbers.
TEST(TenantFabric, what_a_backup_says_is_a_tenants_may_be_anothers_since) {
    for (const bool another_is_left : {false, true}) {
        Fabric plane{another_is_left ? two_subnets : one_subnet};
        plane.tenant("acme");
        plane.tenant("beta");
        plane.work("early", "acme");
        plane.end("early");
        ASSERT_EQ(plane.fabric_rows(), 1u);
        const auto backup = plane.rows;
        LeasedPort port;
        if (another_is_left) {  // a draw would find the other: as if it had found the first
            plane.work("acme-job", "acme");
            port = plane.lease_of("acme-job").ports.at(0);
        } else {
            ASSERT_TRUE(plane.remove(ObjectKind::tenant, "acme").outcome);
            plane.work("beta-job", "beta");
            port = plane.lease_of("beta-job").ports.at(0);
        }
        plane.nodes[port.node]->model.faults({UnitKind::vf, static_cast<std::uint16_t>(port.function)}) = {.lie = 9};
        plane.rows = backup;
        plane.restart(5, true);
        for (const auto& [name, node] : plane.nodes)
            if (another_is_left && name == port.node)
                plane.lie(name, {{.tenant = "beta", .port = as_told(port)}});
            else
                plane.hello(name);
        plane.settle();
        plane.work("late", "acme");
        if (another_is_left) {
            EXPECT_EQ(plane.workload("late").status->phase, WorkloadPhase::running);
            EXPECT_NE(plane.subnet_of("late"), as_told(port).subnet);
            EXPECT_NE(plane.lease_of("late").ports.at(0).vlan, port.vlan);
        } else {
            EXPECT_EQ(plane.workload("late").status->phase, WorkloadPhase::pending) << "it is beta's";
        }
        EXPECT_GE(plane.logged("refused"), 1) << "the operator can see that there was a clash";
    }
}

// The backup has a lease whose nodes were not told yet, and which ended since.
TEST(TenantFabric, a_lease_of_a_backup_is_not_made_of_what_another_has_since) {
    Fabric plane{one_subnet};
    plane.tenant("acme");
    plane.tenant("beta");
    for (auto& [name, node] : plane.nodes) node->reachable = false;
    plane.work("early", "acme");
    const LeasedPort early = plane.lease_of("early").ports.at(0);
    const auto backup = plane.rows;
    for (auto& [name, node] : plane.nodes) node->reachable = true;
    plane.settle(60);
    plane.end("early");
    ASSERT_TRUE(plane.remove(ObjectKind::tenant, "acme").outcome);
    plane.work("beta-job", "beta");
    const LeasedPort port = plane.lease_of("beta-job").ports.at(0);
    ASSERT_EQ(port.vlan, early.vlan);
    plane.nodes[port.node]->model.faults({UnitKind::vf, static_cast<std::uint16_t>(port.function)}) = {.lie = 9};
    plane.rows = backup;
    plane.restart(5, true);
    plane.orders.clear();
    for (const auto& [name, node] : plane.nodes)  // who has beta's work is heard of last
        if (name != port.node) plane.hello(name);
    plane.hello(port.node);
    plane.settle(120);
    for (const Order& order : plane.orders)
        if (const Prepare* prepare = std::get_if<Prepare>(&order.what)) {
            EXPECT_TRUE(prepare->tenant != "acme" || prepare->ports.empty()) << "its VLAN is another's";
        }
    EXPECT_EQ(plane.workload("early").status->phase, WorkloadPhase::pending);
}

TEST(TenantFabric, a_node_that_had_not_joined_when_the_backup_was_made_is_waited_for) {
    Fabric plane;
    plane.tenant("acme");
    const auto key = evidence::SigningKey::from_seed(std::string(32, 'z'));
    const command::Enrol enrol{.node = "n9", .spec = {.site = "fra"}, .evidence_key = print(key->public_key())};
    ASSERT_TRUE(plane.ask(enrol).outcome);
    plane.settle();
    plane.restart(5, true);
    for (const char* name : {"n0", "n1", "n2"}) plane.hello(name);
    EXPECT_TRUE(plane.core->restoring()) << "it may have joined since, and have work";
    EXPECT_TRUE(plane.remove(ObjectKind::node, "n9").outcome);
    EXPECT_FALSE(plane.core->restoring());
}

TEST(TenantFabric, a_node_that_lies_puts_nobody_where_another_is) {
    Fabric plane;
    plane.tenant("acme");
    plane.tenant("beta");
    plane.work("acme-job", "acme");
    const LeasedPort port = plane.lease_of("acme-job").ports.at(0);
    FabricPort told = as_told(port);
    const std::string liar = port.node == "n2" ? "n1" : "n2";
    told.function = 1;
    plane.lie(liar, {{.tenant = "beta", .port = told}});
    plane.work("beta-job", "beta");
    ASSERT_EQ(plane.workload("beta-job").status->phase, WorkloadPhase::running);
    EXPECT_NE(plane.lease_of("beta-job").ports.at(0).vlan, port.vlan);
    EXPECT_NE(plane.subnet_of("beta-job"), told.subnet);
}

TEST(TenantFabric, a_node_that_lies_does_not_become_who_the_policy_would_not_make) {
    Fabric plane;
    plane.tenant("acme");
    FabricPort told{.function = 0, .mac = "02:42:c0:a8:00:05", .address = "192.168.0.5/24", .subnet = "192.168.0.0/24"};
    told.vlan = 7;  // the operator's own, perhaps
    plane.lie("n0", {{.tenant = "acme", .port = told}});
    plane.work("train", "acme");
    EXPECT_THAT(plane.subnet_of("train"), HasSubstr("10.128."));
    EXPECT_GE(plane.lease_of("train").ports.at(0).vlan, 100);
}

TEST(TenantFabric, a_node_that_lies_stops_nobody_else) {
    Fabric plane{"  fabric: {pool: 10.128.0.0/16, tenantPrefix: 24, vlans: {first: 100, last: 131}}\n"};
    plane.tenant("acme");
    for (int i = 0; i < 40; ++i) {
        FabricPort told{.function = 0,
                        .mac = "02:42:0a:80:00:05",
                        .address = fmt::format("10.128.{}.5/8", i),
                        .subnet = "10.0.0.0/8"};
        told.vlan = static_cast<std::uint16_t>(100 + i % 32);
        plane.lie("n0", {{.tenant = "nobody", .port = told}});
    }
    EXPECT_LE(plane.fabric_rows(), 4u);
    plane.work("train", "acme");
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::running);
}

TEST(TenantFabric, a_function_that_a_node_no_longer_has_may_still_be_somebody) {
    Fabric plane{one_subnet};
    plane.tenant("acme");
    FabricPort told{.function = 5, .mac = "02:42:0a:80:00:05", .address = "10.128.0.5/20", .subnet = "10.128.0.0/20"};
    told.vlan = 104;
    plane.lie("n0", {{.tenant = "gone", .port = told}});
    plane.work("train", "acme");
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::pending) << "somebody may be on that subnet";
    EXPECT_EQ(plane.fabric_rows(), 1u);
}

TEST(TenantFabric, who_comes_under_the_name_of_one_that_is_gone_is_somebody_else) {
    Fabric plane;
    plane.tenant("acme");
    plane.work("acme-job", "acme");
    const LeasedPort port = plane.lease_of("acme-job").ports.at(0);
    plane.nodes[port.node]->model.faults({UnitKind::vf, static_cast<std::uint16_t>(port.function)}) = {.lie = 2};
    plane.end("acme-job");
    ASSERT_TRUE(plane.remove(ObjectKind::tenant, "acme").outcome);
    plane.restart(2);
    for (const auto& [name, node] : plane.nodes) plane.hello(name);
    plane.tenant("acme");
    plane.work("newcomer", "acme");
    ASSERT_EQ(plane.workload("newcomer").status->phase, WorkloadPhase::running);
    EXPECT_NE(plane.lease_of("newcomer").ports.at(0).vlan, port.vlan);
    EXPECT_NE(plane.subnet_of("newcomer"), as_told(port).subnet);
}

const std::string five_addresses =
    "  fabric: {pool: 10.128.0.0/19, tenantPrefix: 29, vlans: {first: 100, last: 131}}\n";

TEST(TenantFabric, an_elastic_gang_is_as_large_as_there_are_addresses) {
    Fabric plane{five_addresses};
    plane.tenant("acme");
    const Answer answer = plane.apply(
        "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: elastic}\nspec: {tenant: acme, "
        "tasks: 6, minTasks: 2, gpu: {count: 1, mechanism: whole}, network: {rdma: true}}\n");
    ASSERT_TRUE(answer.outcome) << answer.outcome.error().what;
    plane.settle();
    EXPECT_EQ(plane.workload("elastic").status->phase, WorkloadPhase::running);
    EXPECT_EQ(plane.lease_of("elastic").ports.size(), 5u);
}

TEST(TenantFabric, a_gang_larger_than_any_subnet_is_told_so) {
    Fabric plane{five_addresses};
    plane.tenant("acme");
    plane.work("large", "acme", 6);
    EXPECT_EQ(plane.workload("large").status->reasons.front(),
              "it needs 6 functions on the fabric at once, and a tenant's subnet has 5 addresses");
    plane.work("first", "acme", 4);
    plane.work("second", "acme", 2);
    EXPECT_EQ(plane.workload("second").status->reasons.front(),
              "its tenant's subnet has too few addresses left for its functions");
}

TEST(TenantFabric, an_agent_that_cannot_set_functions_gets_no_work_with_any) {
    Fabric plane;
    plane.tenant("acme");
    for (auto& [name, node] : plane.nodes) {
        Hello hello = node->executor->hello(node->model.inventory(), node->model.boot_id());
        hello.protocol = agent_protocol_fabric - 1;
        node->session += 100;
        plane.event(AgentHello{name, node->session, hello});
    }
    plane.work("train", "acme");
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::pending);
    EXPECT_THAT(plane.workload("train").status->reasons.front(), HasSubstr("virtual function"));
    for (const auto& [name, node] : plane.nodes) plane.hello(name);
    plane.settle(90);
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::running);
}

TEST(TenantFabric, without_a_declared_fabric_functions_are_nobody_in_particular) {
    Fabric plane{""};
    plane.tenant("acme");
    plane.work("train", "acme");
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::running);
    EXPECT_THAT(plane.lease_of("train").ports, IsEmpty());
    EXPECT_EQ(plane.fabric_rows(), 0u);
}

TEST(TenantFabric, another_pool_reaches_a_tenant_when_it_has_nothing_on_the_fabric) {
    Fabric plane;
    plane.tenant("acme");
    plane.work("first", "acme");
    const std::string subnet = plane.subnet_of("first");
    ASSERT_TRUE(
        plane.apply(fleet_of("  fabric: {pool: 10.64.0.0/16, tenantPrefix: 20, vlans: {first: 200, last: 231}}\n"))
            .outcome);
    plane.work("second", "acme");
    EXPECT_EQ(plane.subnet_of("second"), subnet) << "its work finds each other";
    plane.end("first");
    plane.end("second");
    plane.work("third", "acme");
    EXPECT_THAT(plane.subnet_of("third"), HasSubstr("10.64."));
    EXPECT_GE(plane.lease_of("third").ports.at(0).vlan, 200);
}

// Its agent was started while another program had the NIC: it has numbers for the functions, and nothing to give.
TEST(TenantFabric, a_node_that_cannot_look_at_its_functions_keeps_who_has_them_and_gets_nobody_new) {
    Fabric plane{two_subnets, 1};
    plane.tenant("acme");
    plane.work("train", "acme");
    ASSERT_EQ(plane.lease_of("train").phase, LeasePhase::active);
    Plane::Node& node = *plane.nodes["n0"];
    Hello hello = node.executor->hello(node.model.inventory(), node.model.boot_id());
    for (NodeFunction& function : hello.inventory.functions) function = {.address = function.address};
    std::erase_if(hello.inventory.capabilities, [](const auto& one) { return one.name == Capability::rdma; });
    node.session += 1000;
    plane.event(AgentHello{"n0", node.session, hello});
    plane.settle();
    EXPECT_EQ(plane.lease_of("train").phase, LeasePhase::active);
    EXPECT_EQ(plane.logged("quarantined"), 0);
    const Answer late = plane.apply(
        "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: late}\nspec: {tenant: acme, "
        "gpu: {count: 1, mechanism: whole}, network: {rdma: true}}\n");
    EXPECT_FALSE(late.outcome) << "no node can serve it";
    plane.hello("n0");
    plane.settle();
    EXPECT_EQ(plane.lease_of("train").phase, LeasePhase::active);
    EXPECT_EQ(plane.logged("quarantined"), 0);
}

// Eight GPUs below four switches, a NIC beside each GPU: what comes to the last pair is not given the first NIC.
TEST(TenantFabric, a_lease_gets_functions_below_the_switch_of_its_gpus) {
    Fabric plane{two_subnets, 0};
    NodeModelSpec spec = Plane::model_spec("wide");
    spec.gpus = spec.functions = 8;
    plane.add_node(spec);
    plane.settle();
    plane.tenant("acme");
    const auto take = [&](const std::string& name, int tasks, bool rdma) {
        const Answer answer = plane.apply(fmt::format(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {{name: {}}}\nspec: {{tenant: acme, "
            "tasks: {}, gpu: {{count: 2, mechanism: whole}}, network: {{rdma: {}}}}}\n",
            name, tasks, rdma));
        ASSERT_TRUE(answer.outcome) << answer.outcome.error().what;
        plane.settle();
    };
    take("without", 2, false);
    // A new process knows it out of its rows: a node that says word for word the same is not taken in anew.
    plane.restart(2);
    Plane::Node& machine = *plane.nodes["wide"];
    Hello again = machine.executor->hello(machine.model.inventory(), machine.model.boot_id());
    again.inventory.gpus.assign(8, {.model = again.inventory.gpus.front().model, .slices = {}});  // as rows have them
    machine.session += 1000;
    plane.event(AgentHello{"wide", machine.session, again});
    plane.settle();
    take("with", 2, true);
    const GpuLease lease = plane.find<GpuLease>(plane.workload("with").status->lease);
    const GpuNodeStatus node = plane.node("wide").status;
    std::multiset<std::string> of_gpus, of_functions;
    for (const LeasedSlice& slice : lease.spec.slices)
        of_gpus.insert(node.topology.at(static_cast<std::size_t>(slice.gpu)).bridges.at(1));
    for (const LeasedDevice& function : lease.spec.functions) {
        const std::string& above = node.functions.at(static_cast<std::size_t>(function.index)).bridges.at(1);
        EXPECT_TRUE(of_gpus.contains(above)) << "vf" << function.index << " is below " << above;
        of_functions.insert(above);
    }
    EXPECT_EQ(of_gpus.size(), 4u);
    EXPECT_EQ(std::set(of_functions.begin(), of_functions.end()).size(), 2u) << "each task its own switch's";
}

}  // namespace
}  // namespace bulkhead
