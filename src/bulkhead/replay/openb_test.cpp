#include "bulkhead/replay/openb.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bulkhead::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view two_nodes =
    "sn,cpu_milli,memory_mib,gpu,model\n"
    "b,64000,262144,2,P100\n"
    "a,96000,393216,8,G2\n";

TEST(Openb, nodes_come_in_the_order_of_their_names) {
    const auto fleet = read_openb_nodes("nodes.csv", two_nodes);
    ASSERT_TRUE(fleet) << fleet.error().what;
    EXPECT_THAT(fleet->names, ElementsAre("a", "b"));
    EXPECT_EQ(fleet->nodes[0].gpus, 8);
    EXPECT_EQ(fleet->nodes[0].cpu, 96'000);
    EXPECT_EQ(fleet->models[fleet->nodes[1].model], "P100");
    EXPECT_EQ(fleet->capacity(), 10'000);
}

TEST(Openb, equal_tasks_are_one_shape) {
    const auto fleet = read_openb_nodes("nodes.csv", two_nodes);
    const auto trace = read_openb_tasks("pods.csv",
                                        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\r\n"
                                        "p0,12000,16384,1,460,,LS\r\n"
                                        "p1,12000,16384,1,460,,LS\r\n"
                                        "p2,4000,8192,2,1000,P100|V100,LS\r\n"
                                        "p3,4000,8192,0,0,,BE\r\n",
                                        *fleet);
    ASSERT_TRUE(trace) << trace.error().what;
    EXPECT_THAT(trace->tasks, ElementsAre(0, 0, 1, 2));
    EXPECT_EQ(trace->shapes[0].models, ~0u);
    EXPECT_EQ(trace->shapes[1].models, 1u) << "the first model of the file; V100 is nowhere";
    EXPECT_EQ(trace->shapes[1].demand(), 2000);
    EXPECT_EQ(trace->shapes[2].demand(), 0);
}

TEST(Openb, the_column_of_models_may_be_missing) {
    const auto fleet = read_openb_nodes("nodes.csv", two_nodes);
    const auto trace =
        read_openb_tasks("pods.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,1000\n", *fleet);
    ASSERT_TRUE(trace) << trace.error().what;
    EXPECT_EQ(trace->shapes[0].models, ~0u);
}

TEST(Openb, what_is_wrong_is_named_with_its_line) {
    const struct {
        std::string_view text, says;
    } nodes[] = {
        {"", "nodes.csv is empty"},
        {"sn,cpu_milli\n", "nodes.csv:1: there is no column memory_mib"},
        {"sn,cpu_milli,memory_mib,gpu,model\na,many,1,1,T4\n", "nodes.csv:2: cpu_milli is \"many\""},
        {"sn,cpu_milli,memory_mib,gpu,model\n\na,1,1,17,T4\n", "nodes.csv:3: gpu is \"17\""},
        {"sn,cpu_milli,memory_mib,gpu,model\na,1,1,-1,T4\n", "nodes.csv:2: gpu is \"-1\""},
        {"sn,cpu_milli,memory_mib,gpu,model\na,1\n", "nodes.csv:2: memory_mib is \"\""},
        {"sn,cpu_milli,memory_mib,gpu,model\na,1,1,1,T4\na,1,1,1,T4\n", "nodes.csv:3: node \"a\" is there twice"},
        {"sn,cpu_milli,memory_mib,gpu,model\na,1,1,0,\n", "nodes.csv has no GPUs"},
    };
    for (const auto& row : nodes) {
        const auto fleet = read_openb_nodes("nodes.csv", row.text);
        ASSERT_FALSE(fleet) << row.text;
        EXPECT_THAT(fleet.error().what, HasSubstr(row.says));
        EXPECT_FALSE(fleet.error().remedy.empty());
    }
    const auto fleet = read_openb_nodes("nodes.csv", two_nodes);
    const struct {
        std::string_view text, says;
    } pods[] = {
        {"cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1,0\n", "pods.csv:2: one GPU is asked for, and nothing of it"},
        {"cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1,1001\n", "pods.csv:2: gpu_milli is \"1001\""},
        {"cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,0,0\n", "no task of pods.csv asks for a GPU"},
    };
    for (const auto& row : pods) {
        const auto trace = read_openb_tasks("pods.csv", row.text, *fleet);
        ASSERT_FALSE(trace) << row.text;
        EXPECT_THAT(trace.error().what, HasSubstr(row.says));
    }
}

}  // namespace
}  // namespace bulkhead::replay
