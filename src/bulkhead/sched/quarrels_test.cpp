// Who gives way to whom, where limits, hard partitions, reservations and promises meet: small clusters, played to their
// end, each a sentence about what must come out.
#include <gmock/gmock.h>

#include <algorithm>

#include "bulkhead/sched/play_test.hpp"

namespace bulkhead::sched {
namespace {

struct Quarrel {
    std::string_view rule;
    std::string_view tenants, nodes, jobs;
    std::vector<std::string> evicted;  // sorted
    std::string_view held;             // of the tenants, in their order
};

const std::vector<Quarrel>& quarrels() {
    static const std::vector<Quarrel> all{
        {"siblings under a limited parent settle it between them, though other nodes are idle",
         "[{name: dept, limit: 8, guarantee: 8}, {name: a, parent: dept, guarantee: 4}, {name: b, parent: dept, "
         "guarantee: 4}]",
         "[{name: n1}, {name: n2}]",
         "  - {name: bj, count: 8, tenant: b, gpus: 1, on: [n1], ran: 1h}\n"
         "  - {name: aj, tenant: a, gpus: 4, waited: 5m}\n",
         {"bj-1", "bj-2", "bj-3", "bj-4"},
         "8 4 4"},
        {"and under a hard one",
         "[{name: dept, hard: true, guarantee: 8}, {name: a, parent: dept, guarantee: 4}, {name: b, parent: dept, "
         "guarantee: 4}]",
         "[{name: n1}, {name: n2}]",
         "  - {name: bj, count: 8, tenant: b, gpus: 1, on: [n1], ran: 1h}\n"
         "  - {name: aj, tenant: a, gpus: 4, waited: 5m}\n",
         {"bj-1", "bj-2", "bj-3", "bj-4"},
         "8 4 4"},
        {"quota that others were disturbed for is not given to the next in the queue",
         "[{name: s, guarantee: 8, limit: 8}, {name: r}, {name: u, guarantee: 8}]",
         "[{name: h1}, {name: a1, model: a100-80gb-sxm4}]",
         "  - {name: s0, tenant: s, gpus: 4, models: [h100-80gb-sxm5], on: [h1], ran: 1h}\n"
         "  - {name: rj, tenant: r, gpus: 8, models: [a100-80gb-sxm4], on: [a1], ran: 10h}\n"
         "  - {name: s1, tenant: s, gpus: 4, models: [a100-80gb-sxm4], priority: 10, waited: 5m}\n"
         "  - {name: s2, tenant: s, gpus: 4, models: [h100-80gb-sxm5], waited: 5m}\n"
         "  - {name: u1, tenant: u, gpus: 8, models: [h100-80gb-sxm5], waited: 5m}\n",
         {"rj"},
         "8 0 0"},
        {"nobody is evicted from a hard partition, which would take it back",
         "[{name: h, hard: true, guarantee: 8}, {name: s, guarantee: 8}]",
         "[{name: n1}]",
         "  - {name: hj, count: 8, tenant: h, gpus: 1, on: [n1], ran: 10h}\n"
         "  - {name: sj, tenant: s, gpus: 4, waited: 5m}\n",
         {},
         "8 0"},
        {"work that can never run keeps nobody else from what is due to it",
         "[{name: noisy, guarantee: 1}, {name: s, guarantee: 8, usage: 100}, {name: r, usage: 100}]",
         "[{name: n1}, {name: n2}]",
         "  - {name: rj, count: 8, tenant: r, gpus: 1, ran: 1h, on: [n1]}\n"
         "  - {name: rk, count: 8, tenant: r, gpus: 1, ran: 1h, on: [n2]}\n"
         "  - {name: sj, tenant: s, gpus: 4, waited: 50m}\n"
         "  - {name: never, count: 30, tenant: noisy, gpus: 9, waited: 1m}\n",
         {"rj-1", "rj-2", "rj-3", "rj-4"},
         "0 4 12"},
        {"where one branch would lose too much, another gives its part",
         "[{name: r1, guarantee: 8}, {name: r2, guarantee: 8}, {name: s, guarantee: 16}]",
         "[{name: n1}, {name: n2}, {name: n3}, {name: n4}]",
         "  - {name: r1a, tenant: r1, gpus: 8, on: [n1], ran: 10m}\n"
         "  - {name: r1b, tenant: r1, gpus: 8, on: [n2], ran: 11m}\n"
         "  - {name: r2a, tenant: r2, gpus: 8, on: [n3], ran: 10h}\n"
         "  - {name: r2b, tenant: r2, gpus: 8, on: [n4], ran: 11h}\n"
         "  - {name: sg, tenant: s, tasks: 2, gpus: 8, waited: 5m}\n",
         {"r1a", "r2a"},
         "8 8 16"},
        {"what nobody can use is not divided: an idle hard partition",
         "[{name: hrd, hard: true, guarantee: 8}, {name: a}, {name: b}]",
         "[{name: n1}, {name: n2}]",
         "  - {name: aj, count: 8, tenant: a, gpus: 1, on: [n1], ran: 1h}\n"
         "  - {name: bj, count: 4, tenant: b, gpus: 1, waited: 5m}\n",
         {"aj-1", "aj-2", "aj-3", "aj-4"},
         "0 4 4"},
        {"what nobody can use is not divided: a closed node",
         "[{name: a}, {name: b}]",
         "[{name: n1}, {name: n2, closed: true}]",
         "  - {name: aj, count: 8, tenant: a, gpus: 1, on: [n1], ran: 1h}\n"
         "  - {name: bj, count: 4, tenant: b, gpus: 1, waited: 5m}\n",
         {"aj-1", "aj-2", "aj-3", "aj-4"},
         "4 4"},
        {"minimum run time protects the surplus of an elastic gang too",
         "[{name: r, guarantee: 4, reclaimMinRuntime: 2h}, {name: s, guarantee: 4}]",
         "[{name: n1}]",
         "  - {name: el, tenant: r, tasks: 8, minTasks: 4, gpus: 1, on: [n1], ran: 1m}\n"
         "  - {name: s1, tenant: s, gpus: 4, waited: 5m}\n",
         {},
         "8 0"},
        {"a gang on one node counts with all its tasks: it loses less than the single job beside it",
         "[{name: r, guarantee: 8}, {name: s, guarantee: 8}]",
         "[{name: n1}, {name: n2}]",
         "  - {name: big, tenant: r, gpus: 8, on: [n1], ran: 10h}\n"
         "  - {name: gang, tenant: r, tasks: 8, gpus: 1, on: [n2], ran: 10h, checkpoint: 1h}\n"
         "  - {name: s1, tenant: s, gpus: 8, waited: 5m}\n",
         {"gang"},
         "8 8"},
        {"an elastic gang under a limit gives up whole groups",
         "[{name: t, limit: 6}, {name: z}]",
         "[{name: a, count: 4, gpus: 2, rack: r1}, {name: b, count: 4, gpus: 1, rack: r2}]",
         "  - {name: g, tenant: t, tasks: 8, minTasks: 4, gpus: 1, groupTasks: 4, groupWithin: rack}\n"
         "  - {name: f, tenant: z, tasks: 4, gpus: 1, on: [a-1, a-1, a-2, a-2]}\n",
         {},
         "4 4"},
        {"nobody gives up GPUs to one who asks for none",
         "[{name: c, weight: 0}, {name: r}]",
         "[{name: n1, cpu: 64}]",
         "  - {name: r1, tenant: r, gpus: 8, cpu: 64, on: [n1], ran: 10h}\n"
         "  - {name: cj, tenant: c, gpus: 0, cpu: 8, waited: 5m}\n",
         {},
         "0 8"},
        {"cores that are promised twice are missed only by who needs cores",
         "[{name: t}, {name: o, usage: 1000}]",
         "[{name: n1}]",
         "  - {name: hold, tenant: t, gpus: 1, cpu: 100, on: [n1], ran: 1h, duration: 2h}\n"
         "  - {name: g, tenant: t, gpus: 1, cpu: 112, waited: 2h}\n"
         "  - {name: w, tenant: o, gpus: 4, waited: 5m}\n",
         {},
         "1 4"},
        {"short work is backfilled though long work like it was not",
         "[{name: t}]",
         "[{name: n1}, {name: n2}]",
         "  - {name: run, tenant: t, gpus: 8, on: [n1], ran: 1h, duration: 2h}\n"
         "  - {name: half, tenant: t, gpus: 4, on: [n2], ran: 1h, duration: 2h}\n"
         "  - {name: gang, tenant: t, tasks: 2, gpus: 8, waited: 2h}\n"
         "  - {name: long, tenant: t, gpus: 1, waited: 1h, duration: 5h}\n"
         "  - {name: short, tenant: t, gpus: 1, waited: 5m, duration: 10m}\n",
         {},
         "13"},
        {"beside one who bears strangers, the one who used the host before may sit",
         "[{name: a, domain: da}, {name: b, domain: db}]",
         "[{name: n1, usedBy: [a]}]",
         "  - {name: xb, tenant: b, gpus: 2, on: [n1], ran: 1h, isolation: {tier: vm, node: distrusting, gpu: "
         "same-domain}}\n"
         "  - {name: wa, tenant: a, gpus: 2, waited: 5m, isolation: {tier: vm, node: distrusting, gpu: same-domain}}\n",
         {},
         "2 2"},
        {"work that bears its own tenant only joins it on a host that another of its domain used before",
         "[{name: a, domain: d}, {name: b, domain: d}]",
         "[{name: n1, usedBy: [b, a]}]",
         "  - {name: xa, tenant: a, gpus: 2, on: [n1], ran: 1h}\n"
         "  - {name: wa, tenant: a, gpus: 2, waited: 5m, isolation: {node: same-tenant, gpu: same-tenant}}\n",
         {},
         "4 0"},
    };
    return all;
}

TEST(Quarrels, end_as_the_rules_say) {
    for (const Quarrel& quarrel : quarrels()) {
        SCOPED_TRACE(quarrel.rule);
        std::string text = "kind: Cluster\ntenants: ";
        text.append(quarrel.tenants).append("\nnodes: ").append(quarrel.nodes).append("\njobs:\n").append(quarrel.jobs);
        const Told after = told(text);
        EXPECT_TRUE(after.played.settled);
        std::vector<std::string> evicted;
        for (const auto& each : after.played.evictions) evicted.push_back(after.name(each.what.workload));
        std::ranges::sort(evicted);
        EXPECT_EQ(evicted, quarrel.evicted);
        std::string held;
        for (const auto& tenant : after.played.tenants) held += (held.empty() ? "" : " ") + print(tenant.held);
        EXPECT_EQ(held, quarrel.held);
        for (const Waiting& each : after.played.waiting) {
            EXPECT_THAT(each.reasons, testing::Not(testing::IsEmpty())) << after.name(each.workload);
        }
    }
}

// r is exactly at its due; that room is also reserved for it makes it no victim.
TEST(Quarrels, a_reservation_makes_nobody_a_victim) {
    const Told after = told(
        "kind: Cluster\n"
        "tenants: [{name: r, guarantee: 8}, {name: s, guarantee: 8}, {name: t, guarantee: 8, reclaimMinRuntime: 7d}]\n"
        "nodes: [{name: n1}, {name: n2}, {name: n3}]\n"
        "jobs:\n"
        "  - {name: r1, tenant: r, gpus: 8, on: [n1], ran: 5h}\n"
        "  - {name: t1, tenant: t, gpus: 8, on: [n2], ran: 1h, duration: 3h}\n"
        "  - {name: t2, tenant: t, gpus: 8, on: [n3], ran: 1h, duration: 3h}\n"
        "  - {name: r2, tenant: r, gpus: 8, waited: 5m}\n"
        "  - {name: s1, tenant: s, gpus: 8, waited: 5m}\n",
        {.cycles = 8});
    EXPECT_THAT(after.played.evictions, testing::IsEmpty());
}

TEST(Quarrels, lost_work_is_never_negative) {
    std::string on;
    for (int n = 1; n <= 700; ++n) on += (n > 1 ? ", m-" : "m-") + std::to_string(n);
    const Told after = told(
        "kind: Cluster\n"
        "tenants: [{name: r}, {name: s, guarantee: 8}]\n"
        "nodes: [{name: m, count: 700, gpus: 64}]\n"
        "jobs:\n"
        "  - {name: big, tenant: r, tasks: 700, gpus: 64, ran: 36500d, on: [" +
        on +
        "]}\n"
        "  - {name: s1, tenant: s, gpus: 8, waited: 5m}\n");
    EXPECT_EQ(after.played.evictions.size(), 1u);
    for (const auto& each : after.played.evictions) EXPECT_GT(each.what.lost_gpu_ms, 0);
}

}  // namespace
}  // namespace bulkhead::sched
