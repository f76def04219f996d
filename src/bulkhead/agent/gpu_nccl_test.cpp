#include "bulkhead/agent/gpu_nccl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "bulkhead/node/model.hpp"

namespace bulkhead::agent {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

class NcclFiles : public testing::Test {
protected:
    NcclFiles() { std::filesystem::create_directories(folder); }
    ~NcclFiles() override { std::filesystem::remove_all(folder); }
    std::string folder = testing::TempDir() + "nccl-" + std::to_string(::getpid());
    GpuNodeStatus node = NodeModel{{.node = "n0", .gpus = 8, .functions = 8}}.inventory();
    StartTenant start{.lease = 7,
                      .tier = Tier::container,
                      .gpus = {{.gpu = 1}, {.gpu = 2}},
                      .drives = {},
                      .functions = {1},
                      .tenant = "acme",
                      .mechanism = {},
                      .program = {},
                      .ports = {{.function = 1,
                                 .mac = "02:42:0a:80:10:05",
                                 .vlan = 100,
                                 .address = "10.128.16.5/20",
                                 .subnet = "10.128.16.0/20",
                                 .node_guid = {},
                                 .port_guid = {}}}};
};

TEST_F(NcclFiles, a_tenants_program_finds_the_file_that_its_variable_names) {
    const auto view = show_nccl(folder, node, start, 3);
    ASSERT_TRUE(view) << view.error().what;
    EXPECT_THAT(view->environment, Contains(Pair("NCCL_IB_HCA", "=mlx5_9:1")));
    EXPECT_THAT(view->environment, Contains(Pair("NCCL_IB_ADDR_RANGE", "10.128.16.0/20")));
    EXPECT_THAT(view->environment, Contains(Pair("NCCL_IB_GID_INDEX", "3")));
    ASSERT_EQ(view->mounts.size(), 1u);
    std::string path;
    for (const auto& [name, value] : view->environment)
        if (name == "NCCL_TOPO_FILE") path = value;
    ASSERT_TRUE(path.starts_with(view->mounts[0].target + "/")) << path;
    const std::string here = view->mounts[0].source + path.substr(view->mounts[0].target.size());
    std::ifstream file{here};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    EXPECT_THAT(text, HasSubstr("mlx5_9"));
    EXPECT_THAT(text, HasSubstr(node.topology[1].bus));
    EXPECT_THAT(text, testing::Not(HasSubstr(node.topology[0].bus))) << "somebody else's";
    struct stat found{};
    ASSERT_EQ(::stat(here.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0644u) << "the tenant is not root";
    forget_nccl(folder, start.lease);
    EXPECT_FALSE(std::filesystem::exists(here));
}

TEST_F(NcclFiles, a_lease_without_functions_is_told_nothing) {
    start.functions.clear();
    start.ports.clear();
    const auto view = show_nccl(folder, node, start, std::nullopt);
    ASSERT_TRUE(view) << view.error().what;
    EXPECT_TRUE(view->environment.empty());
    EXPECT_TRUE(view->mounts.empty());
}

TEST_F(NcclFiles, what_cannot_be_drawn_is_left_to_nccl_and_the_work_starts) {
    node.topology.clear();  // nobody says where the GPUs sit
    const auto view = show_nccl(folder, node, start, 3);
    ASSERT_TRUE(view) << view.error().what;
    EXPECT_THAT(view->environment, Contains(Pair("NCCL_IB_HCA", "=mlx5_9:1")));
    EXPECT_THAT(view->environment, testing::Not(Contains(Pair("NCCL_TOPO_FILE", testing::_))));
    EXPECT_TRUE(view->mounts.empty());
}

TEST_F(NcclFiles, a_function_nobody_can_name_starts_nobody) {
    node.functions[1].device.clear();
    const auto view = show_nccl(folder, node, start, std::nullopt);
    ASSERT_FALSE(view);
    EXPECT_THAT(view.error().what, HasSubstr("vf1"));
}

}  // namespace
}  // namespace bulkhead::agent
