// A legal hold stops every wipe that can still be stopped, says which could not be, and repairs nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

// A tenant's GPU and drive on the only node there is, and a lease of them that ends.
struct HeldNode {
    HeldNode() {
        const std::string objects = "apiVersion: bulkhead.dev/v1alpha1\n";
        EXPECT_TRUE(plane.apply(objects + "kind: Tenant\nmetadata: {name: acme}\nspec: {class: research}\n").outcome);
        EXPECT_TRUE(plane
                        .apply(objects + "kind: GpuWorkload\nmetadata: {name: train}\nspec: {tenant: acme, "
                                         "gpu: {count: 1, mechanism: whole}, storage: {localNvme: 1Gi}}\n")
                        .outcome);
        plane.settle();
        EXPECT_EQ(drive(), CleanState::in_use);
        wiped_before = plane.logged("wiped");
    }
    CleanState drive() const { return plane.node("n0").status.drives.at(0).state; }
    bool kept() const {
        const NodeModel& model = plane.nodes.at("n0")->model;
        return model.read({UnitKind::memory, 0, 0}) != 0 && model.read({UnitKind::drive, 0, 0}) != 0;
    }
    int wiped() const { return plane.logged("wiped") - wiped_before; }
    void silence() {
        plane.nodes["n0"]->reachable = false;
        plane.event(AgentGone{"n0", std::exchange(plane.nodes["n0"]->session, 0)});
    }
    void lose_orders() { plane.nodes["n0"]->reachable = false; }
    void come_back() {
        plane.nodes["n0"]->reachable = true;
        plane.hello("n0");
        plane.settle(60);
    }
    void end_lease() { EXPECT_TRUE(plane.remove(ObjectKind::workload, "train").outcome); }
    Answer hold(bool on = true) {
        Answer answer = plane.ask(command::Hold{.tenant = "acme", .on = on, .why = "court order"});
        EXPECT_TRUE(answer.outcome);
        return answer;
    }
    void repair() {
        EXPECT_TRUE(
            plane.ask(command::Repair{.node = "n0", .kind = UnitKind::drive, .device = 0, .why = "looked"}).outcome);
        plane.settle();
    }
    // What the node's executor does and says while no order reaches it.
    void hear(Outcome outcome) {
        Plane::Node& n0 = *plane.nodes["n0"];
        for (const Report& report : outcome.reports) plane.event(AgentReport{"n0", n0.session, report});
        for (const Operation& operation : outcome.begin)
            if (const auto result = n0.model.carry_out(operation)) hear(n0.executor->on_result(plane.now, *result));
    }
    void break_drive() {
        hear(plane.nodes["n0"]->executor->on_fault(plane.now,
                                                   {.kind = UnitKind::drive, .device = 0, .why = "it is worn"}));
    }
    int logged_of_drive(const std::string& kind) const {
        return static_cast<int>(std::ranges::count_if(plane.log, [&](const std::string& payload) {
            return payload.starts_with("{\"kind\":\"" + kind + "\"") &&
                   payload.find("\"unit\":\"drive0\"") != payload.npos;
        }));
    }
    bool was_told(auto&& wanted) const {
        return std::ranges::any_of(plane.orders, [&](const Order& order) { return wanted(order); });
    }
    void expect_kept_until_lifted() {
        EXPECT_TRUE(kept());
        EXPECT_EQ(wiped(), 0);
        EXPECT_EQ(plane.logged("held"), 3) << "the tenant, its GPU, its drive";
        EXPECT_EQ(drive(), CleanState::quarantined);
        EXPECT_TRUE(plane.core->snapshot().leases.empty()) << "which waits for nothing";
        hold(false);
        plane.settle(60);
        EXPECT_FALSE(kept());
        EXPECT_EQ(wiped(), 2);
        EXPECT_EQ(drive(), CleanState::available);
    }

    Plane plane{1};
    int wiped_before = 0;
};

bool orders_wipes(const Order& order) {
    if (const auto* release = std::get_if<Release>(&order.what)) return !release->wipes.empty();
    return std::holds_alternative<Sanitize>(order.what);
}
bool withdraws(const Order& order) { return std::holds_alternative<Withdraw>(order.what); }

TEST(Hold, stops_at_once_what_no_node_was_told_of) {
    HeldNode node;
    node.silence();
    node.end_lease();
    EXPECT_EQ(node.drive(), CleanState::sanitizing);
    EXPECT_EQ(node.hold().note, "") << "nothing had left";
    EXPECT_EQ(node.drive(), CleanState::quarantined) << "kept";
    node.plane.orders.clear();
    node.come_back();
    EXPECT_FALSE(node.was_told(orders_wipes));
    EXPECT_FALSE(node.was_told(withdraws));
    node.expect_kept_until_lifted();
}

TEST(Hold, asks_the_node_where_a_restart_has_forgotten_whether_it_was_told) {
    HeldNode node;
    node.silence();
    node.end_lease();
    node.plane.restart(2);
    EXPECT_THAT(node.hold().note, HasSubstr("2 wipes of acme"));
    EXPECT_EQ(node.drive(), CleanState::sanitizing);
    node.plane.restart(3);  // also when the hold is older than the process
    node.plane.orders.clear();
    node.come_back();
    EXPECT_TRUE(node.was_told(withdraws));
    EXPECT_FALSE(node.was_told(orders_wipes));
    node.expect_kept_until_lifted();
}

TEST(Hold, is_answered_by_a_node_that_never_got_the_order) {
    HeldNode node;
    node.lose_orders();
    node.end_lease();
    ASSERT_TRUE(node.was_told(orders_wipes));
    const std::string note = node.hold().note;
    EXPECT_THAT(note, HasSubstr("n0/gpu0"));
    EXPECT_THAT(note, HasSubstr("n0/drive0"));
    node.plane.orders.clear();
    node.come_back();
    EXPECT_FALSE(node.was_told(orders_wipes)) << "which it would carry out, if the one before was lost";
    node.expect_kept_until_lifted();
}

TEST(Hold, that_came_too_late_leaves_a_wipe_on_record_as_a_wipe) {
    HeldNode node;
    Plane::Node& n0 = *node.plane.nodes["n0"];
    node.end_lease();
    ASSERT_FALSE(node.kept());
    ASSERT_EQ(node.wiped(), 2);
    n0.reachable = true;
    EXPECT_EQ(node.hold().note, "");
    EXPECT_EQ(node.plane.logged("held"), 1) << "the tenant: there is nothing of it left to keep";
}

TEST(Hold, withholds_from_an_old_agent_what_it_may_not_have_heard) {
    HeldNode node;
    node.lose_orders();
    node.end_lease();
    node.hold();
    Plane::Node& n0 = *node.plane.nodes["n0"];
    node.plane.orders.clear();
    n0.reachable = true;
    Hello hello = n0.executor->hello(n0.model.inventory(), n0.model.boot_id());
    hello.protocol = agent_protocol_withdraw - 1;
    n0.session += 1'000;
    node.plane.event(AgentHello{"n0", n0.session, hello});
    node.plane.settle(60);
    EXPECT_FALSE(node.was_told(withdraws)) << "a word that it does not know";
    EXPECT_FALSE(node.was_told(orders_wipes));
    EXPECT_TRUE(node.kept());
    node.hold(false);
    node.plane.settle(60);
    EXPECT_FALSE(node.kept());
    EXPECT_EQ(node.drive(), CleanState::available);
}

TEST(Hold, is_no_repair_of_what_was_out_of_use) {
    HeldNode node;
    node.plane.fault("n0", {.kind = UnitKind::drive, .device = 0, .why = "is gone from this machine"});
    node.end_lease();
    node.plane.settle();
    ASSERT_EQ(node.drive(), CleanState::quarantined);
    node.hold();
    node.plane.restart(2);
    node.plane.hello("n0");
    node.hold(false);
    node.plane.settle(60);
    EXPECT_EQ(node.drive(), CleanState::quarantined) << "nobody has looked at it";
    EXPECT_EQ(node.plane.logged("released-from-quarantine"), 0);
    node.repair();
    EXPECT_EQ(node.drive(), CleanState::available);
    EXPECT_EQ(node.plane.logged("released-from-quarantine"), 1);
}

TEST(Hold, of_what_breaks_meanwhile_ends_in_quarantine) {
    HeldNode node;
    node.hold();
    node.end_lease();
    node.plane.settle();
    const int quarantined = node.plane.logged("quarantined");
    node.plane.fault("n0", {.kind = UnitKind::drive, .device = 0, .why = "is gone from this machine"});
    node.plane.hello("n0");
    EXPECT_EQ(node.plane.logged("quarantined"), quarantined + 1) << "once";
    EXPECT_FALSE(
        node.plane.ask(command::Repair{.node = "n0", .kind = UnitKind::drive, .device = 0, .why = "x"}).outcome)
        << "while it is held";
    node.hold(false);
    node.plane.settle(60);
    EXPECT_EQ(node.drive(), CleanState::quarantined);
    node.repair();
    EXPECT_EQ(node.drive(), CleanState::available);
}

TEST(Hold, of_what_was_wiped_after_the_tenant_and_broke_then_has_nothing_to_keep) {
    HeldNode node;
    node.end_lease();
    node.plane.settle();
    ASSERT_EQ(node.drive(), CleanState::available);
    node.plane.fault("n0", {.kind = UnitKind::drive, .device = 0, .why = "it is worn"});
    ASSERT_EQ(node.drive(), CleanState::quarantined);
    node.hold();
    EXPECT_EQ(node.plane.logged("held"), 1) << "the tenant";
    node.repair();
    EXPECT_EQ(node.drive(), CleanState::available) << "which is nobody's";
}

TEST(Hold, is_not_on_what_was_clean_when_its_node_lost_its_journal) {
    HeldNode node;
    node.end_lease();
    node.plane.settle();
    node.hold();
    Plane::Node& n0 = *node.plane.nodes["n0"];
    n0.executor.emplace(NodeIdentity{.node = "n0", .grade = Grade::simulated}, n0.key,
                        std::span<const JournalRecord>{});
    n0.executor->resume(node.plane.now, n0.model.boot_id());
    node.plane.hello("n0");
    node.plane.settle(60);
    EXPECT_EQ(node.plane.logged("held"), 1);
    EXPECT_EQ(node.drive(), CleanState::available);
}

TEST(Hold, is_as_much_in_the_way_of_removing_a_node_while_its_wipes_are_not_answered_for) {
    HeldNode node;
    node.lose_orders();
    node.end_lease();
    node.hold();
    node.plane.settle(60);
    ASSERT_EQ(node.plane.node("n0").status.phase, NodePhase::fenced);
    ASSERT_EQ(node.drive(), CleanState::sanitizing);
    const Grant admin{Role::platform_admin, {}};
    node.plane.rights = *Rights::of({&admin, 1});
    const Answer refused = node.plane.remove(ObjectKind::node, "n0");
    ASSERT_FALSE(refused.outcome) << "enrolled again, all of it would be wiped as nobody's";
    EXPECT_EQ(refused.outcome.error().code, Code::denied);
    EXPECT_THAT(refused.outcome.error().what, HasSubstr("lift-hold"));
    node.plane.rights = Rights::everything();
    EXPECT_TRUE(node.plane.remove(ObjectKind::node, "n0").outcome);
}

// It had its order, or may have had it: that it broke meanwhile calls nothing back.
TEST(Hold, asks_for_what_broke_after_its_wipe_was_ordered) {
    for (const bool hold_first : {false, true})
        for (const bool restarted : {false, true}) {
            HeldNode node;
            node.lose_orders();
            node.end_lease();
            if (hold_first) node.hold();
            node.break_drive();
            if (!hold_first) {
                EXPECT_THAT(node.hold().note, HasSubstr("n0/drive0"));
            }
            ASSERT_EQ(node.drive(), CleanState::quarantined);
            EXPECT_EQ(node.logged_of_drive("held"), 0) << "nobody knows yet";
            if (restarted) node.plane.restart(2);
            node.plane.orders.clear();
            node.come_back();
            EXPECT_TRUE(node.was_told(withdraws));
            EXPECT_EQ(node.logged_of_drive("held"), 1) << "as its node has answered";
            EXPECT_TRUE(node.kept());
            node.plane.orders.clear();
            node.plane.settle(60);
            EXPECT_FALSE(node.was_told(withdraws)) << "which it has";
            node.hold(false);
            node.plane.settle(60);
            EXPECT_EQ(node.drive(), CleanState::quarantined) << "a hold is no repair";
            node.repair();
            EXPECT_EQ(node.drive(), CleanState::available);
        }
}

TEST(Hold, leaves_a_wipe_on_record_that_was_done_after_its_drive_broke) {
    for (const bool repaired : {false, true}) {
        HeldNode node;
        node.lose_orders();
        node.plane.orders.clear();
        node.end_lease();
        const auto late = std::ranges::find_if(node.plane.orders, orders_wipes);
        ASSERT_NE(late, node.plane.orders.end());
        const Order order = *late;
        node.break_drive();
        if (repaired) node.repair();
        node.hold();
        node.hear(node.plane.nodes["n0"]->executor->on_order(node.plane.now, order));
        ASSERT_FALSE(node.kept());
        node.come_back();
        EXPECT_EQ(node.logged_of_drive("held"), 0) << repaired;
        EXPECT_EQ(node.wiped(), 2) << repaired;
        node.hold(false);
        node.hold();
        EXPECT_EQ(node.logged_of_drive("held"), 0) << "nor is there anything to keep later";
    }
}

// Machines and containers side by side: who wants a kernel of its own has the host rebooted.
struct Rebooted {
    WorkloadPhase run(const std::string& tenant, const std::string& more = {}) {
        const std::string objects = "apiVersion: bulkhead.dev/v1alpha1\n";
        EXPECT_TRUE(
            plane.apply(objects + "kind: Tenant\nmetadata: {name: " + tenant + "}\nspec: {class: research}\n").outcome);
        EXPECT_TRUE(plane
                        .apply(objects + "kind: GpuWorkload\nmetadata: {name: of-" + tenant +
                               "}\nspec: {tenant: " + tenant + ", gpu: {count: 1, mechanism: whole}" + more + "}\n")
                        .outcome);
        plane.settle();
        return plane.workload("of-" + tenant).status->phase;
    }
    void leave(const std::string& tenant) {
        EXPECT_TRUE(plane.remove(ObjectKind::workload, "of-" + tenant).outcome);
        plane.settle();
    }
    Answer hold(const std::string& tenant, bool on = true) {
        Answer answer = plane.ask(command::Hold{.tenant = tenant, .on = on, .why = "court order"});
        EXPECT_TRUE(answer.outcome);
        return answer;
    }
    std::int64_t boots() const { return plane.nodes.at("n0")->model.boots(); }
    void expect_rebooted_when_lifted(const std::string& tenant) {
        const std::int64_t before = boots();
        plane.settle(60);
        EXPECT_EQ(boots(), before) << "memory does not outlive a reboot";
        hold(tenant, false);
        plane.settle(120);
        EXPECT_EQ(boots(), before + 1);
        EXPECT_EQ(plane.node("n0").status.host->state, CleanState::available);
    }
    Plane plane{1};
};
const std::string in_a_machine = ", isolation: {tier: vm}";

// The next tenant wants a kernel that the one before it was not on; the GPU beside keeps what a court wants.
TEST(Hold, keeps_a_node_from_being_rebooted_under_what_it_keeps) {
    Rebooted node;
    ASSERT_EQ(node.run("acme", in_a_machine), WorkloadPhase::running);
    node.hold("acme");
    node.leave("acme");
    ASSERT_EQ(node.run("beta"), WorkloadPhase::running);
    node.leave("beta");
    const std::int64_t boots = node.boots();
    EXPECT_EQ(node.run("gamma"), WorkloadPhase::pending);
    node.plane.settle(60);
    EXPECT_EQ(node.boots(), boots);
    node.hold("acme", false);
    node.plane.settle(120);
    EXPECT_EQ(node.boots(), boots + 1);
    EXPECT_EQ(node.plane.workload("of-gamma").status->phase, WorkloadPhase::running);
}

TEST(Hold, withdraws_a_reboot_that_was_ordered_for_others_before_it) {
    Rebooted node;
    ASSERT_EQ(node.run("acme", in_a_machine), WorkloadPhase::running);
    node.plane.fault("n0", {.kind = UnitKind::memory, .device = 0, .why = "Xid 79"});
    node.leave("acme");
    ASSERT_EQ(node.run("beta"), WorkloadPhase::running);
    node.leave("beta");
    node.plane.nodes["n0"]->reachable = false;
    node.run("gamma");
    ASSERT_EQ(node.plane.node("n0").status.host->state, CleanState::sanitizing);
    EXPECT_THAT(node.hold("acme").note, HasSubstr("n0/host")) << "which may have begun";
    node.plane.orders.clear();
    node.plane.nodes["n0"]->reachable = true;
    const std::int64_t boots = node.boots();
    node.plane.hello("n0");
    node.plane.settle(60);
    EXPECT_TRUE(std::ranges::any_of(node.plane.orders, withdraws));
    EXPECT_EQ(node.boots(), boots);
    node.hold("acme", false);
    node.plane.settle(120);
    EXPECT_EQ(node.boots(), boots + 1);
    EXPECT_EQ(node.plane.workload("of-gamma").status->phase, WorkloadPhase::running);
}

TEST(Hold, keeps_a_repaired_host_from_being_rebooted_under_what_it_keeps) {
    Rebooted node;
    ASSERT_EQ(node.run("acme", in_a_machine), WorkloadPhase::running);
    node.hold("acme");
    node.leave("acme");
    node.plane.fault("n0", {.kind = UnitKind::host, .device = 0, .why = "it is hot"});
    ASSERT_TRUE(node.plane.ask(command::Repair{.node = "n0", .kind = UnitKind::host, .why = "cooled"}).outcome);
    node.expect_rebooted_when_lifted("acme");
}

TEST(Hold, that_ends_reboots_no_host_under_what_another_keeps) {
    Rebooted node;
    ASSERT_EQ(node.run("acme", in_a_machine), WorkloadPhase::running);
    node.hold("acme");
    node.leave("acme");
    ASSERT_EQ(node.run("beta"), WorkloadPhase::running);
    node.plane.fault("n0", {.kind = UnitKind::host, .device = 0, .why = "it is hot"});
    node.leave("beta");
    node.hold("beta");
    ASSERT_TRUE(node.plane.ask(command::Repair{.node = "n0", .kind = UnitKind::host, .why = "cooled"}).outcome);
    EXPECT_EQ(node.plane.node("n0").status.host->state, CleanState::quarantined) << "held: beta was on its kernel";
    node.hold("beta", false);
    node.expect_rebooted_when_lifted("acme");
}

// Rows of before: without what was added to them.
TEST(Hold, of_an_older_version_is_lifted_as_that_one_did) {
    HeldNode node;
    node.hold();
    node.end_lease();
    node.plane.settle();
    for (auto& [key, body] : node.plane.rows)
        if (key.first == Table::gate) {
            EXPECT_EQ(body.find("outOfUse"), std::string::npos);
            body = std::regex_replace(body, std::regex{R"(,"identity":"[^"]*")"}, "");
        }
    node.plane.restart(2);
    node.plane.hello("n0");
    node.hold(false);
    node.plane.settle(60);
    EXPECT_EQ(node.drive(), CleanState::available);
    EXPECT_EQ(node.wiped(), 2);
}

}  // namespace
}  // namespace bulkhead
