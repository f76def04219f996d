#include "bulkhead/render/partitions.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "bulkhead/model/subnet.hpp"

namespace bulkhead::render {

namespace {

constexpr std::uint16_t full_member_bit = 0x8000, default_key = 0x7FFF;

}  // namespace

Result<std::vector<Partition>> plan_partitions(const std::vector<GpuLease>& leases) {
    std::map<std::uint16_t, Partition> by_key;
    std::map<std::uint64_t, std::uint16_t> guids;
    for (const GpuLease& lease : leases) {
        if (!lease.status) continue;
        for (const LeasedPort& port : lease.status->ports) {
            if (port.partitionKey == 0) continue;
            const std::string& tenant = lease.spec.tenant;
            const auto key = static_cast<std::uint16_t>(port.partitionKey & ~std::int64_t{full_member_bit});
            const auto guid = parse_octets(port.portGuid, 8);
            if (key == 0 || key == default_key || (port.partitionKey & full_member_bit) == 0 || !guid)
                return fail(Code::corrupt,
                            fmt::format("{} vf{} of lease {} has key {:#06x} and port GUID \"{}\"", port.node,
                                        port.function, lease.metadata.name, port.partitionKey, port.portGuid));
            const auto [partition, fresh] = by_key.try_emplace(key, Partition{tenant, key, {}});
            if (partition->second.tenant != tenant)
                return fail(Code::corrupt,
                            fmt::format("partition {:#06x} is {}'s and {}'s", key, partition->second.tenant, tenant),
                            "leave the subnet manager as it is, and tell whoever keeps the control plane");
            // A lease that ends shows a port until it is closed; the next one of the same tenant may have it before.
            const auto [seen, is_new] = guids.try_emplace(*guid, key);
            if (!is_new && seen->second == key) continue;
            if (!is_new)
                return fail(Code::corrupt, fmt::format("port {} is leased twice", port.portGuid),
                            "leave the subnet manager as it is, and tell whoever keeps the control plane");
            partition->second.members.push_back(fmt::format("{:#018x}", *guid));
        }
    }
    std::vector<Partition> all;
    for (auto& [key, partition] : by_key) {
        std::ranges::sort(partition.members);
        all.push_back(std::move(partition));
    }
    return all;
}

std::string partitions_conf(const std::vector<Partition>& partitions) {
    // No `ipoib` here: reaching the subnet manager is no reason to have an IP network with its machine.
    std::string out =
        "# Written by `bulkhead render partitions`. Whoever is in no partition below reaches the subnet manager "
        "alone.\n"
        "Default=0x7fff, defmember=limited : ALL=limited, SELF=full ;\n";
    std::set<std::string> named;
    for (const Partition& partition : partitions) {
        // indx0: where programs that ask for no key in particular find it.
        // A tenant that had to draw anew has two for a while: names are for people, but two alike are for nobody.
        const std::string name = named.insert(partition.tenant).second
                                     ? partition.tenant
                                     : fmt::format("{}-{:04x}", partition.tenant, partition.key);
        out += fmt::format("{}={:#06x}, indx0, ipoib, defmember=full :", name, partition.key);
        for (std::size_t i = 0; i < partition.members.size(); ++i)
            out += fmt::format("{}\n    {}=full", i == 0 ? "" : ",", partition.members[i]);
        out += " ;\n";
    }
    return out;
}

std::string guid_list(const Partition& partition) {
    std::string out;
    for (const std::string& member : partition.members) out += member + '\n';
    return out;
}

}  // namespace bulkhead::render
