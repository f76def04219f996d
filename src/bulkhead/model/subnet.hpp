// IPv4 networks and the texts of addresses on a fabric: what a policy's pool is read as, and what tenants' subnets are
// cut from. IPv6 is not drawn from pools: a GID of an IPv4 address is what NCCL looks for by default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

struct Subnet {
    std::uint32_t base = 0;  // the network's own address
    std::uint8_t prefix = 32;
    constexpr std::uint64_t size() const { return std::uint64_t{1} << (32 - prefix); }
    constexpr std::uint64_t end() const { return base + size(); }
    constexpr bool contains(std::uint32_t address) const { return address >= base && address < end(); }
    constexpr bool overlaps(const Subnet& other) const { return base < other.end() && other.base < end(); }
    friend constexpr auto operator<=>(const Subnet&, const Subnet&) = default;
};
static_assert(!Subnet{0x0A000000, 9}.overlaps({0x0A800000, 9}));  // neighbours touch; they do not overlap

// "10.128.0.0/9". Nothing: it is not one, or has bits beyond its prefix ("10.128.0.1/9").
std::optional<Subnet> parse_subnet(std::string_view text);
std::string print(const Subnet& subnet);

// "10.128.16.5/20": an address, with the network it is in.
struct HostAddress {
    std::uint32_t address = 0;
    std::uint8_t prefix = 32;
    constexpr Subnet network() const {
        return {prefix == 0 ? 0 : address & ~std::uint32_t{0} << (32 - prefix), prefix};
    }
    friend constexpr auto operator<=>(const HostAddress&, const HostAddress&) = default;
};
std::optional<HostAddress> parse_host_address(std::string_view text);
std::string print(const HostAddress& address);
std::string print_address(std::uint32_t address);  // "10.128.16.5"

// "02:42:0a:80:10:05", and a GUID's eight bytes in the same way; of that many bytes exactly, in lower case.
std::string print_octets(std::uint64_t value, unsigned bytes);
std::optional<std::uint64_t> parse_octets(std::string_view text, unsigned bytes);

}  // namespace bulkhead
