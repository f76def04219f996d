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
#include <optional>
#include <string>
#include <vector>

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

// A namespace's list of devices, each time that it is asked for the next one; the last from then on.
class ListedDevices {
public:
    NetlinkLine line() { return peer_.line(); }
    std::vector<std::vector<RdmaDevice>> lists = {{}};

private:
    int tell(const Message& request, const NetlinkPeer::Say& say) {
        if (request.type != RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET)) return EINVAL;
        for (const RdmaDevice& device : lists[std::min(asked_++, lists.size() - 1)]) {
            Request one{request.type, 0};
            one.number(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
            one.text(RDMA_NLDEV_ATTR_DEV_NAME, device.name);
            say(one);
        }
        return 0;
    }
    std::size_t asked_ = 0;
    NetlinkPeer peer_{[this](const Message& request, const NetlinkPeer::Say& say) { return tell(request, say); }};
};

TEST(RdmaSystem, a_device_is_moved_from_within_its_own_namespace_whoever_asks) {
    if (::geteuid() != 0) GTEST_SKIP() << "network namespaces take root";
    auto host = Space::unnamed();
    if (!host) GTEST_SKIP() << "no network namespace: " << host.error().what;
    auto tenants = Space::unnamed();
    ASSERT_TRUE(tenants);
    KernelWithOneDevice kernel{*host};
    RdmaSystem system = RdmaSystem::over(kernel.line(), std::move(*host));
    ListedDevices none;
    RdmaSystem theirs = RdmaSystem::over(none.line(), std::move(*tenants));
    const auto moved = system.move({3, "mlx5_3"}, theirs);
    EXPECT_TRUE(kernel.was_moved);
    // The kernel said yes; what it said is looked at in the tenant's namespace, where no such device came.
    ASSERT_FALSE(moved);
    EXPECT_EQ(moved.error().what, "mlx5_3 was moved to its tenant's namespace and is not there");
}

// Its driver makes mlx5_2, and udev calls it rocep59s0f0v1 at whatever moment.
TEST(RdmaSystem, a_device_that_udev_renames_on_the_way_arrives_by_its_index) {
    if (::geteuid() != 0) GTEST_SKIP() << "network namespaces take root";
    auto host = Space::unnamed(), tenants = Space::unnamed();
    if (!host || !tenants) GTEST_SKIP() << "no network namespace";
    KernelWithOneDevice kernel{*host};
    ListedDevices arrived;
    arrived.lists = {{{7, "rocep59s0f0v1"}}};
    RdmaSystem ours = RdmaSystem::over(kernel.line(), std::move(*host)),
               theirs = RdmaSystem::over(arrived.line(), std::move(*tenants));
    const auto moved = ours.move({7, "mlx5_2"}, theirs);
    ASSERT_TRUE(moved) << moved.error().what;
    EXPECT_EQ(*moved, (RdmaDevice{7, "rocep59s0f0v1"}));
}

// What sysfs says and what netlink lists are two looks, and anything may happen between them.
TEST(RdmaSystem, a_device_is_found_by_a_name_only_while_it_keeps_it) {
    auto space = Space::own();
    ASSERT_TRUE(space) << space.error().what;
    using List = std::vector<RdmaDevice>;
    const RdmaDevice before{7, "mlx5_2"}, after{7, "rocep59s0f0v1"}, stranger{8, "mlx5_2"};
    struct Row {
        const char* says;
        std::vector<std::string> names;  // as sysfs says them, the last from then on
        std::vector<List> lists;         // as netlink tells them
        std::vector<std::optional<std::uint32_t>> found;
    };
    const Row rows[] = {
        {"nobody renames it", {"mlx5_2"}, {{before}}, {7}},
        {"it is not here", {"mlx5_2"}, {{}}, {std::nullopt}},
        {"it has no name yet", {"", "mlx5_2"}, {{before}}, {std::nullopt, 7}},
        {"renamed before it is listed", {"mlx5_2", "rocep59s0f0v1"}, {{after}}, {std::nullopt, 7}},
        {"renamed after it was listed", {"mlx5_2", "rocep59s0f0v1"}, {{before}, {after}}, {std::nullopt, 7}},
        {"its old name is another's by then", {"mlx5_2", "rocep59s0f0v1"}, {{stranger, after}}, {std::nullopt, 7}},
    };
    for (const Row& row : rows) {
        ListedDevices kernel;
        kernel.lists = row.lists;
        RdmaSystem system = RdmaSystem::over(kernel.line(), *space->again());
        std::size_t asked = 0;
        const auto name_now = [&] { return row.names[std::min(asked++, row.names.size() - 1)]; };
        for (const std::optional<std::uint32_t>& wanted : row.found) {
            const auto found = system.find(name_now);
            ASSERT_TRUE(found) << row.says;
            EXPECT_EQ(*found ? std::optional{(*found)->index} : std::nullopt, wanted) << row.says;
        }
    }
}

}  // namespace
}  // namespace bulkhead::rdma
