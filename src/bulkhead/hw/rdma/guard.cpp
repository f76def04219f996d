#include "bulkhead/hw/rdma/guard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <exception>
#include <vector>

#include "bulkhead/hw/program/program.hpp"
#include "bulkhead/hw/rdma/links.hpp"

namespace bulkhead::rdma {

namespace {

namespace json = boost::json;

constexpr std::chrono::seconds nft_patience{30};

bool is_plain(std::string_view name, std::size_t at_most, bool is_table) {
    return !name.empty() && name.size() <= at_most && std::ranges::all_of(name, [&](char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
               (letter >= '0' && letter <= '9') || letter == '_' || (!is_table && (letter == '-' || letter == '.'));
    });
}

std::string network_of(const Prefix& subnet) {
    Prefix network = subnet;
    for (unsigned bit = network.length; bit < network.bytes() * 8; ++bit)
        network.octets[bit / 8] = static_cast<std::uint8_t>(network.octets[bit / 8] & ~(0x80U >> bit % 8));
    return print(network);
}

std::vector<std::string> rules_out(const Guard& guard) {
    const std::string mac = print(guard.mac), address = print_address(guard.address), subnet = network_of(guard.subnet);
    return {fmt::format("ether saddr != {} counter name forged_mac drop", mac),
            fmt::format("arp saddr ether != {} counter name forged_mac drop", mac),
            fmt::format("arp saddr ip != {} counter name forged_address drop", address),
            fmt::format("arp daddr ip != {} counter name foreign drop", subnet),
            "ether type arp accept",
            fmt::format("ip saddr != {} counter name forged_address drop", address),
            fmt::format("ip daddr != {} counter name foreign drop", subnet),
            guard.dscp == 0 ? std::string{"ether type ip accept"} : fmt::format("ip dscp set {} accept", guard.dscp),
            "counter name unknown drop"};
}

std::vector<std::string> rules_in(const Guard& guard) {
    const std::string subnet = network_of(guard.subnet);
    return {fmt::format("arp saddr ip {} accept", subnet), fmt::format("ip saddr {} accept", subnet),
            "counter name foreign_in drop"};
}

std::string chain(std::string_view name, std::string_view hook, std::string_view device,
                  const std::vector<std::string>& rules) {
    return fmt::format(
        "  chain {} {{\n    type filter hook {} device \"{}\" priority -300; policy drop;\n    {}\n  }}\n", name, hook,
        device, fmt::join(rules, "\n    "));
}

struct Hooks {
    std::string_view out, in;
};
Hooks hooks_of(GuardAt at) {
    return at == GuardAt::tenants_end ? Hooks{"egress", "ingress"} : Hooks{"ingress", "egress"};
}

Result<program::Ran> run_nft(const Space& space, std::vector<std::string> words, const std::string& input) {
    Result<program::Ran> ran = fail(Code::unavailable, "nft was not run");
    if (auto ok = space.run([&]() -> Result<> {
            ran = program::run(words, {}, input, nft_patience);  // a child sits where the thread that made it does
            return {};
        });
        !ok)
        return std::unexpected(ok.error());
    return ran;
}

// Every text in a tree of JSON, wherever it stands.
bool says(const json::value& tree, std::string_view text) {
    if (const auto* one = tree.if_string()) return std::string_view{*one} == text;
    if (const auto* list = tree.if_array())
        return std::ranges::any_of(*list, [&](const json::value& value) { return says(value, text); });
    if (const auto* object = tree.if_object())
        return std::ranges::any_of(*object, [&](const auto& field) { return says(field.value(), text); });
    return false;
}

// A line like: type filter hook ingress device "fabric3" priority -300; policy drop;
bool hangs_on(std::string_view text, std::string_view hook, std::string_view device) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.contains(fmt::format("type filter hook {} ", hook)) && line.contains("policy drop;") &&
            (line.contains(fmt::format("\"{}\"", device)) || line.contains(fmt::format("{{ {} }}", device))))
            return true;
    }
    return false;
}

std::string text_in(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string{std::string_view{value->as_string()}} : std::string{};
}

}  // namespace

Result<> check(const Guard& guard) {
    const auto wrong = [&](std::string what, std::string remedy) {
        return fail(Code::invalid, fmt::format("the guard {}: {}", guard.table, what), std::move(remedy));
    };
    if (!is_plain(guard.table, 64, true)) return wrong("its name is no word", "use letters, digits and underscores");
    if (!is_plain(guard.device, 15, false))
        return wrong(fmt::format("'{}' is no name of a link", guard.device), "use up to 15 letters and digits");
    if (guard.mac.is_zero() || guard.mac.is_group())
        return wrong(fmt::format("{} is no source of frames", print(guard.mac)), "give the port a unicast MAC");
    if (guard.address.is_v6 || guard.subnet.is_v6)
        return wrong(fmt::format("{} is IPv6", print(guard.address)),
                     "the guard knows IPv4 alone: take the subnet from an IPv4 pool");
    if (!guard.subnet.contains({guard.address.is_v6, guard.address.octets, 32}))
        return wrong(fmt::format("{} does not lie in {}", print(guard.address), print(guard.subnet)),
                     "this is a fault of the control plane: report it");
    if (guard.dscp > 63) return wrong(fmt::format("DSCP {} is above 63", guard.dscp), "six bits are all there is");
    return {};
}

std::string render(const Guard& guard) {
    const Hooks hooks = hooks_of(guard.at);
    std::string text = fmt::format("table netdev {0}\ndelete table netdev {0}\ntable netdev {0} {{\n", guard.table);
    for (const char* counter : {"forged_mac", "forged_address", "foreign", "foreign_in", "unknown"})
        text += fmt::format("  counter {} {{\n  }}\n", counter);
    text += chain("from_tenant", hooks.out, guard.device, rules_out(guard));
    text += chain("to_tenant", hooks.in, guard.device, rules_in(guard));
    return text + "}\n";
}

std::string differs_from(const Guard& guard, const Listed& listed) {
    const Hooks hooks = hooks_of(guard.at);
    for (const std::string_view hook : {hooks.out, hooks.in})
        if (!hangs_on(listed.text, hook, guard.device))
            return fmt::format("no chain of it drops by default at the {} of {}", hook, guard.device);
    try {
        const json::value tree = json::parse(json::string_view{listed.json.data(), listed.json.size()});
        std::size_t out = 0, in = 0;
        json::array rules;
        for (const json::value& entry : tree.at("nftables").as_array())
            if (const json::value* found = entry.as_object().if_contains("rule")) {
                rules.push_back(*found);
                (text_in(found->as_object(), "chain") == "from_tenant" ? out : in) += 1;
            }
        if (out != rules_out(guard).size() || in != rules_in(guard).size())
            return fmt::format("it has {} and {} rules, not {} and {}", out, in, rules_out(guard).size(),
                               rules_in(guard).size());
        for (const std::string& text : {print(guard.mac), print_address(guard.address)})
            if (!says(rules, text)) return fmt::format("no rule of it speaks of {}", text);
        return {};
    } catch (const std::exception& wrong) {
        return fmt::format("what nft lists does not read: {}", wrong.what());
    }
}

Result<std::map<std::string, std::int64_t>> read_counters(std::string_view listed) {
    try {
        const json::value tree = json::parse(json::string_view{listed.data(), listed.size()});
        std::map<std::string, std::int64_t> counts;
        for (const json::value& entry : tree.at("nftables").as_array())
            if (const json::value* counter = entry.as_object().if_contains("counter"))
                counts[text_in(counter->as_object(), "name")] = counter->at("packets").to_number<std::int64_t>();
        return counts;
    } catch (const std::exception& wrong) {
        return fail(Code::corrupt, fmt::format("{} bytes of nft's do not read: {}", listed.size(), wrong.what()),
                    "see `nft --version`: 1.0.6 is known to work");
    }
}

Result<> Nft::load(const Space& space, const Guard& guard) const {
    if (auto sound = check(guard); !sound) return sound;
    // Newer kernels take a chain for a device that is not there, in case it comes; such a guard guards nothing yet.
    auto links = Links::open(space);
    if (!links) return std::unexpected(links.error());
    if (const auto there = links->link(guard.device); !there) return std::unexpected(there.error());
    const auto ran = run_nft(space, {program, "-f", "-"}, render(guard));
    if (!ran) return std::unexpected(ran.error());
    if (ran->status != 0)
        return fail(Code::unavailable,
                    fmt::format("nft refuses the guard {} of {}: {}", guard.table, guard.device, ran->output),
                    "the kernel needs nf_tables with netdev ingress and egress hooks (Linux 5.16)");
    const auto json_ran = run_nft(space, {program, "-j", "list", "table", "netdev", guard.table}, {});
    if (!json_ran) return std::unexpected(json_ran.error());
    const auto text_ran = run_nft(space, {program, "list", "table", "netdev", guard.table}, {});
    if (!text_ran) return std::unexpected(text_ran.error());
    if (const std::string wrong = differs_from(guard, {json_ran->output, text_ran->output}); !wrong.empty())
        return fail(Code::unavailable, fmt::format("the guard {} was loaded, and {}", guard.table, wrong),
                    "see what else changes nftables on this host");
    return {};
}

Result<> Nft::remove(const Space& space, const std::string& table) const {
    if (!is_plain(table, 64, true)) return fail(Code::invalid, "'" + table + "' names no guard", "report this");
    const auto ran =
        run_nft(space, {program, "-f", "-"}, fmt::format("table netdev {0}\ndelete table netdev {0}\n", table));
    if (!ran) return std::unexpected(ran.error());
    if (ran->status != 0)
        return fail(Code::unavailable, fmt::format("nft does not remove {}: {}", table, ran->output),
                    "remove it by hand");
    return {};
}

Result<bool> Nft::has(const Space& space, const std::string& table) const {
    const auto ran = run_nft(space, {program, "-j", "list", "tables"}, {});
    if (!ran) return std::unexpected(ran.error());
    if (ran->status != 0) return fail(Code::unavailable, "nft does not list tables: " + ran->output, "see dmesg");
    return ran->output.contains(fmt::format("\"{}\"", table));
}

Result<std::map<std::string, std::int64_t>> Nft::dropped(const Space& space, const std::string& table) const {
    const auto ran = run_nft(space, {program, "-j", "list", "counters", "table", "netdev", table}, {});
    if (!ran) return std::unexpected(ran.error());
    if (ran->status != 0) return fail(Code::unavailable, "nft does not list counters: " + ran->output, "see dmesg");
    return read_counters(ran->output);
}

}  // namespace bulkhead::rdma
