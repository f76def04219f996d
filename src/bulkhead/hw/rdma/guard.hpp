// The guard of one port: an nftables table that lets out what carries the port's own MAC and address and goes to its
// tenant's subnet, and lets in what comes from there. Everything else is dropped and counted. It sees what passes a
// kernel: the tenant's own stack (the tables lie in the tenant's namespace, where it has no rights), a bridge port, a
// representor, soft-RoCE. A NIC that does RDMA by itself passes it by; there its own check and its VLAN are the fence.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "bulkhead/hw/rdma/addresses.hpp"
#include "bulkhead/hw/rdma/space.hpp"

namespace bulkhead::rdma {

// Where the kernel meets the tenant's packets: at the tenant's own device they leave by egress; at the host's end of
// its cable (a bridge port, a representor) they come in by ingress.
enum class GuardAt : std::uint8_t { tenants_end, hosts_end };

struct Guard {
    std::string table;   // "bulkhead_f3"
    std::string device;  // "fabric3"
    GuardAt at = GuardAt::tenants_end;
    Mac mac;
    Prefix address, subnet;
    std::uint8_t dscp = 0;  // 0: left as it is
};

// `invalid` for what would not be one guard for one device: names that nft would read as something else, IPv6.
Result<> check(const Guard& guard);
// What nft is told: the whole table anew, in one transaction.
std::string render(const Guard& guard);
// What nft lists of a table: `-j` tells the rules apart, and only the plain form names the device.
struct Listed {
    std::string json, text;
};
// Why that is not this guard; empty: it is.
std::string differs_from(const Guard& guard, const Listed& listed);

struct Nft {
    std::string program = "nft";
    Result<> load(const Space& space, const Guard& guard) const;  // and read back
    Result<> remove(const Space& space, const std::string& table) const;
    Result<bool> has(const Space& space, const std::string& table) const;
    // Packets by what was wrong with them: forged_mac, forged_address, foreign, unknown.
    Result<std::map<std::string, std::int64_t>> dropped(const Space& space, const std::string& table) const;
};

// Of `nft -j list counters table ...`.
Result<std::map<std::string, std::int64_t>> read_counters(std::string_view listed);

}  // namespace bulkhead::rdma
