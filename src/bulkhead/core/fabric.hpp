// Who is who on the fabric: numbers for tenants (subnet, VLAN, partition key) and for their functions (address, MAC,
// GUIDs), drawn so that nobody learns of others by its own, and never from what somebody may still have. Pure: what is
// taken comes in, what is drawn goes out; tenant_fabric.cpp keeps the books.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "bulkhead/core/persisted.hpp"
#include "bulkhead/model/fabric.hpp"
#include "bulkhead/model/lease.hpp"
#include "bulkhead/model/subnet.hpp"

namespace bulkhead::fabric {

struct Numbers {
    Subnet subnet;
    std::uint16_t vlan = 0, partition_key = 0;
    friend bool operator==(const Numbers&, const Numbers&) = default;
};

// Where the fleet's draws begin: a keyed hash of whose they are. Two tenants' numbers say nothing of each other, nor of
// how many there are. Nothing: none of one kind is left.
std::optional<Numbers> draw(const FabricPolicy& policy, std::span<const Numbers> taken, std::string_view secret,
                            std::string_view whose);

// Numbers of hosts within a subnet: 0 is the network's, 1 is kept for a router, the last is everybody's.
constexpr std::int64_t first_host = 2;
constexpr std::int64_t hosts_of(const Subnet& subnet) { return static_cast<std::int64_t>(subnet.size()) - 3; }
// The lowest that nobody has; the caller knows that there is one.
std::int64_t next_host(const Subnet& subnet, const std::set<std::int64_t>& taken);

// One of the tenant's functions, as its lease shows it. The MAC and the GUIDs are made of the address: as long as no
// two functions share one, no two share another.
struct Holder {
    std::string node;
    std::int64_t function = 0;
    std::int64_t host = 0;
};
LeasedPort port_of(const FabricPolicy& policy, const Numbers& numbers, const Holder& holder,
                   std::string_view tenant_class);

// The terms of a tenant's class: its own, else those of everybody.
FabricClass class_of(const FabricPolicy& policy, std::string_view tenant_class);

constexpr std::uint16_t full_member = 0x8000;

}  // namespace bulkhead::fabric
