#include "bulkhead/hw/rdma/rdma_message.hpp"

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

namespace bulkhead::rdma {

namespace {

Request of_device(std::uint16_t operation, std::uint16_t flags) {
    return Request{static_cast<std::uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, operation)), flags};
}

}  // namespace

Request ask_rdma_mode() { return of_device(RDMA_NLDEV_CMD_SYS_GET, NLM_F_ACK); }

Request set_rdma_mode(NamespaceMode mode) {
    Request request = of_device(RDMA_NLDEV_CMD_SYS_SET, NLM_F_ACK);
    request.number(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, static_cast<std::uint8_t>(mode));
    return request;
}

Request ask_rdma_devices() { return of_device(RDMA_NLDEV_CMD_GET, NLM_F_DUMP); }

Request move_rdma_device(std::uint32_t index, int space) {
    Request request = of_device(RDMA_NLDEV_CMD_SET, NLM_F_ACK);
    request.number(RDMA_NLDEV_ATTR_DEV_INDEX, index);
    request.number(RDMA_NLDEV_NET_NS_FD, static_cast<std::uint32_t>(space));
    return request;
}

Request ask_rdma_resources(std::uint32_t index) {
    Request request = of_device(RDMA_NLDEV_CMD_RES_GET, NLM_F_ACK);
    request.number(RDMA_NLDEV_ATTR_DEV_INDEX, index);
    return request;
}

Request add_soft_roce(std::string_view device, std::string_view netdev) {
    Request request = of_device(RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);
    request.text(RDMA_NLDEV_ATTR_DEV_NAME, device);
    request.text(RDMA_NLDEV_ATTR_LINK_TYPE, "rxe");
    request.text(RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
    return request;
}

Request remove_soft_roce(std::uint32_t index) {
    Request request = of_device(RDMA_NLDEV_CMD_DELLINK, NLM_F_ACK);
    request.number(RDMA_NLDEV_ATTR_DEV_INDEX, index);
    return request;
}

Result<NamespaceMode> read_rdma_mode(View answer) {
    const auto all = attributes(answer);
    if (!all) return std::unexpected(all.error());
    const Attribute* mode = find(*all, RDMA_NLDEV_SYS_ATTR_NETNS_MODE);
    const auto value = mode == nullptr ? std::nullopt : mode->as<std::uint8_t>();
    if (!value || *value > 1)
        return fail(Code::corrupt, "the kernel does not say whether RDMA devices are shared between namespaces",
                    "Linux 5.2 and later do");
    return static_cast<NamespaceMode>(*value);
}

Result<RdmaDevice> read_rdma_device(View answer) {
    const auto all = attributes(answer);
    if (!all) return std::unexpected(all.error());
    const Attribute *index = find(*all, RDMA_NLDEV_ATTR_DEV_INDEX), *name = find(*all, RDMA_NLDEV_ATTR_DEV_NAME);
    const auto number = index == nullptr ? std::nullopt : index->as<std::uint32_t>();
    if (!number || name == nullptr || name->as_text().empty())
        return fail(Code::corrupt, "an RDMA device without an index or a name", "report this");
    return RdmaDevice{*number, name->as_text()};
}

Result<std::map<std::string, std::uint64_t>> read_rdma_resources(View answer) {
    const auto all = attributes(answer);
    if (!all) return std::unexpected(all.error());
    std::map<std::string, std::uint64_t> counts;
    const Attribute* summary = find(*all, RDMA_NLDEV_ATTR_RES_SUMMARY);
    if (summary == nullptr) return counts;
    const auto entries = attributes(summary->value);
    if (!entries) return std::unexpected(entries.error());
    for (const Attribute& entry : *entries) {
        const auto fields = attributes(entry.value);
        if (!fields) return std::unexpected(fields.error());
        const Attribute *name = find(*fields, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME),
                        *count = find(*fields, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR);
        if (name == nullptr || count == nullptr) continue;
        counts[name->as_text()] = count->as<std::uint64_t>().value_or(0);
    }
    return counts;
}

}  // namespace bulkhead::rdma
