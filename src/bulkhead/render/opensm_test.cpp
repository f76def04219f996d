// What a subnet manager makes of our partitions: the real OpenSM, on a simulated subnet.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "bulkhead/model/subnet.hpp"
#include "bulkhead/render/partition_lease_test.hpp"
#include "bulkhead/render/partitions.hpp"
#include "bulkhead/render/simulated_subnet_test.hpp"

namespace bulkhead::render {
namespace {

using testing::_;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint16_t nobodys = 0x7FFF, everybodys = 0xFFFF;  // the default partition, limited and full

std::uint64_t guid_of(const std::string& address) { return *parse_octets(address, 8); }

// The port's GUID as the control plane draws it: of an address of the tenant's subnet.
std::string drawn_guid(unsigned subnet, unsigned host) {
    return fmt::format("02:42:50:00:0a:80:{:02x}:{:02x}", subnet, host);
}

std::string conf_of(const std::vector<GpuLease>& leases) {
    const auto plan = plan_partitions(leases);
    EXPECT_TRUE(plan) << plan.error().what;
    return plan ? partitions_conf(*plan) : "";
}

#define NEEDS_A_SUBNET() \
    if (const std::string missing = SimulatedSubnet::missing(); !missing.empty()) GTEST_SKIP() << missing

TEST(OpenSm, gives_each_tenants_ports_its_key_and_ports_of_nobody_none) {
    NEEDS_A_SUBNET();
    const std::string a = drawn_guid(0x10, 5), b = drawn_guid(0x10, 2), c = drawn_guid(0x20, 2),
                      d = drawn_guid(0x30, 9);
    const SimulatedSubnet subnet{
        {guid_of(a), guid_of(b), guid_of(c), guid_of(d), 0x248a0703009c0001, 0x248a0703009c0003}};
    EXPECT_THAT(subnet.keys(0), ElementsAre(everybodys)) << "as ports are before any manager was there";
    const std::string said =
        subnet.sweep(conf_of({lease_of("acme", 0x8123, {a, b}), lease_of("beta", 0x8200, {c}),
                              lease_of("a-tenant-whose-name-is-longer-than-opensm-keeps-names", 0x8000 | 32000, {d})}));
    EXPECT_THAT(said, Not(HasSubstr("PARSE")));
    EXPECT_THAT(said, Not(HasSubstr("ERR")));
    for (std::size_t port = 0; port < 4; ++port) EXPECT_NE(subnet.guid(port), 0u);
    EXPECT_EQ(subnet.guid(2), guid_of(c));
    // A tenant's own key is at index 0, where programs look that ask for none.
    const std::vector<std::vector<std::uint16_t>> expected{{0x8123, nobodys}, {0x8123, nobodys}, {0x8200, nobodys},
                                                           {0xFD00, nobodys}, {nobodys},         {nobodys}};
    for (std::size_t port = 0; port < subnet.size(); ++port) {
        EXPECT_EQ(subnet.keys(port), expected[port]) << "port " << port;
        EXPECT_EQ(subnet.keys_before(port), expected[port]) << "the switch before port " << port;
    }
    EXPECT_THAT(subnet.managers_keys(), ElementsAre(everybodys));
}

TEST(OpenSm, takes_the_key_of_the_last_tenant_from_a_port_that_changes_hands) {
    NEEDS_A_SUBNET();
    const std::string a = drawn_guid(0x10, 5), b = drawn_guid(0x20, 2), c = drawn_guid(0x20, 3);
    const SimulatedSubnet subnet{{guid_of(a), guid_of(b), guid_of(c)}};
    subnet.sweep(conf_of({lease_of("acme", 0x8123, {a}), lease_of("beta", 0x8200, {b, c})}));
    EXPECT_THAT(subnet.keys(0), ElementsAre(0x8123, nobodys));
    subnet.sweep(conf_of({lease_of("acme", 0x8123, {b}), lease_of("beta", 0x8200, {c})}));
    EXPECT_THAT(subnet.keys(0), ElementsAre(nobodys)) << "nobody's since";
    EXPECT_THAT(subnet.keys(1), ElementsAre(0x8123, nobodys));
    EXPECT_THAT(subnet.keys_before(1), ElementsAre(0x8123, nobodys));
    EXPECT_THAT(subnet.keys(2), ElementsAre(0x8200, nobodys));
    subnet.sweep(conf_of({}));
    for (std::size_t port = 0; port < subnet.size(); ++port)
        EXPECT_THAT(subnet.keys(port), ElementsAre(nobodys)) << "no leases, and still nobody may talk";
}

TEST(OpenSm, of_forty_tenants_no_two_share_a_key_that_lets_them_talk) {
    NEEDS_A_SUBNET();
    std::vector<GpuLease> leases;
    std::vector<std::uint64_t> guids;
    std::vector<std::string> owners;
    for (unsigned tenant = 0; tenant < 40; ++tenant) {
        std::vector<std::string> ports;
        for (unsigned port = 0; port <= tenant % 5; ++port) ports.push_back(drawn_guid(tenant, 2 + 2 * port));
        for (const std::string& port : ports) {
            guids.push_back(guid_of(port));
            owners.push_back(fmt::format("{}t", tenant));
        }
        leases.push_back(lease_of(owners.back(), 0x8000 | (256 + tenant * 7), ports));
    }
    const SimulatedSubnet subnet{guids};
    EXPECT_THAT(subnet.sweep(conf_of(leases)), Not(HasSubstr("PARSE")));
    std::map<std::uint16_t, std::set<std::string>> sharing;
    for (std::size_t port = 0; port < subnet.size(); ++port) {
        const auto keys = subnet.keys(port);
        // No other key either: a limited member of somebody's key may talk to its full members.
        ASSERT_THAT(keys, ElementsAre(_, nobodys)) << port;
        EXPECT_NE(keys[0] & 0x8000, 0) << port;
        sharing[keys[0]].insert(owners[port]);
    }
    EXPECT_EQ(sharing.size(), 40u);
    for (const auto& [key, tenants] : sharing) EXPECT_EQ(tenants.size(), 1u) << key;
}

// Why the file is written aside and renamed, and why its form is tested here: what OpenSM cannot read, it replaces by
// a partition of everybody, and goes on.
TEST(OpenSm, joins_everybody_when_it_cannot_read_the_file) {
    NEEDS_A_SUBNET();
    const std::string a = drawn_guid(0x10, 5), b = drawn_guid(0x20, 2);
    const SimulatedSubnet subnet{{guid_of(a), guid_of(b)}};
    const std::string good = conf_of({lease_of("acme", 0x8123, {a}), lease_of("beta", 0x8200, {b})});
    struct Row {
        const char* says;
        std::string conf;
    };
    const Row rows[] = {
        {"octets are no GUID", std::regex_replace(good, std::regex{"0x024250000a802002"}, b)},
        {"no end of a definition", std::regex_replace(good, std::regex{"=full :"}, "=full")},
        {"an empty file", ""},
    };
    for (const Row& row : rows) {
        subnet.sweep(good);
        ASSERT_THAT(subnet.keys(0), ElementsAre(0x8123, nobodys)) << row.says;
        EXPECT_THAT(subnet.sweep(row.conf), HasSubstr("Partition configuration in error")) << row.says;
        EXPECT_THAT(subnet.keys(0), Contains(everybodys)) << row.says;
        EXPECT_THAT(subnet.keys(1), Contains(everybodys)) << row.says;
    }
    // And of a file that is not there its log says nothing that could be listened for.
    subnet.sweep(good);
    ASSERT_THAT(subnet.keys(0), ElementsAre(0x8123, nobodys));
    const std::string said = subnet.sweep_without_the_file();
    EXPECT_THAT(said, Not(HasSubstr("Partition configuration in error")));
    EXPECT_THAT(said, Not(HasSubstr("ERR")));
    for (std::size_t port = 0; port < subnet.size(); ++port) EXPECT_THAT(subnet.keys(port), Contains(everybodys));
}

// A virtual function's GUID that this manager does not know of: it says nothing, and writes no key anywhere.
TEST(OpenSm, passes_over_a_port_that_is_not_on_its_subnet) {
    NEEDS_A_SUBNET();
    const std::string a = drawn_guid(0x10, 5), away = drawn_guid(0x10, 6);
    const SimulatedSubnet subnet{{guid_of(a), 0x248a0703009c0001}};
    const std::string said = subnet.sweep(conf_of({lease_of("acme", 0x8123, {a, away})}));
    EXPECT_THAT(said, Not(HasSubstr("024250000a801006")));
    EXPECT_THAT(subnet.keys(0), ElementsAre(0x8123, nobodys));
    EXPECT_THAT(subnet.keys(1), ElementsAre(nobodys));
}

}  // namespace
}  // namespace bulkhead::render
