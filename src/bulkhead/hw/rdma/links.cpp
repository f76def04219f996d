#include "bulkhead/hw/rdma/links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

namespace bulkhead::rdma {

namespace {

constexpr std::chrono::seconds link_patience{20};

constexpr std::string_view word_of(VfLink state) {
    return state == VfLink::follow ? "auto" : state == VfLink::up ? "up" : "down";
}

}  // namespace

VfSetting nobodys() { return {.link = VfLink::down}; }

std::vector<std::string> differences(const VfSeen& seen, const VfSetting& wanted) {
    std::vector<std::string> all;
    const auto differ = [&](std::string_view what, const auto& is, const auto& should) {
        all.push_back(fmt::format("its {} is {}, not {}", what, is, should));
    };
    const bool is_infiniband = seen.is_infiniband || wanted.node_guid != 0 || wanted.port_guid != 0;
    if (!is_infiniband && seen.mac != wanted.mac) differ("MAC", print(seen.mac), print(wanted.mac));
    if (!is_infiniband && seen.tag != wanted.tag)
        differ("VLAN", fmt::format("{} with priority {}", seen.tag.vlan, seen.tag.priority),
               fmt::format("{} with priority {}", wanted.tag.vlan, wanted.tag.priority));
    if (seen.rate_mbps_max != wanted.rate_mbps_max)
        differ("rate", fmt::format("{} Mbit/s", seen.rate_mbps_max), fmt::format("{} Mbit/s", wanted.rate_mbps_max));
    if (!is_infiniband && seen.spoof_check.value_or(false) != wanted.spoof_check)
        differ("check of source addresses", seen.spoof_check ? (*seen.spoof_check ? "on" : "off") : "unknown",
               wanted.spoof_check ? "on" : "off");
    if (seen.trust.value_or(wanted.trust) != wanted.trust)
        differ("trust", *seen.trust ? "on" : "off", wanted.trust ? "on" : "off");
    if (is_infiniband || seen.node_guid || seen.port_guid) {
        if (seen.node_guid.value_or(0) != wanted.node_guid)
            differ("node GUID", print_guid(seen.node_guid.value_or(0)), print_guid(wanted.node_guid));
        if (seen.port_guid.value_or(0) != wanted.port_guid)
            differ("port GUID", print_guid(seen.port_guid.value_or(0)), print_guid(wanted.port_guid));
    }
    return all;
}

Result<Links> Links::open(const Space& space) {
    auto line = NetlinkLine::open(space, NetlinkLine::Family::route);
    if (!line) return std::unexpected(line.error());
    return Links{std::move(*line)};
}

Result<> Links::tell(const Request& request, std::string_view what) { return tell(request, what, If::must); }

Result<> Links::tell(const Request& request, std::string_view what, If how) {
    const auto answered = line_.ask(request, what);
    if (answered || (how == If::supported && line_.last_error() == EOPNOTSUPP)) return {};
    return std::unexpected(answered.error());
}

Result<LinkSeen> Links::link(int index) {
    const auto answers = line_.ask(ask_link(index), fmt::format("look at link {}", index));
    if (!answers) return std::unexpected(answers.error());
    if (answers->empty()) return fail(Code::corrupt, fmt::format("nothing came of link {}", index), "report this");
    return read_link(answers->front());
}

Result<LinkSeen> Links::link(const std::string& name) {
    const auto answers = line_.ask(ask_link(name), "look at the link " + name);
    if (!answers) return std::unexpected(answers.error());
    if (answers->empty()) return fail(Code::corrupt, "nothing came of the link " + name, "report this");
    return read_link(answers->front());
}

Result<std::vector<LinkSeen>> Links::all() {
    const auto answers = line_.ask(ask_links(), "list the links");
    if (!answers) return std::unexpected(answers.error());
    std::vector<LinkSeen> links;
    for (const Bytes& answer : *answers) {
        auto link = read_link(answer);
        if (!link) return std::unexpected(link.error());
        links.push_back(std::move(*link));
    }
    return links;
}

Result<VfSeen> Links::function(VfPlace place) {
    const auto pf = link(place.pf);
    if (!pf) return std::unexpected(pf.error());
    const auto at = std::ranges::find(pf->vfs, place.vf, &VfSeen::vf);
    if (at == pf->vfs.end())
        return fail(
            Code::not_found,
            fmt::format("{} has {} virtual functions and none of number {}", pf->name, pf->vfs.size(), place.vf),
            "see sriov_numvfs of its PCI device");
    return *at;
}

Result<> Links::set_identity(VfPlace place, const VfSetting& wanted, const std::string& name) {
    if (wanted.node_guid != 0 || wanted.port_guid != 0) {
        if (auto ok = tell(set_vf_guid(place, GuidOf::node, wanted.node_guid), "set the node GUID of " + name); !ok)
            return ok;
        return tell(set_vf_guid(place, GuidOf::port, wanted.port_guid), "set the port GUID of " + name);
    }
    // To nobody's, where there are none: NICs without InfiniBand do not support it.
    for (const GuidOf which : {GuidOf::node, GuidOf::port})
        if (auto ok = tell(set_vf_guid(place, which, 0), "clear the GUID of " + name, If::supported);
            !ok && line_.last_error() != EINVAL)
            return ok;
    if (const auto before = function(place); before && before->is_infiniband) return {};  // its driver refuses both
    if (auto ok = tell(set_vf_mac(place, wanted.mac), fmt::format("set the MAC {} of {}", print(wanted.mac), name));
        !ok)
        return ok;
    return tell(set_vf_tag(place, wanted.tag), fmt::format("set VLAN {} of {}", wanted.tag.vlan, name));
}

// Only where it is another: cards without a link refuse any rate, even none, and lose their link for a moment when
// functions are made.
Result<> Links::set_rate(VfPlace place, std::uint32_t mbps_max, const std::string& name) {
    const auto before = function(place);
    if (!before) return std::unexpected(before.error());
    if (before->rate_mbps_max == mbps_max) return {};
    const std::string what = fmt::format("set {} Mbit/s for {}", mbps_max, name);
    const auto until = std::chrono::steady_clock::now() + link_patience;
    for (;;) {
        auto told = tell(set_vf_rate(place, mbps_max), what);
        if (told || line_.last_error() != EINVAL || std::chrono::steady_clock::now() > until) return told;
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
}

Result<> Links::set_function(VfPlace place, const VfSetting& wanted) {
    const std::string name = fmt::format("virtual function {} of link {}", place.vf, place.pf);
    // Not trusted and checked first: whatever fails later, it fails behind a fence.
    if (auto ok = tell(set_vf_trust(place, wanted.trust), "set the trust of " + name, If::supported); !ok) return ok;
    if (auto ok = tell(set_vf_spoof_check(place, wanted.spoof_check), "set the spoof check of " + name, If::supported);
        !ok)
        return ok;
    if (auto ok = set_identity(place, wanted, name); !ok) return ok;
    if (auto ok = set_rate(place, wanted.rate_mbps_max, name); !ok) return ok;
    if (auto ok = tell(set_vf_link(place, wanted.link),
                       fmt::format("set the link of {} {}", name, word_of(wanted.link)), If::supported);
        !ok)
        return ok;
    const auto seen = function(place);
    if (!seen) return std::unexpected(seen.error());
    if (const auto wrong = differences(*seen, wanted); !wrong.empty())
        return fail(Code::unavailable, fmt::format("{} was set, and reads otherwise: {}", name, fmt::join(wrong, "; ")),
                    "see dmesg for the driver's reason; the function is not handed out");
    return {};
}

Result<> Links::raise(int index, bool up) {
    if (auto ok = tell(set_link_up(index, up), fmt::format("set link {} {}", index, up ? "up" : "down")); !ok)
        return ok;
    const auto seen = link(index);
    if (!seen) return std::unexpected(seen.error());
    if (seen->is_up != up)
        return fail(Code::unavailable, fmt::format("{} stays {}", seen->name, up ? "down" : "up"), "see dmesg");
    return {};
}

Result<> Links::set_mac(int index, const Mac& mac) {
    return tell(set_link_mac(index, mac), fmt::format("set the MAC {} of link {}", print(mac), index));
}

Result<> Links::move(int index, const Space& to, const std::string& name) {
    if (auto ok =
            tell(move_link(index, to.descriptor(), name), fmt::format("move link {} to its tenant's namespace", index));
        !ok)
        return ok;
    auto there = Links::open(to);
    if (!there) return std::unexpected(there.error());
    const auto arrived = there->link(name);
    if (!arrived) return std::unexpected(arrived.error());
    return {};
}

Result<> Links::add(int index, const Prefix& address) {
    if (auto ok = tell(add_address(index, address), fmt::format("add {} to link {}", print(address), index));
        !ok && line_.last_error() != EEXIST)
        return ok;
    const auto all = addresses();
    if (!all) return std::unexpected(all.error());
    if (std::ranges::none_of(*all,
                             [&](const AddressSeen& seen) { return seen.index == index && seen.address == address; }))
        return fail(Code::unavailable, fmt::format("link {} was given {} and does not show it", index, print(address)),
                    "see dmesg");
    return {};
}

Result<> Links::remove(int index, const Prefix& address) {
    if (auto ok = tell(remove_address(index, address), fmt::format("remove {} from link {}", print(address), index));
        !ok && line_.last_error() != EADDRNOTAVAIL)
        return ok;
    return {};
}

Result<std::vector<AddressSeen>> Links::addresses() {
    const auto answers = line_.ask(ask_addresses(), "list the addresses");
    if (!answers) return std::unexpected(answers.error());
    std::vector<AddressSeen> all;
    for (const Bytes& answer : *answers) {
        auto one = read_address(answer);
        if (!one) return std::unexpected(one.error());
        all.push_back(*one);
    }
    return all;
}

Result<int> Links::make_bridge(const std::string& name) {
    if (auto ok = tell(add_bridge(name), "make the bridge " + name); !ok) return std::unexpected(ok.error());
    const auto made = link(name);
    if (!made) return std::unexpected(made.error());
    return made->index;
}

Result<int> Links::make_veth(const std::string& here, const VethEnd& there) {
    if (auto ok = tell(add_veth(here, there), fmt::format("make the veth {} to {}", here, there.name)); !ok)
        return std::unexpected(ok.error());
    const auto made = link(here);
    if (!made) return std::unexpected(made.error());
    return made->index;
}

Result<> Links::put_into(int bridge, int index) {
    return tell(put_into_bridge(index, bridge), fmt::format("put link {} into bridge {}", index, bridge));
}

Result<> Links::remove_link(int index) { return tell(rdma::remove_link(index), fmt::format("remove link {}", index)); }

}  // namespace bulkhead::rdma
