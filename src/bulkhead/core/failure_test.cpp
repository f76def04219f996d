// Work that fails: whose fault it was, what is shown of it, how often it is tried again, and what the history keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/core/persisted.hpp"
#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class FailingPlane : public Plane {
public:
    explicit FailingPlane(int count = 1) : Plane(count) {
        EXPECT_TRUE(apply("apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: lab}\n"
                          "spec: {class: research, priorityGrant: 50}\n")
                        .outcome);
    }
    Answer submit(const std::string& more = {}, const std::string& name = "train") {
        return apply("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: " + name +
                     "}\nspec: {tenant: lab, gpu: {count: 1, mechanism: whole}, command: [/bin/train]" + more + "}\n");
    }
    GpuWorkloadStatus status(const std::string& name = "train") const { return *workload(name).status; }
    bool is_pending() const { return status().phase == WorkloadPhase::pending; }
    // The one command that runs ends.
    void end(std::int64_t with) {
        for (const auto& [name, node] : nodes)
            for (const Key key : node->model.running()) {
                exit(name, {key, with, {}});
                return;
            }
        ADD_FAILURE() << "nothing runs";
    }
    std::vector<HistoryRow> history() const {
        std::vector<HistoryRow> out;
        for (const auto& [key, body] : rows)
            if (key.first == Table::history)
                out.push_back(from_json<HistoryRow>("a row", body, own_text).value_or(HistoryRow{}));
        return out;
    }
    std::string last_logged(const std::string& kind) const {
        for (auto it = log.rbegin(); it != log.rend(); ++it)
            if (it->starts_with("{\"kind\":\"" + kind + "\"")) return *it;
        return {};
    }
};

TEST(Failure, a_command_that_fails_is_shown_as_failed_with_reason_status_node_and_attempt) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit().outcome);
    plane.settle();
    plane.end(3);
    plane.settle();
    const GpuWorkloadStatus status = plane.status();
    EXPECT_EQ(status.phase, WorkloadPhase::failed);
    EXPECT_EQ(status.exitStatus, 3);
    ASSERT_TRUE(status.failure);
    EXPECT_EQ(status.failure->reason, FailureReason::exited);
    EXPECT_EQ(status.failure->says, "its command ended with status 3 on n0");
    EXPECT_EQ(status.failure->node, "n0");
    EXPECT_EQ(status.failure->attempt, 1);
    EXPECT_TRUE(status.failure->final);
    EXPECT_THAT(status.failure->next, HasSubstr("bulkhead logs train"));
    EXPECT_THAT(status.reasons, ElementsAre("its command ended with status 3 on n0"));
    ASSERT_EQ(status.history.attempts.size(), 1u);
    EXPECT_EQ(status.history.attempts[0].exitStatus, 3);
    EXPECT_THAT(status.history.attempts[0].nodes, ElementsAre("n0"));
    EXPECT_THAT(plane.last_logged("workload-failed"),
                AllOf(HasSubstr("\"reason\":\"exited\""), HasSubstr("\"final\":\"true\"")));
}

TEST(Failure, the_reason_tells_a_signal_and_a_missing_program_apart) {
    struct Row {
        std::int64_t status;
        FailureReason reason;
    };
    for (const Row& row : {Row{1, FailureReason::exited}, Row{137, FailureReason::killed},
                           Row{126, FailureReason::program_not_executable}, Row{127, FailureReason::program_not_found},
                           Row{128, FailureReason::exited}, Row{255, FailureReason::exited}}) {
        FailingPlane plane;
        ASSERT_TRUE(plane.submit().outcome);
        plane.settle();
        plane.end(row.status);
        plane.settle();
        ASSERT_TRUE(plane.status().failure) << row.status;
        EXPECT_EQ(plane.status().failure->reason, row.reason) << row.status;
    }
}

TEST(Failure, on_failure_tries_again_after_growing_waits_until_backoff_limit) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit(", restartPolicy: on-failure, backoffLimit: 2").outcome);
    for (const int wait : {10, 20}) {
        plane.settle(5);
        ASSERT_EQ(plane.status().phase, WorkloadPhase::running);
        plane.end(1);
        const Instant failed = plane.now;
        plane.settle(5);
        ASSERT_TRUE(plane.is_pending());
        EXPECT_EQ(plane.status().history.retryAt, failed + Duration{wait * 1000});
        EXPECT_FALSE(plane.status().exitStatus) << "it goes on";
        EXPECT_THAT(plane.status().reasons, ElementsAre(HasSubstr("it is tried again after")));
        plane.settle(wait - 6);
        EXPECT_TRUE(plane.is_pending()) << "not before its time";
        plane.settle(3);
    }
    ASSERT_EQ(plane.status().phase, WorkloadPhase::running);
    plane.end(1);
    plane.settle();
    EXPECT_EQ(plane.status().phase, WorkloadPhase::failed);
    EXPECT_EQ(plane.status().history.failures, 3);
    EXPECT_THAT(plane.status().failure->says, HasSubstr("3 runs failed, and backoffLimit is 2"));
    plane.settle(1000);
    EXPECT_EQ(plane.status().history.starts, 3) << "it is not run again";
}

TEST(Failure, work_that_ends_well_after_failures_is_finished) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit(", restartPolicy: on-failure").outcome);
    plane.settle(5);
    plane.end(1);
    plane.settle(20);
    plane.end(0);
    plane.settle();
    EXPECT_EQ(plane.status().phase, WorkloadPhase::finished);
    EXPECT_EQ(plane.status().exitStatus, 0);
    ASSERT_EQ(plane.status().history.attempts.size(), 2u);
    EXPECT_FALSE(plane.status().history.attempts[1].reason);
}

TEST(Failure, a_wait_for_the_next_try_outlives_a_restart) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit(", restartPolicy: on-failure").outcome);
    plane.settle(5);
    plane.end(1);
    plane.settle(2);
    plane.restart(2);
    plane.hello("n0");
    plane.settle(4);
    EXPECT_TRUE(plane.is_pending());
    plane.settle(10);
    EXPECT_EQ(plane.status().phase, WorkloadPhase::running);
}

TEST(Failure, the_waits_double_up_to_six_minutes) {
    // By the same table as a Job of Kubernetes: 10 s, 20 s, 40 s and so on.
    FailingPlane plane;
    ASSERT_TRUE(plane.submit(", restartPolicy: on-failure, backoffLimit: 8").outcome);
    std::vector<std::int64_t> waits;
    for (int i = 0; i < 8; ++i) {
        for (int second = 0; second < 400 && plane.status().phase != WorkloadPhase::running; ++second) plane.settle(1);
        plane.end(1);
        waits.push_back((*plane.status().history.retryAt - plane.now).ms / 1000);
        plane.settle(3);
    }
    EXPECT_THAT(waits, ElementsAre(10, 20, 40, 80, 160, 320, 360, 360));
}

TEST(Failure, a_program_that_is_not_there_ends_its_work_at_once) {
    FailingPlane plane;
    plane.nodes["n0"]->model.fail_starts(1, PartFault::not_found);
    ASSERT_TRUE(plane.submit(", restartPolicy: on-failure").outcome);
    plane.settle();
    EXPECT_EQ(plane.status().phase, WorkloadPhase::failed);
    EXPECT_EQ(plane.status().exitStatus, 127);
    EXPECT_EQ(plane.status().failure->reason, FailureReason::program_not_found);
    EXPECT_THAT(plane.status().failure->next, HasSubstr("name a program"));
    plane.settle(1000);
    EXPECT_EQ(plane.status().history.starts, 1);
    EXPECT_EQ(plane.node("n0").status.unfit, "");
}

TEST(Failure, a_start_that_fails_is_tried_again_and_given_up_after_backoff_limit) {
    FailingPlane plane;
    plane.nodes["n0"]->model.fail_starts(1000);
    ASSERT_TRUE(plane.submit(", backoffLimit: 3").outcome);
    plane.settle(5);
    ASSERT_TRUE(plane.is_pending());
    EXPECT_THAT(plane.status().reasons, ElementsAre(HasSubstr("could not be started on n0")));
    plane.settle(3000);
    EXPECT_EQ(plane.status().phase, WorkloadPhase::failed);
    EXPECT_EQ(plane.status().failure->reason, FailureReason::start_failed);
    EXPECT_EQ(plane.status().history.starts, 4);
}

// It makes every start look like a broken runtime, and each node's own start works.
TEST(Failure, no_workload_can_drain_a_fleet) {
    FailingPlane plane{3};
    for (auto& [name, node] : plane.nodes) node->model.fail_starts(1000, PartFault::start);
    ASSERT_TRUE(plane.submit(", backoffLimit: 20").outcome);
    plane.settle(8000);
    EXPECT_EQ(plane.status().phase, WorkloadPhase::failed);
    for (const auto& [name, node] : plane.nodes) {
        EXPECT_EQ(plane.node(name).status.unfit, "") << name;
        EXPECT_FALSE(plane.node(name).spec.unschedulable) << name;
        node->model.fail_starts(0);
    }
    EXPECT_EQ(plane.logged("node-drained"), 0);
    ASSERT_TRUE(plane.submit({}, "other").outcome);
    plane.settle();
    EXPECT_EQ(plane.status("other").phase, WorkloadPhase::running);
}

TEST(Failure, a_node_that_cannot_start_anything_drains_itself_and_says_why) {
    FailingPlane plane{2};
    plane.nodes["n0"]->model.fail_starts(1000, PartFault::node);
    plane.nodes["n1"]->model.fail_starts(0);
    // Until n0 has been tried: which node is tried first is the scheduler's.
    for (int i = 0; i < 2 && plane.node("n0").status.unfit.empty(); ++i) {
        ASSERT_TRUE(plane.submit({}, "work-" + std::to_string(i)).outcome);
        plane.settle(60);
        if (plane.node("n0").status.unfit.empty()) plane.ask(command::Drain{.node = "n1"});
        plane.settle(60);
    }
    plane.ask(command::Drain{.node = "n1", .on = false});
    plane.settle(200);
    EXPECT_THAT(plane.node("n0").status.unfit, HasSubstr("the runtime refused it"));
    EXPECT_THAT(plane.last_logged("node-drained"), testing::Not(IsEmpty()));
    EXPECT_EQ(plane.status("work-0").phase, WorkloadPhase::running) << "on the other node";
    EXPECT_EQ(plane.status("work-0").history.failures, 0) << "that was not the work's fault";
    plane.restart(2);
    for (const auto& [name, node] : plane.nodes) plane.hello(name);
    plane.settle();
    EXPECT_THAT(plane.node("n0").status.unfit, HasSubstr("the runtime refused it")) << "also after a restart";
    plane.nodes["n0"]->model.fail_starts(0);
    ASSERT_TRUE(plane.ask(command::Drain{.node = "n0", .on = false}).outcome);
    EXPECT_EQ(plane.node("n0").status.unfit, "");
}

TEST(Failure, interruptions_are_no_failures_of_the_work) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit(", backoffLimit: 0").outcome);
    plane.settle();
    ASSERT_TRUE(plane.ask(command::Drain{.node = "n0"}).outcome);
    plane.settle();
    EXPECT_NE(plane.status().phase, WorkloadPhase::failed);
    EXPECT_EQ(plane.status().history.failures, 0);
    ASSERT_EQ(plane.status().history.attempts.size(), 1u);
    EXPECT_EQ(plane.status().history.attempts[0].reason, FailureReason::interrupted);
    ASSERT_TRUE(plane.ask(command::Drain{.node = "n0", .on = false}).outcome);
    plane.settle();
    EXPECT_EQ(plane.status().phase, WorkloadPhase::running);
}

TEST(Failure, only_the_last_ten_attempts_are_kept_with_a_workload) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit(", restartPolicy: on-failure, backoffLimit: 14").outcome);
    for (int i = 0; i < 12; ++i) {
        for (int second = 0; second < 400 && plane.status().phase != WorkloadPhase::running; ++second) plane.settle(1);
        plane.end(1);
        plane.settle(3);
    }
    ASSERT_EQ(plane.status().history.attempts.size(), attempts_kept_max);
    EXPECT_EQ(plane.status().history.attempts.back().attempt, 12);
}

TEST(Failure, work_that_runs_past_its_active_deadline_fails) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit(", activeDeadline: 1m, restartPolicy: on-failure").outcome);
    plane.settle(50);
    EXPECT_EQ(plane.status().phase, WorkloadPhase::running);
    plane.settle(20);
    EXPECT_EQ(plane.status().phase, WorkloadPhase::failed);
    EXPECT_EQ(plane.status().failure->reason, FailureReason::deadline_exceeded);
    EXPECT_THAT(plane.status().failure->next, HasSubstr("activeDeadline"));
    EXPECT_TRUE(plane.core->snapshot().leases.empty());
}

TEST(Failure, the_active_deadline_counts_on_while_work_waits_for_its_next_try) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit(", activeDeadline: 1m, restartPolicy: on-failure").outcome);
    plane.settle(5);
    ASSERT_TRUE(plane.ask(command::Drain{.node = "n0"}).outcome);
    plane.settle(80);
    EXPECT_EQ(plane.status().phase, WorkloadPhase::failed);
    EXPECT_EQ(plane.status().failure->reason, FailureReason::deadline_exceeded);
}

TEST(Failure, ended_work_is_deleted_after_its_time_to_live_and_stays_in_the_history) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit(", ttlAfterFinished: 1m").outcome);
    plane.settle();
    plane.end(0);
    plane.settle(30);
    EXPECT_TRUE(plane.exists("train"));
    plane.settle(60);
    EXPECT_FALSE(plane.exists("train"));
    ASSERT_EQ(plane.history().size(), 1u);
    EXPECT_EQ(plane.history()[0].workload, "train");
    EXPECT_EQ(plane.history()[0].state, HistoryState::finished);
}

TEST(Failure, the_history_says_who_when_where_how_and_how_much) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit(", restartPolicy: on-failure").outcome);
    plane.settle(3);
    const Instant started = *plane.status().history.startedAt;
    plane.now = started + Duration::hours(1);
    plane.end(4);
    plane.settle();
    ASSERT_EQ(plane.history().size(), 1u);
    const HistoryRow row = plane.history()[0];
    EXPECT_EQ(row.tenant, "lab");
    EXPECT_EQ(row.submittedBy, "test");
    EXPECT_EQ(row.startedAt, started);
    EXPECT_EQ(row.endedAt, started + Duration::hours(1));
    EXPECT_THAT(row.nodes, ElementsAre("n0"));
    EXPECT_EQ(row.gpuTime, Duration::hours(1));
    EXPECT_EQ(row.state, HistoryState::failed);
    EXPECT_EQ(row.reason, FailureReason::exited);
    EXPECT_EQ(row.exitStatus, 4);
    EXPECT_THAT(row.lease, testing::StartsWith("lease-"));
}

TEST(Failure, deleted_work_is_cancelled_in_the_history_whether_it_ran_or_waited) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit({}, "ran").outcome);
    ASSERT_TRUE(plane.submit(", tasks: 2", "waited").outcome);
    plane.settle();
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "waited").outcome);
    ASSERT_TRUE(plane.remove(ObjectKind::workload, "ran").outcome);
    plane.settle();
    ASSERT_EQ(plane.history().size(), 2u);
    for (const HistoryRow& row : plane.history()) EXPECT_EQ(row.state, HistoryState::cancelled) << row.workload;
}

TEST(Failure, the_history_forgets_what_is_older_than_the_policy_keeps) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit().outcome);
    plane.settle();
    plane.end(0);
    plane.settle();
    plane.restart(2);
    plane.now = plane.now + Duration::days(89);
    plane.settle(1);
    EXPECT_EQ(plane.history().size(), 1u);
    plane.now = plane.now + Duration::days(1);
    plane.settle(1);
    EXPECT_THAT(plane.history(), IsEmpty());
}

// As the version before this one wrote it: finished, with another status than 0.
TEST(Failure, a_row_from_before_failure_was_a_phase_reads_as_failed) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit().outcome);
    plane.settle();
    plane.end(3);
    plane.settle();
    for (auto& [key, body] : plane.rows)
        if (key.first == Table::workload)
            body =
                R"({"apiVersion":"bulkhead.dev/v1alpha1","kind":"GpuWorkload","metadata":{"name":"train","resourceVersion":"0f2ab16a4d3e","generation":1},"spec":{"tenant":"lab","gpu":{"count":1,"mechanism":"whole"},"command":["/bin/train"]},"status":{"phase":"finished","since":"2027-01-15T08:00:20Z","reasons":["its command ended with status 3 on n0"],"exitStatus":3,"output":"no such file\n","history":{"starts":1}}})";
    plane.restart(2);
    plane.hello("n0");
    plane.settle(60);
    EXPECT_EQ(plane.status().phase, WorkloadPhase::failed);
    EXPECT_EQ(plane.status().exitStatus, 3);
    ASSERT_TRUE(plane.status().failure);
    EXPECT_EQ(plane.status().failure->says, "its command ended with status 3 on n0");
    EXPECT_EQ(plane.status().output, "no such file\n");
    EXPECT_EQ(plane.logged("leased"), 1) << "it is not run again";
}

TEST(Failure, ended_work_is_run_again_when_it_is_changed_and_not_when_it_is_labelled) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit().outcome);
    plane.settle();
    plane.end(3);
    plane.settle();
    ASSERT_TRUE(plane.submit(", ttlAfterFinished: 1d").outcome);
    plane.settle();
    EXPECT_EQ(plane.status().phase, WorkloadPhase::failed);
    ASSERT_TRUE(plane.submit(", environment: [A=b]").outcome);
    plane.settle();
    EXPECT_EQ(plane.status().phase, WorkloadPhase::running);
    EXPECT_EQ(plane.status().history.failures, 0);
}

// n0 is a model, n1 runs commands.
class HalfModelled : public FailingPlane {
public:
    HalfModelled() : FailingPlane(2) {
        Node& real = *nodes["n1"];
        GpuNodeStatus inventory = real.model.inventory();
        inventory.runsCommands = true;
        inventory.cpu = 32;  // n0 has 64
        real.session = 1000;
        event(AgentHello{"n1", 1000, real.executor->hello(inventory, real.model.boot_id())});
        settle();
    }
    std::string explained(const std::string& name = "train") { return ask(command::Explain{.workload = name}).body; }
};

TEST(Failure, a_command_goes_where_commands_run_and_not_to_a_model_of_a_node) {
    HalfModelled plane;
    for (const char* name : {"one", "two", "three"}) ASSERT_TRUE(plane.submit({}, name).outcome);
    plane.settle();
    EXPECT_EQ(plane.nodes["n1"]->model.running().size(), 2u);
    EXPECT_THAT(plane.nodes["n0"]->model.running(), IsEmpty());
    EXPECT_EQ(plane.status("three").phase, WorkloadPhase::pending) << "n1 is full";
}

TEST(Failure, a_command_waits_for_a_drained_node_and_does_not_go_to_a_model) {
    HalfModelled plane;
    ASSERT_TRUE(plane.ask(command::Drain{.node = "n1", .on = true}).outcome);
    plane.settle();
    ASSERT_TRUE(plane.submit().outcome);
    plane.settle();
    EXPECT_TRUE(plane.is_pending());
    EXPECT_THAT(plane.nodes["n0"]->model.running(), IsEmpty());
    EXPECT_THAT(plane.explained(), AllOf(HasSubstr("1 node is closed to new work: drained"),
                                         HasSubstr("1 node that may serve it is a model of nodes")));
    EXPECT_THAT(plane.explained(), HasSubstr("node n1 is closed to new work")) << "the obstacle is named";
    EXPECT_THAT(plane.explained(), Not(HasSubstr("under its contract"))) << "the contract excludes neither";
    ASSERT_TRUE(plane.ask(command::Drain{.node = "n1", .on = false}).outcome);
    plane.settle();
    EXPECT_EQ(plane.status().phase, WorkloadPhase::running);
    EXPECT_EQ(plane.nodes["n1"]->model.running().size(), 1u);
}

TEST(Failure, a_command_that_may_go_to_models_only_says_so) {
    HalfModelled plane;
    ASSERT_TRUE(plane.submit(", cpu: 40").outcome);
    plane.settle();
    EXPECT_TRUE(plane.is_pending());
    EXPECT_THAT(plane.nodes["n0"]->model.running(), IsEmpty());
    EXPECT_EQ(plane.status().reasons.front(), "no node that may serve it runs commands");
}

// Of an agent that does not say whose fault it was.
TEST(Failure, an_older_agents_failed_start_counts_and_its_restarted_host_does_not) {
    FailingPlane plane;
    ASSERT_TRUE(plane.submit(", backoffLimit: 0").outcome);
    plane.settle();
    Key lease = plane.nodes["n0"]->model.running().front();
    plane.event(AgentReport{
        "n0", plane.nodes["n0"]->session, {1'000, LeaseReport{lease, PartPhase::failed, "the host was restarted"}}});
    plane.settle(2);
    EXPECT_NE(plane.status().phase, WorkloadPhase::failed);
    EXPECT_EQ(plane.status().history.failures, 0);
}

}  // namespace
}  // namespace bulkhead
