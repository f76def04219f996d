// One short document, read strictly: what it means, and every way it is refused.
#include "bulkhead/sched/cluster_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/codec/print.hpp"

namespace bulkhead::sched {
namespace {

using testing::HasSubstr;

std::string errors_in(std::string_view text) {
    const auto read = read_cluster("c.yaml", text);
    std::string out;
    if (!read)
        for (const Diagnostic& error : read.error()) out += print(error);
    return out;
}

TEST(ClusterFile, reads_what_a_person_writes_by_hand) {
    const auto read = read_cluster("c.yaml",
                                   "kind: Cluster\n"
                                   "gpus: 12.5\n"
                                   "tenants:\n"
                                   "  - {name: research, guarantee: 4, limit: 8, weight: 2, overQuotaPriority: 3}\n"
                                   "  - {name: vision, parent: research, request: 0.5, shares: 7, usage: 90,\n"
                                   "     since: 2026-01-01T00:00:00Z}\n"
                                   "  - {name: idle, weight: 0}\n");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->gpus, Gpus::of_thousandths(12'500));
    ASSERT_EQ(read->tenants.size(), 3u);
    EXPECT_EQ(read->tenants[0], (ClusterTenant{.name = "research",
                                               .guarantee = Gpus::whole(4),
                                               .limit = Gpus::whole(8),
                                               .weight = 2,
                                               .overQuotaPriority = 3}));
    EXPECT_EQ(read->tenants[1].shares, 7);
    EXPECT_EQ(read->tenants[1].since, parse_instant("2026-01-01T00:00:00Z").value());
    EXPECT_EQ(read->tenants[2].weight, 0);
    EXPECT_EQ(read_cluster("c.json", R"({"kind": "Cluster", "gpus": 8})")->gpus, Gpus::whole(8));
    EXPECT_EQ(read_cluster("c.yaml", to_yaml(*read)).value(), *read) << "printed with apiVersion, and read again";
}

TEST(ClusterFile, reads_nodes_and_jobs) {
    const auto read = read_cluster(
        "c.yaml",
        "kind: Cluster\n"
        "now: 2026-05-05T00:00:00Z\n"
        "settings: {halfLife: 1d, staleGrace: 5m, reclaimMinRuntime: 10m, preemptMinRuntime: 1m, reservations: 2}\n"
        "tenants:\n"
        "  - {name: a, domain: d, hard: true, priorityGrant: 5, reclaimMinRuntime: 1h, preemptMinRuntime: 2h}\n"
        "nodes:\n"
        "  - {name: m, count: 2, gpus: 4, model: a30-24gb, drives: [1T], wiping: [3], usedBy: [a]}\n"
        "jobs:\n"
        "  - {name: j, count: 3, tenant: a, tasks: 4, minTasks: 2, gpus: 0.5, within: rack, groupTasks: 2,\n"
        "     groupWithin: node, deadlineIn: 1h, isolation: {tier: vm, node: distrusting}, on: [m-1, m-2]}\n");
    ASSERT_TRUE(read) << print(read.error().front());
    EXPECT_EQ(read->all_gpus(), Gpus::whole(8));
    EXPECT_EQ(read->settings.reservations, 2);
    EXPECT_EQ(read->tenants[0].reclaimMinRuntime, Duration::hours(1));
    EXPECT_TRUE(read->tenants[0].hard);
    EXPECT_EQ(read->nodes[0].drives, std::vector{ByteSize{1'000'000'000'000}});
    EXPECT_EQ(read->jobs[0].gpus, Gpus::of_thousandths(500));
    EXPECT_EQ(read->jobs[0].groupWithin, TopologyLevel::node);
    EXPECT_EQ(read->jobs[0].on, (std::vector<std::string>{"m-1", "m-2"}));
    EXPECT_EQ(read_cluster("c.yaml", to_yaml(*read)).value(), *read);
    EXPECT_EQ(read_cluster("c.yaml", "kind: Cluster\ngpus: 8\nnodes: [{name: m}]\n")->all_gpus(), Gpus::whole(8));
}

TEST(ClusterFile, knows_itself) {
    struct Row {
        std::string_view says, text;
        bool is_one;
    };
    const Row rows[] = {
        {"a cluster", "kind: Cluster\ngpus: 1\n", true},
        {"with mistakes", "kind: Cluster\ngups: 1\n", true},
        {"with a slip in its kind", "kind: cluster\ngpus: 1\n", true},
        {"of nodes alone, with a slip", "kind: clutser\nnodes: []\n", true},
        {"of jobs alone", "jobs: []\n", true},
        {"behind another document", "kind: Tenant\n---\nkind: Cluster\n", true},
        {"a manifest", "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\n", false},
        {"nothing", "", false},
        {"no map", "- kind: Cluster\n", false},
    };
    for (const Row& row : rows) EXPECT_EQ(holds_cluster(row.text), row.is_one) << row.says;
}

TEST(ClusterFile, refuses_with_place_and_remedy) {
    struct Row {
        std::string_view says, text, error, remedy;
    };
    const Row rows[] = {
        {"nothing", "", "c.yaml: the file is empty", "begin with kind: Cluster"},
        {"a list", "- a\n", "c.yaml:1:1: the document takes fields", "write its fields"},
        {"no kind", "gpus: 1\n", "c.yaml:1:1: kind is missing", "kind: Cluster"},
        {"another kind", "kind: cluster\ngpus: 1\n", "c.yaml:1:7: kind \"cluster\" is not Cluster", "kind: Cluster"},
        {"another version", "apiVersion: v1\nkind: Cluster\ngpus: 1\n", "c.yaml:1:13: apiVersion \"v1\" is not known",
         "bulkhead.dev/v1alpha1"},
        {"no GPUs", "kind: Cluster\n", "c.yaml:1:1: gpus is missing", "add gpus: How many"},
        {"fewer than none", "kind: Cluster\ngpus: -1\n", "c.yaml:2:7: gpus: \"-1\" is not a number of GPUs", "8, 0.5"},
        {"finer than a thousandth", "kind: Cluster\ngpus: 0.0001\n", "c.yaml:2:7: gpus", "three decimals"},
        {"a typo", "kind: Cluster\ngpus: 1\ntenants: [{name: a, wieght: 2}]\n",
         "c.yaml:3:21: unknown field \"wieght\" in tenants[0]", "try: weight"},
        {"no name", "kind: Cluster\ngpus: 1\ntenants:\n  - {weight: 1}\n", "c.yaml:4:5: tenants[0].name is missing",
         "add name"},
        {"a weight below 0", "kind: Cluster\ngpus: 1\ntenants:\n  - {name: a, weight: -1}\n",
         "c.yaml:4:23: tenants[0].weight is -1, which is out of range", "from 0 to 1000000"},
        {"a priority above 1000", "kind: Cluster\ngpus: 1\ntenants:\n  - {name: a, overQuotaPriority: 1001}\n",
         "c.yaml:4:34: tenants[0].overQuotaPriority is 1001", "from 0 to 1000"},
        {"a name twice", "kind: Cluster\ngpus: 1\ntenants:\n  - {name: a}\n  - {name: a}\n",
         "c.yaml:5:12: tenant a is there twice; the first is in line 4", "a name of its own"},
        {"a parent that is nowhere", "kind: Cluster\ngpus: 1\ntenants:\n  - {name: red}\n  - {name: b, parent: rde}\n",
         "c.yaml:5:23: tenant b: its parent \"rde\" does not exist", "try: red, or list that tenant"},
        {"its own parent", "kind: Cluster\ngpus: 1\ntenants:\n  - {name: a, parent: a}\n",
         "c.yaml:4:23: tenant a: its parents form a circle of 1: a -> a", "make one of them a root"},
        {"a circle, and who leads into it",
         "kind: Cluster\ngpus: 1\ntenants:\n  - {name: x, parent: c}\n  - {name: c, parent: b}\n  - {name: b, parent: "
         "c}\n",
         "c.yaml:6:23: tenant b: its parents form a circle of 2: b -> c -> b", "make one of them a root"},
        {"GPUs that are not those of the nodes", "kind: Cluster\ngpus: 12\nnodes: [{name: m}]\n",
         "c.yaml:2:7: gpus is 12, and the nodes have 8", "leave gpus out"},
        {"two documents", "kind: Cluster\ngpus: 1\n---\nkind: Cluster\ngpus: 1\n", "c.yaml:4:1: a second document",
         "remove it"},
    };
    for (const Row& row : rows) {
        EXPECT_THAT(errors_in(row.text), HasSubstr(row.error)) << row.says;
        EXPECT_THAT(errors_in(row.text), HasSubstr(row.remedy)) << row.says;
    }
}

TEST(ClusterFile, refuses_nodes_and_jobs_with_place_and_remedy) {
    struct Row {
        std::string_view says, text, error, remedy;  // the text begins in line 2
    };
    const Row rows[] = {
        {"a typo in a node", "nodes: [{name: m, gpu: 2}]\n", "c.yaml:2:19: unknown field \"gpu\" in nodes[0]",
         "try: gpus"},
        {"a typo in a job", "nodes: [{name: m}]\njobs: [{name: j, tennant: a}]\n",
         "c.yaml:3:18: unknown field \"tennant\" in jobs[0]", "try: tenant"},
        {"a typo in a setting", "nodes: [{name: m}]\nsettings: {halflife: 1d}\n",
         "c.yaml:3:12: unknown field \"halflife\" in settings", "try: halfLife"},
        {"a level that is none", "nodes: [{name: m}]\njobs: [{name: j, within: rak}]\n",
         "c.yaml:3:26: jobs[0].within is \"rak\"", "try: rack"},
        {"a name that YAML takes for a word", "nodes: [{name: n}]\n", "c.yaml:2:16: nodes[0].name takes text",
         "\"n\", in quotes"},
        {"too many GPUs", "nodes: [{name: m, gpus: 65}]\n", "c.yaml:2:25: nodes[0].gpus is 65", "from 0 to 64"},
        {"too many nodes", "nodes: [{name: m, count: 60000}, {name: k, count: 60000}]\n",
         "c.yaml:2:51: the nodes are 120000 up to here; at most 100000", "fewer"},
        {"a node twice", "nodes: [{name: m}, {name: m}]\n", "c.yaml:2:27: node m is there twice", "of its own"},
        {"a node that another's number is", "nodes: [{name: m-2}, {name: m, count: 2}]\n",
         "c.yaml:2:29: node m-2 is there twice", "of its own"},
        {"a GPU that is not there", "nodes: [{name: m, gpus: 2, wiping: [2]}]\n",
         "c.yaml:2:36: node m: there is no GPU 2; it has 2, counted from 0", "at most 1"},
        {"nor is this one", "nodes: [{name: m, gpus: 0, quarantined: [0]}]\n", "there is no GPU 0; it has 0",
         "leave it out"},
        {"a job twice", "nodes: [{name: m}]\njobs: [{name: j}, {name: j}]\n", "c.yaml:3:26: job j is there twice",
         "of its own"},
        {"three ways to ask", "nodes: [{name: m}]\njobs: [{name: j, gpus: 1, profile: 1g.10gb, gpuMemory: 1Gi}]\n",
         "c.yaml:3:56: job j asks for GPUs in 3 ways: gpus and profile and gpuMemory", "one of gpus"},
        {"neither whole nor a fraction", "nodes: [{name: m}]\njobs: [{name: j, gpus: 1.5}]\n",
         "c.yaml:3:24: job j: 1.5 GPUs for a task", "try: 2"},
        {"more at least than at most", "nodes: [{name: m}]\njobs: [{name: j, tasks: 2, minTasks: 3}]\n",
         "c.yaml:3:38: job j needs at least 3 tasks and asks for 2", "minTasks of at most 2"},
        {"groups that do not come out even",
         "nodes: [{name: m}]\njobs: [{name: j, tasks: 4, groupTasks: 3, groupWithin: rack}]\n",
         "c.yaml:3:40: job j: groups of 3 do not divide its tasks 4", "divides 4"},
        {"nor when it shrinks",
         "nodes: [{name: m}]\njobs: [{name: j, tasks: 4, minTasks: 3, groupTasks: 2, groupWithin: rack}]\n",
         "groups of 2 do not divide its minTasks 3", "divides 3"},
        {"groups within nothing", "nodes: [{name: m}]\njobs: [{name: j, groupTasks: 1}]\n",
         "c.yaml:3:30: job j says groupTasks and not groupWithin", "both, or neither"},
        {"groups of nobody knows how many", "nodes: [{name: m}]\njobs: [{name: j, groupWithin: rack}]\n",
         "c.yaml:3:31: job j says groupWithin and not groupTasks", "both, or neither"},
        {"two deadlines", "nodes: [{name: m}]\njobs: [{name: j, deadline: 2026-02-01T00:00:00Z, deadlineIn: 1h}]\n",
         "c.yaml:3:62: job j has a deadline and a deadlineIn", "one of the two"},
        {"strangers on one kernel", "nodes: [{name: m}]\njobs: [{name: j, isolation: {node: distrusting}}]\n",
         "c.yaml:3:29: job j would share a node with distrusting tenants in tier container", "tier: vm"},
        {"strangers on one GPU",
         "nodes: [{name: m}]\njobs: [{name: j, isolation: {tier: process, gpu: distrusting}}]\n",
         "job j would share a GPU with distrusting tenants in tier process", "tier: vm"},
        {"a node that is nowhere", "nodes: [{name: m, count: 2}]\njobs: [{name: j, on: [m-3]}]\n",
         "c.yaml:3:22: job j runs on node \"m-3\", which does not exist", "try: m-"},
        {"too few nodes", "nodes: [{name: m}]\njobs: [{name: j, tasks: 3, on: [m, m]}]\n",
         "c.yaml:3:32: job j names 2 nodes for 3 tasks", "the node of each task"},
        {"run, and nowhere", "nodes: [{name: m}]\njobs: [{name: j, ran: 1h}]\n",
         "c.yaml:3:23: job j has run for 1h, and nothing says where", "add on:"},
        {"a time before the first", "nodes: [{name: m}]\njobs: [{name: j, waited: -1h}]\n",
         "c.yaml:3:26: jobs[0].waited", "1h30m"},
    };
    for (const Row& row : rows) {
        const std::string text = "kind: Cluster\n" + std::string{row.text};
        EXPECT_THAT(errors_in(text), HasSubstr(row.error)) << row.says;
        EXPECT_THAT(errors_in(text), HasSubstr(row.remedy)) << row.says;
    }
}

TEST(ClusterFile, an_elastic_gang_may_run_with_fewer) {
    EXPECT_EQ(errors_in("kind: Cluster\nnodes: [{name: m}]\njobs: [{name: j, tasks: 4, minTasks: 2, on: [m, m]}]\n"),
              "");
}

TEST(ClusterFile, reports_every_mistake_once_in_the_order_of_the_text) {
    const std::string errors = errors_in(
        "kind: Cluster\ngpus: 1\ntenants:\n  - {name: a, parent: b}\n  - {name: b, parent: a}\n  - {name: b}\n  - "
        "{name: "
        "c, parent: z}\n");
    std::vector<int> lines;
    for (std::size_t at = 0; (at = errors.find("c.yaml:", at)) != std::string::npos; ++at)
        lines.push_back(std::stoi(errors.substr(at + 7)));
    EXPECT_THAT(lines, testing::ElementsAre(4, 6, 7)) << errors;
}

std::string chain(std::size_t length, std::string_view parent_of_first) {
    std::string text = "kind: Cluster\ngpus: 1\ntenants:\n- {name: t0" + std::string{parent_of_first} + "}\n";
    for (std::size_t i = 1; i < length; ++i)
        text += "- {name: t" + std::to_string(i) + ", parent: t" + std::to_string(i - 1) + "}\n";
    return text;
}

TEST(ClusterFile, a_long_chain_is_read_and_a_long_circle_refused) {
    EXPECT_EQ(read_cluster("c.yaml", chain(10'000, ""))->tenants.size(), 10'000u);
    EXPECT_THAT(errors_in(chain(10'000, ", parent: t9999")),
                HasSubstr("c.yaml:4:22: tenant t0: its parents form a circle of 10000: t0 -> t9999 -> t9998"));
}

}  // namespace
}  // namespace bulkhead::sched
