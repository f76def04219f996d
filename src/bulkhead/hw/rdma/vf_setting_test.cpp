#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/hw/rdma/fake_kernel_test.hpp"

namespace bulkhead::rdma {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const VfSetting wanted{.mac = {{0x02, 0x42, 0x0a, 0x80, 0x10, 0x05}}, .tag = {100, 3}, .rate_mbps_max = 10'000};

// As igb is: no link state, no GUIDs.
void be_igb(FakeNicKernel& kernel) {
    for (const std::uint16_t type : {IFLA_VF_LINK_STATE, IFLA_VF_IB_NODE_GUID, IFLA_VF_IB_PORT_GUID})
        kernel.refuses[type] = EOPNOTSUPP;
}

TEST(SetFunction, is_checked_and_untrusted_before_it_is_somebody) {
    FakeNicKernel kernel{4};
    be_igb(kernel);
    Links links = kernel.links();
    const auto set = links.set_function({7, 3}, wanted);
    ASSERT_TRUE(set) << set.error().what;
    const auto seen = links.function({7, 3});
    ASSERT_TRUE(seen);
    EXPECT_THAT(differences(*seen, wanted), IsEmpty());
    ASSERT_GE(kernel.told.size(), 3u);
    EXPECT_EQ(kernel.told[0], IFLA_VF_TRUST);
    EXPECT_EQ(kernel.told[1], IFLA_VF_SPOOFCHK);
    EXPECT_EQ(links.function({7, 2})->mac, (Mac{{0xaa, 0, 0, 0, 0, 2}})) << "its neighbour is left alone";
    ASSERT_TRUE(links.set_function({7, 3}, wanted)) << "twice is once";
}

TEST(SetFunction, released_it_is_nobodys) {
    FakeNicKernel kernel{1};
    be_igb(kernel);
    Links links = kernel.links();
    ASSERT_TRUE(links.set_function({7, 0}, wanted));
    EXPECT_THAT(differences(*links.function({7, 0}), nobodys()), testing::SizeIs(3)) << "MAC, VLAN, rate";
    ASSERT_TRUE(links.set_function({7, 0}, nobodys()));
    EXPECT_THAT(differences(*links.function({7, 0}), nobodys()), IsEmpty());
}

TEST(SetFunction, what_a_driver_accepts_and_forgets_is_found) {
    struct Row {
        std::uint16_t forgotten;
        const char* says;
    };
    for (const Row& row :
         {Row{IFLA_VF_MAC, "its MAC is aa:00"}, Row{IFLA_VF_VLAN, "its VLAN is 0"}, Row{IFLA_VF_RATE, "its rate is 0"},
          Row{IFLA_VF_SPOOFCHK, "its check of source addresses is off"}, Row{IFLA_VF_TRUST, "its trust is on"}}) {
        FakeNicKernel kernel{1};
        be_igb(kernel);
        kernel.forgets.insert(row.forgotten);
        Links links = kernel.links();
        const auto set = links.set_function({7, 0}, wanted);
        ASSERT_FALSE(set) << row.says;
        EXPECT_THAT(set.error().what, HasSubstr(row.says));
        EXPECT_THAT(set.error().remedy, HasSubstr("not handed out"));
    }
}

TEST(SetFunction, what_a_driver_cannot_is_fine_only_where_nothing_was_asked_of_it) {
    struct Row {
        std::uint16_t type;
        VfSetting setting;
        bool is_fine;
        const char* says;
    };
    const VfSetting infiniband{.node_guid = 5, .port_guid = 6};
    const Row rows[] = {
        {IFLA_VF_RATE, wanted, false, "a rate that was asked for"},
        {IFLA_VF_RATE, {.mac = wanted.mac}, true, "no rate"},
        {IFLA_VF_MAC, wanted, false, "a MAC"},
        {IFLA_VF_VLAN, wanted, false, "a VLAN"},
        {IFLA_VF_IB_PORT_GUID, infiniband, false, "a GUID"},
    };
    for (const Row& row : rows) {
        FakeNicKernel kernel{1};
        kernel.refuses[row.type] = EOPNOTSUPP;
        Links links = kernel.links();
        EXPECT_EQ(static_cast<bool>(links.set_function({7, 0}, row.setting)), row.is_fine) << row.says;
    }
    FakeNicKernel silent{1};
    silent.refuses[IFLA_VF_SPOOFCHK] = EOPNOTSUPP;
    Links links = silent.links();
    EXPECT_FALSE(links.set_function({7, 0}, wanted)) << "no check of sources, no tenant";
}

TEST(SetFunction, infiniband_has_guids_and_no_mac) {
    FakeNicKernel kernel{1};
    for (const std::uint16_t type : {IFLA_VF_MAC, IFLA_VF_VLAN, IFLA_VF_SPOOFCHK}) kernel.refuses[type] = EOPNOTSUPP;
    Links links = kernel.links();
    const VfSetting infiniband{.node_guid = 0x0200'0000'0000'1005, .port_guid = 0x0200'0000'0000'1006};
    const auto set = links.set_function({7, 0}, infiniband);
    ASSERT_TRUE(set) << set.error().what;
    EXPECT_EQ(links.function({7, 0})->port_guid, infiniband.port_guid);
    EXPECT_EQ(links.function({7, 0})->mac, (Mac{{0xaa, 0, 0, 0, 0, 0}}));
}

TEST(SetFunction, on_infiniband_it_is_released_though_there_is_no_mac_to_take_away) {
    FakeNicKernel kernel{1};
    kernel.type = 32;  // ARPHRD_INFINIBAND
    for (const std::uint16_t type : {IFLA_VF_MAC, IFLA_VF_VLAN, IFLA_VF_SPOOFCHK}) kernel.refuses[type] = EOPNOTSUPP;
    Links links = kernel.links();
    ASSERT_TRUE(links.set_function({7, 0}, {.node_guid = 5, .port_guid = 6}));
    const auto released = links.set_function({7, 0}, nobodys());
    ASSERT_TRUE(released) << released.error().what;
    EXPECT_EQ(links.function({7, 0})->port_guid, 0U);
    EXPECT_THAT(differences(*links.function({7, 0}), nobodys()), IsEmpty());
}

TEST(SetFunction, a_function_that_is_not_there_is_an_error) {
    FakeNicKernel kernel{2};
    be_igb(kernel);
    Links links = kernel.links();
    EXPECT_FALSE(links.set_function({7, 2}, wanted));
    EXPECT_THAT(links.function({7, 2}).error().what, HasSubstr("2 virtual functions and none of number 2"));
}

}  // namespace
}  // namespace bulkhead::rdma
