// Which work gives way to a claim within its guarantee: small clusters, played to their end, each a sentence of the law
// of guarantees. And the scenes that are shipped in examples/schedule.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "bulkhead/sched/play_test.hpp"

namespace bulkhead::sched {
namespace {

struct Given {
    std::string_view rule;
    std::string_view tenants, nodes, jobs;
    std::vector<std::string> goes;  // evicted jobs; "3 of x": spare tasks; "x moves"; sorted
    std::vector<std::string> runs;  // at the end, in the order of the file
};

std::vector<std::string> what_went(const Told& after) {
    std::vector<std::string> went;
    for (const auto& each : after.played.evictions)
        went.push_back(each.what.whole ? after.name(each.what.workload)
                                       : std::to_string(each.what.tasks) + " of " + after.name(each.what.workload));
    for (const auto& each : after.played.moves) went.push_back(after.name(each.what.workload) + " moves");
    std::ranges::sort(went);
    return went;
}

void check(const Given& row) {
    SCOPED_TRACE(row.rule);
    std::string text = "kind: Cluster\ntenants: ";
    text.append(row.tenants).append("\nnodes: ").append(row.nodes).append("\njobs:\n").append(row.jobs);
    const Told after = told(text);
    EXPECT_TRUE(after.played.settled);
    EXPECT_EQ(what_went(after), row.goes);
    EXPECT_EQ(after.running(), row.runs);
}

constexpr std::string_view distrusting =
    "[{name: s1, domain: d1}, {name: s2, domain: d2}, {name: big, domain: d3, hard: true, guarantee: 8}]";
constexpr std::string_view crumbs =
    "  - {name: crumb-a, tenant: s1, gpus: 0.1, on: [m-1], ran: 2h}\n"
    "  - {name: crumb-b, tenant: s2, gpus: 0.1, on: [m-2], ran: 1h}\n"
    "  - {name: train, tenant: big, gpus: 8, waited: 5m}\n";

TEST(MakingRoom, between_distrusting_tenants_needs_a_node_that_can_be_rebooted) {
    const Given rows[] = {
        {"the crumb that loses least goes, and its node is rebooted",
         distrusting,
         "[{name: m, count: 2, canReboot: true}]",
         crumbs,
         {"crumb-b"},
         {"crumb-a", "train"}},
        {"a node that cannot be rebooted serves the trust domain of its present users",
         distrusting,
         "[{name: m, count: 2}]",
         crumbs,
         {},
         {"crumb-a", "crumb-b"}},
        {"work that may not be preempted is never a victim",
         "[{name: s1, domain: d1, guarantee: 1}, {name: big, domain: d3, guarantee: 8}]",
         "[{name: n1, canReboot: true}]",
         "  - {name: pinned, tenant: s1, gpus: 1, on: [n1], ran: 2h, preemptible: false}\n"
         "  - {name: train, tenant: big, gpus: 8, waited: 5m}\n",
         {},
         {"pinned"}},
        {"a crumb within its tenant's guarantee stays",
         "[{name: s1, domain: d1, guarantee: 1}, {name: big, domain: d3, guarantee: 8}]",
         "[{name: n1, canReboot: true}]",
         "  - {name: own, tenant: s1, gpus: 1, on: [n1], ran: 2h}\n"
         "  - {name: train, tenant: big, gpus: 8, waited: 5m}\n",
         {},
         {"own"}},
    };
    for (const Given& row : rows) check(row);
}

TEST(MakingRoom, tries_combinations_of_victims_in_several_tenants_and_departments) {
    const Given rows[] = {
        {"each tenant gives what it holds above its guarantee, none more",
         "[{name: a, guarantee: 2}, {name: b, guarantee: 2}, {name: c, guarantee: 4}]",
         "[{name: n1}]",
         "  - {name: a1, tenant: a, gpus: 2, on: [n1], ran: 1m}\n"
         "  - {name: a2, tenant: a, gpus: 2, on: [n1], ran: 2m}\n"
         "  - {name: b1, tenant: b, gpus: 2, on: [n1], ran: 5h}\n"
         "  - {name: b2, tenant: b, gpus: 2, on: [n1], ran: 6h}\n"
         "  - {name: cj, tenant: c, gpus: 4, waited: 5m}\n",
         {"a1", "b1"},
         {"a2", "b2", "cj"}},
        {"two small jobs of others before one large whose owner would fall below its guarantee",
         "[{name: owner, guarantee: 3}, {name: g1}, {name: g2}, {name: c, guarantee: 4}]",
         "[{name: n1}]",
         "  - {name: large, tenant: owner, gpus: 4, on: [n1], ran: 1m}\n"
         "  - {name: s1, tenant: g1, gpus: 2, on: [n1], ran: 5h}\n"
         "  - {name: s2, tenant: g2, gpus: 2, on: [n1], ran: 5h}\n"
         "  - {name: cj, tenant: c, gpus: 4, waited: 5m}\n",
         {"s1", "s2"},
         {"large", "cj"}},
        {"the large one goes where nothing else would do",
         "[{name: owner, guarantee: 3}, {name: g1}, {name: c, guarantee: 5}]",
         "[{name: n1}]",
         "  - {name: large, tenant: owner, gpus: 4, on: [n1], ran: 1m}\n"
         "  - {name: s1, tenant: g1, gpus: 1, on: [n1], ran: 5h}\n"
         "  - {name: keep, tenant: c, gpus: 3, on: [n1], ran: 5h, priority: 5}\n"
         "  - {name: cj, tenant: c, gpus: 2, waited: 5m}\n",
         {"large"},
         {"s1", "keep", "cj"}},
        {"a gang takes from departments that can give, whatever is cheaper elsewhere",
         "[{name: x, guarantee: 8}, {name: x1, parent: x, guarantee: 4}, {name: x2, parent: x, guarantee: 4}, "
         "{name: z}, {name: y1, parent: z}, {name: c, guarantee: 8}]",
         "[{name: m, count: 2}]",
         "  - {name: v1, tenant: x1, gpus: 4, on: [m-1], ran: 1m}\n"
         "  - {name: w1, tenant: y1, gpus: 4, on: [m-1], ran: 5h}\n"
         "  - {name: v2, tenant: x2, gpus: 4, on: [m-2], ran: 1m}\n"
         "  - {name: w2, tenant: y1, gpus: 4, on: [m-2], ran: 5h}\n"
         "  - {name: cg, tenant: c, tasks: 2, gpus: 4, waited: 5m}\n",
         {"w1", "w2"},
         {"v1", "v2", "cg"}},
        {"a sibling's eviction counts for the department: it stays within its guarantee and its limit",
         "[{name: dept, guarantee: 8, limit: 8}, {name: a, parent: dept, guarantee: 4}, {name: b, parent: dept, "
         "guarantee: 4}, {name: out}]",
         "[{name: n1}]",
         "  - {name: b1, tenant: b, gpus: 4, on: [n1], ran: 5h}\n"
         "  - {name: b2, tenant: b, gpus: 2, on: [n1], ran: 1h}\n"
         "  - {name: o1, tenant: out, gpus: 2, on: [n1], ran: 1h}\n"
         "  - {name: aj, tenant: a, gpus: 4, waited: 5m}\n",
         {"b2", "o1"},
         {"b1", "aj"}},
        {"quota and place are looked for together: the limit is met on one node, the place on another",
         "[{name: dept, guarantee: 8, limit: 8}, {name: a, parent: dept, guarantee: 4}, {name: b, parent: dept, "
         "guarantee: 4}, {name: out}]",
         "[{name: h1}, {name: a1, model: a100-80gb-sxm4}]",
         "  - {name: b1, tenant: b, gpus: 4, models: [h100-80gb-sxm5], on: [h1], ran: 5h}\n"
         "  - {name: b2, tenant: b, gpus: 4, models: [h100-80gb-sxm5], on: [h1], ran: 1h}\n"
         "  - {name: o1, tenant: out, gpus: 8, models: [a100-80gb-sxm4], on: [a1], ran: 1h}\n"
         "  - {name: aj, tenant: a, gpus: 4, models: [a100-80gb-sxm4], waited: 5m}\n",
         {"b2", "o1"},
         {"b1", "aj"}},
    };
    for (const Given& row : rows) check(row);
}

TEST(MakingRoom, takes_spare_tasks_before_whole_jobs) {
    const Given rows[] = {
        {"for a single task",
         "[{name: r}, {name: s, guarantee: 2}]",
         "[{name: n1, gpus: 4}]",
         "  - {name: el, tenant: r, tasks: 3, minTasks: 1, gpus: 1, on: [n1], ran: 5h}\n"
         "  - {name: one, tenant: r, gpus: 1, on: [n1], ran: 1m}\n"
         "  - {name: sj, tenant: s, gpus: 2, waited: 5m}\n",
         {"2 of el"},
         {"el", "one", "sj"}},
        {"for a gang, on two nodes",
         "[{name: r}, {name: s, guarantee: 4}]",
         "[{name: m, count: 2, gpus: 4}]",
         "  - {name: el, tenant: r, tasks: 6, minTasks: 2, gpus: 1, on: [m-1, m-1, m-1, m-2, m-2, m-2], ran: 5h}\n"
         "  - {name: one, tenant: r, gpus: 1, on: [m-1], ran: 1m}\n"
         "  - {name: two, tenant: r, gpus: 1, on: [m-2], ran: 1m}\n"
         "  - {name: sg, tenant: s, tasks: 2, gpus: 2, waited: 5m}\n",
         {"4 of el"},
         {"el", "one", "two", "sg"}},
        {"and of several gangs",
         "[{name: r}, {name: q}, {name: s, guarantee: 4}]",
         "[{name: n1}]",
         "  - {name: el, tenant: r, tasks: 4, minTasks: 2, gpus: 1, on: [n1], ran: 5h}\n"
         "  - {name: em, tenant: q, tasks: 4, minTasks: 2, gpus: 1, on: [n1], ran: 5h}\n"
         "  - {name: sj, tenant: s, gpus: 4, waited: 5m}\n",
         {"2 of el", "2 of em"},
         {"el", "em", "sj"}},
        {"a whole job goes where spare tasks are too few",
         "[{name: r}, {name: s, guarantee: 4}]",
         "[{name: n1}]",
         "  - {name: el, tenant: r, tasks: 4, minTasks: 3, gpus: 1, on: [n1], ran: 5h}\n"
         "  - {name: one, tenant: r, gpus: 3, on: [n1], ran: 1m}\n"
         "  - {name: two, tenant: r, gpus: 1, on: [n1], ran: 5h}\n"
         "  - {name: sj, tenant: s, gpus: 4, waited: 5m}\n",
         {"1 of el", "one"},
         {"el", "two", "sj"}},
    };
    for (const Given& row : rows) check(row);
}

// The same jobs in another order of arrival: the same go.
TEST(MakingRoom, does_not_depend_on_which_job_came_first) {
    const std::vector<std::string> rows{"  - {name: a1, tenant: a, gpus: 2, on: [n1], ran: 2h}\n",
                                        "  - {name: a2, tenant: a, gpus: 2, on: [n1], ran: 3h}\n",
                                        "  - {name: b1, tenant: b, gpus: 1, on: [n1], ran: 4h}\n",
                                        "  - {name: b2, tenant: b, gpus: 3, on: [n1], ran: 1h}\n"};
    std::vector<std::size_t> order{0, 1, 2, 3};
    std::optional<std::vector<std::string>> first;
    do {
        std::string text =
            "kind: Cluster\ntenants: [{name: a, guarantee: 2}, {name: b, guarantee: 1}, {name: c, guarantee: 4}]\n"
            "nodes: [{name: n1}]\njobs:\n";
        for (const std::size_t i : order) text += rows[i];
        text += "  - {name: cj, tenant: c, gpus: 4, waited: 5m}\n";
        const Told after = told(text);
        if (!first) first = what_went(after);
        EXPECT_EQ(what_went(after), *first) << text;
        EXPECT_EQ(after.running().back(), "cj");
    } while (std::ranges::next_permutation(order).found);
    EXPECT_FALSE(first->empty());
}

TEST(MakingRoom, moves_what_a_guarantee_protects_only_inside_its_entitlement) {
    const Given rows[] = {
        {"scattered work comes together on one node",
         "[{name: lab, domain: d1, guarantee: 2}, {name: big, domain: d2, guarantee: 8}]",
         "[{name: m, count: 2, canReboot: true}]",
         "  - {name: notes, tenant: lab, gpus: 1, on: [m-1], ran: 2h}\n"
         "  - {name: plots, tenant: lab, gpus: 1, on: [m-2], ran: 1h}\n"
         "  - {name: train, tenant: big, gpus: 8, waited: 5m}\n",
         {"plots moves"},
         {"notes", "plots", "train"}},
        {"work on more small nodes than it needs is scattered, also where a node elsewhere is larger",
         "[{name: owner, domain: o, guarantee: 4}, {name: bank, domain: b, guarantee: 4},"
         " {name: fix, domain: f, guarantee: 8}]",
         "[{name: s, count: 2, gpus: 4, canReboot: true}, {name: large, gpus: 8, canReboot: true}]",
         "  - {name: o1, tenant: owner, gpus: 2, on: [s-1], ran: 2h}\n"
         "  - {name: o2, tenant: owner, gpus: 2, on: [s-2], ran: 1h}\n"
         "  - {name: fx, tenant: fix, gpus: 8, on: [large], ran: 3h}\n"
         "  - {name: want, tenant: bank, gpus: 4, waited: 5m}\n",
         {"o2 moves"},
         {"o1", "o2", "fx", "want"}},
        {"work leaves a node that others can use for one that only its domain can use",
         "[{name: owner, domain: d1, guarantee: 4}, {name: guest, domain: d2, guarantee: 4}]",
         "[{name: clean, gpus: 4, canReboot: true}, {name: bound, gpus: 4, usedBy: [owner]}]",
         "  - {name: work, tenant: owner, gpus: 4, on: [clean], ran: 30m}\n"
         "  - {name: want, tenant: guest, gpus: 4, waited: 5m}\n",
         {"work moves"},
         {"work", "want"}},
        {"scattered work that has no other place stays",
         "[{name: lab, domain: d1, guarantee: 8}, {name: big, domain: d2, guarantee: 8}]",
         "[{name: m-1, quarantined: [7], canReboot: true}, {name: m-2, canReboot: true}]",
         "  - {name: notes, tenant: lab, gpus: 7, on: [m-1], ran: 2h}\n"
         "  - {name: plots, tenant: lab, gpus: 1, on: [m-2], ran: 1h}\n"
         "  - {name: train, tenant: big, gpus: 8, waited: 5m}\n",
         {},
         {"notes", "plots"}},
    };
    for (const Given& row : rows) check(row);
}

struct Shipped {
    std::string_view file;
    std::vector<std::string> goes, runs;
};

TEST(MakingRoom, the_shipped_scenes_end_as_their_first_lines_say) {
    const Shipped rows[] = {
        {"crumbs-give-way", {"crumb-b"}, {"crumb-a", "train"}},
        {"two-small-before-one-large", {"small-1", "small-2"}, {"large", "serve"}},
        {"spare-tasks-first", {"4 of sweep"}, {"sweep", "batch", "idle", "serve"}},
        {"scattered-work-moves", {"plots moves"}, {"notes", "plots", "train"}},
    };
    for (const Shipped& row : rows) {
        SCOPED_TRACE(row.file);
        std::ifstream file{std::string{BULKHEAD_SOURCE_DIR "/examples/schedule/"}.append(row.file).append(".yaml")};
        std::stringstream text;
        text << file.rdbuf();
        ASSERT_FALSE(text.str().empty());
        const Told after = told(text.str());
        EXPECT_TRUE(after.played.settled);
        EXPECT_EQ(what_went(after), row.goes);
        EXPECT_EQ(after.running(), row.runs);
    }
}

// A job that moved for one claim does not move again, and gives way to the next claim like any other.
TEST(MakingRoom, work_that_moved_for_one_claim_gives_way_to_the_next) {
    check({.rule = "nothing is left to which it could move",
           .tenants = "[{name: a, guarantee: 4}, {name: b}]",
           .nodes = "[{name: m0, gpus: 1}, {name: m1, gpus: 3}]",
           .jobs = "  - {name: x, tenant: b, gpus: 1, on: [m1]}\n"
                   "  - {name: c1, tenant: a, gpus: 3, waited: 5m}\n"
                   "  - {name: c2, tenant: a, gpus: 1, waited: 1m}\n",
           .goes = {"x", "x moves"},
           .runs = {"c1", "c2"}});
    check({.rule = "both of two claims are served",
           .tenants = "[{name: a, guarantee: 8}, {name: b}]",
           .nodes = "[{name: m, gpus: 4, count: 2}]",
           .jobs = "  - {name: x1, tenant: b, gpus: 1, on: [m-1]}\n"
                   "  - {name: x2, tenant: b, gpus: 1, on: [m-2]}\n"
                   "  - {name: c, tenant: a, gpus: 4, count: 2}\n",
           .goes = {"x1", "x1 moves", "x2"},
           .runs = {"c-1", "c-2"}});
}

TEST(MakingRoom, a_scene_is_settled_when_reserved_room_was_looked_at_once_more) {
    const Told after = told(R"(
kind: Cluster
tenants: [{name: t0, guarantee: 1}, {name: t1}, {name: t2}, {name: t3}, {name: t4, guarantee: 6, hard: true}]
nodes: [{name: m1, gpus: 8}, {name: m2, gpus: 7}]
jobs:
  - {name: j0, tenant: t4, gpus: 3, tasks: 3, on: [m1, m1, m2]}
  - {name: j1, tenant: t3, gpus: 3}
  - {name: j3, tenant: t2, gpus: 4, on: [m2]}
  - {name: j4, tenant: t0, gpus: 1}
  - {name: j7, tenant: t1, gpus: 2, on: [m1]}
)");
    EXPECT_TRUE(after.played.settled);
    EXPECT_THAT(after.running(), testing::Contains("j4")) << "it is within its guarantee, and GPUs are free";
}

}  // namespace
}  // namespace bulkhead::sched
