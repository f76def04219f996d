// A kernel that knows one RDMA device, for what no kernel here has. As the real one it moves the device only for a
// sender that is in the device's namespace, wherever the sender's socket was made: found in the lab, where the agent's
// hands sit in a namespace of their own.
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "bulkhead/hw/rdma/rdma_system.hpp"

namespace bulkhead::rdma {
namespace {

class KernelWithOneDevice {
public:
    explicit KernelWithOneDevice(const Space& of) {
        struct stat space{};
        if (::fstat(of.descriptor(), &space) == 0) inode_ = space.st_ino;
        int ends[2] = {-1, -1};
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
        ours_ = Descriptor{ends[0]};
        theirs_ = Descriptor{ends[1]};
        thread_ = std::thread{[this] { serve(); }};
    }
    ~KernelWithOneDevice() {
        ::shutdown(*ours_, SHUT_RDWR);
        thread_.join();
    }
    KernelWithOneDevice(const KernelWithOneDevice&) = delete;
    KernelWithOneDevice& operator=(const KernelWithOneDevice&) = delete;

    NetlinkLine line() { return NetlinkLine::over(std::move(theirs_)); }
    std::atomic<bool> was_moved = false;

private:
    // Whoever asks waits for the answer, so where its thread is can be looked up.
    bool sender_is_inside() const {
        return std::ranges::any_of(std::filesystem::directory_iterator{"/proc/self/task"}, [&](const auto& task) {
            struct stat space{};
            return ::stat((task.path() / "ns/net").c_str(), &space) == 0 && space.st_ino == inode_;
        });
    }
    void serve() {
        Bytes buffer(1 << 16);
        for (;;) {
            const ssize_t got = ::recv(*ours_, buffer.data(), buffer.size(), 0);
            if (got <= 0) return;
            const auto all = messages(View{buffer}.first(static_cast<std::size_t>(got)));
            if (!all || all->empty()) return;
            const bool is_move = all->front().type == RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SET);
            const int error = !is_move ? EINVAL : sender_is_inside() ? 0 : ENODEV;
            if (error == 0) was_moved = true;
            Request answer{NLMSG_ERROR, NLM_F_CAPPED};
            answer.put(nlmsgerr{-error, {}});
            const Bytes bytes = answer.bytes(all->front().sequence);
            (void)!::send(*ours_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        }
    }

    ino_t inode_ = 0;
    Descriptor ours_, theirs_;
    std::thread thread_;
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
