#include "bulkhead/hw/rdma/addresses.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

namespace bulkhead::rdma {

namespace {

std::unexpected<Error> no_such(std::string_view kind, std::string_view text, std::string_view like) {
    return fail(Code::invalid, fmt::format("'{}' is no {}", text.substr(0, 64), kind),
                fmt::format("write it as {}", like));
}

// Pairs of hex digits with one colon between two.
template <std::size_t count>
std::optional<std::array<std::uint8_t, count>> octets_of(std::string_view text) {
    std::array<std::uint8_t, count> out{};
    if (text.size() != count * 3 - 1) return std::nullopt;
    for (std::size_t at = 0; at < count; ++at) {
        const std::string_view pair = text.substr(at * 3, 2);
        const auto [end, wrong] = std::from_chars(pair.data(), pair.data() + 2, out[at], 16);
        if (wrong != std::errc{} || end != pair.data() + 2) return std::nullopt;
        if (at + 1 < count && text[at * 3 + 2] != ':') return std::nullopt;
    }
    return out;
}

}  // namespace

Result<Mac> parse_mac(std::string_view text) {
    const auto octets = octets_of<6>(text);
    if (!octets) return no_such("MAC address", text, "02:42:0a:80:10:05");
    return Mac{*octets};
}

std::string print(const Mac& mac) { return fmt::format("{:02x}", fmt::join(mac.octets, ":")); }

Result<std::uint64_t> parse_guid(std::string_view text) {
    const auto octets = octets_of<8>(text);
    if (!octets) return no_such("GUID", text, "02:00:00:00:00:00:10:05");
    std::uint64_t guid = 0;
    for (const std::uint8_t octet : *octets) guid = guid << 8U | octet;
    return guid;
}

std::string print_guid(std::uint64_t guid) {
    std::string text;
    for (int shift = 56; shift >= 0; shift -= 8)
        text += fmt::format("{}{:02x}", text.empty() ? "" : ":", guid >> static_cast<unsigned>(shift) & 0xffU);
    return text;
}

bool Gid::is_ipv4() const {
    constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::equal(mapped.begin(), mapped.end(), octets.begin());
}

Result<Gid> parse_gid(std::string_view text) {
    constexpr auto like = "0000:0000:0000:0000:0000:ffff:0a80:1005";
    Gid gid;
    if (text.size() != 39) return no_such("GID", text, like);
    for (std::size_t group = 0; group < 8; ++group) {
        const std::string_view digits = text.substr(group * 5, 4);
        std::uint16_t value = 0;
        const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + 4, value, 16);
        if (wrong != std::errc{} || end != digits.data() + 4 || (group < 7 && text[group * 5 + 4] != ':'))
            return no_such("GID", text, like);
        gid.octets[group * 2] = static_cast<std::uint8_t>(value >> 8U);
        gid.octets[group * 2 + 1] = static_cast<std::uint8_t>(value & 0xffU);
    }
    return gid;
}

std::string print(const Gid& gid) {
    std::string text;
    for (std::size_t at = 0; at < 16; at += 2)
        text += fmt::format("{}{:02x}{:02x}", at == 0 ? "" : ":", gid.octets[at], gid.octets[at + 1]);
    return text;
}

Result<Prefix> parse_prefix(std::string_view text) {
    constexpr auto like = "10.128.16.5/20";
    const std::size_t slash = text.find('/');
    if (slash > 64 || text.contains('\0'))  // npos too
        return no_such("address with a prefix length", text, like);
    const std::string address{text.substr(0, slash)};
    const std::string_view length = text.substr(slash + 1);
    Prefix prefix;
    prefix.is_v6 = address.contains(':');
    if (::inet_pton(prefix.is_v6 ? AF_INET6 : AF_INET, address.c_str(), prefix.octets.data()) != 1)
        return no_such("address with a prefix length", text, like);
    const auto [end, wrong] = std::from_chars(length.data(), length.data() + length.size(), prefix.length);
    if (wrong != std::errc{} || end != length.data() + length.size() || prefix.length > prefix.bytes() * 8)
        return no_such("address with a prefix length", text, like);
    return prefix;
}

std::string print_address(const Prefix& prefix) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (::inet_ntop(prefix.is_v6 ? AF_INET6 : AF_INET, prefix.octets.data(), text.data(), text.size()) == nullptr)
        return {};
    return text.data();
}

std::string print(const Prefix& prefix) { return fmt::format("{}/{}", print_address(prefix), prefix.length); }

bool Prefix::contains(const Prefix& other) const {
    if (is_v6 != other.is_v6 || other.length < length) return false;
    for (unsigned bit = 0; bit < length; ++bit) {
        const unsigned mask = 0x80U >> bit % 8;
        if ((octets[bit / 8] & mask) != (other.octets[bit / 8] & mask)) return false;
    }
    return true;
}

Gid Prefix::gid() const {
    Gid gid;
    if (is_v6) {
        gid.octets = octets;
    } else {
        gid.octets[10] = gid.octets[11] = 0xff;
        std::copy_n(octets.begin(), 4, gid.octets.begin() + 12);
    }
    return gid;
}

}  // namespace bulkhead::rdma
