// What subnet managers, hosts and switches are given.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "bulkhead/render/partition_lease_test.hpp"
#include "bulkhead/render/partitions.hpp"
#include "bulkhead/render/qos_plan.hpp"

namespace bulkhead::render {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// As a subnet manager reads it: statements that end in ';', a name, a key, flags, and members with their membership.
struct ReadPartition {
    unsigned key = 0;
    std::map<std::string, std::string> members;
};
std::map<std::string, ReadPartition> read_conf(const std::string& text) {
    std::string joined;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);)
        if (!line.starts_with('#')) joined += line + ' ';
    std::map<std::string, ReadPartition> out;
    const std::regex statement{R"(\s*([A-Za-z0-9-]+)=(0x[0-9a-f]{4})([^:;]*):([^;]*);)"};
    std::size_t used = 0;
    for (std::sregex_iterator it{joined.begin(), joined.end(), statement}, end; it != end; ++it) {
        EXPECT_EQ(static_cast<std::size_t>(it->position()), used) << "nothing between statements";
        used += static_cast<std::size_t>(it->length());
        ReadPartition& read = out[(*it)[1]];
        read.key = static_cast<unsigned>(std::stoul((*it)[2], nullptr, 16));
        const std::string list = (*it)[4];
        const std::regex member{R"((ALL|SELF|0x[0-9a-f]{16})=(full|limited))"};
        for (std::sregex_iterator m{list.begin(), list.end(), member}; m != end; ++m) read.members[(*m)[1]] = (*m)[2];
    }
    EXPECT_EQ(joined.find_first_not_of(' ', used), std::string::npos) << joined.substr(used);
    return out;
}

TEST(Partitions, are_one_for_each_tenant_and_the_default_one_is_for_nobody_to_talk_in) {
    const auto plan =
        plan_partitions({lease_of("acme", 0x8123, {"02:42:50:00:0a:80:10:05", "02:42:50:00:0a:80:10:02"}),
                         lease_of("beta", 0x8200, {"02:42:50:00:0a:80:20:02"}),
                         lease_of("acme", 0x8123, {"02:42:50:00:0a:80:10:09"}), lease_of("none", 0, {""})});
    ASSERT_TRUE(plan) << plan.error().what;
    ASSERT_EQ(plan->size(), 2u);
    EXPECT_EQ(guid_list((*plan)[1]), "0x024250000a802002\n");
    const auto read = read_conf(partitions_conf(*plan));
    ASSERT_EQ(read.size(), 3u);
    EXPECT_EQ(read.at("Default").key, 0x7FFFu);
    EXPECT_THAT(partitions_conf({}), Not(HasSubstr("ipoib"))) << "no IP network with the subnet manager's machine";
    EXPECT_EQ(read.at("Default").members, (std::map<std::string, std::string>{{"ALL", "limited"}, {"SELF", "full"}}));
    EXPECT_EQ(read.at("acme").key, 0x123u);
    EXPECT_EQ(read.at("acme").members.size(), 3u);
    EXPECT_EQ(read.at("beta").members, (std::map<std::string, std::string>{{"0x024250000a802002", "full"}}));
    // No port is a full member of two.
    std::set<std::string> full;
    for (const auto& [name, partition] : read)
        for (const auto& [guid, membership] : partition.members)
            EXPECT_TRUE(membership != "full" || full.insert(guid).second) << guid;
}

TEST(Partitions, a_port_that_an_ending_lease_still_shows_is_listed_once) {
    const std::string a = "02:42:50:00:0a:80:10:05", b = "02:42:50:00:0a:80:10:06";
    const auto plan = plan_partitions({lease_of("acme", 0x8123, {a}), lease_of("acme", 0x8123, {a, b})});
    ASSERT_TRUE(plan) << plan.error().what;
    ASSERT_EQ(plan->size(), 1u);
    EXPECT_EQ((*plan)[0].members.size(), 2u);
}

// Its numbers were somebody else's too after a restore: what runs has the old key, what comes has another.
TEST(Partitions, a_tenant_may_have_two_and_they_are_two) {
    const auto plan = plan_partitions(
        {lease_of("acme", 0x8123, {"02:42:50:00:0a:80:10:05"}), lease_of("acme", 0x8124, {"02:42:50:00:0a:80:20:05"})});
    ASSERT_TRUE(plan) << plan.error().what;
    const auto read = read_conf(partitions_conf(*plan));
    EXPECT_EQ(read.at("acme").key, 0x123u);
    EXPECT_EQ(read.at("acme-0124").key, 0x124u);
    EXPECT_EQ(read.at("acme").members.size(), 1u);
}

TEST(Partitions, that_would_join_two_tenants_are_not_written) {
    const std::string a = "02:42:50:00:0a:80:10:05", b = "02:42:50:00:0a:80:20:05";
    struct Row {
        const char *says, *what;
        std::vector<GpuLease> leases;
    };
    const Row rows[] = {
        {"two tenants, one key", "acme's and beta's", {lease_of("acme", 0x8123, {a}), lease_of("beta", 0x8123, {b})}},
        {"one port, two keys", "leased twice", {lease_of("acme", 0x8123, {a}), lease_of("acme", 0x8124, {a})}},
        {"one port, two leases", "leased twice", {lease_of("acme", 0x8123, {a}), lease_of("beta", 0x8124, {a})}},
        {"the default partition", "0xffff", {lease_of("acme", 0xFFFF, {a})}},
        {"a limited member", "0x0123", {lease_of("acme", 0x0123, {a})}},
        {"no GUID", "GUID", {lease_of("acme", 0x8123, {""})}},
    };
    for (const Row& row : rows) {
        const auto plan = plan_partitions(row.leases);
        ASSERT_FALSE(plan) << row.says;
        EXPECT_EQ(plan.error().code, Code::corrupt);
        EXPECT_THAT(plan.error().what, HasSubstr(row.what)) << row.says;
    }
}

FabricPolicy three_classes() {
    return {.pool = "10.128.0.0/9",
            .vlans = NumberRange{100, 200},
            .partitionKeys = std::nullopt,
            .classes = {{.tenantClass = "frontier-training", .rateMbps = 400'000, .dscp = 26, .sharePercent = 60},
                        {.tenantClass = "batch", .rateMbps = 50'000, .dscp = 10},
                        {.rateMbps = 100'000, .dscp = 0}}};
}

TEST(QosPlan, has_one_lossless_priority_and_gives_all_of_the_link) {
    const auto plan = plan_traffic(three_classes());
    ASSERT_TRUE(plan) << plan.error().what;
    EXPECT_THAT(*plan, ElementsAre(TrafficClass{0, {0}, 20, false}, TrafficClass{1, {10}, 20, false},
                                   TrafficClass{3, {26}, 60, true}, TrafficClass{6, {48}, 0, false}));
    const auto text = qos_plan(three_classes(), "ens1f0");
    ASSERT_TRUE(text) << text.error().what;
    EXPECT_THAT(*text, HasSubstr("dcb app replace dev ens1f0 dscp-prio 0:0 10:1 26:3 48:6\n"));
    EXPECT_THAT(*text, HasSubstr("dcb pfc set dev ens1f0 prio-pfc all:off 3:on\n"));
    EXPECT_THAT(
        *text,
        HasSubstr(
            "dcb ets set dev ens1f0 prio-tc 0:0 1:1 3:3 6:6 tc-tsa 0:ets 1:ets 3:ets 6:strict tc-bw 0:20 1:20 3:60\n"));
    EXPECT_THAT(*text, HasSubstr("frontier-training: at most 400000 Mbit/s a function, marked 26 (NCCL_IB_TC=104)"));
    EXPECT_THAT(*text, HasSubstr("its tag says priority 3\n")) << "as the agent sets it: the upper bits of the mark";
    EXPECT_THAT(*text, HasSubstr("trust the mark, not the tag"));
}

TEST(QosPlan, whatever_the_shares_gives_a_hundred_percent) {
    for (int marks = 0; marks <= 6; ++marks)
        for (int share = 0; share <= 16; ++share) {
            FabricPolicy policy = three_classes();
            policy.classes.clear();
            for (int i = 0; i < marks; ++i) {
                FabricClass one{.tenantClass = fmt::format("c{}", i), .dscp = 8 + i};
                if (share > 0 && i % 2 == 0) one.sharePercent = share;
                policy.classes.push_back(one);
            }
            const auto plan = plan_traffic(policy);
            ASSERT_TRUE(plan) << plan.error().what;
            unsigned sum = 0, lossless = 0;
            std::set<unsigned> priorities;
            for (const TrafficClass& one : *plan) {
                sum += one.share;
                lossless += one.lossless ? 1 : 0;
                EXPECT_TRUE(priorities.insert(one.priority).second);
            }
            EXPECT_EQ(sum, 100u);
            EXPECT_EQ(lossless, marks == 0 ? 0u : 1u);
        }
}

TEST(QosPlan, refuses_what_no_switch_can_do) {
    FabricPolicy control = three_classes();
    control.losslessPriority = 6;
    EXPECT_THAT(plan_traffic(control).error().what, HasSubstr("is for control"));
    FabricPolicy many = three_classes();
    for (int i = 0; i < 7; ++i) many.classes.push_back({.tenantClass = fmt::format("c{}", i), .dscp = 30 + i});
    EXPECT_THAT(plan_traffic(many).error().what, HasSubstr("9 marks, and 6 priorities"));
}

}  // namespace
}  // namespace bulkhead::render
