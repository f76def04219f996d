#include "bulkhead/sched/allocate.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace bulkhead::sched {
namespace {

// A few H100 nodes and tenants 0, 1 (one trust domain) and 2 (a stranger).
struct Scene {
    explicit Scene(std::size_t count, std::size_t gpus = 2) {
        Snapshot snapshot;
        FleetPolicy& policy = snapshot.policies.emplace_back();
        policy.spec.trustDomains = {{"lab", {"t0", "t1"}}};
        for (const char* name : {"t0", "t1", "t2"}) {
            Tenant& tenant = snapshot.tenants.emplace_back();
            tenant.metadata.name = name;
            if (tenant.metadata.name != "t2") tenant.spec.trustDomain = DomainMembership{"lab", Consent{"head", {}}};
            relations.number(name);
        }
        relations.update(snapshot);
        holdings.resize(relations.size());
        const gpu::Board* board = *gpu::find_board("h100-80gb-sxm5");
        for (std::size_t i = 0; i < count; ++i) {
            Node node{.name = "n" + std::to_string(i),
                      .leaf = "leaf-" + std::to_string(i / 2),
                      .open = true,
                      .can_reboot = true};
            node.cpu_free = 64;
            node.memory_free = std::int64_t{1} << 40;
            node.functions = {0, 1};
            node.drives = {0};
            node.drive_bytes = {1000};
            for (std::size_t k = 0; k < gpus; ++k)
                node.gpus.push_back({.model = "h100-80gb-sxm5", .board = board, .slices = 8, .available = 0xFF});
            nodes.push_back(std::move(node));
        }
    }

    Request& ask(TenantNo tenant, Mechanism mechanism, std::string slice, Tier tier = Tier::container) {
        auto& [spec, contract, request] = *asked.emplace_back(std::make_unique<Asked>());
        contract.mechanism = mechanism;
        contract.tier = tier;
        contract.slices = {{"h100-80gb-sxm5", slice, ""}};
        contract.gpus = Gpus{1000};
        if (mechanism == Mechanism::whole)
            spec.gpu.count = 1;
        else if (mechanism == Mechanism::mps)
            spec.gpu.fraction = Gpus{500};
        else
            spec.gpu.profile = slice;
        request = {.workload = std::ssize(asked), .tenant = tenant, .spec = &spec, .contract = &contract};
        for (std::uint32_t i = 0; i < nodes.size(); ++i) request.candidates.push_back(i);
        return request;
    }
    GpuWorkloadSpec& spec() { return asked.back()->spec; }
    Contract& contract() { return asked.back()->contract; }

    Statement place() {
        std::vector<Request> requests;
        for (const auto& one : asked) requests.push_back(one->request);
        return allocate(nodes, relations, holdings, requests);
    }

    struct Asked {
        GpuWorkloadSpec spec;
        Contract contract;
        Request request;
    };
    std::vector<std::unique_ptr<Asked>> asked;
    Relations relations;
    std::vector<Holding> holdings;
    std::vector<Node> nodes;
};

bool waits_for(const Statement& statement, std::string_view code) {
    return std::ranges::any_of(statement.waiting, [&](const Waiting& waiting) {
        return std::ranges::any_of(waiting.reasons, [&](const Reason& reason) { return reason.code == code; });
    });
}

TEST(Allocate, a_gang_goes_whole_or_not_at_all) {
    Scene scene{2};
    scene.ask(0, Mechanism::whole, "1 GPU");
    scene.spec().tasks = 5;
    const Statement no = scene.place();
    EXPECT_TRUE(no.bind.empty());
    EXPECT_TRUE(waits_for(no, "wait.room"));
    EXPECT_EQ(scene.nodes[0].gpus[0].available, 0xFF) << "nothing of it was kept";
    scene.spec().tasks = 4;
    const Statement yes = scene.place();
    ASSERT_EQ(yes.bind.size(), 1u);
    EXPECT_EQ(yes.bind[0].tasks.size(), 4u);
}

TEST(Allocate, tasks_stay_within_what_they_must_be_within) {
    Scene scene{4};
    scene.ask(0, Mechanism::whole, "1 GPU");
    scene.spec().tasks = 4;
    scene.spec().topology.within = TopologyLevel::leaf;
    const Statement yes = scene.place();
    ASSERT_EQ(yes.bind.size(), 1u);
    for (const TaskSeat& task : yes.bind[0].tasks)
        EXPECT_EQ(scene.nodes[task.node].leaf, scene.nodes[yes.bind[0].tasks[0].node].leaf);
    Scene crowded{4};
    crowded.ask(0, Mechanism::whole, "1 GPU");
    crowded.spec().tasks = 5;
    crowded.spec().topology.within = TopologyLevel::leaf;
    EXPECT_TRUE(crowded.place().bind.empty()) << "five do not fit under one leaf";
}

TEST(Allocate, nodes_that_do_not_say_where_they_stand_stand_apart) {
    Scene scene{4};
    for (Node& node : scene.nodes) node.leaf.clear();
    scene.ask(0, Mechanism::whole, "1 GPU");
    scene.spec().tasks = 3;
    scene.spec().topology.within = TopologyLevel::leaf;
    EXPECT_TRUE(scene.place().bind.empty());
    scene.spec().tasks = 2;
    EXPECT_EQ(scene.place().bind.size(), 1u);
}

TEST(Allocate, what_is_owed_is_left_out_of_what_can_still_be_used) {
    Scene scene{1};
    scene.holdings[1].owed = 1000;
    scene.ask(0, Mechanism::whole, "1 GPU");
    EXPECT_EQ(scene.place().bind.size(), 1u) << "one of two is left";
    Scene broken{1};
    broken.nodes[0].gpus[0].available = 0;
    broken.nodes[0].gpus[0].lost = 0xFF;
    broken.holdings[1].owed = 1000;
    broken.ask(0, Mechanism::whole, "1 GPU");
    const Statement no = broken.place();
    EXPECT_TRUE(no.bind.empty());
    EXPECT_TRUE(waits_for(no, "wait.reserved"));
}

TEST(Allocate, distrusting_tenants_meet_on_a_node_only_with_a_kernel_each) {
    struct Row {
        std::string_view says;
        TenantNo second;
        Tier tier;
        PeerTrust scope;
        std::size_t bound;
    };
    for (const Row& row : {Row{"the same tenant", 0, Tier::container, PeerTrust::same_tenant, 2},
                           Row{"its trust domain, if both let it", 1, Tier::container, PeerTrust::same_domain, 2},
                           Row{"its trust domain, if one does not", 1, Tier::container, PeerTrust::same_tenant, 1},
                           Row{"a stranger on the kernel", 2, Tier::container, PeerTrust::distrusting, 1},
                           Row{"a stranger, each in a VM", 2, Tier::vm, PeerTrust::distrusting, 2}}) {
        Scene scene{1};
        for (const TenantNo tenant : {TenantNo{0}, row.second}) {
            scene.ask(tenant, Mechanism::whole, "1 GPU", row.tier);
            scene.contract().sharing.node = row.scope;
        }
        EXPECT_EQ(scene.place().bind.size(), row.bound) << row.says;
    }
}

TEST(Allocate, what_is_not_available_is_no_candidate) {
    Scene scene{1, 1};
    scene.nodes[0].gpus[0].available = 0x0F;  // half of it is dirty
    scene.ask(0, Mechanism::whole, "1 GPU");
    EXPECT_TRUE(scene.place().bind.empty());
    Scene half{1, 1};
    half.nodes[0].gpus[0].available = 0x0F;
    half.ask(0, Mechanism::mig, "3g.40gb");
    const Statement yes = half.place();
    ASSERT_EQ(yes.bind.size(), 1u);
    EXPECT_EQ(yes.bind[0].tasks[0].seats[0].start, 0) << "the clean half";
}

TEST(Allocate, a_share_joins_only_what_is_held_and_not_being_given_up) {
    Scene scene{1, 1};
    scene.ask(0, Mechanism::mps, "0.5 GPU");
    scene.ask(0, Mechanism::mps, "0.5 GPU");
    scene.ask(0, Mechanism::mps, "0.5 GPU");
    EXPECT_EQ(scene.place().bind.size(), 2u) << "two halves make a GPU";
    Scene leaving{1, 1};
    leaving.nodes[0].gpus[0].available = 0;
    leaving.nodes[0].gpus[0].seats = {{.lease = 99, .size = 8, .share = 500, .mechanism = Mechanism::mps}};
    leaving.nodes[0].residents = {{.lease = 99, .tenant = 0}};
    leaving.ask(0, Mechanism::mps, "0.5 GPU");
    EXPECT_TRUE(leaving.place().bind.empty()) << "its last user is on the way out";
}

TEST(Allocate, limits_hold_along_the_whole_line) {
    Scene scene{2};
    scene.holdings[0].limit = 1000;
    scene.ask(0, Mechanism::whole, "1 GPU");
    scene.ask(0, Mechanism::whole, "1 GPU");
    const Statement statement = scene.place();
    EXPECT_EQ(statement.bind.size(), 1u);
    EXPECT_TRUE(waits_for(statement, "wait.quota"));
}

TEST(Allocate, what_is_owed_to_a_hard_partition_is_not_lent) {
    Scene scene{1, 2};
    scene.holdings[2].owed = 1000;
    scene.ask(0, Mechanism::whole, "1 GPU");
    scene.ask(0, Mechanism::whole, "1 GPU");
    const Statement statement = scene.place();
    EXPECT_EQ(statement.bind.size(), 1u);
    EXPECT_TRUE(waits_for(statement, "wait.reserved"));
}

TEST(Allocate, an_empty_node_that_strangers_used_is_rebooted_first) {
    Scene scene{1};
    scene.nodes[0].host_used_by = {2};
    scene.ask(0, Mechanism::whole, "1 GPU");
    const Statement statement = scene.place();
    EXPECT_TRUE(statement.bind.empty());
    EXPECT_EQ(statement.reboot, std::vector<std::uint32_t>{0});
    Scene domain{1};
    domain.nodes[0].host_used_by = {1};
    domain.ask(0, Mechanism::whole, "1 GPU");
    EXPECT_EQ(domain.place().bind.size(), 1u) << "its own trust domain may go on";
    Scene stuck{1};
    stuck.nodes[0].host_used_by = {2};
    stuck.nodes[0].can_reboot = false;
    stuck.ask(0, Mechanism::whole, "1 GPU");
    const Statement never = stuck.place();
    EXPECT_TRUE(never.reboot.empty());
    EXPECT_TRUE(waits_for(never, "wait.host"));
}

TEST(Allocate, a_fabric_that_cannot_be_partitioned_belongs_to_one) {
    Scene scene{1};
    scene.nodes[0].board_is_one = true;
    for (const TenantNo tenant : {TenantNo{0}, TenantNo{1}}) {
        scene.ask(tenant, Mechanism::whole, "1 GPU", Tier::vm);
        scene.contract().sharing.node = PeerTrust::distrusting;
    }
    const Statement statement = scene.place();
    EXPECT_EQ(statement.bind.size(), 1u);
    EXPECT_TRUE(waits_for(statement, "wait.nvlink"));
}

TEST(Allocate, drives_functions_and_cores_run_out_too) {
    Scene scene{1};
    scene.ask(0, Mechanism::whole, "1 GPU");
    scene.spec().storage.localNvme = ByteSize{2000};
    EXPECT_TRUE(scene.place().bind.empty()) << "no drive is that large";
    Scene cores{1};
    cores.ask(0, Mechanism::whole, "1 GPU");
    cores.spec().cpu = 65;
    EXPECT_TRUE(cores.place().bind.empty());
    Scene functions{1};
    functions.ask(0, Mechanism::whole, "1 GPU");
    functions.spec().network.rdma = true;
    functions.spec().tasks = 2;
    const Statement both = functions.place();
    ASSERT_EQ(both.bind.size(), 1u);
    EXPECT_NE(both.bind[0].tasks[0].functions, both.bind[0].tasks[1].functions);
}

TEST(Allocate, every_reason_has_its_words) {
    for (const char* code : {"wait.closed", "wait.neighbours", "wait.nvlink", "wait.host", "wait.reboot", "wait.room",
                             "wait.quota", "wait.parent-quota", "wait.reserved", "wait.frozen", "wait.restoring"})
        EXPECT_NE(words_of(code), "{code}") << code;
}

}  // namespace
}  // namespace bulkhead::sched
