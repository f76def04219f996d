#include "bulkhead/agent/function_record.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "bulkhead/evidence/text.hpp"
#include "bulkhead/hw/container/durable.hpp"
#include "bulkhead/hw/rdma/pci_functions.hpp"

namespace bulkhead::agent {

namespace {

std::unexpected<Error> wrong_port(const FunctionRecord& record, std::string what, std::string remedy) {
    return fail(Code::invalid,
                fmt::format("function {} ({}) for lease {}: {}", record.function, record.device, record.lease, what),
                std::move(remedy));
}

constexpr auto report_it = "this is a fault of the control plane: report it";

}  // namespace

FunctionRecord record_for(Key lease, const std::string& tenant, const std::string& device, const FabricPort& port) {
    FunctionRecord record;
    record.lease = lease;
    record.tenant = tenant;
    record.device = device;
    record.function = port.function;
    record.vlan = port.vlan;
    record.rate_mbps = port.rate_mbps;
    record.dscp = port.dscp;
    record.pkey = port.pkey;
    record.mac = port.mac;
    record.address = port.address;
    record.subnet = port.subnet;
    record.node_guid = port.node_guid;
    record.port_guid = port.port_guid;
    return record;
}

bool has_function_record(const std::string& run_folder, std::uint16_t function) {
    std::error_code wrong;
    for (std::filesystem::directory_iterator at{run_folder + "/functions", wrong}, end; !wrong && at != end;
         at.increment(wrong)) {
        if (!rdma::is_pci_address(at->path().filename().string())) continue;
        const auto text = container::read_whole(at->path().string());
        const auto record = text ? read_function_record(*text) : std::unexpected(text.error());
        if (!record || record->function == function) return true;
    }
    return wrong && wrong != std::errc::no_such_file_or_directory;
}

std::string function_record_text(const FunctionRecord& record) { return evidence::compact_text(record); }

Result<FunctionRecord> read_function_record(std::string_view text) {
    return evidence::read_text<FunctionRecord>("function record", text);
}

Result<PortPlan> plan_of(const FunctionRecord& record) {
    PortPlan plan;
    if (record.lease <= 0) return wrong_port(record, "a lease is named by a number above 0", report_it);
    if (record.vlan < 0 || record.vlan > 4094)
        return wrong_port(record, fmt::format("VLAN {} is above 4094", record.vlan), report_it);
    if (record.dscp < 0 || record.dscp > 63)
        return wrong_port(record, fmt::format("DSCP {} is above 63", record.dscp), report_it);
    if (record.rate_mbps < 0 || record.rate_mbps > 10'000'000)
        return wrong_port(record, fmt::format("{} Mbit/s is no rate of a NIC", record.rate_mbps), "0 means unlimited");
    plan.setting.rate_mbps_max = static_cast<std::uint32_t>(record.rate_mbps);
    const auto address = rdma::parse_prefix(record.address), subnet = rdma::parse_prefix(record.subnet);
    if (!address) return std::unexpected(address.error());
    if (!subnet) return std::unexpected(subnet.error());
    plan.address = *address;
    plan.subnet = *subnet;
    if (!subnet->contains({address->is_v6, address->octets, static_cast<unsigned>(address->bytes() * 8)}))
        return wrong_port(record, fmt::format("{} does not lie in its tenant's {}", record.address, record.subnet),
                          report_it);
    plan.is_infiniband = !record.port_guid.empty() || !record.node_guid.empty();
    if (plan.is_infiniband) {
        const auto node = rdma::parse_guid(record.node_guid), port = rdma::parse_guid(record.port_guid);
        if (!node) return std::unexpected(node.error());
        if (!port) return std::unexpected(port.error());
        if (*node == 0 || *port == 0) return wrong_port(record, "a GUID of zero is nobody's", report_it);
        plan.setting.node_guid = *node;
        plan.setting.port_guid = *port;
        return plan;
    }
    const auto mac = rdma::parse_mac(record.mac);
    if (!mac) return std::unexpected(mac.error());
    if (mac->is_zero() || mac->is_group()) return wrong_port(record, record.mac + " is no MAC of a port", report_it);
    plan.setting.mac = *mac;
    plan.setting.tag = {static_cast<std::uint16_t>(record.vlan),
                        // The priority that goes with the mark, where there is a tag to carry it.
                        static_cast<std::uint8_t>(record.vlan == 0 ? 0 : record.dscp >> 3)};
    return plan;
}

std::string link_name(const FunctionRecord& record) { return fmt::format("fabric{}", record.function); }
std::string guard_name(std::int64_t function) { return fmt::format("bulkhead_f{}", function); }

}  // namespace bulkhead::agent
