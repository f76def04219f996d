// `bulkhead shares` as a person meets it: two tables, one JSON, and errors with their places.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bulkhead/cli/said_test.hpp"

namespace bulkhead::cli {
namespace {

using testing::HasSubstr;

const std::string departments = examples + "shares/departments.yaml";

Said shares(std::vector<const char*> arguments) { return said_by("shares", std::move(arguments)); }

boost::json::object shares_json_of(std::vector<const char*> arguments) {
    arguments.insert(arguments.end(), {"-o", "json"});
    const Said said = shares(arguments);
    EXPECT_EQ(said.status, done) << said.err;
    return boost::json::parse(said.out).as_object();
}

double number(const boost::json::value& value) { return value.to_number<double>(); }

TEST(SharesCommand, leaves_a_status_that_scripts_can_trust) {
    const std::string nowhere = examples + "nowhere.yaml", typos = examples + "broken/three-typos.yaml",
                      kai = examples + "shares/kai-queues.yaml", slurm = examples + "shares/slurm.dump";
    struct Row {
        std::string_view says;
        std::vector<const char*> arguments;
        int status;
    };
    const Row rows[] = {
        {"a cluster", {"-f", departments.c_str()}, done},
        {"in whole GPUs", {"-f", departments.c_str(), "--whole"}, done},
        {"a fleet", {"-f", examples.c_str()}, done},
        {"queues of KAI", {"-f", kai.c_str(), "--gpus", "64"}, done},
        {"a dump of Slurm", {"-f", slurm.c_str(), "--gpus", "64"}, done},
        {"queues of KAI on nobody knows how many GPUs", {"-f", kai.c_str()}, bad_input},
        {"a dump of Slurm on no number of GPUs", {"-f", slurm.c_str(), "--gpus", "many"}, bad_input},
        {"GPUs of a cluster that has its own", {"-f", departments.c_str(), "--gpus", "64"}, bad_input},
        {"no such file", {"-f", nowhere.c_str()}, could_not},
        {"typos", {"-f", typos.c_str()}, bad_input},
        {"a cluster beside other files", {"-f", departments.c_str(), "-f", examples.c_str()}, bad_input},
        {"no such format", {"-f", departments.c_str(), "-o", "yaml"}, bad_input},
        {"no file at all", {}, bad_input},
        {"help", {"--help"}, done},
    };
    for (const Row& row : rows) {
        const Said said = shares(row.arguments);
        EXPECT_EQ(said.status, row.status) << row.says << "\n" << said.err;
        EXPECT_EQ(said.err.empty(), row.status == done) << row.says;
    }
}

TEST(SharesCommand, prints_the_tree_and_the_columns_of_sshare) {
    const Said said = shares({"-f", departments.c_str()});
    EXPECT_EQ(said.out,
              R"(25 GPUs

Tenant        Guarantee Limit Weight Priority Request  Share
------------- --------- ----- ------ -------- ------- ------
research             10     -      2        0      21 14.667
 vision               6     -      1        0       9  8.333
 speech               4     -      1        0       8  6.334
 interns              0     -      0        0       4      0
serving               6     -      1        0      15  8.333
 online               6     -      1       10       7      7
 batch                0     8      1        0      20  1.333
lab                   0     2      1        0       3      2
(unallocated)                                              0

Account    User    RawShares NormShares RawUsage NormUsage EffectvUsage FairShare   LevelFS
---------- ------- --------- ---------- -------- --------- ------------ --------- ---------
root                                      180500  1.000000
 research                  2   0.500000    60000  0.332410     0.332410            1.504167
  research vision          1   0.500000    40000  0.221607     0.666667  0.666667  0.750000
  research speech          1   0.500000    20000  0.110803     0.333333  0.833333  1.500000
  research interns         0   0.000000        0  0.000000     0.000000  0.500000  0.000000
 serving                   1   0.250000   120000  0.664820     0.664820            0.376042
  serving  online          1   0.500000    90000  0.498615     0.750000  0.166667  0.666667
  serving  batch           1   0.500000    30000  0.166205     0.250000  0.333333  2.000000
 root      lab             1   0.250000      500  0.002770     0.002770  1.000000 90.250000
)");
}

TEST(SharesCommand, gives_programs_the_same_numbers) {
    const auto answer = shares_json_of({"-f", departments.c_str()});
    const auto& due = answer.at("shares").as_object();
    EXPECT_EQ(number(due.at("research").at("guarantee")), 10);
    EXPECT_EQ(number(due.at("research").at("request")), 21);
    EXPECT_EQ(number(due.at("research").at("share")), 14.667);
    EXPECT_EQ(number(answer.at("unallocated")), 0);
    const auto& ranked = answer.at("fairTree").as_array();
    ASSERT_EQ(ranked.size(), 8u);
    EXPECT_EQ(ranked[0].at("account").as_string(), "research");
    EXPECT_EQ(ranked[0].at("user").as_string(), "");
    EXPECT_EQ(number(ranked[0].at("levelFs")), 1.504167);
    EXPECT_FALSE(ranked[0].as_object().contains("rank")) << "accounts have none";
    EXPECT_EQ(ranked[2].at("account").as_string(), "research");
    EXPECT_EQ(ranked[2].at("user").as_string(), "speech");
    EXPECT_EQ(ranked[2].at("rawShares").as_int64(), 1);
    EXPECT_EQ(number(ranked[2].at("normShares")), 0.5);
    EXPECT_EQ(ranked[2].at("rawUsage").as_int64(), 20000);
    EXPECT_EQ(number(ranked[2].at("effectiveUsage")), 0.333333);
    EXPECT_EQ(ranked[2].at("rank").as_int64(), 5);
    EXPECT_EQ(number(ranked[2].at("fairShare")), 0.833333);
    const auto fleet = shares_json_of({"-f", examples.c_str()});
    EXPECT_EQ(fleet.at("fairTree").at(0).at("levelFs").as_string(), "inf") << "nobody has used anything";
}

TEST(SharesCommand, whole_gpus_are_whole) {
    const Text file{
        "kind: Cluster\ngpus: 10\ntenants:\n- {name: b, request: 9}\n- {name: a, request: 9}\n"
        "- {name: c, request: 9, since: 2020-01-01T00:00:00Z}\n"};
    const auto exact = shares_json_of({"-f", file.path()}), whole = shares_json_of({"-f", file.path(), "--whole"});
    EXPECT_EQ(number(exact.at("shares").at("a").at("share")), 3.333);
    EXPECT_EQ(number(exact.at("shares").at("c").at("share")), 3.334);
    EXPECT_EQ(number(whole.at("shares").at("a").at("share")), 3);
    EXPECT_EQ(number(whole.at("shares").at("b").at("share")), 3);
    EXPECT_EQ(number(whole.at("shares").at("c").at("share")), 4) << "the oldest gets the GPU that is left";
}

TEST(SharesCommand, a_fleets_manifests_need_no_policy) {
    const Text file{
        "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: a}\n"
        "spec: {class: batch, quota: {guarantee: 1, weight: 0, overQuotaPriority: 2}}\n---\n"
        "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: b}\nspec: {class: batch}\n---\n"
        "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuNode\nmetadata: {name: n1}\nspec: {site: s}\n"
        "status: {gpus: [{model: h100-80gb-sxm5, count: 8}]}\n---\n"
        "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: w}\n"
        "spec: {tenant: a, tasks: 2, gpu: {count: 2}}\n---\n"
        "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: x}\n"
        "spec: {tenant: b, tasks: 3, gpu: {fraction: 0.5}}\n"};
    const auto answer = shares_json_of({"-f", file.path()});
    EXPECT_EQ(number(answer.at("shares").at("a").at("request")), 4);
    EXPECT_EQ(number(answer.at("shares").at("a").at("share")), 1);
    EXPECT_EQ(number(answer.at("shares").at("b").at("share")), 1.5);
    EXPECT_EQ(number(answer.at("unallocated")), 5.5);
}

TEST(SharesCommand, says_where_a_file_is_wrong) {
    struct Row {
        std::string_view says, text, error;
    };
    const Row rows[] = {
        {"a circle", "kind: Cluster\ngpus: 1\ntenants: [{name: a, parent: a}]\n",
         ".yaml:3:29: tenant a: its parents form a circle of 1"},
        {"a stranger", "kind: Cluster\ngpus: 1\ntenants: [{name: a, parent: b}]\n",
         ".yaml:3:29: tenant a: its parent \"b\" does not exist"},
        {"a slip in the kind", "kind: Clutser\ngpus: 1\n", ".yaml:1:7: kind \"Clutser\" is not Cluster"},
        {"a circle of a fleet",
         "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: a}\nspec: {class: batch, parent: a}\n",
         ".yaml:4:30: Tenant a: its parents form a circle of 1"},
        {"nothing", "", "there is no Cluster, no Tenant and no GpuNode"},
    };
    for (const Row& row : rows) {
        const Text file{row.text};
        const Said said = shares({"-f", file.path()});
        EXPECT_EQ(said.status, bad_input) << row.says;
        EXPECT_THAT(said.err, HasSubstr(row.error)) << row.says;
        EXPECT_THAT(said.err, HasSubstr("  try: ")) << row.says;
        EXPECT_THAT(said.err, HasSubstr("1 error; nothing was divided")) << row.says;
        EXPECT_TRUE(said.out.empty()) << row.says;
    }
}

}  // namespace
}  // namespace bulkhead::cli
