#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "bulkhead/cli/command.hpp"

namespace bulkhead::cli {
namespace {

using ::testing::HasSubstr;

class Simulate : public ::testing::Test {
protected:
    void SetUp() override {
        std::filesystem::create_directories(folder_);
        write("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\na,64000,1000000,4,T4\nb,64000,1000000,4,T4\n");
        write("pods.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,4000,1000,1,1000\nq,4000,1000,1,500\n");
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    void write(const std::string& name, std::string_view text) { std::ofstream{path(name)} << text; }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }

    int run_with(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"bulkhead", "simulate"});
        std::vector<const char*> raw;
        for (const std::string& argument : arguments) raw.push_back(argument.c_str());
        std::ostringstream out, err;
        const int status = run(static_cast<int>(raw.size()), raw.data(), out, err, false);
        out_ = out.str();
        err_ = err.str();
        return status;
    }

    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("bulkhead-simulate-" + std::to_string(getpid()));
    std::string out_, err_;
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

}  // namespace
}  // namespace bulkhead::cli
