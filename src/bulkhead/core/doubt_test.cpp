// What nodes say is held against what was ordered; what callers send is bounded; what is withdrawn has effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "bulkhead/core/plane_test.hpp"
#include "bulkhead/evidence/pseudonym.hpp"
#include "bulkhead/evidence/statement.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

const std::string header = "apiVersion: bulkhead.dev/v1alpha1\n";

std::string tenant(const std::string& name, const std::string& more = "") {
    return header + "kind: Tenant\nmetadata: {name: " + name + "}\nspec: {class: research, priorityGrant: 50" + more +
           "}\n";
}
std::string work_of(const std::string& name, const std::string& of, const std::string& more) {
    return header + "kind: GpuWorkload\nmetadata: {name: " + name + "}\nspec: {tenant: " + of + ", " + more + "}\n";
}

CleanState state_of(const Plane& plane, std::size_t gpu = 0) {
    return plane.node("n0").status.gpus[gpu].slices.front().state;
}

// What n0 would sign of the wipe.
evidence::WipeStatement verified(const WipeTask& task, const std::string& device, Instant now) {
    return {.node = "n0",
            .device = device,
            .unit = unit_text(task.kind, task.device, task.start, task.size),
            .lease = task.lease,
            .tenants = task.tenants,
            .method = "overwrite",
            .began = now,
            .ended = now,
            .bytes = 1,
            .bytes_verified = 1,
            .ticket = task.ticket,
            .result = evidence::WipeResult::verified,
            .grade = Grade::simulated};
}

// A node that was told to wipe, and has not answered.
struct Silent {
    explicit Silent(UnitKind kind = UnitKind::memory) {
        EXPECT_TRUE(plane.apply(tenant("acme") + "---\n" + tenant("rival")).outcome);
        EXPECT_TRUE(
            plane.apply(work_of("train", "acme", "gpu: {count: 1, mechanism: whole}, storage: {localNvme: 1Gi}"))
                .outcome);
        plane.settle();
        lease = plane.core->snapshot().leases.front().metadata.name;
        plane.nodes["n0"]->reachable = false;
        EXPECT_TRUE(plane.remove(ObjectKind::workload, "train").outcome);
        for (const Order& order : plane.orders)
            if (const auto* release = std::get_if<Release>(&order.what))
                for (const WipeTask& wipe : release->wipes)
                    if (wipe.kind == kind) task = wipe;
        EXPECT_EQ(task.lease, lease);
        EXPECT_EQ(task.tenants.size(), 1u);
        EXPECT_TRUE(evidence::is_pseudonym(task.tenants.at(0))) << "whose, for those alone who may know";
        // Its own word of it having stopped.
        const Key key = key_in_rows();
        plane.event(AgentReport{"n0", plane.nodes["n0"]->session, {1'000, LeaseReport{key, PartPhase::stopped, {}}}});
        statement =
            verified(task, kind == UnitKind::drive ? plane.node("n0").status.drives.at(0).serial : "GPU-1", plane.now);
    }
    Key key_in_rows() const {
        for (const auto& [key, body] : plane.rows)
            if (key.first == Table::lease) return key.second;
        return 0;
    }
    void answer(bool stale = false) {
        WipeReport report{task.kind, task.device, task.start, task.size, task.ticket, !stale, stale, {}, {}};
        if (!stale)
            report.evidence = evidence::sign_statement(plane.nodes["n0"]->key, evidence::statement_text(statement));
        plane.event(AgentReport{"n0", plane.nodes["n0"]->session, {++number, std::move(report)}});
    }

    Plane plane{1};
    std::string lease;
    WipeTask task;
    evidence::WipeStatement statement;
    std::int64_t number = 1'000;
};

TEST(Evidence, that_fits_the_order_makes_a_unit_available) {
    Silent node;
    EXPECT_EQ(state_of(node.plane, node.task.device), CleanState::sanitizing);
    node.answer();
    EXPECT_EQ(state_of(node.plane, node.task.device), CleanState::available);
    EXPECT_EQ(node.plane.logged("wipe-failed"), 0);
}

TEST(Evidence, of_anything_else_than_what_was_ordered_makes_it_quarantined) {
    const std::pair<const char*, void (*)(Silent&)> rows[] = {
        {"an earlier wipe of the same unit", [](Silent& s) { s.statement.ticket -= 1; }},
        {"another tenant's dirt", [](Silent& s) { s.statement.tenants = {"rival"}; }},
        {"nobody's dirt", [](Silent& s) { s.statement.tenants.clear(); }},
        {"another lease", [](Silent& s) { s.statement.lease = "lease-000000000000"; }},
        {"another node", [](Silent& s) { s.statement.node = "n1"; }},
        {"another unit", [](Silent& s) { s.statement.unit = "drive0"; }},
        {"a wipe that failed", [](Silent& s) { s.statement.result = evidence::WipeResult::failed; }},
        {"more than a simulated node can show", [](Silent& s) { s.statement.grade = Grade::silicon; }},
        {"a GPU that somebody emulates, which nobody can", [](Silent& s) { s.statement.grade = Grade::emulated; }},
    };
    for (const auto& [says, change] : rows) {
        Silent node;
        change(node);
        node.answer();
        EXPECT_EQ(state_of(node.plane, node.task.device), CleanState::quarantined) << says;
        EXPECT_EQ(node.plane.logged("wipe-failed"), 1) << says;
    }
}

// A software machine's drives behind a real kernel's driver are more than a model's, and say so.
TEST(Evidence, of_an_emulated_drive_counts_in_a_simulated_fleet_and_that_of_silicon_does_not) {
    for (const auto& [grade, state] :
         {std::pair{Grade::emulated, CleanState::available}, std::pair{Grade::simulated, CleanState::available},
          std::pair{Grade::silicon, CleanState::quarantined}}) {
        Silent node{UnitKind::drive};
        node.statement.grade = grade;
        node.answer();
        EXPECT_EQ(node.plane.node("n0").status.drives[0].state, state) << word(grade);
    }
}

TEST(Evidence, of_another_drive_than_the_one_of_that_number_does_not_count) {
    Silent node{UnitKind::drive};
    node.statement.device = "SIM-n0-9";
    node.answer();
    EXPECT_EQ(node.plane.node("n0").status.drives[0].state, CleanState::quarantined);
    EXPECT_EQ(node.plane.logged("wipe-failed"), 1);
}

// What is known of an index is about the device that was there.
struct Swapped {
    Plane plane{1};
    CleanState drive() const { return plane.node("n0").status.drives.at(0).state; }
    CleanState function() const { return plane.node("n0").status.functions.at(0).state; }
    void hello(const std::function<void(GpuNodeStatus&)>& change) {
        Plane::Node& node = *plane.nodes["n0"];
        Hello hello = node.executor->hello(node.model.inventory(), node.model.boot_id());
        change(hello.inventory);
        node.session += 1'000;
        node.reachable = false;
        plane.event(AgentHello{"n0", node.session, hello});
    }
    void swap() {
        hello([](GpuNodeStatus& inventory) {
            inventory.drives.at(0).serial = "ANOTHER";
            inventory.functions.at(0).address = "0000:99:00.1";
        });
    }
    void take_a_lease() {
        EXPECT_TRUE(plane.apply(tenant("acme")).outcome);
        EXPECT_TRUE(
            plane.apply(work_of("train", "acme", "gpu: {count: 1, mechanism: whole}, storage: {localNvme: 1Gi}"))
                .outcome);
        plane.settle();
        EXPECT_EQ(drive(), CleanState::in_use);
        lease = plane.core->snapshot().leases.front().metadata.name;
    }
    // What an operator can do then, and a node that wipes what is there now.
    void repair() {
        plane.orders.clear();
        EXPECT_TRUE(
            plane.ask(command::Repair{.node = "n0", .kind = UnitKind::drive, .device = 0, .why = "looked"}).outcome);
        WipeTask task;
        for (const Order& order : plane.orders)
            if (const auto* sanitize = std::get_if<Sanitize>(&order.what))
                for (const WipeTask& wipe : sanitize->wipes)
                    if (wipe.kind == UnitKind::drive) task = wipe;
        EXPECT_EQ(task.lease, "");
        EXPECT_TRUE(task.tenants.empty()) << "it is nobody's";
        const evidence::WipeStatement statement = verified(task, "ANOTHER", plane.now);
        WipeReport report{task.kind, task.device, task.start, task.size, task.ticket, true, false, {}, {}};
        report.evidence = evidence::sign_statement(plane.nodes["n0"]->key, evidence::statement_text(statement));
        plane.event(AgentReport{"n0", plane.nodes["n0"]->session, {1'000'000, std::move(report)}});
    }
    // Records of that kind about the drive which name the tenant or its lease.
    std::vector<std::string> about_acme(const std::string& kind) const {
        std::vector<std::string> found;
        const std::string alias = evidence::pseudonym(evidence::opening_of("test", "acme"));
        for (const std::string& payload : plane.log)
            if (payload.starts_with("{\"kind\":\"" + kind + "\"") && payload.find("drive0") != payload.npos &&
                (payload.find("acme") != payload.npos || payload.find(alias) != payload.npos ||
                 payload.find(lease) != payload.npos))
                found.push_back(payload);
        return found;
    }
    void expect_the_gone_one_on_record() {
        EXPECT_EQ(drive(), CleanState::quarantined) << "no wipe of this drive shows that the tenant's data is gone";
        const std::vector<std::string> records = about_acme("quarantined");
        ASSERT_FALSE(records.empty());
        EXPECT_THAT(records.back(), HasSubstr(lease));
        EXPECT_THAT(records.back(), HasSubstr("acme"));
        EXPECT_THAT(records.back(), HasSubstr("\"gone\":\"SIM-n0-0\""));
        repair();
        EXPECT_EQ(drive(), CleanState::available);
        EXPECT_THAT(about_acme("wiped"), testing::IsEmpty()) << "the tenant's data left the house on the other drive";
    }
    std::string lease;
};

TEST(Identity, a_clean_index_where_another_device_answers_is_wiped_before_anybody_has_it) {
    Swapped node;
    ASSERT_EQ(node.drive(), CleanState::available);
    ASSERT_EQ(node.function(), CleanState::available);
    node.swap();
    EXPECT_EQ(node.drive(), CleanState::sanitizing);
    EXPECT_EQ(node.function(), CleanState::sanitizing);
    EXPECT_EQ(node.plane.node("n0").status.drives[0].serial, "ANOTHER");
}

TEST(Identity, a_drive_that_was_wiped_after_a_tenant_and_is_replaced_then_leaves_nothing_of_that_tenant) {
    Swapped node;
    node.take_a_lease();
    ASSERT_TRUE(node.plane.remove(ObjectKind::workload, "train").outcome);
    node.plane.settle();
    ASSERT_EQ(node.about_acme("wiped").size(), 1u);
    node.plane.orders.clear();
    node.swap();
    EXPECT_EQ(node.drive(), CleanState::sanitizing) << "nobody's dirt went";
    for (const Order& order : node.plane.orders)
        if (const auto* sanitize = std::get_if<Sanitize>(&order.what))
            for (const WipeTask& wipe : sanitize->wipes)
                if (wipe.kind == UnitKind::drive) {
                    EXPECT_THAT(wipe.tenants, testing::IsEmpty());
                }
}

TEST(Identity, nor_does_one_that_broke_after_it_was_wiped) {
    Swapped node;
    node.take_a_lease();
    ASSERT_TRUE(node.plane.remove(ObjectKind::workload, "train").outcome);
    node.plane.settle();
    ASSERT_EQ(node.about_acme("wiped").size(), 1u);
    node.plane.fault("n0", {.kind = UnitKind::drive, .device = 0, .why = "worn"});
    ASSERT_EQ(node.drive(), CleanState::quarantined);
    node.swap();
    EXPECT_THAT(node.about_acme("quarantined"), testing::IsEmpty()) << "its certificate says that nothing of it left";
}

TEST(Identity, where_a_tenants_device_went_its_lease_ends_and_what_is_wiped_in_its_place_is_nobodys) {
    Swapped node;
    node.take_a_lease();
    const int ending = node.plane.logged("lease-ending");
    node.swap();
    EXPECT_EQ(node.plane.logged("lease-ending"), ending + 1);
    node.expect_the_gone_one_on_record();
}

TEST(Identity, a_drive_that_was_quarantined_or_held_before_another_took_its_place_is_on_record_too) {
    for (const bool held : {false, true}) {
        Swapped node;
        node.take_a_lease();
        if (held)
            ASSERT_TRUE(node.plane.ask(command::Hold{.tenant = "acme", .why = "court order"}).outcome);
        else
            node.plane.fault("n0", {.kind = UnitKind::drive, .device = 0, .why = "worn"});
        ASSERT_TRUE(node.plane.remove(ObjectKind::workload, "train").outcome);
        node.plane.settle();
        ASSERT_EQ(node.drive(), CleanState::quarantined);
        node.swap();
        node.expect_the_gone_one_on_record();
    }
}

TEST(Identity, a_drive_is_known_by_its_number_though_the_node_was_without_it_meanwhile) {
    for (const bool old_rows : {false, true}) {
        Swapped node;
        node.take_a_lease();
        if (old_rows) {  // rows of before numbers were kept with the gate
            for (auto& [key, body] : node.plane.rows)
                if (const std::size_t at = body.find(",\"identity\""); key.first == Table::gate && at != body.npos)
                    body.erase(at, body.find('"', at + 13) == body.npos ? 0 : body.find_first_of(",}", at + 13) - at);
            node.plane.restart(2);
        } else {
            node.hello([](GpuNodeStatus& inventory) { inventory.drives.clear(); });
            ASSERT_TRUE(node.plane.node("n0").status.drives.empty());
        }
        node.swap();
        node.expect_the_gone_one_on_record();
    }
}

TEST(Evidence, is_asked_for_again_where_the_node_has_gone_beyond_the_ticket) {
    Silent node;
    const std::size_t leaves = node.plane.log.size();
    node.plane.orders.clear();
    node.answer(true);
    EXPECT_EQ(state_of(node.plane, node.task.device), CleanState::sanitizing);
    EXPECT_EQ(node.plane.log.size(), leaves) << "nothing happened";
    EXPECT_TRUE(node.plane.orders.empty()) << "nor is it asked as fast as it can say so";
    node.answer(false);
    EXPECT_EQ(state_of(node.plane, node.task.device), CleanState::sanitizing) << "the old ticket is void";
    node.plane.settle(20);
    EXPECT_TRUE(std::ranges::any_of(node.plane.orders, [&](const Order& order) {
        const auto* release = std::get_if<Release>(&order.what);
        return release != nullptr && std::ranges::any_of(release->wipes, [&](const WipeTask& task) {
                   return task.ticket > node.task.ticket && task.device == node.task.device;
               });
    }));
}

TEST(Epochs, of_another_life_are_noticed) {
    Plane plane{1};
    plane.hello("n0");
    EXPECT_TRUE(plane.closes.empty() || plane.closes.back().find("epoch") == std::string::npos) << "our own";
    plane.nodes["n0"]->executor->on_welcome(9);
    plane.hello("n0");
    EXPECT_THAT(plane.closes.back(), HasSubstr("obeyed a control plane of epoch 9"));
    EXPECT_EQ(plane.epoch_seen, 9);
    EXPECT_FALSE(plane.core->restoring()) << "so nobody rises: whoever runs it looks who leads";
    plane.restart(9, true);  // from a backup of the time before
    plane.hello("n0");
    EXPECT_THAT(plane.closes.back(), HasSubstr("obeyed a control plane of epoch 9, and this one is of epoch 9"));
    EXPECT_TRUE(plane.core->restoring());
    plane.restart(10);
    plane.hello("n0");
    EXPECT_EQ(plane.node("n0").status.phase, NodePhase::ready);
}

// One life wiped a GPU and a drive, under the tickets 1 and 2 of epoch 2. The next, from a backup of the time before,
// begins with epoch 2 as well, and gives ticket 2 to the GPU, before it hears that its epoch was another's.
void give_a_ticket_twice(bool restored_again) {
    Plane plane{1};
    ASSERT_TRUE(plane.apply(tenant("acme")).outcome);
    ASSERT_TRUE(plane.apply(work_of("train", "acme", "gpu: {count: 1, mechanism: whole}")).outcome);
    plane.settle();
    plane.fault("n0", {.kind = UnitKind::drive, .device = 0, .why = "worn"});
    const auto drive = [&] { return plane.node("n0").status.drives.at(0).state; };
    ASSERT_EQ(drive(), CleanState::quarantined);
    const auto backup = plane.rows;
    plane.restart(2);
    plane.hello("n0");
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "train").outcome);
    plane.settle();
    ASSERT_TRUE(
        plane.ask(command::Repair{.node = "n0", .kind = UnitKind::drive, .device = 0, .why = "replaced"}).outcome);
    plane.settle();
    ASSERT_EQ(drive(), CleanState::available);
    const auto waits_for = [&](Key ticket) {
        return std::ranges::any_of(plane.rows, [&](const auto& row) {
            return row.first.first == Table::gate &&
                   row.second.find(fmt::format("\"ticket\":{}", ticket)) != std::string::npos;
        });
    };

    plane.rows = backup;
    plane.restart(2, true);
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "train").outcome);
    ASSERT_TRUE(waits_for(key_of(2, 2))) << "after the ticket of a test of the fences";
    plane.hello("n0");
    ASSERT_THAT(plane.closes.back(), HasSubstr("and this one is of epoch 2"));
    plane.restart(3, restored_again);
    plane.hello("n0");
    plane.settle(60);
    EXPECT_TRUE(plane.core->snapshot().leases.empty());
    EXPECT_EQ(state_of(plane, 0), CleanState::available);
    EXPECT_EQ(state_of(plane, 1), CleanState::available);
}
TEST(Epochs, of_another_life_leave_no_wipe_without_an_answer) {
    give_a_ticket_twice(false);
    give_a_ticket_twice(true);
}

TEST(Restored, a_lease_that_runs_already_is_taken_up) {
    Plane plane{2};
    ASSERT_TRUE(plane.apply(tenant("acme")).outcome);
    ASSERT_TRUE(plane.apply(work_of("train", "acme", "gpu: {count: 2, mechanism: whole}, tasks: 2")).outcome);
    auto backup = plane.rows;
    // The last moment in which the lease was being prepared.
    for (auto& [name, node] : plane.nodes) node->reachable = false;
    plane.now = plane.now + Duration{1000};
    plane.event(Tick{});
    backup = plane.rows;
    for (auto& [name, node] : plane.nodes) {
        node->reachable = true;
        plane.hello(name);
    }
    plane.settle();
    ASSERT_EQ(plane.workload("train").status->phase, WorkloadPhase::running);
    plane.rows = backup;
    plane.restart(2, true);
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::starting);
    plane.hello("n0");
    plane.hello("n1");
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::running);
    EXPECT_EQ(plane.nodes["n0"]->model.running().size() + plane.nodes["n1"]->model.running().size(), 2u);
}

std::string policy_with(const std::string& domains) {
    return header +
           "kind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n  threatModel: internal\n"
           "  sites: [{name: fra, jurisdiction: eu}]\n  versionGate: {shippedAdvisories: false}\n" +
           domains;
}

TEST(Trust, that_is_withdrawn_parts_those_who_sit_together) {
    Plane plane{1};
    const std::string lab = "  trustDomains: [{name: lab, members: [acme, beta]}]\n";
    const std::string member = ", trustDomain: {name: lab, consent: {by: head, at: \"2026-01-01T00:00:00Z\"}}";
    const Answer domain =
        plane.apply(policy_with(lab) + "---\n" + tenant("acme", member) + "---\n" + tenant("beta", member));
    ASSERT_TRUE(domain.outcome) << domain.outcome.error().what;
    ASSERT_TRUE(plane.apply(work_of("one", "acme", "gpu: {count: 1, mechanism: whole}, isolation: {node: same-domain}"))
                    .outcome);
    ASSERT_TRUE(plane.apply(work_of("two", "beta", "gpu: {count: 1, mechanism: whole}, isolation: {node: same-domain}"))
                    .outcome);
    plane.settle();
    ASSERT_EQ(plane.nodes["n0"]->model.running().size(), 2u);
    const Answer parted = plane.apply(policy_with("") + "---\n" + tenant("acme") + "---\n" + tenant("beta"));
    ASSERT_TRUE(parted.outcome) << parted.outcome.error().what;
    plane.settle();
    EXPECT_EQ(plane.workload("one").status->phase, WorkloadPhase::running) << "the elder stays";
    EXPECT_EQ(plane.workload("two").status->phase, WorkloadPhase::pending);
    EXPECT_EQ(plane.nodes["n0"]->model.running().size(), 1u);
}

TEST(Objects, that_would_not_be_read_back_are_not_kept) {
    Plane plane{1};
    Tenant big;
    big.metadata.name = "big";
    big.spec.tenantClass = "research";
    big.metadata.annotations["note"] = std::string(300 << 10, '"');
    const std::size_t leaves = plane.log.size();
    const Answer answer = plane.ask(command::Apply{.objects = {big}});
    ASSERT_FALSE(answer.outcome);
    EXPECT_EQ(answer.outcome.error().code, Code::invalid);
    EXPECT_THAT(answer.outcome.error().what, HasSubstr("at most 262144 are kept"));
    EXPECT_EQ(plane.log.size(), leaves);
}

TEST(Objects, are_answered_as_the_command_left_them) {
    Plane plane{1};
    const Answer made = plane.apply(tenant("acme"));
    EXPECT_THAT(made.object, HasSubstr(made.version));
    EXPECT_EQ(made.version, plane.find<Tenant>("acme").metadata.resourceVersion);
    const Answer work_made = plane.apply(work_of("train", "acme", "gpu: {count: 1}"));
    EXPECT_EQ(work_made.version, plane.workload("train").metadata.resourceVersion);
    EXPECT_THAT(plane.ask(command::Drain{.node = "n0"}).object, HasSubstr("unschedulable"));
    EXPECT_TRUE(plane.remove(ObjectKind::workload, "train").object.empty()) << "it is gone";
}

TEST(Enrolment, anew_ends_what_the_old_agent_had) {
    Plane plane{1};
    const auto key = *evidence::SigningKey::from_seed(std::string(32, 'q'));
    ASSERT_TRUE(
        plane.ask(command::Enrol{.node = "n0", .spec = {.site = "fra"}, .evidence_key = print(key.public_key())})
            .outcome);
    EXPECT_THAT(plane.closes.back(), HasSubstr("enrolled anew"));
}

TEST(Devices, of_another_shape_in_the_same_place_end_the_lease_and_break_nothing) {
    Plane plane{1};
    ASSERT_TRUE(plane.apply(tenant("acme")).outcome);
    ASSERT_TRUE(plane.apply(work_of("train", "acme", "gpu: {count: 2, mechanism: whole}")).outcome);
    plane.settle();
    Plane::Node& node = *plane.nodes["n0"];
    Hello hello = node.executor->hello(node.model.inventory(), node.model.boot_id());
    for (NodeGpus& gpus : hello.inventory.gpus) gpus.model = "a30-24gb";  // four slices where there were eight
    plane.event(AgentHello{"n0", node.session = 500, hello});
    plane.settle(20);
    EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::pending);
}

}  // namespace
}  // namespace bulkhead
