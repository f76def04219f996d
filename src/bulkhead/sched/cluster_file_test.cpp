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
    EXPECT_EQ(read->gpus, Gpus{12'500});
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

TEST(ClusterFile, knows_itself) {
    struct Row {
        std::string_view says, text;
        bool is_one;
    };
    const Row rows[] = {
        {"a cluster", "kind: Cluster\ngpus: 1\n", true},
        {"with mistakes", "kind: Cluster\ngups: 1\n", true},
        {"with a slip in its kind", "kind: cluster\ngpus: 1\n", true},
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
        {"two documents", "kind: Cluster\ngpus: 1\n---\nkind: Cluster\ngpus: 1\n", "c.yaml:4:1: a second document",
         "remove it"},
    };
    for (const Row& row : rows) {
        EXPECT_THAT(errors_in(row.text), HasSubstr(row.error)) << row.says;
        EXPECT_THAT(errors_in(row.text), HasSubstr(row.remedy)) << row.says;
    }
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
