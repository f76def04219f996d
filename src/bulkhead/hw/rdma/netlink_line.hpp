// A netlink socket in a namespace of one's choice: ask, and get every answer or the kernel's refusal.
#pragma once

#include <functional>
#include <string_view>

#include "bulkhead/hw/rdma/netlink_message.hpp"
#include "bulkhead/hw/rdma/space.hpp"

namespace bulkhead::rdma {

class NetlinkLine {
public:
    enum class Family { route, rdma };
    // The socket stays in that namespace, whoever uses it later.
    static Result<NetlinkLine> open(const Space& space, Family family);
    // In the caller's own: for whoever may not enter any, not even the one it is in.
    static Result<NetlinkLine> open_here(Family family);
    // A socket that is connected already, to whoever speaks netlink on the other side.
    static NetlinkLine over(Descriptor socket) { return NetlinkLine{std::move(socket)}; }

    // Answers in the order they came, each as the bytes after its header; none for a request that is only acknowledged.
    // `what` is for the error: "set the VLAN of VF 3 of 0000:3b:00.0".
    Result<std::vector<Bytes>> ask(const Request& request, std::string_view what);
    // Whether the last refusal was "not supported", which some settings are on some drivers.
    int last_error() const { return last_error_; }

private:
    explicit NetlinkLine(Descriptor socket) : socket_{std::move(socket)} {}
    Descriptor socket_;
    std::uint32_t sequence_ = 0;
    int last_error_ = 0;
};

}  // namespace bulkhead::rdma
