// What could be left of a tenant on a function that it no longer has, looked for one by one.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bulkhead/agent/function_record.hpp"
#include "bulkhead/agent/functions.hpp"
#include "bulkhead/hw/container/durable.hpp"

namespace bulkhead::agent {

namespace {

// What cannot be looked at counts as left: nobody knows that it is not.
void look(std::vector<std::string>& left, std::string_view where, const Error& error) {
    left.push_back(fmt::format("{} cannot be looked at: {}", where, error.what));
}

// A lease's namespace without a record of a function: nobody would ever take it away.
void look_for_spaces(const std::string& folder, const std::vector<FunctionRecord>& records,
                     std::vector<std::string>& left) {
    std::error_code wrong;
    for (std::filesystem::directory_iterator at{folder, wrong}, end; !wrong && at != end; at.increment(wrong)) {
        const std::string name = at->path().filename().string();
        const bool is_needed = std::ranges::any_of(records, [&](const FunctionRecord& record) {
            const std::string of = fmt::format("lease-{}", record.lease);
            return name == of || name == of + ".sys";
        });
        if (!is_needed) left.push_back(fmt::format("a network namespace in {} belongs to no function", folder));
    }
}

// The rows that speak for whoever had it: on RoCE that of its address; on InfiniBand those that end in a GUID of its,
// whatever the prefix of the subnet is.
bool is_of_port(const PortPlan& plan, const rdma::Gid& gid) {
    if (!plan.is_infiniband) return gid == plan.address.gid();
    std::uint64_t guid = 0;
    for (std::size_t i = 8; i < gid.octets.size(); ++i) guid = guid << 8 | gid.octets[i];
    return guid == plan.setting.port_guid || guid == plan.setting.node_guid;
}

void look_for_gid(const rdma::RdmaTree& tree, const PortPlan& plan, std::vector<std::string>& left) {
    for (const std::string& device : tree.devices()) {
        const auto ports = tree.ports(device);
        if (!ports) {
            look(left, "the GID table of " + device, ports.error());
            continue;
        }
        for (const rdma::RdmaPort& port : *ports)
            for (const rdma::GidRow& row : port.gids)
                if (is_of_port(plan, row.gid))
                    left.push_back(fmt::format("row {} of {}/{} still holds the tenant's GID {}", row.index, device,
                                               port.number, rdma::print(row.gid)));
    }
}

}  // namespace

std::vector<std::string> Functions::residue_of(const Known& one) {
    std::vector<std::string> left;
    if (const std::string driver = pci_.driver(one.address); !driver.empty())
        left.push_back(fmt::format("{} still has the driver {}", one.address, driver));
    if (auto links = rdma::Links::open(*host_); !links) {
        look(left, one.address, links.error());
    } else if (const auto seen = links->function({one.physical_link, one.number}); !seen) {
        look(left, one.address, seen.error());
    } else {
        for (const std::string& difference : rdma::differences(*seen, rdma::nobodys()))
            left.push_back(fmt::format("{}: {}", one.address, difference));
    }
    const auto all = records();
    for (const FunctionRecord& record : all)
        if (record.device == one.address)
            left.push_back(fmt::format("{} is still on record as a lease's", one.address));
    look_for_spaces(settings_.run_folder + "/net", all, left);
    const auto at = std::ranges::find(known_, one.address, &Known::address);
    const std::string table = guard_name(at - known_.begin());
    if (const auto has = nft_.has(*host_, table); !has)
        look(left, "the guard " + table, has.error());
    else if (*has)
        left.push_back(fmt::format("the guard {} is in the host's tables", table));
    // Whose it was last; nothing: it was nobody's since the boot.
    const auto text = container::read_whole(record_path(one.address) + ".last");
    if (!text) return left;
    const auto last = read_function_record(*text);
    const auto plan = last ? plan_of(*last) : std::unexpected(last.error());
    if (!plan)
        left.push_back(fmt::format("whose {} was last cannot be read", one.address));
    else
        look_for_gid(rdma_, *plan, left);
    return left;
}

}  // namespace bulkhead::agent
