#include "bulkhead/sched/peer_trees.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/sched/cluster_tree.hpp"

namespace bulkhead::sched {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Gpus ten = Gpus::whole(10);

const std::string queue_head = "apiVersion: scheduling.run.ai/v2\nkind: Queue\n";
const std::string queues = queue_head +
                           "metadata: {name: research, uid: 3f, creationTimestamp: 2025-03-01T10:00:00Z}\n"
                           "spec:\n  priority: 100\n  resources:\n    cpu: {quota: -1, limit: -1, overQuotaWeight: 1}\n"
                           "    gpu: {quota: 6, limit: -1, overQuotaWeight: 2}\n---\n" +
                           queue_head +
                           "metadata: {name: vision}\nspec: {parentQueue: research, reclaimMinRuntime: 1h, resources: "
                           "{gpu: {quota: 2, limit: 3, overQuotaWeight: 1}}}\n---\n" +
                           queue_head +
                           "metadata: {name: speech}\nspec: {parentQueue: research, resources: {gpu: {quota: 2, limit: "
                           "-1, overQuotaWeight: 3}}}\nstatus: {allocated: {}}\n";

const ClusterTenant& named(const Cluster& cluster, std::string_view name) {
    return *std::ranges::find(cluster.tenants, name, &ClusterTenant::name);
}

std::vector<std::string> complaints(const PeerCluster& read) {
    std::vector<std::string> out;
    if (!read)
        for (const Diagnostic& each : read.error()) out.push_back(print(each));
    return out;
}

TEST(KaiQueues, are_a_tree_of_tenants_that_all_ask_for_what_they_may) {
    EXPECT_EQ(peer_tree_in(queues), PeerTree::kai);
    const auto read = read_kai_queues("q.yaml", queues, ten);
    ASSERT_THAT(complaints(read), ElementsAre());
    ASSERT_EQ(read->tenants.size(), 3u);
    const ClusterTenant &research = named(*read, "research"), &vision = named(*read, "vision");
    EXPECT_EQ(research.guarantee, Gpus::whole(6));
    EXPECT_FALSE(research.limit);
    EXPECT_EQ(research.weight, 2);
    EXPECT_EQ(research.overQuotaPriority, 100);
    EXPECT_EQ(research.request, Gpus{});
    EXPECT_TRUE(research.since);
    EXPECT_EQ(vision.parent, "research");
    EXPECT_EQ(vision.limit, Gpus::whole(3));
    EXPECT_EQ(vision.request, Gpus::whole(3));
    EXPECT_EQ(vision.reclaimMinRuntime, Duration::hours(1));
    EXPECT_EQ(named(*read, "speech").request, ten);
    // Guarantees first; of the six that are left three in four are speech's, and what vision's limit leaves of its
    // part.
    const Division division = divide(queues_of(*read), read->all_gpus(), Grain::fine);
    EXPECT_EQ(division.queues[1].own, Gpus::whole(3));
    EXPECT_EQ(division.queues[2].own, Gpus::whole(7));
    EXPECT_EQ(division.unallocated, Gpus{});
}

TEST(KaiQueues, come_as_a_list_too_and_weights_may_be_fractions) {
    const std::string list =
        R"({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "a"},
             "spec": {"resources": {"gpu": {"quota": -1, "overQuotaWeight": 0.5}}}},
            {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "b"},
             "spec": {"resources": {"gpu": {"limit": -1, "overQuotaWeight": 2}}}},
            {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "c"},
             "spec": {"priority": 7, "resources": {"gpu": {"quota": 4}}}}]})";
    EXPECT_EQ(peer_tree_in(list), PeerTree::kai);
    const auto read = read_kai_queues("q.json", list, ten);
    ASSERT_THAT(complaints(read), ElementsAre());
    EXPECT_EQ(named(*read, "a").guarantee, ten);
    EXPECT_EQ(named(*read, "a").weight, 500);
    EXPECT_EQ(named(*read, "b").weight, 2000);
    EXPECT_EQ(named(*read, "b").guarantee, Gpus{});
    EXPECT_EQ(named(*read, "b").overQuotaPriority, 100);
    // What it does not say of GPUs is 0, as in KAI: this one may hold nothing.
    EXPECT_EQ(named(*read, "c").weight, 0);
    EXPECT_EQ(named(*read, "c").limit, Gpus{});
    EXPECT_EQ(named(*read, "c").overQuotaPriority, 7);
}

TEST(KaiQueues, every_error_is_told_with_its_place) {
    const std::string wrong =
        queue_head + "metadata: {name: a}\nspec: {parentQueue: b, priority: high}\n---\n" + queue_head +
        "metadata: {name: b}\nspec: {parentQueue: a, resources: {gpu: {quota: -2}}}\n---\n" + queue_head +
        "metadata: {name: b}\n---\n" + queue_head + "metadata: {name: c}\nspec: {parentQueue: d}\n---\n" + queue_head +
        "spec: {}\n---\nkind: Pod\n---\n" + queue_head + "metadata: {name: \"a\\e[2J\"}\n";
    EXPECT_THAT(complaints(read_kai_queues("q.yaml", wrong, ten)),
                testing::UnorderedElementsAre(
                    HasSubstr("q.yaml:4:34: priority is not a number"), HasSubstr("quota is not a number"),
                    HasSubstr("queue b is there twice"), HasSubstr("its parent \"d\" is not among these"),
                    HasSubstr("a is above itself"), HasSubstr("a queue without a name"), HasSubstr("no Queue of KAI"),
                    HasSubstr("queue a says nothing of GPUs"), HasSubstr("queue b says nothing of GPUs"),
                    HasSubstr("queue c says nothing of GPUs"), HasSubstr("a name that cannot be one")));
}

const std::string dump =
    "# To edit this file start with a cluster line for the new cluster\n"
    "Cluster - 'tux':Fairshare=1:QOS='normal'\nParent - 'root'\n"
    "User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1\n"
    "Account - 'physics':Description='physics: all of it':Organization='sci':Fairshare=30:GrpTRES=cpu=64,gres/gpu=6\n"
    "Account - 'bio':Fairshare=10\nParent - 'physics'\nUser - 'ann':DefaultAccount='physics':Fairshare=2\n"
    "User - 'bob':Fairshare=1:GrpTRES=gres/gpu=1\nUser - 'ann':Partition='long':Fairshare=9\n"
    "Parent - 'bio'\nUser - 'ann':Fairshare=1\n";

TEST(SlurmDump, is_a_tree_of_accounts_and_users) {
    EXPECT_EQ(peer_tree_in(dump), PeerTree::slurm);
    const auto read = read_slurm_dump("d", dump, ten);
    ASSERT_THAT(complaints(read), ElementsAre());
    std::vector<std::string> names;
    for (const ClusterTenant& each : read->tenants) names.push_back(each.name);
    EXPECT_THAT(names, ElementsAre("root/root", "physics", "bio", "physics/ann", "physics/bob", "bio/ann"));
    EXPECT_EQ(named(*read, "physics").weight, 30);
    EXPECT_EQ(named(*read, "physics").shares, 30);
    EXPECT_EQ(named(*read, "physics").limit, Gpus::whole(6));
    EXPECT_EQ(named(*read, "physics/ann").weight, 2);
    EXPECT_EQ(named(*read, "physics/bob").request, Gpus::whole(1));
    EXPECT_EQ(named(*read, "bio/ann").parent, "bio");
    EXPECT_EQ(named(*read, "bio/ann").request, ten);
    EXPECT_EQ(named(*read, "bio").request, Gpus{});
    EXPECT_EQ(named(*read, "root/root").request, Gpus{});
}

TEST(SlurmDump, is_read_as_slurm_writes_it) {
    const auto read = read_slurm_dump("d",
                                      "Cluster - 'tux':GrpTRES=gres/gpu=8\nParent - 'root'\n"
                                      "Account - 'ann':Description='Ann's lab':Organization='y':Fairshare=50\n"
                                      "User - 'ann':Fairshare=3\n"
                                      "Account - 'b':GrpTRES=cpu=1,gres/gpu:a100=8,gres/gpu=6:Fairshare=4\n",
                                      ten);
    ASSERT_THAT(complaints(read), ElementsAre());
    EXPECT_EQ(read->all_gpus(), Gpus::whole(8));
    EXPECT_EQ(named(*read, "ann").weight, 50);
    EXPECT_EQ(named(*read, "root/ann").weight, 3);
    EXPECT_EQ(named(*read, "b").limit, Gpus::whole(6));
    EXPECT_EQ(named(*read, "b").weight, 4);
    EXPECT_THAT(complaints(read_slurm_dump("d",
                                           "Cluster - 'a'\nParent - 'root'\nAccount - 'x':GrpTRES=gres/gpu:a100=8\n"
                                           "Account - 'y':Fairshare=2147483647\nAccount - 'z':Description='open\n"
                                           "User - 'u'\nParent - 'u'\n",
                                           ten)),
                ElementsAre(HasSubstr("d:3:1: gres/gpu=:a100=8"), HasSubstr("Fairshare=parent is not read"),
                            HasSubstr("d:5:1: a quote that does not end"), HasSubstr("d:7:1: account \"u\"")));
}

TEST(SlurmDump, every_error_is_told_with_its_line) {
    const auto read =
        read_slurm_dump("d",
                        "Cluster - 'a'\nParent - 'nobody'\nAccount - 'x':Fairshare=parent\nAccount - 'x'\n"
                        "Account - ''\nnonsense\nAccount - 'y':GrpTRES=gres/gpu=many\nCluster - 'b'\n",
                        ten);
    EXPECT_THAT(complaints(read),
                ElementsAre(HasSubstr("d:2:1: account \"nobody\""), HasSubstr("d:3:1: Fairshare=parent"),
                            HasSubstr("d:4:1: account x is there twice"), HasSubstr("d:5:1: Account without a name"),
                            HasSubstr("d:6:1: this is no line"), HasSubstr("d:7:1: gres/gpu=many"),
                            HasSubstr("d:8:1: a second cluster")));
    EXPECT_THAT(complaints(read_slurm_dump("d", "Cluster - 'a'\n", ten)),
                ElementsAre(HasSubstr("no account and no user")));
}

TEST(PeerTrees, what_is_ours_is_not_taken_for_theirs) {
    EXPECT_EQ(peer_tree_in("# ClusterName\nQOS - 'normal':Priority=0\nCluster - 'lab':\n"), PeerTree::slurm);
    EXPECT_EQ(peer_tree_in("kind: Cluster\ngpus: 4\n"), PeerTree::none);
    EXPECT_EQ(peer_tree_in("# scheduling.run.ai/v2\nkind: Queue\n"), PeerTree::none);
    EXPECT_EQ(peer_tree_in(""), PeerTree::none);
}

}  // namespace
}  // namespace bulkhead::sched
