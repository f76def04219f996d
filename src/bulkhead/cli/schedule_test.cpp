// `bulkhead schedule` as a person meets it: what runs, what was disturbed, what waits and why; the same for programs.
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
using testing::Not;

const std::string reclaim = examples + "schedule/reclaim.yaml";

Said schedule(std::vector<const char*> arguments) { return said_by("schedule", std::move(arguments)); }

boost::json::object json_of(std::vector<const char*> arguments, int status = done) {
    arguments.insert(arguments.end(), {"-o", "json"});
    const Said said = schedule(arguments);
    EXPECT_EQ(said.status, status) << said.err;
    return boost::json::parse(said.out).as_object();
}

TEST(ScheduleCommand, leaves_a_status_that_scripts_can_trust) {
    const std::string nowhere = examples + "nowhere.yaml", typos = examples + "broken/three-typos.yaml",
                      shares = examples + "shares/departments.yaml";
    struct Row {
        std::string_view says;
        std::vector<const char*> arguments;
        int status;
    };
    const Row rows[] = {
        {"a cluster", {"-f", reclaim.c_str()}, done},
        {"with those evicted waiting again", {"-f", reclaim.c_str(), "--resubmit"}, done},
        {"five minutes of it", {"-f", reclaim.c_str(), "--cycles", "5"}, done},
        {"at another moment", {"-f", reclaim.c_str(), "--at", "2027-01-01T00:00:00Z"}, done},
        {"a fleet of which policy refuses some", {"-f", examples.c_str()}, refused},
        {"no such file", {"-f", nowhere.c_str()}, could_not},
        {"typos", {"-f", typos.c_str()}, bad_input},
        {"GPUs without nodes", {"-f", shares.c_str()}, bad_input},
        {"a cluster beside other files", {"-f", reclaim.c_str(), "-f", examples.c_str()}, bad_input},
        {"no such format", {"-f", reclaim.c_str(), "-o", "yaml"}, bad_input},
        {"no such moment", {"-f", reclaim.c_str(), "--at", "tomorrow"}, bad_input},
        {"fewer cycles than one", {"-f", reclaim.c_str(), "--cycles", "0"}, bad_input},
        {"no file at all", {}, bad_input},
        {"help", {"--help"}, done},
    };
    for (const Row& row : rows) {
        const Said said = schedule(row.arguments);
        EXPECT_EQ(said.status, row.status) << row.says << "\n" << said.err;
        EXPECT_EQ(said.err.empty(), row.status == done || row.status == refused) << row.says;
    }
}

// Also in docs/snapshot.md.
constexpr std::string_view reclaimed = R"(settled after 3 cycles, at 2026-01-01T00:00:00Z

Job      Tenant   Tasks  Started Where
-------- -------- ------ ------- -------
pretrain research 1 of 1 before  n2[0-7]
chat     serving  2 of 2 cycle 2 n1[0-7]

Evicted Tenant   Action  For  Cycle Tasks GPU-seconds lost From
------- -------- ------- ---- ----- ----- ---------------- ----
sweep   research reclaim chat     1 all 1                0   n1
  sweep: its tenant held 16 GPUs and is guaranteed 8; work within another guarantee needs the room

GPUs held/due: research 8/8, serving 8/8
)";

TEST(ScheduleCommand, takes_back_what_was_lent_from_whom_it_costs_least) {
    EXPECT_EQ(schedule({"-f", reclaim.c_str()}).out, reclaimed);
}

TEST(ScheduleCommand, resubmitted_work_says_why_it_waits) {
    const std::string out = schedule({"-f", reclaim.c_str(), "--resubmit"}).out;
    EXPECT_THAT(out, HasSubstr("Waiting:\n  sweep (research, 1 task)\n    - "));
    EXPECT_THAT(out,
                HasSubstr("    - its tenant would hold more than it is due now (8 held, 8 asked, 8 due), so no running "
                          "work is evicted for it\n"));
}

TEST(ScheduleCommand, the_documentation_prints_what_the_command_prints) {
    std::stringstream page;
    page << std::ifstream{BULKHEAD_SOURCE_DIR "/docs/snapshot.md"}.rdbuf();
    EXPECT_THAT(page.str(), HasSubstr(std::string{reclaimed}));
    std::stringstream example;
    example << std::ifstream{reclaim}.rdbuf();
    EXPECT_THAT(page.str(), HasSubstr(example.str()));
    EXPECT_LE(std::ranges::count(example.str(), '\n'), 30) << "short enough to be written by hand";
}

TEST(ScheduleCommand, starts_gangs_whole_and_close_together) {
    const Said said = schedule({"-f", (examples + "schedule/gangs.yaml").c_str()});
    EXPECT_THAT(said.out, HasSubstr(" west-1[0-7] west-2[0-7]\n")) << "in one rack";
    EXPECT_THAT(said.out, HasSubstr("nightly default train west-1 east-2[0-3]\n")) << "moved to make room";
    EXPECT_THAT(said.out, HasSubstr("  eval (default, 4 tasks)\n"));
    EXPECT_THAT(said.out, HasSubstr("    - 4 tasks must start together in one rack; the best rack has room for "));
}

TEST(ScheduleCommand, names_tenants_that_stay_over_a_lowered_limit) {
    const std::string path = testing::TempDir() + "over-limit.yaml";
    std::ofstream{path}
        << "kind: Cluster\ntenants:\n  - {name: research, guarantee: 6, limit: 4}\nnodes:\n  - {name: n1}\n"
           "jobs:\n  - {name: service, tenant: research, gpus: 6, preemptible: false, on: [n1], ran: 5h}\n"
           "  - {name: sweep, tenant: research, gpus: 1, on: [n1], ran: 3h}\n";
    EXPECT_THAT(schedule({"-f", path.c_str()}).out,
                HasSubstr("\nOver their limit:\n  research leases 6 GPUs, and its limit is 4; work that may not be "
                          "preempted leases 6\n"));
    const auto over = json_of({"-f", path.c_str()}).at("overLimit").as_array();
    ASSERT_EQ(over.size(), 1u);
    EXPECT_EQ(over.at(0).at("tenant").as_string(), "research");
    EXPECT_THAT(schedule({"-f", reclaim.c_str()}).out, Not(HasSubstr("Over their limit")));
    std::filesystem::remove(path);
}

TEST(ScheduleCommand, keeps_apart_who_may_not_meet) {
    const Said said = schedule({"-f", (examples + "schedule/neighbours.yaml").c_str()});
    EXPECT_THAT(said.out, HasSubstr(" east[1:3g.40gb@0]\n"))
        << "two of one tenant on one GPU, beside a tenant of the same domain";
    EXPECT_THAT(said.out, HasSubstr("  records (clinic, 1 task)\n")) << "it wants a node of its own";
    EXPECT_THAT(said.out, HasSubstr("    - 2 nodes run work that may not share a node with it\n"));
    EXPECT_THAT(said.out, HasSubstr(" west[0-1]\n")) << "who used its kernel before may use it again";
}

TEST(ScheduleCommand, gives_programs_the_same) {
    const auto answer = json_of({"-f", reclaim.c_str(), "--resubmit"});
    EXPECT_TRUE(answer.at("settled").as_bool());
    EXPECT_EQ(answer.at("cycles").as_int64(), 4);
    const auto& bound = answer.at("bindings").at(0).as_object();
    EXPECT_EQ(bound.at("workload").as_string(), "chat");
    EXPECT_EQ(bound.at("tenant").as_string(), "serving");
    EXPECT_EQ(bound.at("cycle").as_int64(), 2);
    EXPECT_FALSE(bound.at("backfilled").as_bool());
    ASSERT_EQ(bound.at("tasks").as_array().size(), 2u);
    EXPECT_EQ(bound.at("tasks").at(1).at("node").as_string(), "n1");
    EXPECT_EQ(boost::json::serialize(bound.at("tasks").at(1).at("gpus")), "[4,5,6,7]");
    EXPECT_EQ(bound.at("tasks").at(1).at("share").as_int64(), 1);
    EXPECT_EQ(answer.at("running").as_array().size(), 2u);
    const auto& evicted = answer.at("evictions").at(0).as_object();
    EXPECT_EQ(evicted.at("workload").as_string(), "sweep");
    EXPECT_EQ(evicted.at("claimant").as_string(), "chat");
    EXPECT_EQ(evicted.at("action").as_string(), "reclaim");
    EXPECT_EQ(evicted.at("tasks").as_int64(), 1);
    EXPECT_TRUE(evicted.at("whole").as_bool());
    EXPECT_EQ(evicted.at("lostGpuSeconds").as_int64(), 0);
    EXPECT_EQ(evicted.at("reasons").at(0).at("code").as_string(), "evict.guarantee");
    EXPECT_EQ(evicted.at("reasons").at(0).at("arguments").at("held").as_string(), "16");
    EXPECT_EQ(answer.at("waiting").at(0).at("workload").as_string(), "sweep");
    const auto& last = answer.at("waiting").at(0).at("reasons").as_array().back();
    EXPECT_EQ(last.at("code").as_string(), "wait.due");
    EXPECT_EQ(last.at("arguments").at("asked").as_string(), "8");
    EXPECT_THAT(std::string{last.at("says").as_string()}, HasSubstr("its tenant would hold more than it is due"));
    EXPECT_EQ(answer.at("tenants").at(1).at("held").as_int64(), 8);
    EXPECT_TRUE(answer.at("refused").as_array().empty());
}

TEST(ScheduleCommand, tells_slices_and_shares_apart) {
    const Text file{
        "kind: Cluster\nnodes: [{name: m}]\njobs:\n"
        "  - {name: slice, profile: 3g.40gb}\n  - {name: share, gpus: 0.5}\n"};
    const auto answer = json_of({"-f", file.path()});
    const auto& slice = answer.at("running").at(0).at("tasks").at(0).as_object();
    EXPECT_EQ(slice.at("slice").at("profile").as_string(), "3g.40gb");
    EXPECT_EQ(slice.at("slice").at("start").as_int64(), 4);
    EXPECT_EQ(slice.at("slice").at("size").as_int64(), 4);
    const auto& share = answer.at("running").at(1).at("tasks").at(0).as_object();
    EXPECT_EQ(share.at("share").as_double(), 0.5);
    EXPECT_FALSE(share.contains("slice"));
}

TEST(ScheduleCommand, asks_policy_about_a_fleet_and_tells_what_it_refuses) {
    const auto answer = json_of({"-f", examples.c_str()}, refused);
    std::vector<std::string> names;
    for (const auto& each : answer.at("refused").as_array()) names.emplace_back(each.at("workload").as_string());
    EXPECT_THAT(names, testing::Contains("cheap-serving"));
    for (const auto& each : answer.at("running").as_array())
        EXPECT_THAT(names, Not(testing::Contains(std::string{each.at("workload").as_string()})));
    EXPECT_FALSE(answer.at("running").as_array().empty());
    EXPECT_EQ(answer.at("now").as_string(), "2026-11-15T09:00:00Z") << "when its nodes were observed";
}

TEST(ScheduleCommand, a_wrong_file_is_refused_with_places) {
    struct Row {
        std::string_view says, text, error;
    };
    const Row rows[] = {
        {"a typo", "kind: Cluster\nnodes: [{name: m}]\njobs: [{name: j, gpu: 1}]\n",
         ".yaml:3:18: unknown field \"gpu\""},
        {"no room where it is said to run", "kind: Cluster\nnodes: [{name: m}]\njobs: [{name: j, gpus: 9, on: [m]}]\n",
         ".yaml:3:31: job j: task 1 of 1 does not fit on node m: it needs 9 whole GPUs; free are 8 of 8"},
        {"no nodes", "kind: Cluster\ngpus: 8\n", ".yaml:1:1: the cluster has no nodes to place work on"},
        {"nothing", "", "there is no Cluster and no GpuNode"},
    };
    for (const Row& row : rows) {
        const Text file{row.text};
        const Said said = schedule({"-f", file.path()});
        EXPECT_EQ(said.status, bad_input) << row.says;
        EXPECT_THAT(said.err, HasSubstr(row.error)) << row.says;
        EXPECT_THAT(said.err, HasSubstr("  try: ")) << row.says;
        EXPECT_THAT(said.err, HasSubstr("1 error; nothing was scheduled")) << row.says;
        EXPECT_TRUE(said.out.empty()) << row.says;
    }
}

}  // namespace
}  // namespace bulkhead::cli
