#include "bulkhead/hw/rdma/rdma_system.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>

namespace bulkhead::rdma {

Result<RdmaSystem> RdmaSystem::open(const Space& space) {
    auto line = NetlinkLine::open(space, NetlinkLine::Family::rdma);
    if (!line) return std::unexpected(line.error());
    auto same = space.again();
    if (!same) return std::unexpected(same.error());
    return over(std::move(*line), std::move(*same));
}

Result<> RdmaSystem::tell(const Request& request, std::string_view what) {
    const auto answered = line_.ask(request, what);
    if (!answered) return std::unexpected(answered.error());
    return {};
}

Result<NamespaceMode> RdmaSystem::mode() {
    const auto answers = line_.ask(ask_rdma_mode(), "ask whether RDMA devices are shared between namespaces");
    if (!answers) return std::unexpected(answers.error());
    if (answers->empty()) return fail(Code::corrupt, "nothing came of RDMA's mode", "report this");
    return read_rdma_mode(answers->front());
}

Result<> RdmaSystem::make_exclusive() {
    auto now = mode();
    if (!now) return std::unexpected(now.error());
    if (*now == NamespaceMode::exclusive) return {};
    if (auto ok = tell(set_rdma_mode(NamespaceMode::exclusive), "keep RDMA devices to their namespaces"); !ok) {
        if (line_.last_error() != EBUSY) return ok;
        return fail(
            Code::conflict,
            "RDMA devices are shared by all namespaces, and the kernel changes that only while there are no others",
            "set `options ib_core netns_mode=0` in /etc/modprobe.d and boot, or start the agent before anything that "
            "makes namespaces");
    }
    now = mode();
    if (!now) return std::unexpected(now.error());
    if (*now == NamespaceMode::exclusive) return {};
    return fail(Code::unavailable, "RDMA's mode was set to exclusive and reads shared", "see dmesg");
}

Result<std::vector<RdmaDevice>> RdmaSystem::devices() {
    const auto answers = line_.ask(ask_rdma_devices(), "list the RDMA devices");
    if (!answers) return std::unexpected(answers.error());
    std::vector<RdmaDevice> all;
    for (const Bytes& answer : *answers) {
        auto device = read_rdma_device(answer);
        if (!device) return std::unexpected(device.error());
        all.push_back(std::move(*device));
    }
    return all;
}

Result<std::optional<RdmaDevice>> RdmaSystem::device(std::uint32_t index) {
    const auto all = devices();
    if (!all) return std::unexpected(all.error());
    const auto at = std::ranges::find(*all, index, &RdmaDevice::index);
    return at == all->end() ? std::nullopt : std::optional{*at};
}

Result<std::optional<RdmaDevice>> RdmaSystem::find(const std::function<std::string()>& name_now) {
    const std::string name = name_now();
    const auto all = devices();
    if (!all) return std::unexpected(all.error());
    if (name.empty() || name_now() != name) return std::nullopt;
    const auto at = std::ranges::find(*all, name, &RdmaDevice::name);
    return at == all->end() ? std::nullopt : std::optional{*at};
}

Result<std::map<std::string, std::uint64_t>> RdmaSystem::resources(const RdmaDevice& device) {
    const auto answers = line_.ask(ask_rdma_resources(device.index), "count what is in use of " + device.name);
    if (!answers) return std::unexpected(answers.error());
    if (answers->empty()) return std::map<std::string, std::uint64_t>{};
    return read_rdma_resources(answers->front());
}

Result<RdmaDevice> RdmaSystem::move(const RdmaDevice& device, RdmaSystem& to) {
    // The kernel moves a device only for whoever is in its namespace themselves: a socket of it does not do.
    if (auto ok = space_.run([&] {
            return tell(move_rdma_device(device.index, to.space_.descriptor()),
                        fmt::format("move {} to its tenant's namespace", device.name));
        });
        !ok) {
        if (line_.last_error() != EOPNOTSUPP) return std::unexpected(ok.error());
        return fail(
            Code::invalid,
            fmt::format("{} cannot be moved to its tenant's namespace: its driver does not let go of who uses it",
                        device.name),
            "a device that stays with the host is not handed out; soft-RoCE of stock kernels is one of these");
    }
    auto arrived = to.device(device.index);
    if (!arrived) return std::unexpected(arrived.error());
    if (!*arrived)
        return fail(Code::unavailable,
                    fmt::format("{} was moved to its tenant's namespace and is not there", device.name), "see dmesg");
    return **std::move(arrived);
}

Result<> RdmaSystem::add_soft_roce(const std::string& device, const std::string& netdev) {
    return tell(rdma::add_soft_roce(device, netdev), fmt::format("make the soft-RoCE device {} on {}", device, netdev));
}

Result<> RdmaSystem::remove_soft_roce(const RdmaDevice& device) {
    return tell(rdma::remove_soft_roce(device.index), "remove the soft-RoCE device " + device.name);
}

}  // namespace bulkhead::rdma
