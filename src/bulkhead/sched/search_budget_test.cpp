// Searches for work that gives way: they end by themselves, however many ways there are to place what moves, and they
// say so where they ended early.
#include <gmock/gmock.h>

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

}  // namespace
}  // namespace bulkhead::sched
