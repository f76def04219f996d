// The other side of rtnetlink, for what no kernel here has: a NIC with virtual functions. It speaks the wire's bytes
// over a pair of sockets, keeps what it is told, and can be a driver that accepts and forgets, or does not know a
// setting.
#pragma once

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "bulkhead/hw/rdma/links.hpp"

namespace bulkhead::rdma {

class FakeNicKernel {
public:
    explicit FakeNicKernel(std::uint32_t functions) {
        for (std::uint32_t vf = 0; vf < functions; ++vf) {
            settings_[vf][IFLA_VF_MAC] =
                of(ifla_vf_mac{vf, {0xaa, 0, 0, 0, 0, static_cast<unsigned char>(vf)}});  // random
            settings_[vf][IFLA_VF_VLAN] = of(ifla_vf_vlan{vf, 0, 0});
            settings_[vf][IFLA_VF_RATE] = of(ifla_vf_rate{vf, 0, 0});
            settings_[vf][IFLA_VF_SPOOFCHK] = of(ifla_vf_spoofchk{vf, 0});
            settings_[vf][IFLA_VF_TRUST] = of(ifla_vf_trust{vf, 1});
        }
        int ends[2] = {-1, -1};
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
        ours_ = Descriptor{ends[0]};
        theirs_ = Descriptor{ends[1]};
        thread_ = std::thread{[this] { serve(); }};
    }
    ~FakeNicKernel() {
        ::shutdown(*ours_, SHUT_RDWR);
        thread_.join();
    }
    FakeNicKernel(const FakeNicKernel&) = delete;
    FakeNicKernel& operator=(const FakeNicKernel&) = delete;

    Links links() { return Links::over(NetlinkLine::over(std::move(theirs_))); }
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
    void serve() {
        Bytes buffer(1 << 16);
        for (;;) {
            const ssize_t got = ::recv(*ours_, buffer.data(), buffer.size(), 0);
            if (got <= 0) return;
            const auto all = messages(View{buffer}.first(static_cast<std::size_t>(got)));
            if (!all || all->empty()) return;
            const Message& request = all->front();
            const int error = request.type == RTM_GETLINK ? describe(request) : set(request);
            Request answer{NLMSG_ERROR, NLM_F_CAPPED};
            answer.put(nlmsgerr{-error, {}});
            reply(answer, request.sequence);
        }
    }
    void reply(const Request& answer, std::uint32_t sequence) {
        const Bytes bytes = answer.bytes(sequence);
        (void)!::send(*ours_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    int describe(const Message& request) {
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
        reply(answer, request.sequence);
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

    std::map<std::uint32_t, std::map<std::uint16_t, Bytes>> settings_;
    Descriptor ours_, theirs_;
    std::thread thread_;
};

}  // namespace bulkhead::rdma
