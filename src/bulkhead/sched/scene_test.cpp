// What a person's short document means: who trusts whom, what nodes have, what jobs ask, and where running work sits.
#include "bulkhead/sched/scene.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bulkhead::sched {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Cluster cluster(std::string_view text) {
    const auto read = read_cluster("c.yaml", text);
    std::string errors;
    if (!read)
        for (const Diagnostic& error : read.error()) errors += print(error);
    EXPECT_TRUE(read) << errors;
    return read.value_or(Cluster{});
}

Scene scene(std::string_view text) {
    auto made = scene_of(cluster(text));
    EXPECT_TRUE(made) << (made ? "" : made.error().front().what);
    return made ? *std::move(made) : Scene{};
}

std::string misfit(std::string_view text) {
    const auto made = scene_of(cluster(text));
    if (made) return "fits";
    std::string all;
    for (const Diagnostic& each : located("c.yaml", text, made.error())) all += print(each);
    return all;
}

TEST(SceneOfCluster, a_node_is_eight_h100_where_nothing_else_is_said) {
    const Scene made = scene("kind: Cluster\nnodes: [{name: m}]\n");
    ASSERT_EQ(made.nodes.size(), 1u);
    const Node& node = made.nodes.front();
    EXPECT_EQ(node.name, "m");
    EXPECT_EQ(node.gpus.size(), 8u);
    EXPECT_EQ(node.gpus.front().model, "h100-80gb-sxm5");
    EXPECT_EQ(node.gpus.front().slices, 8);
    ASSERT_NE(node.gpus.front().board, nullptr);
    EXPECT_TRUE(node.gpus.front().empty());
    EXPECT_EQ(node.cpu_free, 128);
    EXPECT_EQ(node.memory_free, std::int64_t{1} << 40);
    EXPECT_EQ(node.functions.size(), 8u);
    EXPECT_TRUE(node.open);
    EXPECT_EQ(print(made.now), "2026-01-01T00:00:00Z");
}

TEST(SceneOfCluster, nodes_come_in_numbers_and_in_every_condition) {
    const Scene made = scene(
        "kind: Cluster\nnodes:\n"
        "  - {name: m, count: 3, gpus: 4, model: a30, cpu: 5, memory: 7Gi, nics: 0, drives: [1T, 2T], rack: r1}\n"
        "  - {name: odd, gpus: 2, model: own-chip, closed: true, wiping: [0], quarantined: [1], wholeFabric: true,\n"
        "     usedBy: [stranger], canReboot: true}\n");
    ASSERT_EQ(made.nodes.size(), 4u);
    EXPECT_EQ(made.nodes[2].name, "m-3");
    EXPECT_EQ(made.nodes[2].rack, "r1");
    EXPECT_EQ(made.nodes[2].gpus[3].model, "a30-24gb") << "a short name means its board";
    EXPECT_EQ(made.nodes[2].gpus[3].slices, 4);
    EXPECT_EQ(made.nodes[2].cpu_free, 5);
    EXPECT_THAT(made.nodes[2].functions, IsEmpty());
    EXPECT_THAT(made.nodes[2].drive_bytes, ElementsAre(1'000'000'000'000, 2'000'000'000'000));
    const Node& odd = made.nodes[3];
    EXPECT_FALSE(odd.open);
    EXPECT_EQ(odd.gpus[0].board, nullptr) << "a model nobody knows cannot be cut";
    EXPECT_EQ(odd.gpus[0].available, 0);
    EXPECT_EQ(odd.gpus[0].lost, 0) << "it comes back when it is clean";
    EXPECT_EQ(odd.gpus[1].lost, odd.gpus[1].all());
    EXPECT_TRUE(odd.board_is_one);
    EXPECT_TRUE(odd.can_reboot);
    ASSERT_THAT(odd.host_used_by, testing::SizeIs(1));
    EXPECT_EQ(made.tenants[odd.host_used_by.front()].name, "stranger");
}

TEST(SceneOfCluster, who_names_no_domain_is_in_the_common_one) {
    const Scene made = scene(
        "kind: Cluster\nnodes: [{name: m}]\n"
        "tenants: [{name: a}, {name: b, domain: own}, {name: c, domain: own}, {name: d, domain: other, hard: true}]\n"
        "jobs: [{name: j}, {name: k, tenant: new}]\n");
    ASSERT_EQ(made.tenants.size(), 6u);
    EXPECT_EQ(made.tenants[4].name, "default") << "whose jobs are that name nobody";
    EXPECT_EQ(made.tenants[5].name, "new") << "not listed: a root";
    EXPECT_EQ(made.tenants[0].domain, made.tenants[4].domain);
    EXPECT_EQ(made.tenants[0].domain, made.tenants[5].domain);
    EXPECT_EQ(made.tenants[1].domain, made.tenants[2].domain);
    EXPECT_NE(made.tenants[0].domain, made.tenants[1].domain);
    EXPECT_NE(made.tenants[1].domain, made.tenants[3].domain);
    EXPECT_TRUE(made.tenants[3].hard);
    EXPECT_FALSE(made.tenants[5].parent);
}

TEST(SceneOfCluster, what_a_job_asks_becomes_a_want_for_each_model_that_can_give_it) {
    struct Row {
        std::string_view says, job;
        Want::Form form;
        std::size_t wants;
        Mechanism mechanism;
        std::string_view counted;  // GPUs of one task
    };
    const Row rows[] = {
        {"one GPU when nothing is said", "", Want::Form::whole, 2, Mechanism::whole, "1"},
        {"whole GPUs of any model", "gpus: 4", Want::Form::whole, 2, Mechanism::whole, "4"},
        {"of one model", "gpus: 4, models: [a30]", Want::Form::whole, 1, Mechanism::whole, "4"},
        {"the same model twice is one", "models: [a30, a30-24gb]", Want::Form::whole, 1, Mechanism::whole, "1"},
        {"a fraction is kept by MPS", "gpus: 0.25", Want::Form::share, 2, Mechanism::mps, "0.25"},
        {"or by something else", "gpus: 0.25, mechanism: time-slicing", Want::Form::share, 2, Mechanism::time_slicing,
         "0.25"},
        {"a fraction by MIG is the smallest profile", "gpus: 0.25, mechanism: mig, models: [a30]", Want::Form::instance,
         1, Mechanism::mig, "0.25"},
        {"a profile that one model has", "profile: 3g.40gb", Want::Form::instance, 1, Mechanism::mig, "3/7"},
        {"memory is a share of each model's own", "gpuMemory: 12Gi", Want::Form::share, 2, Mechanism::mps, "0.5"},
    };
    for (const Row& row : rows) {
        const Scene made = scene("kind: Cluster\nnodes: [{name: m}, {name: k, model: a30}]\njobs: [{name: j" +
                                 (row.job.empty() ? std::string{} : ", " + std::string{row.job}) + "}]\n");
        ASSERT_EQ(made.jobs.size(), 1u) << row.says;
        const SceneJob& job = made.jobs.front();
        ASSERT_EQ(job.need.wants.size(), row.wants) << row.says;
        EXPECT_EQ(job.need.wants.front().form, row.form) << row.says;
        EXPECT_EQ(job.need.mechanism, row.mechanism) << row.says;
        EXPECT_EQ(print(job.job.gpus), row.counted) << row.says;
    }
}

TEST(SceneOfCluster, work_without_gpus_wants_none) {
    const Scene made = scene("kind: Cluster\nnodes: [{name: m}]\njobs: [{name: j, gpus: 0, cpu: 3}]\n");
    EXPECT_THAT(made.jobs.front().need.wants, IsEmpty());
    EXPECT_EQ(made.jobs.front().need.cpu, 3);
    EXPECT_EQ(made.jobs.front().job.gpus, Gpus{});
}

TEST(SceneOfCluster, isolation_says_who_may_be_near) {
    const Scene made = scene(
        "kind: Cluster\nnodes: [{name: m}]\njobs:\n"
        "  - {name: usual}\n"
        "  - {name: alone, isolation: {node: same-tenant, gpu: same-tenant}}\n"
        "  - {name: brave, isolation: {tier: vm, node: distrusting, gpu: distrusting}}\n");
    EXPECT_EQ(made.jobs[0].need.sharing.node, PeerTrust::same_domain);
    EXPECT_TRUE(made.jobs[0].need.on_host_kernel);
    EXPECT_EQ(made.jobs[1].need.sharing.nvlink, PeerTrust::same_tenant);
    EXPECT_FALSE(made.jobs[2].need.on_host_kernel);
    EXPECT_EQ(made.jobs[2].need.sharing.node, PeerTrust::distrusting);
    EXPECT_EQ(made.jobs[2].need.sharing.instance, PeerTrust::same_domain) << "never in one memory with strangers";
}

TEST(SceneOfCluster, times_are_counted_from_now) {
    const Scene made = scene(
        "kind: Cluster\nnow: 2026-05-05T12:00:00Z\nnodes: [{name: m}]\njobs:\n"
        "  - {name: w, waited: 1h, duration: 30m, deadlineIn: 2h}\n"
        "  - {name: r, on: [m], ran: 3h, checkpoint: 10m}\n");
    EXPECT_EQ(print(made.jobs[0].job.submitted), "2026-05-05T11:00:00Z");
    EXPECT_EQ(print(*made.jobs[0].job.deadline), "2026-05-05T14:00:00Z");
    EXPECT_EQ(print(made.jobs[1].started), "2026-05-05T09:00:00Z");
    EXPECT_EQ(made.jobs[1].job.checkpoint, Duration{600'000});
    EXPECT_EQ(made.jobs[1].runs.size(), 1u);
}

TEST(SceneOfCluster, running_tasks_take_the_first_gpus_that_are_free) {
    const Scene made = scene(
        "kind: Cluster\nnodes: [{name: m, count: 2, wiping: [1], drives: [1T]}]\njobs:\n"
        "  - {name: a, gpus: 2, on: [m-1], nvme: 500G}\n"
        "  - {name: b, tasks: 2, gpus: 0.5, on: [m-1], rdma: true}\n"
        "  - {name: c, tasks: 2, gpus: 3, on: [m-1, m-2]}\n");
    ASSERT_EQ(made.jobs.size(), 3u);
    EXPECT_THAT(made.jobs[0].runs[0].gpus, ElementsAre(0, 2)) << "GPU 1 is being wiped";
    EXPECT_THAT(made.jobs[0].runs[0].drives, ElementsAre(0));
    ASSERT_EQ(made.jobs[1].runs.size(), 2u) << "one node for all tasks";
    EXPECT_THAT(made.jobs[1].runs[0].gpus, ElementsAre(3));
    EXPECT_THAT(made.jobs[1].runs[1].gpus, ElementsAre(3)) << "two halves of one GPU";
    EXPECT_THAT(made.jobs[1].runs[1].functions, ElementsAre(1));
    EXPECT_THAT(made.jobs[2].runs[0].gpus, ElementsAre(4, 5, 6));
    EXPECT_EQ(made.jobs[2].runs[1].node, 1u);
    EXPECT_TRUE(made.nodes[0].gpus[0].empty()) << "the scene's nodes are without what the jobs hold";
}

TEST(SceneOfCluster, running_slices_take_the_first_place_that_keeps_the_gpu_useful) {
    const Scene made = scene(
        "kind: Cluster\nnodes: [{name: m}, {name: k, model: mi300x}]\njobs:\n"
        "  - {name: a, profile: 3g.40gb, count: 3, on: [m]}\n"
        "  - {name: b, profile: cpx_nps1, count: 2, on: [k]}\n"
        "  - {name: c, gpus: 2, mechanism: time-slicing, on: [m]}\n");
    ASSERT_EQ(made.jobs.size(), 6u);
    EXPECT_THAT(made.jobs[0].runs[0].gpus, ElementsAre(0));
    EXPECT_EQ(made.jobs[0].runs[0].seats[0].start, 4);
    EXPECT_THAT(made.jobs[1].runs[0].gpus, ElementsAre(0));
    EXPECT_EQ(made.jobs[1].runs[0].seats[0].start, 0);
    EXPECT_THAT(made.jobs[2].runs[0].gpus, ElementsAre(1));
    EXPECT_EQ(made.jobs[3].need.mechanism, Mechanism::amd_partition) << "no MIG profile is called so";
    EXPECT_EQ(made.jobs[4].runs[0].seats[0].start, 1);
    EXPECT_THAT(made.jobs[5].runs[0].gpus, ElementsAre(2, 3)) << "shared GPUs, both empty so far";
}

TEST(SceneOfCluster, refuses_what_cannot_be_with_place_and_numbers) {
    struct Row {
        std::string_view says, text, error, remedy;
    };
    const Row rows[] = {
        {"no room for the GPUs", "kind: Cluster\nnodes: [{name: m, gpus: 4}]\njobs:\n  - {name: a, gpus: 8, on: [m]}\n",
         "c.yaml:4:28: job a: task 1 of 1 does not fit on node m: it needs 8 whole GPUs; free are 4 of 4 GPUs whole",
         "another node"},
        {"no room for the third task",
         "kind: Cluster\nnodes: [{name: m}]\njobs:\n  - {name: a, tasks: 3, gpus: 3, on: [m]}\n",
         "task 3 of 3 does not fit on node m: it needs 3 whole GPUs; free are 2 of 8", "fewer tasks there"},
        {"too few cores", "kind: Cluster\nnodes: [{name: m, cpu: 4}]\njobs:\n  - {name: a, cpu: 5, on: [m]}\n",
         "it needs 1 whole GPU, 5 cores; free are 8 of 8 GPUs whole (h100-80gb-sxm5), 4 cores", "another node"},
        {"no drive", "kind: Cluster\nnodes: [{name: m}]\njobs:\n  - {name: a, nvme: 1T, on: [m]}\n", "a drive of 1T",
         "another node"},
        {"beside somebody it distrusts",
         "kind: Cluster\nnodes: [{name: m}]\ntenants: [{name: t, domain: d}]\njobs:\n  - {name: a, on: [m]}\n"
         "  - {name: b, tenant: t, on: [m]}\n",
         "c.yaml:6:30: job b may not be on node m beside a", "one trust domain"},
        {"on a fabric that is one",
         "kind: Cluster\nnodes: [{name: m, wholeFabric: true}]\n"
         "tenants: [{name: t, domain: d}]\njobs:\n"
         "  - {name: a, on: [m], isolation: {tier: vm, node: distrusting}}\n"
         "  - {name: b, tenant: t, on: [m], isolation: {tier: vm, node: distrusting}}\n",
         "job b may not be on node m beside a", "another node"},
        {"a profile that no model has",
         "kind: Cluster\nnodes: [{name: m, model: a30}]\njobs:\n  - {name: a, profile: 3g.40gb}\n",
         "c.yaml:4:24: job a: a30-24gb cannot give 3g.40gb by mig", "4g.24gb"},
        {"more memory than a GPU has", "kind: Cluster\nnodes: [{name: m}]\njobs:\n  - {name: a, gpuMemory: 100Gi}\n",
         "c.yaml:4:26: job a: h100-80gb-sxm5 cannot give 100Gi of GPU memory by mps", "less"},
        {"a fraction as a whole GPU",
         "kind: Cluster\nnodes: [{name: m}]\njobs:\n  - {name: a, gpus: 0.5, mechanism: whole}\n",
         "c.yaml:4:21: job a: h100-80gb-sxm5 cannot give 0.5 GPU by whole", "another mechanism"},
        {"GPUs where there are none", "kind: Cluster\nnodes: [{name: m, gpus: 0, cpu: 8}]\njobs:\n  - {name: a}\n",
         "c.yaml:4:12: job a asks for GPUs, and no node has any", "gpus: 0"},
    };
    for (const Row& row : rows) {
        EXPECT_THAT(misfit(row.text), HasSubstr(row.error)) << row.says;
        EXPECT_THAT(misfit(row.text), HasSubstr(row.remedy)) << row.says;
    }
}

TEST(SceneOfCluster, distrusting_tenants_share_a_node_with_a_kernel_each) {
    EXPECT_EQ(misfit("kind: Cluster\nnodes: [{name: m}]\ntenants: [{name: t, domain: d}]\njobs:\n"
                     "  - {name: a, on: [m], isolation: {tier: vm, node: distrusting}}\n"
                     "  - {name: b, tenant: t, on: [m], isolation: {tier: vm, node: distrusting}}\n"),
              "fits");
}

}  // namespace
}  // namespace bulkhead::sched
