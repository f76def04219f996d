// Links, addresses and virtual functions of one network namespace, through rtnetlink. Every change is read back: what a
// driver accepted and did not do is an error that says what it shows instead.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/hw/rdma/link_message.hpp"
#include "bulkhead/hw/rdma/netlink_line.hpp"

namespace bulkhead::rdma {

// How a virtual function is set from the host's side.
struct VfSetting {
    Mac mac;
    Tag tag;
    std::uint32_t rate_mbps_max = 0;
    std::uint64_t node_guid = 0, port_guid = 0;  // InfiniBand; then it has neither MAC nor VLAN
    bool spoof_check = true;
    bool trust = false;
    VfLink link = VfLink::follow;
    friend bool operator==(const VfSetting&, const VfSetting&) = default;
};
// Of a function that nobody has: no address, no VLAN, no rate, no trust, and its link down where the NIC can.
VfSetting nobodys();

// Sentences; empty: all is as wanted. What the driver does not tell is not held against it, except spoof checking.
std::vector<std::string> differences(const VfSeen& seen, const VfSetting& wanted);

class Links {
public:
    static Result<Links> open(const Space& space);
    static Links over(NetlinkLine line) { return Links{std::move(line)}; }

    Result<LinkSeen> link(int index);
    Result<LinkSeen> link(const std::string& name);
    Result<std::vector<LinkSeen>> all();
    Result<VfSeen> function(VfPlace place);
    Result<> set_function(VfPlace place, const VfSetting& wanted);

    Result<> raise(int index, bool up = true);
    Result<> set_mac(int index, const Mac& mac);
    Result<> move(int index, const Space& to, const std::string& name);
    Result<> add(int index, const Prefix& address);  // being there already is fine
    Result<> remove(int index, const Prefix& address);
    Result<std::vector<AddressSeen>> addresses();

    Result<int> make_bridge(const std::string& name);
    Result<int> make_veth(const std::string& here, const VethEnd& there);
    Result<> put_into(int bridge, int index);
    Result<> remove_link(int index);

private:
    explicit Links(NetlinkLine line) : line_{std::move(line)} {}
    Result<> tell(const Request& request, std::string_view what);
    enum class If { supported, must };
    Result<> tell(const Request& request, std::string_view what, If how);
    Result<> set_rate(VfPlace place, std::uint32_t mbps_max, const std::string& name);
    Result<> set_identity(VfPlace place, const VfSetting& wanted, const std::string& name);

    NetlinkLine line_;
};

}  // namespace bulkhead::rdma
