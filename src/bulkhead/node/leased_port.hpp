// A function's identity as its lease shows it, and as its node is told.
#pragma once

#include "bulkhead/model/lease.hpp"
#include "bulkhead/model/subnet.hpp"
#include "bulkhead/node/fabric_port.hpp"

namespace bulkhead {

inline FabricPort as_told(const LeasedPort& port) {
    const auto address = parse_host_address(port.address);
    return {.function = static_cast<std::uint16_t>(port.function),
            .mac = port.mac,
            .vlan = static_cast<std::uint16_t>(port.vlan),
            .address = port.address,
            .subnet = address ? print(address->network()) : std::string{},
            .rate_mbps = port.rateMbps,
            .dscp = static_cast<std::uint8_t>(port.dscp),
            .node_guid = port.nodeGuid,
            .port_guid = port.portGuid,
            .pkey = static_cast<std::uint16_t>(port.partitionKey)};
}

}  // namespace bulkhead
