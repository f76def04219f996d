// RDMA devices of one namespace through RDMA netlink: whose they are, and moving them to a tenant. Only in exclusive
// mode does a namespace fence anything: in shared mode, the kernel's default, everybody opens every device.
//
// A device keeps its index for as long as it lives, and not its name: on most hosts udev calls it otherwise some
// milliseconds after its driver has made it, and the next device may then get the name it had. So a name is good for
// finding the index once (`find`), and whoever needs the name asks for it last (`device`).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/hw/rdma/netlink_line.hpp"
#include "bulkhead/hw/rdma/rdma_message.hpp"

namespace bulkhead::rdma {

class RdmaSystem {
public:
    // `unavailable` or `invalid` on a kernel without RDMA.
    static Result<RdmaSystem> open(const Space& space);
    // Over a socket of that namespace that is connected already.
    static RdmaSystem over(NetlinkLine line, Space space) { return {std::move(line), std::move(space)}; }

    Result<NamespaceMode> mode();
    // Exclusive already is fine. With devices and other namespaces about the kernel refuses: then it is set at boot.
    Result<> make_exclusive();
    Result<std::vector<RdmaDevice>> devices();
    Result<std::map<std::string, std::uint64_t>> resources(const RdmaDevice& device);
    Result<std::optional<RdmaDevice>> device(std::uint32_t index);  // as it is called now; nothing: it is not here
    // The one that sysfs calls `name_now()`, asked before and after: a list from between two names may show another
    // device under the first. Nothing: it is not here, or was renamed meanwhile; ask again.
    Result<std::optional<RdmaDevice>> find(const std::function<std::string()>& name_now);
    // To another namespace. As it is called there.
    Result<RdmaDevice> move(const RdmaDevice& device, RdmaSystem& to);
    Result<> add_soft_roce(const std::string& device, const std::string& netdev);
    Result<> remove_soft_roce(const RdmaDevice& device);

private:
    RdmaSystem(NetlinkLine line, Space space) : line_{std::move(line)}, space_{std::move(space)} {}
    Result<> tell(const Request& request, std::string_view what);
    NetlinkLine line_;
    Space space_;
};

}  // namespace bulkhead::rdma
