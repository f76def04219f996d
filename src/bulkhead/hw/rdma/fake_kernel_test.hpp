// The other side of rtnetlink, for what no kernel here has: a NIC with virtual functions. It speaks the wire's bytes
// over a pair of sockets, keeps what it is told, and can be a driver that accepts and forgets, or does not know a
// setting.
#pragma once

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "bulkhead/hw/rdma/links.hpp"
#include "bulkhead/hw/rdma/netlink_peer_test.hpp"

namespace bulkhead::rdma {

class FakeNicKernel {
public:
    explicit FakeNicKernel(std::uint32_t functions)
        : settings_{as_made(functions)}, peer_{[this](const Message& request, const NetlinkPeer::Say& say) {
              return request.type == RTM_GETLINK ? describe(request, say) : set(request);
          }} {}

    Links links() { return Links::over(peer_.line()); }
    std::map<std::uint16_t, int> refuses;  // attribute -> error
    std::set<std::uint16_t> forgets;       // accepted, and not done
    unsigned short type = 1;               // of its link: Ethernet
    std::vector<std::uint16_t> told;       // in their order

private:
    template <class T>
    static Bytes of(const T& value) {
        const View bytes = std::as_bytes(std::span{&value, 1});
        return {bytes.begin(), bytes.end()};
    }
    using Settings = std::map<std::uint32_t, std::map<std::uint16_t, Bytes>>;
    static Settings as_made(std::uint32_t functions) {
        Settings made;
        for (std::uint32_t vf = 0; vf < functions; ++vf) {
            made[vf][IFLA_VF_MAC] = of(ifla_vf_mac{vf, {0xaa, 0, 0, 0, 0, static_cast<unsigned char>(vf)}});  // random
            made[vf][IFLA_VF_VLAN] = of(ifla_vf_vlan{vf, 0, 0});
            made[vf][IFLA_VF_RATE] = of(ifla_vf_rate{vf, 0, 0});
            made[vf][IFLA_VF_SPOOFCHK] = of(ifla_vf_spoofchk{vf, 0});
            made[vf][IFLA_VF_TRUST] = of(ifla_vf_trust{vf, 1});
        }
        return made;
    }
    int describe(const Message& request, const NetlinkPeer::Say& say) {
        Request answer{RTM_NEWLINK, 0};
        ifinfomsg head{};
        std::memcpy(&head, request.body.data(), sizeof head);
        head.ifi_type = type;
        answer.put(head);
        answer.text(IFLA_IFNAME, "pf0");
        {
            const Request::Nest list{answer, IFLA_VFINFO_LIST};
            for (const auto& [vf, all] : settings_) {
                const Request::Nest one{answer, IFLA_VF_INFO};
                for (const auto& [kind, value] : all) answer.attribute(kind, value);
            }
        }
        say(answer);
        return 0;
    }
    int set(const Message& request) {
        const auto all = attributes(request.body.subspan(sizeof(ifinfomsg)));
        const Attribute* list = all ? find(*all, IFLA_VFINFO_LIST) : nullptr;
        const auto one = list != nullptr ? attributes(list->value) : attributes({});
        const auto settings = one && !one->empty() ? attributes(one->front().value) : attributes({});
        if (!settings || settings->empty()) return EINVAL;
        const Attribute& setting = settings->front();
        const auto vf = setting.as<std::uint32_t>();
        if (!vf || !settings_.contains(*vf)) return EINVAL;
        told.push_back(setting.type);
        if (const auto at = refuses.find(setting.type); at != refuses.end()) return at->second;
        if (!forgets.contains(setting.type))
            settings_[*vf][setting.type] = {setting.value.begin(), setting.value.end()};
        return 0;
    }

    Settings settings_;
    NetlinkPeer peer_;  // last: it asks the others
};

}  // namespace bulkhead::rdma
