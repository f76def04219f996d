// Two ends that are ours, as two tenants would have them, and the fence between them: what `selftest fabric` plays the
// attacker on. They are two virtual functions of a NIC, or, without one, the ends of two cables in a bridge, all in
// namespaces of our own that end with us.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bulkhead/agent/fabric_fence.hpp"
#include "bulkhead/agent/functions.hpp"
#include "bulkhead/hw/rdma/addresses.hpp"
#include "bulkhead/hw/rdma/gid_table.hpp"
#include "bulkhead/hw/rdma/guard.hpp"
#include "bulkhead/hw/rdma/links.hpp"
#include "bulkhead/hw/rdma/space.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::agent {

struct RigEnd {
    rdma::Space space;
    std::string link;
    rdma::Mac mac;
    rdma::Prefix address;
    std::vector<rdma::VerbsNode> verbs;  // none: it has no RDMA device
};

struct RigGuard {
    const rdma::Space* space = nullptr;
    std::string table;
};

class FabricRig {
public:
    virtual ~FabricRig() = default;
    // Gives an end, 0 or 1, to tenant 0 or 1. Both are tenant 0's at first.
    virtual Result<> put(std::size_t end, unsigned tenant) = 0;
    virtual std::string what() const = 0;  // "veth", "0000:3b:10.0 and 0000:3b:10.1 of 0000:3b:00.0"
    virtual Grade grade() const = 0;
    virtual std::vector<RigGuard> guards() const = 0;
    virtual bool has_nic() const = 0;
    RigEnd& left() { return ends_[0]; }
    RigEnd& right() { return ends_[1]; }

protected:
    std::vector<RigEnd> ends_;
};

Result<std::unique_ptr<FabricRig>> make_veth_rig(FabricFence fence, const std::string& nft);
// Two functions, attached and let go as a lease's would be. One that has a driver is somebody's, and refused, unless a
// test that was killed has left it. The VLAN and the one after it are the two tenants'. The functions outlive it.
inline constexpr std::uint16_t default_test_vlan = 3'900;
Result<std::unique_ptr<FabricRig>> make_function_rig(FabricFence fence, Functions& functions, FunctionPair pair,
                                                     std::uint16_t vlan = default_test_vlan);

}  // namespace bulkhead::agent
