#include "bulkhead/sched/cluster_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bulkhead::sched {
namespace {

using testing::ElementsAre;

TEST(ClusterTree, who_says_since_when_is_older_than_who_does_not) {
    const Cluster cluster{Gpus::whole(1),
                          {{.name = "a"},
                           {.name = "b", .since = Instant{2000}},
                           {.name = "c"},
                           {.name = "d", .since = Instant{1000}},
                           {.name = "e", .since = Instant{2000}}}};
    std::vector<std::int64_t> seniority;
    for (const Queue& queue : queues_of(cluster)) seniority.push_back(queue.seniority);
    EXPECT_THAT(seniority, ElementsAre(2, 1, 2, 0, 1));
}

TEST(ClusterTree, a_snapshot_is_a_cluster) {
    Snapshot snapshot;
    GpuNode node;
    node.status.gpus = {{.model = "h100-80gb-sxm5", .count = 8}, {.model = "h100-80gb-sxm5", .count = 4}};
    snapshot.nodes = {node};
    Tenant parent, child;
    parent.metadata.name = "lab";
    parent.spec.quota = {.guarantee = Gpus::whole(4), .limit = Gpus::whole(9), .weight = 0, .overQuotaPriority = 7};
    child.metadata.name = "vision";
    child.spec.parent = "lab";
    snapshot.tenants = {parent, child};
    const auto work = [&](std::int64_t tasks, const GpuRequest& gpu) {
        GpuWorkload out;
        out.spec.tenant = "vision";
        out.spec.tasks = tasks;
        out.spec.gpu = gpu;
        return out;
    };
    GpuWorkload refused = work(99, {.count = 8}), leaving = work(99, {.count = 8});
    refused.status = GpuWorkloadStatus{.phase = WorkloadPhase::refused};
    leaving.status = GpuWorkloadStatus{.phase = WorkloadPhase::running, .deleting = true};
    struct Row {
        std::string_view says;
        GpuWorkload workload;
        Gpus asked;
    };
    const Row rows[] = {
        {"whole GPUs times tasks", work(3, {.count = 8}), Gpus::whole(24)},
        {"fractions times tasks", work(3, {.fraction = Gpus::of_thousandths(250)}), Gpus::of_thousandths(750)},
        {"a slice by what quota counts: seven sevenths are one", work(7, {.profile = "1g.10gb"}), Gpus::whole(1)},
        {"memory by the first mechanism that can give it", work(2, {.memory = ByteSize{10LL << 30}}),
         Gpus{2 * gpu_unit / 7}},
        {"a slice that no node has counts whole", work(2, {.profile = "9g.90gb"}), Gpus::whole(2)},
        {"refused work asks for nothing", refused, {}},
        {"nor does work that is deleted", leaving, {}},
    };
    for (const Row& row : rows) {
        snapshot.workloads = {row.workload};
        const Cluster cluster = cluster_of(snapshot);
        EXPECT_EQ(cluster.gpus, Gpus::whole(12));
        EXPECT_EQ(cluster.tenants[0], (ClusterTenant{.name = "lab",
                                                     .guarantee = Gpus::whole(4),
                                                     .limit = Gpus::whole(9),
                                                     .weight = 0,
                                                     .overQuotaPriority = 7}));
        EXPECT_EQ(cluster.tenants[1].parent, "lab");
        EXPECT_EQ(print(cluster.tenants[1].request), print(row.asked)) << row.says;
    }
}

TEST(ClusterTree, tenants_without_children_are_users) {
    const Cluster cluster{Gpus::whole(1),
                          {{.name = "b", .parent = "a", .weight = 3},
                           {.name = "a", .usage = 5},
                           {.name = "c", .shares = 9},
                           {.name = "d", .parent = "e"},
                           {.name = "e"}}};
    const FairTable table = fair_table(cluster);
    std::vector<std::string> rows;
    for (const FairRow& row : table.rows)
        rows.push_back(std::string(row.depth, ' ') + row.account + "/" + row.user + " " + std::to_string(row.shares));
    EXPECT_THAT(rows, ElementsAre("a/ 1", " a/a 1", " a/b 3", "root/c 9", "e/ 1", " e/d 1"))
        << "an account with work of its own is a user below itself, with one share";
    EXPECT_EQ(table.tree.users, 4);
    EXPECT_EQ(table.tree.standings[0].usage, 5);
    EXPECT_EQ(table.tree.standings[1].usage, 5);
}

}  // namespace
}  // namespace bulkhead::sched
