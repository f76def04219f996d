#include "bulkhead/hw/rdma/link_message.hpp"

#include <fmt/core.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sys/socket.h>

#include <algorithm>
#include <type_traits>

namespace bulkhead::rdma {

namespace {

Request of_link(std::uint16_t type, std::uint16_t flags, const ifinfomsg& head) {
    Request request{type, flags};
    request.put(head);
    return request;
}

ifinfomsg head_of(int index) {
    ifinfomsg head{};
    head.ifi_family = AF_UNSPEC;
    head.ifi_index = index;
    return head;
}

// One setting a request, so that a driver that lacks one says which.
template <class Setting>
Request set_vf(VfPlace place, std::uint16_t type, const Setting& setting) {
    Request request = of_link(RTM_SETLINK, NLM_F_ACK, head_of(place.pf));
    {
        const Request::Nest list{request, IFLA_VFINFO_LIST};
        const Request::Nest one{request, IFLA_VF_INFO};
        request.number(type, setting);
    }
    return request;
}

std::uint32_t link_word(VfLink state) {
    switch (state) {
        case VfLink::up:
            return IFLA_VF_LINK_STATE_ENABLE;
        case VfLink::down:
            return IFLA_VF_LINK_STATE_DISABLE;
        case VfLink::follow:
            break;
    }
    return IFLA_VF_LINK_STATE_AUTO;
}

// Drivers that do not know say all ones.
std::optional<bool> switch_of(const Attribute& attribute) {
    const auto words = attribute.as<std::array<std::uint32_t, 2>>();
    if (!words || (*words)[1] > 1) return std::nullopt;
    return (*words)[1] == 1;
}

std::optional<VfLink> link_of(const Attribute& attribute) {
    const auto words = attribute.as<ifla_vf_link_state>();
    if (!words) return std::nullopt;
    for (const VfLink state : {VfLink::follow, VfLink::up, VfLink::down})
        if (words->link_state == link_word(state)) return state;
    return std::nullopt;
}

Result<VfSeen> read_vf(View bytes) {
    const auto all = attributes(bytes);
    if (!all) return std::unexpected(all.error());
    VfSeen seen;
    bool has_mac = false;
    for (const Attribute& attribute : *all) switch (attribute.type) {
            case IFLA_VF_MAC:
                if (const auto mac = attribute.as<ifla_vf_mac>()) {
                    seen.vf = mac->vf;
                    std::copy_n(std::begin(mac->mac), seen.mac.octets.size(), seen.mac.octets.begin());
                    has_mac = true;
                }
                break;
            case IFLA_VF_VLAN:
                if (const auto tag = attribute.as<ifla_vf_vlan>())
                    seen.tag = {static_cast<std::uint16_t>(tag->vlan), static_cast<std::uint8_t>(tag->qos)};
                break;
            case IFLA_VF_RATE:
                if (const auto rate = attribute.as<ifla_vf_rate>()) seen.rate_mbps_max = rate->max_tx_rate;
                break;
            case IFLA_VF_SPOOFCHK:
                seen.spoof_check = switch_of(attribute);
                break;
            case IFLA_VF_TRUST:
                seen.trust = switch_of(attribute);
                break;
            case IFLA_VF_LINK_STATE:
                seen.link = link_of(attribute);
                break;
            case IFLA_VF_IB_NODE_GUID:
                if (const auto guid = attribute.as<ifla_vf_guid>()) seen.node_guid = guid->guid;
                break;
            case IFLA_VF_IB_PORT_GUID:
                if (const auto guid = attribute.as<ifla_vf_guid>()) seen.port_guid = guid->guid;
                break;
            default:
                break;
        }
    if (!has_mac)
        return fail(Code::corrupt, "a virtual function without a number and a MAC", "see which driver the NIC has");
    return seen;
}

Request of_address(std::uint16_t type, std::uint16_t flags, int index, const Prefix& address) {
    Request request{type, flags};
    ifaddrmsg head{};
    head.ifa_family = address.is_v6 ? AF_INET6 : AF_INET;
    head.ifa_prefixlen = static_cast<std::uint8_t>(address.length);
    head.ifa_index = static_cast<std::uint32_t>(index);
    if (address.is_v6) head.ifa_flags = IFA_F_NODAD;  // the plane hands out each once; nobody waits for a neighbour
    request.put(head);
    const View octets = std::as_bytes(std::span{address.octets}).first(address.bytes());
    request.attribute(IFA_LOCAL, octets);
    request.attribute(IFA_ADDRESS, octets);
    return request;
}

}  // namespace

Request set_vf_mac(VfPlace place, const Mac& mac) {
    ifla_vf_mac setting{};
    setting.vf = place.vf;
    std::ranges::copy(mac.octets, std::begin(setting.mac));
    return set_vf(place, IFLA_VF_MAC, setting);
}
Request set_vf_tag(VfPlace place, Tag tag) {
    return set_vf(place, IFLA_VF_VLAN, ifla_vf_vlan{place.vf, tag.vlan, tag.priority});
}
Request set_vf_rate(VfPlace place, std::uint32_t mbps_max) {
    return set_vf(place, IFLA_VF_RATE, ifla_vf_rate{place.vf, 0, mbps_max});
}
Request set_vf_spoof_check(VfPlace place, bool on) {
    return set_vf(place, IFLA_VF_SPOOFCHK, ifla_vf_spoofchk{place.vf, on ? 1U : 0U});
}
Request set_vf_trust(VfPlace place, bool on) {
    return set_vf(place, IFLA_VF_TRUST, ifla_vf_trust{place.vf, on ? 1U : 0U});
}
Request set_vf_link(VfPlace place, VfLink state) {
    return set_vf(place, IFLA_VF_LINK_STATE, ifla_vf_link_state{place.vf, link_word(state)});
}
Request set_vf_guid(VfPlace place, GuidOf which, std::uint64_t guid) {
    ifla_vf_guid setting{};  // four bytes of padding between the two, which must be zero
    setting.vf = place.vf;
    setting.guid = guid;
    return set_vf(place, which == GuidOf::node ? IFLA_VF_IB_NODE_GUID : IFLA_VF_IB_PORT_GUID, setting);
}

Request ask_link(int index) {
    Request request = of_link(RTM_GETLINK, NLM_F_ACK, head_of(index));
    request.number(IFLA_EXT_MASK, std::uint32_t{RTEXT_FILTER_VF});
    return request;
}
Request ask_link(std::string_view name) {
    Request request = of_link(RTM_GETLINK, NLM_F_ACK, head_of(0));
    request.number(IFLA_EXT_MASK, std::uint32_t{RTEXT_FILTER_VF});
    request.text(IFLA_IFNAME, name);
    return request;
}
Request ask_links() {
    Request request = of_link(RTM_GETLINK, NLM_F_DUMP, head_of(0));
    request.number(IFLA_EXT_MASK, std::uint32_t{RTEXT_FILTER_VF});
    return request;
}

Request set_link_up(int index, bool up) {
    ifinfomsg head = head_of(index);
    head.ifi_change = IFF_UP;
    head.ifi_flags = up ? static_cast<unsigned>(IFF_UP) : 0U;
    return of_link(RTM_NEWLINK, NLM_F_ACK, head);
}
Request set_link_mac(int index, const Mac& mac) {
    Request request = of_link(RTM_NEWLINK, NLM_F_ACK, head_of(index));
    request.attribute(IFLA_ADDRESS, std::as_bytes(std::span{mac.octets}));
    return request;
}
Request move_link(int index, int space, std::string_view name) {
    Request request = of_link(RTM_NEWLINK, NLM_F_ACK, head_of(index));
    request.number(IFLA_NET_NS_FD, static_cast<std::uint32_t>(space));
    request.text(IFLA_IFNAME, name);
    return request;
}
Request add_bridge(std::string_view name) {
    Request request = of_link(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, head_of(0));
    request.text(IFLA_IFNAME, name);
    {
        const Request::Nest info{request, IFLA_LINKINFO};
        request.text(IFLA_INFO_KIND, "bridge");
    }
    return request;
}
Request add_veth(std::string_view here, const VethEnd& there) {
    Request request = of_link(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, head_of(0));
    request.text(IFLA_IFNAME, here);
    {
        const Request::Nest info{request, IFLA_LINKINFO};
        request.text(IFLA_INFO_KIND, "veth");
        const Request::Nest data{request, IFLA_INFO_DATA};
        const Request::Nest peer{request, VETH_INFO_PEER};
        request.put(head_of(0));
        request.text(IFLA_IFNAME, there.name);
        if (there.space >= 0) request.number(IFLA_NET_NS_FD, static_cast<std::uint32_t>(there.space));
    }
    return request;
}
Request put_into_bridge(int index, int bridge) {
    Request request = of_link(RTM_NEWLINK, NLM_F_ACK, head_of(index));
    request.number(IFLA_MASTER, static_cast<std::uint32_t>(bridge));
    return request;
}
Request remove_link(int index) { return of_link(RTM_DELLINK, NLM_F_ACK, head_of(index)); }

Request add_address(int index, const Prefix& address) {
    return of_address(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, index, address);
}
Request remove_address(int index, const Prefix& address) { return of_address(RTM_DELADDR, NLM_F_ACK, index, address); }
Request ask_addresses() {
    Request request{RTM_GETADDR, NLM_F_DUMP};
    request.put(ifaddrmsg{});
    return request;
}

Result<LinkSeen> read_link(View answer) {
    if (answer.size() < sizeof(ifinfomsg)) return fail(Code::corrupt, "a link without a head", "report this");
    ifinfomsg head{};
    std::memcpy(&head, answer.data(), sizeof head);
    const auto all = attributes(answer.subspan(sizeof head));
    if (!all) return std::unexpected(all.error());
    LinkSeen seen;
    seen.index = head.ifi_index;
    seen.is_up = (head.ifi_flags & IFF_UP) != 0;
    seen.has_carrier = (head.ifi_flags & IFF_RUNNING) != 0;
    for (const Attribute& attribute : *all) switch (attribute.type) {
            case IFLA_IFNAME:
                seen.name = attribute.as_text();
                break;
            case IFLA_ADDRESS:
                if (const auto octets = attribute.as<std::array<std::uint8_t, 6>>()) seen.mac = {*octets};
                break;
            case IFLA_MASTER:
                seen.bridge = attribute.as<int>().value_or(0);
                break;
            case IFLA_LINKINFO: {
                const auto info = attributes(attribute.value);
                if (!info) return std::unexpected(info.error());
                if (const Attribute* kind = find(*info, IFLA_INFO_KIND)) seen.kind = kind->as_text();
                break;
            }
            case IFLA_VFINFO_LIST: {
                const auto list = attributes(attribute.value);
                if (!list) return std::unexpected(list.error());
                for (const Attribute& one : *list) {
                    if (one.type != IFLA_VF_INFO) continue;
                    auto vf = read_vf(one.value);
                    if (!vf) return std::unexpected(vf.error());
                    seen.vfs.push_back(*vf);
                }
                break;
            }
            default:
                break;
        }
    for (VfSeen& vf : seen.vfs) vf.is_infiniband = head.ifi_type == ARPHRD_INFINIBAND;
    return seen;
}

Result<AddressSeen> read_address(View answer) {
    if (answer.size() < sizeof(ifaddrmsg)) return fail(Code::corrupt, "an address without a head", "report this");
    ifaddrmsg head{};
    std::memcpy(&head, answer.data(), sizeof head);
    const auto all = attributes(answer.subspan(sizeof head));
    if (!all) return std::unexpected(all.error());
    AddressSeen seen;
    seen.index = static_cast<int>(head.ifa_index);
    seen.address.is_v6 = head.ifa_family == AF_INET6;
    seen.address.length = head.ifa_prefixlen;
    const Attribute* octets = find(*all, IFA_LOCAL);  // the peer's, on a link of two ends, is the other one
    if (octets == nullptr) octets = find(*all, IFA_ADDRESS);
    if (octets == nullptr || octets->value.size() != seen.address.bytes() ||
        seen.address.length > seen.address.bytes() * 8)
        return fail(Code::corrupt, fmt::format("an address of family {} that has none", head.ifa_family),
                    "report this");
    std::memcpy(seen.address.octets.data(), octets->value.data(), octets->value.size());
    return seen;
}

}  // namespace bulkhead::rdma
