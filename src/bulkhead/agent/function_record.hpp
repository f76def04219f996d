// What a function was attached as: written before anything is done, read by whoever undoes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/rdma/gid_table.hpp"
#include "bulkhead/hw/rdma/links.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/node/fabric_port.hpp"
#include "bulkhead/node/order.hpp"

namespace bulkhead::agent {

struct FunctionRecord {
    std::int64_t lease = 0;
    std::string tenant;
    std::string device;  // PCI address
    std::int64_t function = 0, vlan = 0, rate_mbps = 0, dscp = 0, pkey = 0;
    std::string mac, address, subnet, node_guid, port_guid;
    std::string rdma, verbs;  // "mlx5_2", "/dev/infiniband/uverbs3"
    std::int64_t verbs_major = 0, verbs_minor = 0;

    static constexpr void describe(auto&& field) {
        field("lease", &FunctionRecord::lease, "Whose it is.", Rule{.required = true, .min = 1});
        field("tenant", &FunctionRecord::tenant, "The lease's tenant.", Rule{.format = Format::line});
        field("device", &FunctionRecord::device, "Its PCI address.", Rule{.required = true, .format = Format::line});
        field("function", &FunctionRecord::function, "Its index.", Rule{.required = true, .min = 0});
        field("vlan", &FunctionRecord::vlan, "Its VLAN.", Rule{.min = 0});
        field("rateMbps", &FunctionRecord::rate_mbps, "Its rate.", Rule{.min = 0});
        field("dscp", &FunctionRecord::dscp, "How its packets are marked.", Rule{.min = 0});
        field("pkey", &FunctionRecord::pkey, "Its partition.", Rule{.min = 0});
        field("mac", &FunctionRecord::mac, "Its MAC.", Rule{.format = Format::line});
        field("address", &FunctionRecord::address, "Its address.", Rule{.format = Format::line});
        field("subnet", &FunctionRecord::subnet, "Its tenant's subnet.", Rule{.format = Format::line});
        field("nodeGuid", &FunctionRecord::node_guid, "Its node GUID.", Rule{.format = Format::line});
        field("portGuid", &FunctionRecord::port_guid, "Its port GUID.", Rule{.format = Format::line});
        field("rdma", &FunctionRecord::rdma, "Its RDMA device.", Rule{.format = Format::line});
        field("verbs", &FunctionRecord::verbs, "The file of it.", Rule{.format = Format::line});
        field("verbsMajor", &FunctionRecord::verbs_major, "The file's number.", Rule{.min = 0});
        field("verbsMinor", &FunctionRecord::verbs_minor, "And the rest of it.", Rule{.min = 0});
    }
    friend bool operator==(const FunctionRecord&, const FunctionRecord&) = default;
};

FunctionRecord record_for(Key lease, const std::string& tenant, const std::string& device, const FabricPort& port);
std::string function_record_text(const FunctionRecord& record);
Result<FunctionRecord> read_function_record(std::string_view text);

// Whether some function of that number is on record in an agent's run folder. What cannot be read counts.
bool has_function_record(const std::string& run_folder, std::uint16_t function);

// The port as values; `invalid` with the field that is wrong. Nothing was done by then.
struct PortPlan {
    rdma::VfSetting setting;
    rdma::Prefix address, subnet;
    bool is_infiniband = false;
};
Result<PortPlan> plan_of(const FunctionRecord& record);

// How the tenant calls its link.
std::string link_name(const FunctionRecord& record);
std::string guard_name(std::int64_t function);

}  // namespace bulkhead::agent
