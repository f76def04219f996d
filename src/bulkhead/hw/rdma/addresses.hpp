// What a port is called on the wire, as values: MAC, GUID, GID, an address with its prefix. Read from text strictly:
// what is taken for an address here becomes somebody's identity.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"

namespace bulkhead::rdma {

struct Mac {
    std::array<std::uint8_t, 6> octets{};
    bool is_zero() const { return *this == Mac{}; }
    bool is_group() const { return (octets[0] & 1U) != 0; }
    friend auto operator<=>(const Mac&, const Mac&) = default;
};
Result<Mac> parse_mac(std::string_view text);  // "02:42:0a:80:10:05"
std::string print(const Mac& mac);

Result<std::uint64_t> parse_guid(std::string_view text);  // "02:00:00:00:00:00:10:05"
std::string print_guid(std::uint64_t guid);

struct Gid {
    std::array<std::uint8_t, 16> octets{};
    bool is_zero() const { return *this == Gid{}; }
    bool is_link_local() const { return octets[0] == 0xfe && (octets[1] & 0xc0U) == 0x80; }
    bool is_ipv4() const;  // ::ffff:a.b.c.d
    friend auto operator<=>(const Gid&, const Gid&) = default;
};
Result<Gid> parse_gid(std::string_view text);  // as sysfs has it: eight groups of four hex digits, none left out
std::string print(const Gid& gid);

struct Prefix {
    bool is_v6 = false;
    std::array<std::uint8_t, 16> octets{};  // the first four for IPv4
    unsigned length = 0;
    std::size_t bytes() const { return is_v6 ? 16 : 4; }
    bool contains(const Prefix& other) const;
    Gid gid() const;  // the one that this address makes
    friend auto operator<=>(const Prefix&, const Prefix&) = default;
};
Result<Prefix> parse_prefix(std::string_view text);  // "10.128.16.5/20"; the address, not its network
std::string print_address(const Prefix& prefix);     // without the length
std::string print(const Prefix& prefix);

}  // namespace bulkhead::rdma
