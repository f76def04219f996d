#include "bulkhead/core/fabric.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/base/result.hpp"

namespace bulkhead::fabric {

namespace {

std::uint64_t keyed(std::string_view secret, std::string_view what, std::string_view whose, unsigned attempt) {
    const std::string tail = fmt::format("/{}", attempt);
    const Hash hash = sha256({secret, "fabric/", what, "/", whose, tail});
    std::uint64_t value = 0;
    for (const char byte : bytes_of(hash).substr(0, 8)) value = value << 8 | static_cast<std::uint8_t>(byte);
    return value;
}

// One of `count` numbers that is free. Attempts are independent: a neighbour of what is taken is no likelier. When
// almost everything is taken they would go on for long; then whatever is left.
std::optional<std::uint64_t> draw_one(std::uint64_t count, std::string_view secret, std::string_view what,
                                      std::string_view whose, auto&& is_free) {
    constexpr unsigned attempts = 64;
    if (count == 0) return std::nullopt;
    for (unsigned attempt = 0; attempt < attempts; ++attempt)
        if (const std::uint64_t drawn = keyed(secret, what, whose, attempt) % count; is_free(drawn)) return drawn;
    const std::uint64_t from = keyed(secret, what, whose, attempts) % count;
    for (std::uint64_t i = 0; i < count; ++i)
        if (const std::uint64_t drawn = (from + i) % count; is_free(drawn)) return drawn;
    return std::nullopt;
}

std::optional<std::uint16_t> draw_number(const std::optional<NumberRange>& range, std::span<const Numbers> taken,
                                         std::uint16_t Numbers::* member, std::string_view secret,
                                         std::string_view what, std::string_view whose) {
    if (!range) return std::uint16_t{0};
    std::set<std::int64_t> used;
    for (const Numbers& one : taken) used.insert(one.*member);
    const auto drawn = draw_one(static_cast<std::uint64_t>(range->count()), secret, what, whose,
                                [&](std::uint64_t i) { return !used.contains(range->first + std::int64_t(i)); });
    if (!drawn) return std::nullopt;
    return static_cast<std::uint16_t>(range->first + std::int64_t(*drawn));
}

}  // namespace

std::optional<Numbers> draw(const FabricPolicy& policy, std::span<const Numbers> taken, std::string_view secret,
                            std::string_view whose) {
    const auto pool = parse_subnet(policy.pool);
    const auto prefix = static_cast<std::uint8_t>(policy.tenantPrefix);
    if (!pool || prefix < pool->prefix || prefix > 29) return std::nullopt;
    const Subnet size{0, prefix};
    const auto at = [&](std::uint64_t i) {
        return Subnet{static_cast<std::uint32_t>(pool->base + i * size.size()), prefix};
    };
    const auto subnet = draw_one(pool->size() / size.size(), secret, "subnet", whose, [&](std::uint64_t i) {
        return std::ranges::none_of(taken, [&](const Numbers& one) { return one.subnet.overlaps(at(i)); });
    });
    const bool ethernet = policy.kind == FabricKind::ethernet;
    const auto vlan = draw_number(ethernet ? policy.vlans : std::nullopt, taken, &Numbers::vlan, secret, "vlan", whose);
    const auto key = draw_number(ethernet ? std::nullopt : policy.partitionKeys, taken, &Numbers::partition_key, secret,
                                 "partition", whose);
    if (!subnet || !vlan || !key) return std::nullopt;
    return Numbers{at(*subnet), *vlan, *key};
}

std::int64_t next_host(const Subnet& subnet, const std::set<std::int64_t>& taken) {
    std::int64_t host = first_host;
    for (auto used = taken.lower_bound(host); used != taken.end() && *used == host; ++used) ++host;
    invariant(host < first_host + hosts_of(subnet), "whoever asks for an address has seen that one is left");
    return host;
}

FabricClass class_of(const FabricPolicy& policy, std::string_view tenant_class) {
    FabricClass otherwise;
    for (const FabricClass& one : policy.classes) {
        if (one.tenantClass == tenant_class) return one;
        if (one.tenantClass.empty()) otherwise = one;
    }
    return otherwise;
}

LeasedPort port_of(const FabricPolicy& policy, const Numbers& numbers, const Holder& holder,
                   std::string_view tenant_class) {
    const FabricClass terms = class_of(policy, tenant_class);
    const auto address = static_cast<std::uint32_t>(numbers.subnet.base + static_cast<std::uint64_t>(holder.host));
    LeasedPort port{.node = holder.node,
                    .function = holder.function,
                    .address = print(HostAddress{address, numbers.subnet.prefix}),
                    .mac = print_octets(std::uint64_t{0x0242} << 32 | address, 6),
                    .vlan = numbers.vlan,
                    .rateMbps = terms.rateMbps,
                    .dscp = terms.dscp,
                    .nodeGuid = {},
                    .portGuid = {}};
    if (policy.kind == FabricKind::infiniband) {
        port.nodeGuid = print_octets(std::uint64_t{0x02424e} << 40 | address, 8);
        port.portGuid = print_octets(std::uint64_t{0x024250} << 40 | address, 8);
        port.partitionKey = numbers.partition_key == 0 ? 0 : numbers.partition_key | full_member;
    }
    return port;
}

}  // namespace bulkhead::fabric
