// RDMA devices of one namespace through RDMA netlink: whose they are, and moving them to a tenant. Only in exclusive
// mode does a namespace fence anything: in shared mode, the kernel's default, everybody opens every device.
#pragma once

#include <map>
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
    Result<> move(const RdmaDevice& device, const Space& to);
    Result<> add_soft_roce(const std::string& device, const std::string& netdev);
    Result<> remove_soft_roce(const RdmaDevice& device);

private:
    RdmaSystem(NetlinkLine line, Space space) : line_{std::move(line)}, space_{std::move(space)} {}
    Result<> tell(const Request& request, std::string_view what);
    NetlinkLine line_;
    Space space_;
};

}  // namespace bulkhead::rdma
