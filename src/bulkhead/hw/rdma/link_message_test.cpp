#include "bulkhead/hw/rdma/link_message.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "bulkhead/hw/rdma/rdma_message.hpp"

namespace bulkhead::rdma {
namespace {

using testing::HasSubstr;

// Words of four bytes, as they lie in memory of a little-endian machine: both that we build for are.
std::string hex(const Request& request) {
    std::string text;
    const Bytes bytes = request.bytes(1);
    for (std::size_t at = 0; at < bytes.size(); ++at)
        text += fmt::format("{}{:02x}", at != 0 && at % 4 == 0 ? " " : "", static_cast<unsigned>(bytes[at]));
    return text;
}

constexpr VfPlace third{7, 3};

// Checked by hand against linux/netlink.h, if_link.h, rtnetlink.h and rdma/rdma_netlink.h.
TEST(LinkMessage, requests_are_these_bytes) {
    const Mac mac{{0x02, 0x42, 0x0a, 0x80, 0x10, 0x05}};
    // nlmsghdr: length, type and flags, sequence, port; ifinfomsg: family and type, index, flags, change.
    const auto head = [](const char* length) {
        return fmt::format("{} 13000500 01000000 00000000 00000000 07000000 00000000 00000000", length);
    };
    struct Row {
        const char* says;
        Request request;
        std::string bytes;
    };
    const Row rows[] = {
        {"a MAC: list (22, nested), one (1, nested), attribute 1 of 4 + 36 bytes", set_vf_mac(third, mac),
         head("50000000") +
             " 30001680 2c000180 28000100 03000000 02420a80 10050000 00000000 00000000 00000000 00000000 "
             "00000000 00000000"},
        {"a VLAN with its priority: attribute 2", set_vf_tag(third, {100, 3}),
         head("38000000") + " 18001680 14000180 10000200 03000000 64000000 03000000"},
        {"a rate: attribute 6, at least 0 and at most 10000", set_vf_rate(third, 10'000),
         head("38000000") + " 18001680 14000180 10000600 03000000 00000000 10270000"},
        {"a check of sources: attribute 4", set_vf_spoof_check(third, true),
         head("34000000") + " 14001680 10000180 0c000400 03000000 01000000"},
        {"trust: attribute 9", set_vf_trust(third, false),
         head("34000000") + " 14001680 10000180 0c000900 03000000 00000000"},
        {"the link: attribute 5, and 2 is down", set_vf_link(third, VfLink::down),
         head("34000000") + " 14001680 10000180 0c000500 03000000 02000000"},
        {"a node's GUID: attribute 10, padded to eight", set_vf_guid(third, GuidOf::node, 0x0200'0000'0000'1005),
         head("3c000000") + " 1c001680 18000180 14000a00 03000000 00000000 05100000 00000002"},
        {"a port's GUID: attribute 11", set_vf_guid(third, GuidOf::port, 1),
         head("3c000000") + " 1c001680 18000180 14000b00 03000000 00000000 01000000 00000000"},
        {"an address: ifaddrmsg, then 2 and 1", add_address(9, *parse_prefix("10.128.16.5/20")),
         "28000000 14000506 01000000 00000000 02140000 09000000 08000200 0a801005 08000100 0a801005"},
        {"a move to a descriptor's namespace, under a name", move_link(9, 5, "fabric3"),
         "34000000 10000500 01000000 00000000 00000000 09000000 00000000 00000000 08001c00 05000000 0c000300 66616272 "
         "69633300"},
        {"a link that goes up", set_link_up(9, true),
         "20000000 10000500 01000000 00000000 00000000 09000000 01000000 01000000"},
        {"RDMA to its namespaces: client 5, operation 7, attribute 66 of one byte",
         set_rdma_mode(NamespaceMode::exclusive), "18000000 07140500 01000000 00000000 05004200 00000000"},
        {"an RDMA device to a namespace: operation 2, index 1, descriptor 68", move_rdma_device(4, 5),
         "20000000 02140500 01000000 00000000 08000100 04000000 08004400 05000000"},
        {"what is in use of it: operation 9", ask_rdma_resources(4),
         "18000000 09140500 01000000 00000000 08000100 04000000"},
    };
    for (const Row& row : rows) EXPECT_EQ(hex(row.request), row.bytes) << row.says;
}

// An answer as the kernel writes it: the function that was set, beside one that tells less.
Bytes answer_of(const std::function<void(Request&)>& fill) {
    Request request{0, 0};
    ifinfomsg head{};
    head.ifi_index = 7;
    head.ifi_flags = 1;
    request.put(head);
    fill(request);
    const Bytes whole = request.bytes(1);
    return {whole.begin() + 16, whole.end()};
}

TEST(LinkMessage, what_a_function_is_set_to_is_read_back) {
    const Bytes answer = answer_of([](Request& request) {
        request.text(IFLA_IFNAME, "ens1f0");
        const Request::Nest list{request, IFLA_VFINFO_LIST};
        {
            const Request::Nest one{request, IFLA_VF_INFO};
            request.number(IFLA_VF_MAC, ifla_vf_mac{3, {0x02, 0x42, 0x0a, 0x80, 0x10, 0x05}});
            request.number(IFLA_VF_VLAN, ifla_vf_vlan{3, 100, 3});
            request.number(IFLA_VF_RATE, ifla_vf_rate{3, 0, 10'000});
            request.number(IFLA_VF_SPOOFCHK, ifla_vf_spoofchk{3, 1});
            request.number(IFLA_VF_TRUST, ifla_vf_trust{3, 0});
            request.number(IFLA_VF_LINK_STATE, ifla_vf_link_state{3, 2});
        }
        const Request::Nest other{request, IFLA_VF_INFO};
        request.number(IFLA_VF_MAC, ifla_vf_mac{4, {}});
        request.number(IFLA_VF_SPOOFCHK, ifla_vf_spoofchk{4, 0xffff'ffff});
    });
    const auto link = read_link(answer);
    ASSERT_TRUE(link) << link.error().what;
    EXPECT_EQ(link->name, "ens1f0");
    EXPECT_TRUE(link->is_up);
    ASSERT_EQ(link->vfs.size(), 2u);
    const VfSeen expected{.vf = 3,
                          .mac = *parse_mac("02:42:0a:80:10:05"),
                          .tag = {100, 3},
                          .rate_mbps_max = 10'000,
                          .spoof_check = true,
                          .trust = false,
                          .link = VfLink::down};
    EXPECT_EQ(link->vfs[0], expected);
    EXPECT_EQ(link->vfs[1].spoof_check, std::nullopt) << "all ones: the driver does not know";
}

TEST(LinkMessage, an_answer_that_is_cut_anywhere_is_an_error_or_less_but_never_more) {
    const Bytes whole = answer_of([](Request& request) {
        request.text(IFLA_IFNAME, "ens1f0");
        const Request::Nest list{request, IFLA_VFINFO_LIST};
        const Request::Nest one{request, IFLA_VF_INFO};
        request.number(IFLA_VF_MAC, ifla_vf_mac{3, {2}});
    });
    std::size_t refused_count = 0;
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const auto link = read_link(View{whole}.first(size));
        if (!link) {
            ++refused_count;
        } else {
            EXPECT_TRUE(link->vfs.empty()) << size;
        }
    }
    EXPECT_GT(refused_count, whole.size() / 2);
}

TEST(LinkMessage, a_refusal_carries_the_kernels_words) {
    // nlmsgerr: -1 (EPERM), the header it is about, and, behind a capped request, attribute 1 with words.
    Request request{NLMSG_ERROR, NLM_F_CAPPED | NLM_F_ACK_TLVS};
    request.put(nlmsgerr{-1, {36, 19, 0, 1, 0}});
    request.text(NLMSGERR_ATTR_MSG, "not yours");
    const Bytes bytes = request.bytes(1);
    const auto all = messages(bytes);
    ASSERT_TRUE(all);
    const auto refusal = refusal_of(all->front());
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->error, 1);
    EXPECT_EQ(refusal->words, "not yours");
}

TEST(RdmaMessage, devices_modes_and_counts_are_read) {
    const auto body = [](const std::function<void(Request&)>& fill) {
        Request request{0, 0};
        fill(request);
        const Bytes whole = request.bytes(1);
        return Bytes{whole.begin() + 16, whole.end()};
    };
    const auto device = read_rdma_device(body([](Request& request) {
        request.number(1, std::uint32_t{4});
        request.text(2, "mlx5_2");
    }));
    ASSERT_TRUE(device);
    EXPECT_EQ(*device, (RdmaDevice{4, "mlx5_2"}));
    EXPECT_FALSE(read_rdma_device(body([](Request& request) { request.text(2, "mlx5_2"); })));
    const auto mode = [&](std::uint8_t value) {
        return read_rdma_mode(body([&](Request& request) { request.number(66, value); }));
    };
    EXPECT_EQ(mode(0).value(), NamespaceMode::exclusive);
    EXPECT_EQ(mode(1).value(), NamespaceMode::shared);
    EXPECT_FALSE(mode(2)) << "a mode nobody knows is no fence";
    const auto counts = read_rdma_resources(body([](Request& request) {
        const Request::Nest summary{request, 15};
        const Request::Nest entry{request, 16};
        request.text(17, "qp");
        request.number(18, std::uint64_t{3});
    }));
    ASSERT_TRUE(counts);
    EXPECT_EQ(counts->at("qp"), 3u);
}

TEST(Addresses, are_read_strictly) {
    for (const char* good : {"02:42:0a:80:10:05", "FF:00:00:00:00:01"}) EXPECT_TRUE(parse_mac(good)) << good;
    for (const char* bad :
         {"", "02:42:0a:80:10", "02:42:0a:80:10:05:06", "02-42-0a-80-10-05", "2:42:0a:80:10:055", "0g:42:0a:80:10:05"})
        EXPECT_FALSE(parse_mac(bad)) << bad;
    for (const char* good : {"10.128.16.5/20", "0.0.0.0/0", "fd00::1/64"}) {
        const auto prefix = parse_prefix(good);
        ASSERT_TRUE(prefix) << good;
        EXPECT_EQ(print(*prefix), good);
    }
    for (const char* bad :
         {"10.128.16.5", "10.128.16.5/33", "10.128.16/20", "10.128.16.5/", "10.128.16.5/2x", "fd00::1/129", "/8"})
        EXPECT_FALSE(parse_prefix(bad)) << bad;
    EXPECT_EQ(print(parse_prefix("10.128.16.5/20")->gid()), "0000:0000:0000:0000:0000:ffff:0a80:1005");
    EXPECT_EQ(parse_gid("0000:0000:0000:0000:0000:ffff:0a80:1005").value(), parse_prefix("10.128.16.5/20")->gid());
    for (const char* bad : {"", "::ffff:10.128.16.5", "0000:0000:0000:0000:0000:ffff:0a80:100",
                            "0000:0000:0000:0000:0000:ffff:0a80:100g"})
        EXPECT_FALSE(parse_gid(bad)) << bad;
    EXPECT_EQ(parse_guid("02:00:00:00:00:00:10:05").value(), 0x0200'0000'0000'1005u);
    EXPECT_EQ(print_guid(0x0200'0000'0000'1005), "02:00:00:00:00:00:10:05");
    const Prefix net = *parse_prefix("10.128.16.0/20");
    EXPECT_TRUE(net.contains(*parse_prefix("10.128.31.255/32")));
    EXPECT_FALSE(net.contains(*parse_prefix("10.128.32.0/32")));
    EXPECT_FALSE(net.contains(*parse_prefix("10.0.0.0/8")));
}

}  // namespace
}  // namespace bulkhead::rdma
