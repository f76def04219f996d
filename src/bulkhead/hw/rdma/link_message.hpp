// What is asked of rtnetlink, and what it tells: links, the virtual functions of one, and addresses. Bytes only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/hw/rdma/addresses.hpp"
#include "bulkhead/hw/rdma/netlink_message.hpp"

namespace bulkhead::rdma {

enum class VfLink : std::uint8_t { follow, up, down };

struct VfPlace {  // a virtual function as its physical one knows it
    int pf = 0;   // ifindex
    std::uint32_t vf = 0;
};

Request set_vf_mac(VfPlace place, const Mac& mac);
struct Tag {
    std::uint16_t vlan = 0;
    std::uint8_t priority = 0;
    friend bool operator==(const Tag&, const Tag&) = default;
};
Request set_vf_tag(VfPlace place, Tag tag);
Request set_vf_rate(VfPlace place, std::uint32_t mbps_max);  // 0: none
Request set_vf_spoof_check(VfPlace place, bool on);
Request set_vf_trust(VfPlace place, bool on);
Request set_vf_link(VfPlace place, VfLink state);
enum class GuidOf : std::uint8_t { node, port };
Request set_vf_guid(VfPlace place, GuidOf which, std::uint64_t guid);

Request ask_link(int index);
Request ask_link(std::string_view name);
Request ask_links();
Request set_link_up(int index, bool up);
Request set_link_mac(int index, const Mac& mac);
// Into the namespace of that descriptor, under that name.
Request move_link(int index, int space, std::string_view name);
Request add_bridge(std::string_view name);
struct VethEnd {
    std::string name;
    int space = -1;  // -1: where the request is made
};
Request add_veth(std::string_view here, const VethEnd& there);
Request put_into_bridge(int index, int bridge);
Request remove_link(int index);

Request add_address(int index, const Prefix& address);
Request remove_address(int index, const Prefix& address);
Request ask_addresses();

// What a driver does not tell is nothing.
struct VfSeen {
    std::uint32_t vf = 0;
    Mac mac;
    Tag tag;
    std::uint32_t rate_mbps_max = 0;
    std::optional<bool> spoof_check, trust;
    std::optional<VfLink> link;
    std::optional<std::uint64_t> node_guid, port_guid;
    bool is_infiniband = false;  // as its physical one is: then it has neither MAC nor VLAN
    friend bool operator==(const VfSeen&, const VfSeen&) = default;
};
struct LinkSeen {
    int index = 0, bridge = 0;
    std::string name, kind;
    bool is_up = false, has_carrier = false;
    Mac mac;
    std::vector<VfSeen> vfs;
};
Result<LinkSeen> read_link(View answer);

struct AddressSeen {
    int index = 0;
    Prefix address;
};
Result<AddressSeen> read_address(View answer);

}  // namespace bulkhead::rdma
