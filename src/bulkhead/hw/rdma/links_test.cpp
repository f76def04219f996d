// Against this machine's kernel, in namespaces of the test's own: as root, and nothing of the host is touched.
#include "bulkhead/hw/rdma/links.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "bulkhead/hw/rdma/guard.hpp"
#include "bulkhead/hw/rdma/nic_identity.hpp"

namespace bulkhead::rdma {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class Kernel : public testing::Test {
protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "network namespaces take root";
        auto made = Space::unnamed();
        if (!made) GTEST_SKIP() << "no network namespace: " << made.error().what;
        space.emplace(std::move(*made));
        auto opened = Links::open(*space);
        ASSERT_TRUE(opened) << opened.error().what;
        links.emplace(std::move(*opened));
        const auto veth = links->make_veth("left", {"right", -1});
        if (!veth) GTEST_SKIP() << "this kernel makes no veth: " << veth.error().what;
        left = *veth;
    }
    std::optional<Space> space;
    std::optional<Links> links;
    int left = 0;
};

TEST_F(Kernel, a_link_is_moved_named_addressed_and_raised_in_a_tenants_namespace) {
    auto theirs = Space::unnamed();
    ASSERT_TRUE(theirs);
    ASSERT_FALSE(theirs->is_same_as(*space));
    const auto right = links->link("right");
    ASSERT_TRUE(right) << right.error().what;
    EXPECT_EQ(right->kind, "veth");
    ASSERT_TRUE(links->move(right->index, *theirs, "fabric3"));
    EXPECT_FALSE(links->link("right")) << "it is gone from here";
    EXPECT_FALSE(links->link("fabric3"));
    auto there = Links::open(*theirs);
    ASSERT_TRUE(there);
    const auto moved = there->link("fabric3");
    ASSERT_TRUE(moved) << moved.error().what;
    const Mac mac = *parse_mac("02:42:0a:80:10:05");
    ASSERT_TRUE(there->set_mac(moved->index, mac));
    const Prefix address = *parse_prefix("10.128.16.5/20");
    ASSERT_TRUE(there->add(moved->index, address));
    ASSERT_TRUE(there->add(moved->index, address)) << "twice is once";
    ASSERT_TRUE(there->raise(moved->index));
    EXPECT_EQ(there->link("fabric3")->mac, mac);
    EXPECT_TRUE(there->link("fabric3")->is_up);
    const auto has = [&] {
        const auto all = there->addresses();
        return all && std::ranges::any_of(*all, [&](const AddressSeen& seen) { return seen.address == address; });
    };
    EXPECT_TRUE(has());
    ASSERT_TRUE(there->remove(moved->index, address));
    ASSERT_TRUE(there->remove(moved->index, address)) << "gone is gone";
    EXPECT_FALSE(has());
}

TEST_F(Kernel, a_socket_stays_in_the_namespace_it_was_opened_in) {
    auto theirs = Space::unnamed();
    ASSERT_TRUE(theirs);
    bool sees_it = true;
    ASSERT_TRUE(theirs->run([&]() -> Result<> {
        sees_it = static_cast<bool>(links->link("left"));  // from a thread that is elsewhere
        return {};
    }));
    EXPECT_TRUE(sees_it);
    const auto own = Space::own();
    ASSERT_TRUE(own);
    EXPECT_FALSE(own->is_same_as(*theirs)) << "whoever ran something there has not moved";
}

TEST_F(Kernel, says_what_drives_a_link) {
    const auto said = identity_of(*space, "left");
    ASSERT_TRUE(said) << said.error().what;
    EXPECT_TRUE(said->driver.starts_with("veth")) << said->driver;
    EXPECT_FALSE(identity_of(*space, "nobody"));
}

TEST(NicIdentity, is_one_line_whatever_a_driver_writes) {
    EXPECT_EQ(legible_field(std::string_view{"28.39.1002\0junk", 15}), "28.39.1002");
    EXPECT_EQ(legible_field("no zero"), "no zero");
    EXPECT_EQ(legible_field("a\nb\xff"), "a?b?");
}

TEST_F(Kernel, a_named_namespace_is_found_again_and_removed) {
    std::string folder = std::filesystem::temp_directory_path() / "bulkhead-net-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const std::string path = folder + "/net/lease-7";
    {
        const auto made = Space::make_named(path);
        ASSERT_TRUE(made) << made.error().what;
        const auto again = Space::make_named(path);
        ASSERT_TRUE(again);
        EXPECT_TRUE(again->is_same_as(*made));
    }
    EXPECT_TRUE(Space::is_there(path));
    ASSERT_TRUE(Space::remove_named(path));
    EXPECT_FALSE(Space::is_there(path));
    ASSERT_TRUE(Space::remove_named(path)) << "gone is gone";
    EXPECT_FALSE(Space::of(path));
    std::filesystem::remove_all(folder);
}

TEST_F(Kernel, what_the_driver_cannot_is_an_error_with_the_object) {
    const auto set = links->set_function({left, 0}, {.mac = *parse_mac("02:42:0a:80:10:05")});
    ASSERT_FALSE(set);
    EXPECT_THAT(set.error().what, HasSubstr("set the MAC 02:42:0a:80:10:05 of virtual function 0"));
    const auto seen = links->function({left, 0});
    ASSERT_FALSE(seen);
    EXPECT_THAT(seen.error().what, HasSubstr("left has 0 virtual functions"));
}

TEST_F(Kernel, a_guard_is_loaded_once_read_back_and_removed) {
    const Nft nft;
    Guard guard{.table = "bulkhead_f3",
                .device = "left",
                .at = GuardAt::hosts_end,
                .mac = *parse_mac("02:42:0a:80:10:05"),
                .address = *parse_prefix("10.128.16.5/20"),
                .subnet = *parse_prefix("10.128.16.0/20"),
                .dscp = 26};
    const auto loaded = nft.load(*space, guard);
    if (!loaded && loaded.error().what.contains("cannot be started")) GTEST_SKIP() << loaded.error().what;
    ASSERT_TRUE(loaded) << loaded.error().what;
    ASSERT_TRUE(nft.load(*space, guard)) << "twice is once";
    EXPECT_TRUE(nft.has(*space, "bulkhead_f3").value());
    guard.at = GuardAt::tenants_end;
    ASSERT_TRUE(nft.load(*space, guard)) << "and it can be changed in one step";
    const auto counts = nft.dropped(*space, "bulkhead_f3");
    ASSERT_TRUE(counts) << counts.error().what;
    EXPECT_EQ(counts->at("forged_mac"), 0);
    ASSERT_TRUE(nft.remove(*space, "bulkhead_f3"));
    ASSERT_TRUE(nft.remove(*space, "bulkhead_f3")) << "gone is gone";
    EXPECT_FALSE(nft.has(*space, "bulkhead_f3").value());
    guard.device = "nowhere";
    EXPECT_FALSE(nft.load(*space, guard)) << "a guard of a device that is not there guards nothing";
}

TEST(VfSetting, every_setting_that_differs_is_named) {
    const VfSetting wanted{.mac = *parse_mac("02:42:0a:80:10:05"), .tag = {100, 3}, .rate_mbps_max = 10'000};
    const VfSeen right{
        .mac = wanted.mac, .tag = wanted.tag, .rate_mbps_max = 10'000, .spoof_check = true, .trust = false};
    EXPECT_THAT(differences(right, wanted), IsEmpty());
    struct Row {
        const char* says;
        std::function<void(VfSeen&)> spoil;
    };
    const Row rows[] = {
        {"MAC", [](VfSeen& seen) { seen.mac.octets[5] ^= 1; }},
        {"VLAN", [](VfSeen& seen) { seen.tag.vlan = 101; }},
        {"VLAN", [](VfSeen& seen) { seen.tag.priority = 0; }},
        {"rate", [](VfSeen& seen) { seen.rate_mbps_max = 0; }},
        {"check of source", [](VfSeen& seen) { seen.spoof_check = false; }},
        {"check of source", [](VfSeen& seen) { seen.spoof_check = std::nullopt; }},
        {"trust", [](VfSeen& seen) { seen.trust = true; }},
        {"port GUID", [](VfSeen& seen) { seen.port_guid = 5; }},
    };
    for (const Row& row : rows) {
        VfSeen seen = right;
        row.spoil(seen);
        EXPECT_THAT(differences(seen, wanted), testing::ElementsAre(HasSubstr(row.says)));
    }
}

TEST(Guard, says_what_it_lets_out_and_nothing_else) {
    const Guard guard{.table = "bulkhead_f3",
                      .device = "fabric3",
                      .mac = *parse_mac("02:42:0a:80:10:05"),
                      .address = *parse_prefix("10.128.16.5/20"),
                      .subnet = *parse_prefix("10.128.16.0/20"),
                      .dscp = 26};
    ASSERT_TRUE(check(guard));
    EXPECT_EQ(render(guard), R"(table netdev bulkhead_f3
delete table netdev bulkhead_f3
table netdev bulkhead_f3 {
  counter forged_mac {
  }
  counter forged_address {
  }
  counter foreign {
  }
  counter foreign_in {
  }
  counter unknown {
  }
  chain from_tenant {
    type filter hook egress device "fabric3" priority -300; policy drop;
    ether saddr != 02:42:0a:80:10:05 counter name forged_mac drop
    arp saddr ether != 02:42:0a:80:10:05 counter name forged_mac drop
    arp saddr ip != 10.128.16.5 counter name forged_address drop
    arp daddr ip != 10.128.16.0/20 counter name foreign drop
    ether type arp accept
    ip saddr != 10.128.16.5 counter name forged_address drop
    ip daddr != 10.128.16.0/20 counter name foreign drop
    ip dscp set 26 accept
    counter name unknown drop
  }
  chain to_tenant {
    type filter hook ingress device "fabric3" priority -300; policy drop;
    arp saddr ip 10.128.16.0/20 accept
    ip saddr 10.128.16.0/20 accept
    counter name foreign_in drop
  }
}
)");
}

TEST(Guard, one_that_would_be_something_else_is_refused) {
    const Guard good{.table = "bulkhead_f3",
                     .device = "fabric3",
                     .mac = *parse_mac("02:42:0a:80:10:05"),
                     .address = *parse_prefix("10.128.16.5/20"),
                     .subnet = *parse_prefix("10.128.16.0/20")};
    const std::function<void(Guard&)> spoils[] = {
        [](Guard& guard) { guard.table = "a { } table b"; },
        [](Guard& guard) { guard.device = "x\" policy accept; #"; },
        [](Guard& guard) { guard.device = ""; },
        [](Guard& guard) { guard.mac = {}; },
        [](Guard& guard) { guard.mac.octets[0] = 3; },
        [](Guard& guard) { guard.address = *parse_prefix("10.128.32.5/20"); },
        [](Guard& guard) { guard.address = *parse_prefix("fd00::1/64"); },
        [](Guard& guard) { guard.dscp = 64; },
    };
    ASSERT_TRUE(check(good));
    for (const auto& spoil : spoils) {
        Guard guard = good;
        spoil(guard);
        EXPECT_FALSE(check(guard)) << render(guard);
    }
}

TEST(Guard, a_listing_that_lacks_a_rule_or_a_hook_is_another) {
    const Guard guard{.table = "t",
                      .device = "fabric3",
                      .mac = {{2, 0, 0, 0, 0, 1}},
                      .address = *parse_prefix("10.0.0.1/24"),
                      .subnet = *parse_prefix("10.0.0.0/24")};
    const std::string out = "\t\ttype filter hook egress device \"fabric3\" priority -300; policy drop;\n";
    const std::string in = "\t\ttype filter hook ingress device \"fabric3\" priority -300; policy drop;\n";
    EXPECT_THAT(differs_from(guard, {"{}", out + in}), HasSubstr("does not read"));
    EXPECT_THAT(differs_from(guard, {"{}", in}), HasSubstr("at the egress of fabric3"));
    EXPECT_THAT(differs_from(guard, {"{}", "type filter hook egress device \"fabric33\" policy drop;"}),
                HasSubstr("egress"));
    EXPECT_THAT(differs_from(guard, {"{}", "type filter hook egress device \"fabric3\" priority 0; policy accept;"}),
                HasSubstr("egress"));
    EXPECT_THAT(differs_from(guard, {R"({"nftables": []})", out + in}), HasSubstr("0 and 0 rules, not 9 and 3"));
}

}  // namespace
}  // namespace bulkhead::rdma
