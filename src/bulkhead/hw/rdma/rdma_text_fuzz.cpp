// Texts of sysfs, cgroups and nft, and the addresses of an order: read or refused, and what was read prints the same.
#include <cstddef>
#include <cstdint>

#include "bulkhead/hw/rdma/gid_table.hpp"
#include "bulkhead/hw/rdma/guard.hpp"
#include "bulkhead/hw/rdma/pci_functions.hpp"
#include "bulkhead/hw/rdma/rdma_limits.hpp"

using namespace bulkhead;
using namespace bulkhead::rdma;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    if (const auto mac = parse_mac(text)) invariant(parse_mac(print(*mac)) == *mac, "a MAC prints as itself");
    if (const auto guid = parse_guid(text)) invariant(parse_guid(print_guid(*guid)) == *guid, "so does a GUID");
    if (const auto gid = parse_gid(text)) invariant(parse_gid(print(*gid)) == *gid, "and a GID");
    if (const auto prefix = parse_prefix(text)) invariant(parse_prefix(print(*prefix)) == *prefix, "and an address");
    if (is_pci_address(text)) invariant(!text.contains('/') && text.size() == 12, "a PCI address is no path");
    if (const auto limits = parse_rdma_limits(text))
        for (const auto& [device, limit] : *limits)
            invariant(parse_rdma_limits(print_rdma_limit(device, limit))->at(device) == limit, "and a limit");
    (void)parse_active(text);
    (void)parse_pkey(text);
    (void)parse_gid_type(text);
    (void)read_counters(text);
    const Guard guard{.table = "t", .device = "d", .mac = {{2, 0, 0, 0, 0, 1}}};
    invariant(!differs_from(guard, {std::string{text}, std::string{text}}).empty() || size > 200,
              "a few bytes are no guard");
    return 0;
}
