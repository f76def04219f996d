// How one virtual function of a NIC is set for its tenant, before the tenant sees it: who it is on the wire (addresses,
// VLAN or partition), how fast it may send, and as what its packets are marked. The control plane decides all of it;
// the node sets it from the host's side, where the tenant cannot change it.
#pragma once

#include <cstdint>
#include <string>

namespace bulkhead {

struct FabricPort {
    std::uint16_t function = 0;  // index of the virtual function, as in the node's inventory
    std::string mac;             // "02:42:0a:80:10:05"; locally administered, unicast
    std::uint16_t vlan = 0;      // tagged by the NIC, unseen by the tenant; 0: untagged
    std::string address;         // with its prefix length: "10.128.16.5/20"; its GID is made of it
    std::string subnet;          // the tenant's own: "10.128.16.0/20"; traffic with anyone else is dropped
    std::int64_t rate_mbps = 0;  // at most; 0: not limited
    std::uint8_t dscp = 0;       // what its packets are marked with
    // InfiniBand only, where the subnet manager knows ports by GUID and separates them by partition key.
    std::string node_guid, port_guid;  // "02:00:00:00:00:00:10:05"
    std::uint16_t pkey = 0;            // with the membership bit; 0: none
    friend bool operator==(const FabricPort&, const FabricPort&) = default;
};

}  // namespace bulkhead
