#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "bulkhead/cli/said_test.hpp"

namespace bulkhead::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Bench : public InFolder {
protected:
    Bench() : InFolder{"bench"} {
        write("good.yaml",
              "kind: FleetMix\n"
              "full: 0.7\n"
              "tenants: {departments: 2, teams: 4, domainOf: 4, idle: 25}\n"
              "nodes: [{model: h100-80gb-sxm5, cpu: 192, memory: 2Ti}]\n"
              "jobs: [{gpus: 1, cpu: [8]}, {fraction: [0.5], cpu: [2]}]\n");
    }
};

TEST_F(Bench, json_has_every_figure_that_others_read) {
    ASSERT_EQ(run_with({"scheduler", "--nodes", "200", "--mix", path("good.yaml"), "--decisions", "500", "--rounds",
                        "4", "-o", "json"}),
              done)
        << err_;
    for (const char* key :
         {"decisions_per_second", "p50_us", "p99_us", "gang512_p99_us", "reclaim_p99_us", "unschedulable_p99_us",
          "distinct_states", "bytes_per_node", "bytes_per_job", "process_bytes_per_job", "jobs", "full", "cpu_seconds"})
        EXPECT_THAT(out_, HasSubstr("\"" + std::string{key} + "\": ")) << key;
    EXPECT_THAT(out_, HasSubstr("\"nodes\": 200"));
    EXPECT_THAT(out_, HasSubstr("\"decisions\": 500"));
    EXPECT_TRUE(err_.empty()) << "no progress in a pipe: " << err_;
}

TEST_F(Bench, the_table_says_what_each_figure_is_and_what_could_not_be_asked) {
    ASSERT_EQ(run_with({"scheduler", "--nodes", "8", "--mix", path("good.yaml"), "--decisions", "100"}), done) << err_;
    EXPECT_THAT(out_, HasSubstr("8 nodes, 64 GPUs"));
    EXPECT_THAT(out_, HasSubstr("decisions_per_second"));
    EXPECT_THAT(out_, HasSubstr("this mix has no way to ask")) << "eight nodes have no room for a gang of 64";
}

TEST_F(Bench, what_is_wrong_is_said) {
    EXPECT_EQ(run_with({"scheduler", "--nodes", "8", "--mix", path("nowhere.yaml")}), could_not);
    EXPECT_THAT(err_, HasSubstr("nowhere.yaml: cannot be read"));
    write("bad.yaml", "kind: FleetMix\nnodes: []\njobs: []\n");
    EXPECT_EQ(run_with({"scheduler", "--nodes", "8", "--mix", path("bad.yaml")}), bad_input);
    EXPECT_THAT(err_, HasSubstr("bad.yaml:2:8: nodes has nothing with a weight above 0"));
    EXPECT_EQ(run_with({"scheduler", "--nodes", "0", "--mix", path("good.yaml")}), bad_input);
    EXPECT_THAT(err_, HasSubstr("a fleet of 0 nodes"));
    EXPECT_EQ(run_with({"scheduler", "--mix", path("good.yaml")}), bad_input) << "--nodes is missing";
    EXPECT_EQ(run_with({}), bad_input) << "bench what?";
    EXPECT_THAT(out_, Not(HasSubstr("decisions_per_second")));
}

}  // namespace
}  // namespace bulkhead::cli
