#include "bulkhead/model/fabric.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "bulkhead/model/consistency.hpp"
#include "bulkhead/model/subnet.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

TEST(Subnets, are_written_one_way) {
    for (const char* text : {"10.128.0.0/9", "0.0.0.0/0", "255.255.255.255/32", "192.168.4.0/22"}) {
        const auto subnet = parse_subnet(text);
        ASSERT_TRUE(subnet) << text;
        EXPECT_EQ(print(*subnet), text);
    }
    for (const char* text : {"", "10.128.0.0", "10.128.0.0/", "10.128.0.0/33", "10.128.0.1/9", "10.128.0/9",
                             "010.0.0.0/8", "10.0.0.0/08", " 10.0.0.0/8", "10.0.0.0/8 ", "256.0.0.0/8", "10.0.0.0.0/8",
                             "-1.0.0.0/8", "10.0.0.0/0x8", "1e1.0.0.0/8", "::/0"})
        EXPECT_FALSE(parse_subnet(text)) << text;
}

TEST(Subnets, know_what_lies_in_them) {
    const auto address = parse_host_address("10.128.16.5/20");
    ASSERT_TRUE(address);
    EXPECT_EQ(print(address->network()), "10.128.16.0/20");
    EXPECT_TRUE(address->network().contains(address->address));
    EXPECT_FALSE(parse_subnet("10.128.32.0/20")->overlaps(address->network()));
    EXPECT_TRUE(parse_subnet("0.0.0.0/0")->overlaps(address->network()));
}

TEST(Octets, are_read_as_they_are_printed) {
    EXPECT_EQ(print_octets(0x02420a801005, 6), "02:42:0a:80:10:05");
    EXPECT_EQ(parse_octets("02:42:0a:80:10:05", 6), 0x02420a801005u);
    EXPECT_EQ(parse_octets(print_octets(~0ull, 8), 8), ~0ull);
    for (const char* text : {"", "02:42:0a:80:10", "02:42:0a:80:10:05:06", "02-42-0a-80-10-05", "02:42:0A:80:10:05",
                             "0:42:0a:80:10:055", "02:42:0a:80:10:0g"})
        EXPECT_FALSE(parse_octets(text, 6)) << text;
}

TEST(FabricPolicies, that_keep_nobody_apart_are_refused_with_the_rule) {
    struct Row {
        const char *says, *where, *what;
        std::function<void(FabricPolicy&)> change;
    };
    const Row rows[] = {
        {"a sound one", nullptr, nullptr, [](auto&) {}},
        {"InfiniBand", nullptr, nullptr,
         [](auto& f) {
             f.kind = FabricKind::infiniband;
             f.partitionKeys = NumberRange{256, 300};
         }},
        {"Ethernet without VLANs", "/spec/fabric", "keeps nobody apart", [](auto& f) { f.vlans.reset(); }},
        {"InfiniBand without keys", "/spec/fabric", "keeps nobody apart",
         [](auto& f) { f.kind = FabricKind::infiniband; }},
        {"a range that is none", "/spec/fabric/vlans", "are none", [](auto& f) { f.vlans = NumberRange{200, 100}; }},
        {"the VLAN that is no VLAN", "/spec/fabric/vlans", "meanings of their own",
         [](auto& f) { f.vlans = NumberRange{1, 100}; }},
        {"the default partition", "/spec/fabric/partitionKeys", "default partition",
         [](auto& f) { f.partitionKeys = NumberRange{256, 32767}; }},
        {"a pool of words", "/spec/fabric/pool", "no IPv4 network", [](auto& f) { f.pool = "ten"; }},
        {"a pool with a host in it", "/spec/fabric/pool", "bits beyond its prefix",
         [](auto& f) { f.pool = "10.128.0.1/16"; }},
        {"a pool smaller than one subnet", "/spec/fabric/tenantPrefix", "larger than the pool",
         [](auto& f) { f.pool = "10.128.0.0/24"; }},
        {"link-local addresses, which NCCL ignores", "/spec/fabric/pool", "169.254.0.0/16",
         [](auto& f) { f.pool = "169.254.0.0/16"; }},
        {"a pool around the loopback", "/spec/fabric/pool", "127.0.0.0/8", [](auto& f) { f.pool = "126.0.0.0/7"; }},
        {"a class that is not there", "/spec/fabric/classes/0/class", "there is none",
         [](auto& f) { f.classes = {{.tenantClass = "reserch"}}; }},
        {"a class twice", "/spec/fabric/classes/1", "twice",
         [](auto& f) { f.classes = {{.tenantClass = "batch"}, {.tenantClass = "batch"}}; }},
        {"two shares for one mark", "/spec/fabric/classes/1/sharePercent", "two shares",
         [](auto& f) {
             f.classes = {{.tenantClass = "batch", .dscp = 10, .sharePercent = 20}, {.dscp = 10, .sharePercent = 30}};
         }},
        {"marked as control is", "/spec/fabric/classes/0/dscp", "control packets",
         [](auto& f) { f.classes = {{.tenantClass = "batch", .dscp = 48}}; }},
        {"flow control of what is unmarked", "/spec/fabric/losslessPriority", "what is unmarked",
         [](auto& f) { f.losslessPriority = 0; }},
        {"flow control of control", "/spec/fabric/losslessPriority", "control",
         [](auto& f) { f.losslessPriority = 6; }},
        {"less than a percent for others", "/spec/fabric/classes", "leave less than one for each of 2 others",
         [](auto& f) { f.classes = {{.tenantClass = "batch", .dscp = 10, .sharePercent = 99}, {.dscp = 26}}; }},
        {"more than there is", "/spec/fabric/classes", "leave nothing",
         [](auto& f) {
             f.classes = {{.tenantClass = "batch", .dscp = 10, .sharePercent = 60}, {.dscp = 26, .sharePercent = 60}};
         }},
    };
    for (const Row& row : rows) {
        Snapshot snapshot;
        FleetPolicy& policy = snapshot.policies.emplace_back();
        policy.metadata.name = "fleet";
        policy.spec.fabric =
            FabricPolicy{.pool = "10.128.0.0/16", .vlans = NumberRange{100, 200}, .partitionKeys = {}, .classes = {}};
        row.change(*policy.spec.fabric);
        const auto findings = inconsistencies(snapshot);
        if (row.where == nullptr) {
            EXPECT_TRUE(findings.empty()) << row.says << ": " << (findings.empty() ? "" : findings[0].what);
            continue;
        }
        ASSERT_EQ(findings.size(), 1u) << row.says;
        EXPECT_EQ(findings[0].path, row.where) << row.says;
        EXPECT_THAT(findings[0].what, HasSubstr(row.what)) << row.says;
        EXPECT_FALSE(findings[0].remedy.empty()) << row.says;
    }
}

}  // namespace
}  // namespace bulkhead
