// What nodes find at their own fences: kept by their signature, told to leases, and in the way of new ones.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/core/plane_test.hpp"
#include "bulkhead/evidence/fabric_statement.hpp"

namespace bulkhead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct FencedPlane : Plane {
    FencedPlane() : Plane{1} {
        const Answer answer = apply(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n"
            "  threatModel: internal\n  sites: [{name: fra, jurisdiction: eu}]\n"
            "  versionGate: {shippedAdvisories: false}\n"
            "  fabric: {pool: 10.128.0.0/19, tenantPrefix: 20, vlans: {first: 100, last: 131}}\n---\n"
            "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\nspec: {class: research}\n");
        EXPECT_TRUE(answer.outcome) << answer.outcome.error().what;
        settle();
        hello("n0");  // it was rebooted for its first wipes
    }
    void work(const std::string& name) {
        const Answer answer = apply(fmt::format(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {{name: {}}}\nspec: {{tenant: acme, "
            "gpu: {{count: 1, mechanism: whole}}, network: {{rdma: true}}}}\n",
            name));
        EXPECT_TRUE(answer.outcome) << answer.outcome.error().what;
        settle();
    }
    std::vector<LeasedFence> fences_of(const std::string& name) {
        return find<GpuLease>(workload(name).status->lease).status.value_or(GpuLeaseStatus{}).fences;
    }
    std::string nic(std::size_t function = 0) { return node("n0").status.functions.at(function).physical; }
    std::vector<NodeFabricTest> tests() { return node("n0").status.fabricTests; }
    // Of every NIC that the node has.
    void test_all(FabricFence fence, std::vector<std::string> through = {}, std::vector<std::string> stopped = {}) {
        std::set<std::string> nics;
        for (const NodeFunction& function : node("n0").status.functions) nics.insert(function.physical);
        for (const std::string& one : nics) {
            evidence::FabricStatement statement = some(fence, through);
            statement.nic = one;
            for (const std::string& name : stopped)
                statement.attempts.push_back({name, "a frame", AttemptEnd::stopped, "the guard"});
            tested("n0", statement);
        }
    }
    evidence::FabricStatement some(FabricFence fence, const std::vector<std::string>& through = {}, Key ticket = 0) {
        evidence::FabricStatement statement{.node = "n0", .nic = nic()};
        statement.fence = fence;
        statement.began = statement.ended = now;
        statement.honest_passes = true;
        statement.attempts.push_back({"forged-mac", "a frame", AttemptEnd::stopped, "the guard"});
        for (const std::string& name : through)
            statement.attempts.push_back({name, "a frame", AttemptEnd::got_through, {}});
        statement.attempts.push_back({"foreign-uverbs", "a file", AttemptEnd::not_tried, "there is none"});
        statement.grade = Grade::emulated;
        statement.boot = nodes["n0"]->model.boot_id();
        statement.ticket = ticket;
        return statement;
    }
};

TEST(FabricTests, are_kept_with_the_node_and_in_the_log) {
    FencedPlane plane;
    EXPECT_THAT(plane.tests(), IsEmpty());
    plane.tested("n0", plane.some(FabricFence::on));
    ASSERT_EQ(plane.tests().size(), 1u);
    const NodeFabricTest test = plane.tests()[0];
    EXPECT_EQ(test.found, FabricFound::closed);
    EXPECT_THAT(test.stopped, ElementsAre("forged-mac"));
    EXPECT_THAT(test.untried, ElementsAre("foreign-uverbs"));
    const auto record = evidence::read_record(plane.log.at(static_cast<std::size_t>(test.record)));
    ASSERT_TRUE(record);
    EXPECT_EQ(record->kind, evidence::RecordKind::fabric_tested);
    EXPECT_EQ(record->unit, "nic " + test.nic);
    EXPECT_EQ(record->grade, Grade::emulated);
    ASSERT_TRUE(record->evidence);
    EXPECT_TRUE(evidence::verify_statement(plane.nodes["n0"]->key.public_key(), *record->evidence));
    EXPECT_EQ(to_hex(bytes_of(sha256(record->evidence->statement))), test.digest);
    plane.tested("n0", plane.some(FabricFence::on, {"forged-gid"}));
    ASSERT_EQ(plane.tests().size(), 1u) << "the newest of a NIC and a fence";
    EXPECT_EQ(plane.tests()[0].found, FabricFound::open);
    plane.tested("n0", plane.some(FabricFence::nic));
    EXPECT_EQ(plane.tests().size(), 2u);
    EXPECT_EQ(plane.logged("fabric-selftest"), 3);
}

TEST(FabricTests, outlive_the_process_and_are_recorded_once) {
    FencedPlane plane;
    plane.tested("n0", plane.some(FabricFence::on));
    const std::vector<NodeFabricTest> before = plane.tests();
    plane.restart(2);
    EXPECT_EQ(plane.tests(), before);
    plane.hello("n0");
    EXPECT_EQ(plane.tests(), before) << "a hello says nothing of them";
    // The acknowledgement was lost with the process: it is told again.
    Report again{1'000, FabricTestReport{.ticket = 0, .why = {}, .evidence = {}}};
    const auto record = evidence::read_record(plane.log.at(static_cast<std::size_t>(before[0].record)));
    std::get<FabricTestReport>(again.what).evidence = *record->evidence;
    plane.event(AgentReport{"n0", plane.nodes["n0"]->session, again});
    EXPECT_EQ(plane.tests(), before);
    EXPECT_EQ(plane.logged("fabric-selftest"), 1);
}

TEST(FabricTests, speak_of_one_boot_and_of_NICs_that_are_there) {
    FencedPlane plane;
    plane.tested("n0", plane.some(FabricFence::on));
    Plane::Node& node = *plane.nodes["n0"];
    Hello hello = node.executor->hello(node.model.inventory(), node.model.boot_id());
    hello.inventory.fabricTests = {{.nic = plane.nic(), .fence = FabricFence::nic, .found = FabricFound::closed}};
    plane.event(AgentHello{"n0", ++node.session, hello});
    ASSERT_EQ(plane.tests().size(), 1u) << "a node's word in its inventory is none";
    EXPECT_EQ(plane.tests()[0].fence, FabricFence::on);
    hello.boot_id = "another boot";
    plane.event(AgentHello{"n0", ++node.session, hello});
    EXPECT_THAT(plane.tests(), IsEmpty());
}

// Nothing was repaired by a test that could not be made, a reboot, or a NIC that cannot be reached for a while.
TEST(FabricTests, that_got_through_stay_until_a_later_one_has_seen_it_stopped) {
    FencedPlane plane;
    plane.tested("n0", plane.some(FabricFence::on, {"forged-gid", "forged-arp"}));
    const std::int64_t shown = plane.tests().at(0).record;
    const auto open_now = [&] {
        std::vector<std::string> open;
        for (const NodeFabricTest& test : plane.tests())
            open.insert(open.end(), test.through.begin(), test.through.end());
        return open;
    };
    evidence::FabricStatement broken = plane.some(FabricFence::on);
    broken.attempts.clear();
    broken.honest_passes = false;
    broken.why = "nft is being updated";
    plane.tested("n0", broken);
    EXPECT_THAT(open_now(), ElementsAre("forged-gid", "forged-arp"));
    ASSERT_EQ(plane.tests().size(), 2u);
    EXPECT_EQ(plane.tests()[0].record, shown) << "the record that shows it";
    EXPECT_THAT(plane.tests()[0].stopped, IsEmpty()) << "and nothing else of it counts any more";
    EXPECT_EQ(plane.tests()[1].found, FabricFound::unproven);

    Plane::Node& node = *plane.nodes["n0"];
    Hello hello = node.executor->hello(node.model.inventory(), node.model.boot_id());
    for (NodeFunction& function : hello.inventory.functions) function.physical.clear();
    plane.event(AgentHello{"n0", ++node.session, hello});
    EXPECT_THAT(open_now(), ElementsAre("forged-gid", "forged-arp")) << "the NIC is somebody's for a while";
    hello = node.executor->hello(node.model.inventory(), "another boot");
    plane.event(AgentHello{"n0", ++node.session, hello});
    ASSERT_EQ(plane.tests().size(), 1u);
    EXPECT_THAT(open_now(), ElementsAre("forged-gid", "forged-arp"));
    EXPECT_FALSE(plane
                     .apply("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: train}\nspec: "
                            "{tenant: acme, gpu: {count: 1, mechanism: whole}, network: {rdma: true}, isolation: "
                            "{tier: container}}\n")
                     .outcome);

    evidence::FabricStatement half = plane.some(FabricFence::on);
    half.boot = "another boot";
    half.attempts.push_back({"forged-gid", "a frame", AttemptEnd::stopped, "the guard"});
    plane.tested("n0", half);
    EXPECT_THAT(open_now(), ElementsAre("forged-arp")) << "the other was not tried again";
    half.attempts.push_back({"forged-arp", "a frame", AttemptEnd::stopped, "the guard"});
    plane.tested("n0", half);
    EXPECT_THAT(open_now(), IsEmpty());
    ASSERT_EQ(plane.tests().size(), 1u);
    EXPECT_EQ(plane.tests()[0].found, FabricFound::closed);

    for (NodeFunction& function : hello.inventory.functions) function.physical = "0000:f0:00.0";
    plane.tested("n0", half);
    plane.event(AgentHello{"n0", ++node.session, hello});
    EXPECT_THAT(plane.tests(), IsEmpty()) << "another NIC is in its place";
}

TEST(FabricTests, that_got_through_are_what_a_lease_reads_also_after_one_that_proves_nothing) {
    FencedPlane plane;
    plane.work("train");
    plane.test_all(FabricFence::on, {"forged-gid"});
    const LeasedFence open = plane.fences_of("train").at(0);
    evidence::FabricStatement broken = plane.some(FabricFence::on);
    broken.nic = open.nic;
    broken.why = "the link is down";
    plane.tested("n0", broken);
    const LeasedFence still = plane.fences_of("train").at(0);
    EXPECT_EQ(still.found, FabricFound::open);
    EXPECT_THAT(still.open, ElementsAre("forged-gid"));
    EXPECT_EQ(still.record, open.record);
}

// What was not shown stays disclosed, whatever else is heard of.
TEST(FabricTests, of_an_earlier_boot_heard_late_leave_unproven_what_todays_left_unproven) {
    FencedPlane plane;
    plane.work("train");
    evidence::FabricStatement today = plane.some(FabricFence::on);
    today.nic = plane.fences_of("train").at(0).nic;
    today.attempts.push_back({"forged-arp", "a frame", AttemptEnd::unclear, "the listener was cut off"});
    plane.tested("n0", today);
    EXPECT_THAT(plane.fences_of("train").at(0).unproven, ElementsAre("forged-arp", "foreign-uverbs"));
    evidence::FabricStatement late = plane.some(FabricFence::on, {"forged-gid"});
    late.nic = today.nic;
    late.boot = "an earlier boot";
    plane.tested("n0", late);
    const LeasedFence known = plane.fences_of("train").at(0);
    EXPECT_THAT(known.open, ElementsAre("forged-gid"));
    EXPECT_THAT(known.unproven, ElementsAre("forged-arp", "foreign-uverbs"));
}

// Of an earlier boot, heard late; and of this boot, told again because the acknowledgements were lost.
TEST(FabricTests, that_are_old_do_not_count_as_todays) {
    FencedPlane plane;
    evidence::FabricStatement closed_then = plane.some(FabricFence::on);
    closed_then.boot = "an earlier boot";
    plane.tested("n0", closed_then);
    EXPECT_THAT(plane.tests(), IsEmpty());
    EXPECT_EQ(plane.logged("fabric-selftest"), 1) << "it is in the log";
    evidence::FabricStatement open_then = plane.some(FabricFence::on, {"forged-gid"});
    open_then.boot = "an earlier boot";
    plane.tested("n0", open_then);
    ASSERT_EQ(plane.tests().size(), 1u) << "what got through then was not stopped since";
    EXPECT_THAT(plane.tests()[0].stopped, IsEmpty());

    FencedPlane again;
    evidence::FabricStatement first = again.some(FabricFence::on), second = again.some(FabricFence::on, {"forged-gid"});
    second.ended = second.ended + Duration{1};
    for (int told = 0; told < 2; ++told) {
        again.tested("n0", first);
        again.tested("n0", second);
        ASSERT_EQ(again.tests().size(), 1u);
        EXPECT_EQ(again.tests()[0].found, FabricFound::open);
        EXPECT_EQ(again.logged("fabric-selftest"), 2) << "recorded once each";
    }
}

// Whoever has the key of one node does not fill everybody's log with it.
TEST(FabricTests, that_nobody_asked_for_are_recorded_so_often_in_an_hour) {
    FencedPlane plane;
    for (int i = 0; i < 300; ++i) {
        evidence::FabricStatement one = plane.some(FabricFence::on);
        one.between = fmt::format("try {}", i);
        if (i % 2 == 0) one.nic = "0000:ff:00.0";
        plane.tested("n0", one);
    }
    EXPECT_EQ(plane.logged("fabric-selftest") + plane.logged("refused"), 128);
    ASSERT_TRUE(plane.ask(command::TestFabric{.node = "n0"}).outcome);
    plane.tested("n0", plane.some(FabricFence::on, {}, plane.node("n0").status.fabricTestRequest->ticket));
    EXPECT_EQ(plane.logged("fabric-selftest") + plane.logged("refused"), 129) << "what somebody waits for is heard";
    plane.pass(Duration::hours(1));
    plane.hello("n0");
    plane.tested("n0", plane.some(FabricFence::on));
    EXPECT_EQ(plane.logged("fabric-selftest") + plane.logged("refused"), 130);
}

// Its first NIC was tested, its second was not.
TEST(FabricTests, that_were_not_made_are_told_beside_those_that_were) {
    FencedPlane plane;
    ASSERT_TRUE(plane.ask(command::TestFabric{.node = "n0"}).outcome);
    const Key ticket = plane.node("n0").status.fabricTestRequest->ticket;
    plane.tested("n0", plane.some(FabricFence::on, {}, ticket));
    for (int told = 0; told < 2; ++told) plane.not_tested("n0", ticket, "0 of 2 functions are free");
    EXPECT_EQ(plane.node("n0").status.fabricTestRequest->why, "0 of 2 functions are free");
    EXPECT_EQ(plane.logged("refused"), 1);
}

// A backup may be older than a test that found something open.
TEST(FabricTests, of_a_backup_count_for_nothing_and_are_asked_for_anew) {
    FencedPlane plane;
    plane.tested("n0", plane.some(FabricFence::on));
    plane.restart(2, true);
    EXPECT_THAT(plane.tests(), IsEmpty());
    plane.orders.clear();
    plane.hello("n0");
    const auto asked = std::ranges::find_if(
        plane.orders, [](const Order& order) { return std::holds_alternative<TestFabric>(order.what); });
    ASSERT_NE(asked, plane.orders.end());
    plane.tested("n0", plane.some(FabricFence::on, {}, std::get<TestFabric>(asked->what).ticket));
    EXPECT_EQ(plane.tests().size(), 1u);
    EXPECT_TRUE(plane.node("n0").status.fabricTestRequest->answered);
}

TEST(FabricTests, are_asked_for_after_a_restore_of_nodes_too_of_which_the_backup_knows_no_test) {
    FencedPlane plane;
    plane.restart(2, true);
    plane.orders.clear();
    plane.hello("n0");
    EXPECT_TRUE(std::ranges::any_of(plane.orders,
                                    [](const Order& order) { return std::holds_alternative<TestFabric>(order.what); }));
    FencedPlane open;
    open.tested("n0", open.some(FabricFence::on, {"forged-gid"}));
    open.restart(2, true);
    ASSERT_EQ(open.tests().size(), 1u) << "nobody has repaired it";
    EXPECT_THAT(open.tests()[0].through, ElementsAre("forged-gid"));
    EXPECT_THAT(open.tests()[0].stopped, IsEmpty());
}

// A restored process that began with an epoch which nodes have obeyed before gives way to one of a later epoch.
TEST(FabricTests, are_asked_for_under_the_ticket_of_an_epoch_that_no_node_has_obeyed) {
    FencedPlane plane;
    plane.restart(2, true);
    const Key first = plane.node("n0").status.fabricTestRequest->ticket;
    plane.restart(3);
    EXPECT_NE(plane.node("n0").status.fabricTestRequest->ticket, first) << "nobody was heard of in between";
    plane.hello("n0");
    const Key asked = plane.node("n0").status.fabricTestRequest->ticket;
    plane.restart(4);
    EXPECT_EQ(plane.node("n0").status.fabricTestRequest->ticket, asked) << "all were heard of: it is as ever";
}

TEST(FabricTests, are_told_to_leases_that_are_behind_the_fences) {
    FencedPlane plane;
    plane.work("train");
    ASSERT_EQ(plane.fences_of("train").size(), 1u);
    EXPECT_EQ(plane.fences_of("train")[0].found, std::nullopt) << "no test was made";
    plane.test_all(FabricFence::on);
    plane.test_all(FabricFence::nic, {"forged-gid"});
    const LeasedFence known = plane.fences_of("train")[0];
    EXPECT_EQ(known.found, FabricFound::closed) << "of its own tier";
    EXPECT_THAT(known.unproven, ElementsAre("foreign-uverbs"));
    EXPECT_GE(known.record, 0);
    EXPECT_EQ(known.digest.size(), 64u);
    const Answer explained = plane.ask(command::Explain{.workload = "train"});
    EXPECT_THAT(explained.body,
                HasSubstr(fmt::format("log record {}, sha256 {}", known.record, known.digest.substr(0, 16))));
    EXPECT_THAT(explained.body, HasSubstr("Stopped when tried: forged-mac"));
    plane.test_all(FabricFence::on, {"forged-gid"});
    EXPECT_THAT(plane.fences_of("train")[0].open, ElementsAre("forged-gid")) << "it runs on, and is told";
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::running);
}

TEST(FabricTests, that_got_through_keep_new_work_with_functions_away) {
    FencedPlane plane;
    plane.test_all(FabricFence::on, {"forged-gid"});
    const std::string on_our_kernel =
        "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: train}\nspec: {tenant: acme, "
        "gpu: {count: 1, mechanism: whole}, network: {rdma: true}, isolation: {tier: container}}\n";
    const Answer refused = plane.apply(on_our_kernel);
    EXPECT_FALSE(refused.outcome);
    EXPECT_THAT(refused.body, HasSubstr("node.fences"));
    plane.test_all(FabricFence::on, {}, {"forged-gid"});
    EXPECT_TRUE(plane.apply(on_our_kernel).outcome) << "it was repaired, and tested again";
    plane.settle();
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::running);
}

// Found open between asking and placing.
TEST(FabricTests, that_got_through_since_keep_waiting_work_waiting) {
    FencedPlane plane;
    plane.nodes["n0"]->reachable = false;
    plane.pass(Duration::hours(1));
    EXPECT_TRUE(plane
                    .apply("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: train}\nspec: "
                           "{tenant: acme, gpu: {count: 1, mechanism: whole}, network: {rdma: true}, isolation: {tier: "
                           "container}}\n")
                    .outcome);
    plane.nodes["n0"]->reachable = true;
    plane.hello("n0");
    plane.test_all(FabricFence::on, {"forged-gid"});
    plane.settle();
    EXPECT_NE(plane.workload("train").status->phase, WorkloadPhase::running);
    EXPECT_THAT(plane.ask(command::Explain{.workload = "train"}).body, HasSubstr("node.fences"));
}

TEST(FabricTests, that_do_not_hold_are_no_evidence) {
    FencedPlane plane;
    struct Row {
        const char* says;
        std::function<void(evidence::FabricStatement&)> spoil;
    };
    const Row rows[] = {
        {"another NIC", [](auto& s) { s.nic = "0000:ff:00.0"; }},
        {"a silicon that a simulation has not", [](auto& s) { s.grade = Grade::silicon; }},
        {"without fences", [](auto& s) { s.fence = FabricFence::off; }},
        {"attempts twice", [](auto& s) { s.attempts.push_back(s.attempts[0]); }},
    };
    for (const Row& row : rows) {
        evidence::FabricStatement wrong = plane.some(FabricFence::on);
        row.spoil(wrong);
        plane.tested("n0", wrong);
        EXPECT_THAT(plane.tests(), IsEmpty()) << row.says;
    }
    EXPECT_EQ(plane.logged("fabric-selftest"), 0);
    EXPECT_EQ(plane.logged("refused"), 4) << "and the log says so";
    FabricTestReport forged{
        .ticket = 0,
        .why = {},
        .evidence = evidence::sign_statement(*evidence::SigningKey::from_seed(std::string(32, 'x')),
                                             evidence::fabric_statement_text(plane.some(FabricFence::on)))};
    plane.event(AgentReport{"n0", plane.nodes["n0"]->session, {1'000, forged}});
    EXPECT_THAT(plane.tests(), IsEmpty()) << "somebody else's signature";
}

TEST(FabricTests, are_asked_for_and_refused_with_the_nodes_reason) {
    FencedPlane plane;
    ASSERT_TRUE(plane.ask(command::TestFabric{.node = "n0"}).outcome);
    const auto request = plane.node("n0").status.fabricTestRequest;
    ASSERT_TRUE(request);
    EXPECT_FALSE(request->answered);
    ASSERT_TRUE(std::holds_alternative<TestFabric>(plane.orders.back().what));
    plane.restart(2);
    plane.orders.clear();
    plane.hello("n0");
    EXPECT_TRUE(std::ranges::any_of(plane.orders, [](const Order& order) {
        return std::holds_alternative<TestFabric>(order.what);
    })) << "a new process asks again, until it is answered";
    plane.not_tested("n0", request->ticket, "0 of 2 functions are free");
    EXPECT_EQ(plane.node("n0").status.fabricTestRequest->why, "0 of 2 functions are free");
    EXPECT_EQ(plane.logged("refused"), 1);
    plane.orders.clear();
    plane.hello("n0");
    EXPECT_TRUE(std::ranges::none_of(
        plane.orders, [](const Order& order) { return std::holds_alternative<TestFabric>(order.what); }));
}

TEST(FabricTests, are_not_asked_of_whoever_cannot) {
    FencedPlane plane;
    EXPECT_EQ(plane.ask(command::TestFabric{.node = "nobody"}).outcome.error().code, Code::not_found);
    Plane::Node& node = *plane.nodes["n0"];
    Hello hello = node.executor->hello(node.model.inventory(), node.model.boot_id());
    hello.protocol = agent_protocol_fabric_test - 1;
    plane.event(AgentHello{"n0", ++node.session, hello});
    EXPECT_EQ(plane.node("n0").status.phase, NodePhase::ready) << "an older agent is welcome";
    const Answer old = plane.ask(command::TestFabric{.node = "n0"});
    ASSERT_FALSE(old.outcome);
    EXPECT_THAT(old.outcome.error().what, HasSubstr("too old"));
    plane.rights = Rights{};
    EXPECT_TRUE(plane.ask(command::TestFabric{.node = "n0"}).forbidden);
}

}  // namespace
}  // namespace bulkhead
