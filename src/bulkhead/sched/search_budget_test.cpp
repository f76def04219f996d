// Searches for work that gives way: they end by themselves, however many ways there are to place what moves, and they
// say so where they ended early.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "bulkhead/sched/play_test.hpp"

namespace bulkhead::sched {
namespace {

std::string nodes_in_turn(int tasks) {
    std::string on;
    for (int task = 0; task < tasks; ++task) on += task % 2 == 0 ? "m-1, " : "m-2, ";
    on.resize(on.size() - 2);
    return on;
}

// Gangs of crumbs on two nodes, and half of the first node protected.
std::string crumbs_of_gangs(int gangs, int tasks) {
    std::string text = "kind: Cluster\ntenants:\n  - {name: p, guarantee: 4}\n  - {name: b, guarantee: 8}\n";
    for (int gang = 0; gang < gangs; ++gang) text += "  - {name: a" + std::to_string(gang) + "}\n";
    text += "nodes: [{name: m, count: 2, gpus: 8}]\njobs:\n";
    text += "  - {name: p1, tenant: p, gpus: 4, on: [m-1], ran: 1h}\n";
    for (int gang = 0; gang < gangs; ++gang) {
        const std::string number = std::to_string(gang);
        text += "  - {name: gang" + number + ", tenant: a" + number + ", gpus: 0.1, tasks: " + std::to_string(tasks) +
                ", on: [" + nodes_in_turn(tasks) + "], ran: 1h}\n";
    }
    return text + "  - {name: want, tenant: b, gpus: 8, waited: 5m}\n";
}

// Without end, as the number of places grows exponentially, unless gangs, tasks and GPUs that are alike are tried once.
TEST(SearchBudget, ends_where_gangs_have_very_many_places) {
    for (const auto& [gangs, tasks] : {std::pair{4, 12}, std::pair{3, 20}, std::pair{4, 20}, std::pair{2, 30}}) {
        SCOPED_TRACE(std::to_string(gangs) + " gangs of " + std::to_string(tasks));
        const Told after = told(crumbs_of_gangs(gangs, tasks));
        EXPECT_TRUE(after.played.settled);
        EXPECT_THAT(after.running(), testing::Contains("want"));
        EXPECT_THAT(after.running(), testing::Contains("p1"));
    }
}

bool waits_with(const Told& after, const std::string& job, std::string_view code) {
    for (const Waiting& each : after.played.waiting)
        if (after.name(each.workload) == job)
            return std::ranges::find(each.reasons, code, &Reason::code) != each.reasons.end();
    return false;
}

// `each` notebooks of one team on each of two nodes.
std::string notebooks(int each, const std::string& share) {
    return "kind: Cluster\n"
           "tenants: [{name: s, domain: d1, guarantee: 2}, {name: big, domain: d3, guarantee: 8}]\n"
           "nodes: [{name: m, count: 2, canReboot: true}]\n"
           "jobs:\n"
           "  - {name: a, tenant: s, gpus: " +
           share + ", count: " + std::to_string(each) +
           ", on: [m-1], ran: 9h}\n"
           "  - {name: b, tenant: s, gpus: " +
           share + ", count: " + std::to_string(each) +
           ", on: [m-2], ran: 2h}\n"
           "  - {name: train, tenant: big, gpus: 8, waited: 5m}\n";
}

TEST(SearchBudget, is_said_where_more_would_have_to_move_than_may) {
    const Told after = told(notebooks(18, "0.02"));
    EXPECT_EQ(after.played.evictions.size() + after.played.moves.size(), 0u);
    EXPECT_TRUE(waits_with(after, "train", "wait.budget"));
}

TEST(ScatteredWork, moves_together_when_it_is_many_small_jobs) {
    const Told after = told(notebooks(5, "0.1"));
    EXPECT_THAT(after.running(), testing::Contains("train"));
    EXPECT_EQ(after.played.moves.size(), 5u);
    EXPECT_EQ(after.played.evictions.size(), 0u);
}

// Two halves of a team's node on two nodes; `full` nodes of others, with work within its guarantee or without one.
std::string two_halves_and(int full, const std::string& jobs) {
    std::string text =
        "kind: Cluster\ntenants: [{name: s, domain: d1, guarantee: 8}, {name: f, domain: d2, guarantee: " +
        std::to_string(8 * full) + "}, {name: u, domain: d2}, {name: big, domain: d3, guarantee: 8}]\n" +
        "nodes: [{name: m, count: 2, canReboot: true}, {name: q, count: " + std::to_string(full) +
        ", canReboot: true}]\njobs:\n"
        "  - {name: c1, tenant: s, gpus: 4, on: [m-1], ran: 2h}\n"
        "  - {name: c2, tenant: s, gpus: 4, on: [m-2], ran: 1h}\n";
    for (int node = 1; node <= full; ++node) {
        std::string row = jobs;
        for (std::size_t at = row.find('#'); at != std::string::npos; at = row.find('#'))
            row.replace(at, 1, std::to_string(node));
        text += row;
    }
    return text + "  - {name: train, tenant: big, gpus: 8, waited: 5m}\n";
}

TEST(ScatteredWork, moves_in_a_fleet_of_more_than_64_nodes) {
    const Told after = told(two_halves_and(64, "  - {name: f#, tenant: f, gpus: 8, on: [q-#], ran: 1h}\n"));
    EXPECT_THAT(after.running(), testing::Contains("train"));
    EXPECT_EQ(after.played.moves.size(), 1u);
    EXPECT_EQ(after.played.evictions.size(), 0u);
}

TEST(ScatteredWork, moves_where_much_other_work_could_give_way_in_vain) {
    const Told after =
        told(two_halves_and(7,
                            "  - {name: p#, tenant: f, gpus: 1, on: [q-#], ran: 5h, preemptible: false}\n"
                            "  - {name: u#, tenant: u, gpus: 1, count: 7, on: [q-#], ran: 1h}\n"));
    EXPECT_THAT(after.running(), testing::Contains("train"));
    EXPECT_EQ(after.played.moves.size(), 1u);
    EXPECT_EQ(after.played.evictions.size(), 0u);
}

// One node is closed by 70 small jobs; 65 others by work within its guarantee.
TEST(SearchBudget, does_not_skip_a_node_with_very_many_small_jobs) {
    std::string text =
        "kind: Cluster\ntenants: [{name: f, domain: d2, guarantee: 520}, {name: t, domain: d1}, {name: big, domain: "
        "d3, "
        "guarantee: 8}]\nnodes: [{name: m, canReboot: true}, {name: q, count: 65, canReboot: true}]\njobs:\n"
        "  - {name: crumb, tenant: t, gpus: 0.1, count: 70, on: [m], ran: 1h}\n";
    for (int node = 1; node <= 65; ++node) {
        const std::string number = std::to_string(node);
        text += "  - {name: f" + number + ", tenant: f, gpus: 8, on: [q-" + number + "], ran: 1h}\n";
    }
    const Told after = told(text + "  - {name: train, tenant: big, gpus: 8, waited: 5m}\n");
    EXPECT_THAT(after.running(), testing::Contains("train"));
    EXPECT_EQ(after.played.evictions.size(), 70u);
}

}  // namespace
}  // namespace bulkhead::sched
