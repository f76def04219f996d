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

struct Fabric : Plane {
    explicit Fabric(const std::string& fabric = two_subnets) : Plane{3} {
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
    for (const Order& order : plane.orders)
        if (const Prepare* prepare = std::get_if<Prepare>(&order.what)) {
            EXPECT_FALSE(prepare->ports.empty());
            EXPECT_TRUE(std::ranges::any_of(before, [&](const Order& old) {
                const Prepare* first = std::get_if<Prepare>(&old.what);
                return first != nullptr && *first == *prepare;
            }));
        }
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
    EXPECT_EQ(status.reasons[0], "the fabric has no subnet, VLAN or partition left to give its tenant");
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
    Fabric plane;
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
    EXPECT_NE(plane.subnet_of("beta-job"), as_told(port).subnet);
    EXPECT_EQ(plane.fabric_rows(), 2u);
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

}  // namespace
}  // namespace bulkhead
