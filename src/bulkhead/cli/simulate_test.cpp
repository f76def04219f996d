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

class Simulate : public InFolder {
protected:
    Simulate() : InFolder{"simulate"} {
        write("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\na,64000,1000000,4,T4\nb,64000,1000000,4,T4\n");
        write("pods.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,4000,1000,1,1000\nq,4000,1000,1,500\n");
    }
};

TEST_F(Simulate, json_names_policies_and_percentages_and_repeats_itself) {
    const std::vector<std::string> asked{
        "--nodes", path("nodes.csv"), "--pods", path("pods.csv"), "--policy", "all", "--seeds", "1..3", "-o", "json"};
    ASSERT_EQ(run_with(asked), done) << err_;
    const std::string once = out_;
    for (const char* policy : {"random", "bestfit", "dotprod", "packing", "fgd", "bulkhead"})
        EXPECT_THAT(once,
                    HasSubstr("\"" + std::string{policy} + "\": {\n    \"allocation_percent\": {\n      \"90\": "));
    EXPECT_THAT(once, HasSubstr("\"130\": 100.0000"));
    ASSERT_EQ(run_with(asked), done);
    EXPECT_EQ(out_, once);
}

TEST_F(Simulate, the_page_is_written_beside_the_table) {
    ASSERT_EQ(
        run_with({"--nodes", path("nodes.csv"), "--pods", path("pods.csv"), "--seeds", "1", "--out", path("p.html")}),
        done)
        << err_;
    EXPECT_THAT(out_, HasSubstr("bulkhead"));
    EXPECT_TRUE(err_.empty()) << "no progress bar in a pipe";
    std::stringstream page;
    page << std::ifstream{path("p.html")}.rdbuf();
    EXPECT_THAT(page.str(), HasSubstr("<svg"));
}

TEST_F(Simulate, mig_prints_how_many_requests_each_serves_at_each_load) {
    const std::vector<std::string> asked{"--mig",   "a30-24gb", "--gpus",   "4",
                                         "--seeds", "1..2",     "--expect", "1g.6gb=3,2g.12gb=2,4g.24gb=1"};
    ASSERT_EQ(run_with(asked), done) << err_;
    EXPECT_THAT(out_, HasSubstr("first-fit    requests"));
    EXPECT_THAT(out_, HasSubstr("packed anew  slices"));
    std::vector<std::string> as_json = asked;
    as_json.insert(as_json.end(), {"-o", "json"});
    ASSERT_EQ(run_with(as_json), done) << err_;
    EXPECT_THAT(out_, HasSubstr("\"bulkhead\": {\n    \"requests_percent\": {\n      \"80\": "));
    EXPECT_EQ(run_with({"--mig", "a31"}), could_not);
    EXPECT_EQ(run_with({"--mig", "a30-24gb", "--expect", "9g.1gb=1"}), bad_input);
    EXPECT_EQ(run_with({"--mig", "a30-24gb", "--gpus", "0"}), bad_input);
    EXPECT_EQ(run_with({"--mig", "a30-24gb", "--jobs", "7"}), bad_input);
    EXPECT_THAT(err_, HasSubstr("--jobs does not go with --mig"));
}

TEST_F(Simulate, what_is_wrong_is_said_and_nothing_is_written) {
    EXPECT_EQ(run_with({"--nodes", path("nowhere.csv"), "--pods", path("pods.csv")}), could_not);
    EXPECT_THAT(err_, HasSubstr("nowhere.csv cannot be read"));
    EXPECT_EQ(run_with({"--nodes", path("pods.csv"), "--pods", path("pods.csv")}), bad_input);
    EXPECT_THAT(err_, HasSubstr("pods.csv:1: there is no column sn"));
    EXPECT_EQ(run_with({"--nodes", path("nodes.csv"), "--pods", path("nodes.csv"), "--out", path("p.html")}),
              bad_input);
    EXPECT_FALSE(std::filesystem::exists(path("p.html")));
    EXPECT_EQ(run_with({"--nodes", path("nodes.csv"), "--pods", path("pods.csv"), "--seeds", "9..1"}), bad_input);
    EXPECT_THAT(err_, HasSubstr("\"9..1\" is not a range of seeds"));
    EXPECT_EQ(run_with({"--nodes", path("nodes.csv"), "--pods", path("pods.csv"), "--policy", "best"}), bad_input);
    EXPECT_EQ(run_with({"--nodes", folder_.string(), "--pods", path("pods.csv")}), could_not);
    EXPECT_THAT(err_, HasSubstr("it is not a file"));
    EXPECT_EQ(run_with({"--nodes", path("nodes.csv"), "--pods", path("pods.csv"), "--pods", path("pods.csv")}),
              bad_input);
    EXPECT_EQ(run_with({"--nodes", path("nodes.csv"), "--pods", path("pods.csv"), "--seeds", "18446744073709551615"}),
              done);
    EXPECT_EQ(
        run_with({"--nodes", path("nodes.csv"), "--pods", path("pods.csv"), "--seeds", "1", "--out", "/nowhere/p"}),
        could_not);
}

TEST_F(Simulate, a_trace_is_replayed_under_both_policies_side_by_side) {
    write("jobs.csv", "num_gpu,submit_time,duration,priority\n4,0,100000,0\n8,10000,50000,0\n4,20000,20000,0\n");
    const std::vector<std::string> asked{"--trace", path("jobs.csv"), "--gpus", "8", "--out", path("q.html")};
    ASSERT_EQ(run_with(asked), done) << err_;
    EXPECT_TRUE(err_.empty()) << "no progress bar in a pipe";
    EXPECT_THAT(out_, ::testing::ContainsRegex("fifo +bulkhead"));
    EXPECT_THAT(out_, ::testing::ContainsRegex("utilisation +64\\.71% +73\\.33%"));
    const std::string once = out_;
    std::stringstream page;
    page << std::ifstream{path("q.html")}.rdbuf();
    EXPECT_THAT(page.str(), HasSubstr("GPUs in use, over days"));
    ASSERT_EQ(run_with(asked), done);
    EXPECT_EQ(out_, once);
    ASSERT_EQ(run_with({"--trace", path("jobs.csv"), "--gpus", "8", "--tenants", "2", "--wipe", "5s", "--policy",
                        "fifo", "-o", "json", "--timing"}),
              done)
        << err_;
    EXPECT_THAT(out_, HasSubstr("\"makespan_s\": 180.000"));
    EXPECT_THAT(out_, ::testing::Not(HasSubstr("\"bulkhead\"")));
    EXPECT_THAT(err_, HasSubstr("fifo: ")) << "how long it took is no part of the answer";
}

TEST_F(Simulate, a_mix_is_replayed_at_the_size_asked_for) {
    write("mix.yaml",
          "kind: FleetMix\nnodes:\n  - {model: h100-80gb-sxm5, cpu: 192, memory: 2Ti}\n"
          "jobs:\n  - {gpus: 1, cpu: [8], memory: [64Gi]}\n");
    ASSERT_EQ(run_with({"--mix", path("mix.yaml"), "--nodes", "3", "--jobs", "50", "--seed", "4", "-o", "json"}), done)
        << err_;
    EXPECT_THAT(out_, HasSubstr("\"jobs\": 50,"));
    const std::string once = out_;
    ASSERT_EQ(run_with({"--mix", path("mix.yaml"), "--nodes", "3", "--jobs", "50", "--seed", "5", "-o", "json"}), done);
    EXPECT_NE(out_, once) << "another seed is another run";
    EXPECT_EQ(run_with({"--mix", path("mix.yaml"), "--nodes", "many"}), bad_input);
    EXPECT_THAT(err_, HasSubstr("--nodes many is not a number"));
    EXPECT_EQ(run_with({"--mix", path("pods.csv"), "--nodes", "3"}), bad_input);
}

TEST_F(Simulate, experiments_are_not_mixed) {
    write("jobs.csv", "num_gpu,submit_time,duration\n4,0,100000\n");
    const struct {
        std::vector<std::string> arguments;
        std::string_view says;
    } rows[] = {
        {{}, "there is nothing to simulate"},
        {{"--nodes", path("nodes.csv")}, "there is nothing to simulate"},
        {{"--pods", path("pods.csv")}, "--pods is given, and no nodes to put them on"},
        {{"--trace", path("jobs.csv"), "--pods", path("pods.csv")}, "--pods and --trace are different experiments"},
        {{"--trace", path("jobs.csv"), "--nodes", path("nodes.csv")}, "--nodes does not go with --trace"},
        {{"--trace", path("jobs.csv"), "--seeds", "1..2"}, "--seeds does not go with --trace"},
        {{"--nodes", path("nodes.csv"), "--pods", path("pods.csv"), "--gpus", "8"}, "--gpus does not go with --pods"},
        {{"--trace", path("jobs.csv"), "--policy", "fgd"}, "--trace has no policy \"fgd\""},
        {{"--nodes", path("nodes.csv"), "--pods", path("pods.csv"), "--policy", "fifo"},
         "--pods has no policy \"fifo\""},
        {{"--trace", path("jobs.csv"), "--gpus", "2"}, "job 1 asks for 4 GPUs, and the fleet has 2"},
        {{"--trace", path("jobs.csv"), "--wipe", "2d"}, "a wipe cannot take 2d"},
        {{"--trace", path("pods.csv")}, "pods.csv:1: there is no column submit_time"},
    };
    for (const auto& row : rows) {
        EXPECT_EQ(run_with(row.arguments), bad_input) << row.says;
        EXPECT_THAT(err_, HasSubstr(row.says));
        EXPECT_THAT(err_, HasSubstr("try:")) << row.says;
    }
}

}  // namespace
}  // namespace bulkhead::cli
