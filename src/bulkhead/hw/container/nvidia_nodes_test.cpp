#include "bulkhead/hw/container/nvidia_nodes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace bulkhead::container {

namespace {

constexpr std::string_view proc_devices_text =
    "Character devices:\n  1 mem\n  4 tty\n  4 /dev/vc/0\n195 nvidia\n195 nvidiactl\n234 nvidia-caps\n507 nvidia-uvm\n"
    "\nBlock devices:\n  7 loop\n259 blkext\n";
constexpr std::string_view mig_minors_text =
    "config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu0/gi0/ci0/access 4\ngpu1/gi3/access 165\ngpu1/gi3/ci0/access 166\n"
    "gpu1/gi3/ci1/access 167\n";

NvidiaNumbers numbers_here() {
    return {parse_device_majors(proc_devices_text).value(), parse_mig_minors(mig_minors_text).value()};
}

std::vector<std::string> paths_of(std::vector<LeasedGpu> gpus) {
    std::vector<std::string> paths;
    const std::vector<DeviceNode> nodes = nvidia_nodes(gpus, numbers_here()).value();
    for (const DeviceNode& node : nodes) paths.push_back(node.path);
    return paths;
}

TEST(NvidiaNodes, a_lease_gets_its_own_and_no_others) {
    struct Row {
        std::string_view says;
        std::vector<LeasedGpu> gpus;
        std::vector<std::string> paths;
    };
    const std::string ctl = "/dev/nvidiactl", uvm = "/dev/nvidia-uvm", caps = "/dev/nvidia-caps/nvidia-cap";
    const Row rows[] = {
        {"no GPU, no node, not even the control node", {}, {}},
        {"a whole GPU", {{2, {}}}, {uvm, "/dev/nvidia2", ctl}},
        {"two whole GPUs", {{0, {}}, {7, {}}}, {uvm, "/dev/nvidia0", "/dev/nvidia7", ctl}},
        {"a MIG instance adds its two capabilities",
         {{1, LeasedGpu::Mig{3, 1}}},
         {caps + "165", caps + "167", uvm, "/dev/nvidia1", ctl}},
        {"two compute instances share the GPU instance's",
         {{1, LeasedGpu::Mig{3, 0}}, {1, LeasedGpu::Mig{3, 1}}},
         {caps + "165", caps + "166", caps + "167", uvm, "/dev/nvidia1", ctl}},
    };
    for (const Row& row : rows) EXPECT_EQ(paths_of(row.gpus), row.paths) << row.says;
}

TEST(NvidiaNodes, numbers_are_the_kernels) {
    const auto nodes = nvidia_nodes(std::vector{LeasedGpu{1, LeasedGpu::Mig{3, 0}}}, numbers_here()).value();
    const std::vector<DeviceNode> expected{{"/dev/nvidia-caps/nvidia-cap165", 'c', 234, 165},
                                           {"/dev/nvidia-caps/nvidia-cap166", 'c', 234, 166},
                                           {"/dev/nvidia-uvm", 'c', 507, 0},
                                           {"/dev/nvidia1", 'c', 195, 1},
                                           {"/dev/nvidiactl", 'c', 195, 255}};
    auto sorted = nodes;
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, expected);
}

TEST(NvidiaNodes, what_is_not_there_is_refused_by_name) {
    struct Row {
        std::string_view says;
        LeasedGpu gpu;
        std::string_view devices, minors, word;
    };
    const Row rows[] = {
        {"no driver", {0, {}}, "Character devices:\n  1 mem\n", "", "no entry nvidia"},
        {"no unified memory module", {0, {}}, "Character devices:\n195 nvidia\n", "", "nvidia-uvm"},
        {"no capability devices",
         {0, LeasedGpu::Mig{0, 0}},
         "Character devices:\n195 nvidia\n507 nvidia-uvm\n",
         "",
         "nvidia-caps"},
        {"no such instance", {0, LeasedGpu::Mig{9, 0}}, proc_devices_text, mig_minors_text, "gpu0/gi9"},
        {"no such compute instance", {0, LeasedGpu::Mig{0, 5}}, proc_devices_text, mig_minors_text, "gpu0/gi0/ci5"},
        {"a minor that is the control node's", {255, {}}, proc_devices_text, mig_minors_text, "255"},
    };
    for (const Row& row : rows) {
        const auto nodes = nvidia_nodes(
            std::span{&row.gpu, 1}, {parse_device_majors(row.devices).value(), parse_mig_minors(row.minors).value()});
        ASSERT_FALSE(nodes) << row.says;
        EXPECT_TRUE(nodes.error().what.contains(row.word)) << nodes.error().what;
        EXPECT_FALSE(nodes.error().remedy.empty());
    }
}

TEST(DeviceMajorsText, is_read_strictly) {
    for (const std::string_view bad :
         {"  1 mem\n", "Character devices:\n1mem\n", "Character devices:\n4096 x\n", "Character devices:\nx y\n",
          "Character devices:\n1 \n", "Character devices:\n1\n", "Character devices:\n-1 x\n", "\0\0"})
        EXPECT_FALSE(parse_device_majors(bad) && !bad.empty()) << bad;
    EXPECT_TRUE(parse_device_majors("")->characters.empty());
    EXPECT_EQ(parse_device_majors(proc_devices_text)->characters.at("tty"), 4u);
    EXPECT_EQ(parse_device_majors(proc_devices_text)->blocks.at("blkext"), 259u);
}

TEST(MigMinorsText, is_read_strictly) {
    for (const std::string_view bad : {"gpu0/gi0/access\n", "gpu0/gi0/access x\n", "gpu0/gi0/access 3 \n",
                                       "gpu/gi0/access 3\n", "gpu0/gi0/ci/access 3\n", "gpu0/gi0/access 9999999\n",
                                       "gpu0/gi0/access 3\ngpu0/gi0/access 4\n", "config\n", "other 3\n"})
        EXPECT_FALSE(parse_mig_minors(bad)) << bad;
    EXPECT_EQ(parse_mig_minors(mig_minors_text)->config, 1u);
    EXPECT_EQ(parse_mig_minors(mig_minors_text)->access.size(), 5u);
}

}  // namespace

}  // namespace bulkhead::container
