// A kernel that knows one RDMA device, for what no kernel here has. As the real one it moves the device only for a
// sender that is in the device's namespace, wherever the sender's socket was made: found in the lab, where the agent's
// hands sit in a namespace of their own.
#include <gtest/gtest.h>
#include <rdma/rdma_netlink.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>

#include "bulkhead/hw/rdma/netlink_peer_test.hpp"
#include "bulkhead/hw/rdma/rdma_system.hpp"

namespace bulkhead::rdma {
namespace {

class KernelWithOneDevice {
public:
    explicit KernelWithOneDevice(const Space& of)
        : inode_{inode_of(of)}, peer_{[this](const Message& request, const NetlinkPeer::Say&) {
              if (request.type != RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SET)) return EINVAL;
              if (!sender_is_inside()) return ENODEV;
              was_moved = true;
              return 0;
          }} {}

    NetlinkLine line() { return peer_.line(); }
    std::atomic<bool> was_moved = false;

private:
    // Whoever asks waits for the answer, so where its thread is can be looked up.
    bool sender_is_inside() const {
        return std::ranges::any_of(std::filesystem::directory_iterator{"/proc/self/task"}, [&](const auto& task) {
            struct stat space{};
            return ::stat((task.path() / "ns/net").c_str(), &space) == 0 && space.st_ino == inode_;
        });
    }
    static ino_t inode_of(const Space& space) {
        struct stat found{};
        return ::fstat(space.descriptor(), &found) == 0 ? found.st_ino : 0;
    }

    ino_t inode_;
    NetlinkPeer peer_;
};

TEST(RdmaSystem, a_device_is_moved_from_within_its_own_namespace_whoever_asks) {
    if (::geteuid() != 0) GTEST_SKIP() << "network namespaces take root";
    auto host = Space::unnamed();
    if (!host) GTEST_SKIP() << "no network namespace: " << host.error().what;
    const auto tenants = Space::unnamed();
    ASSERT_TRUE(tenants);
    KernelWithOneDevice kernel{*host};
    RdmaSystem system = RdmaSystem::over(kernel.line(), std::move(*host));
    const auto moved = system.move({3, "mlx5_3"}, *tenants);
    EXPECT_TRUE(kernel.was_moved) << moved.error().what;
    // The kernel said yes; what it said is looked at in the tenant's namespace, where no such device came.
    EXPECT_FALSE(moved);
}

}  // namespace
}  // namespace bulkhead::rdma
