#include "bulkhead/model/subnet.hpp"

#include <fmt/core.h>

#include <charconv>

namespace bulkhead {

namespace {

// A decimal number without sign or leading zero, at most that large.
std::optional<unsigned> take_number(std::string_view& text, unsigned most) {
    unsigned value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto digits = static_cast<std::size_t>(read.ptr - text.data());
    if (read.ec != std::errc{} || digits > 3 || value > most || (digits > 1 && text.front() == '0'))
        return std::nullopt;
    text.remove_prefix(digits);
    return value;
}

}  // namespace

std::optional<HostAddress> parse_host_address(std::string_view text) {
    HostAddress out;
    for (int i = 0; i < 4; ++i) {
        const auto octet = take_number(text, 255);
        if (!octet || text.empty() || text.front() != (i < 3 ? '.' : '/')) return std::nullopt;
        out.address = out.address << 8 | *octet;
        text.remove_prefix(1);
    }
    const auto prefix = take_number(text, 32);
    if (!prefix || !text.empty()) return std::nullopt;
    out.prefix = static_cast<std::uint8_t>(*prefix);
    return out;
}

std::optional<Subnet> parse_subnet(std::string_view text) {
    const auto address = parse_host_address(text);
    if (!address || address->network().base != address->address) return std::nullopt;
    return address->network();
}

std::string print_address(std::uint32_t address) {
    return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
}
std::string print(const HostAddress& address) {
    return fmt::format("{}/{}", print_address(address.address), address.prefix);
}
std::string print(const Subnet& subnet) { return print(HostAddress{subnet.base, subnet.prefix}); }

std::string print_octets(std::uint64_t value, unsigned bytes) {
    std::string out;
    for (unsigned i = bytes; i-- > 0;) out += fmt::format("{:02x}{}", value >> (8 * i) & 255, i == 0 ? "" : ":");
    return out;
}

std::optional<std::uint64_t> parse_octets(std::string_view text, unsigned bytes) {
    if (text.size() != std::size_t{bytes} * 3 - 1) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (i % 3 == 2) {
            if (c != ':') return std::nullopt;
            continue;
        }
        if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) return std::nullopt;
        value = value << 4 | static_cast<std::uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return value;
}

}  // namespace bulkhead
