// Questions: why a workload waits, and who is in the queue.
#include <algorithm>

#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/state.hpp"
#include "bulkhead/sched/blocking_text.hpp"

namespace bulkhead {

namespace {

// One question looks at the fleet for so many workloads at most; each may take a millisecond.
constexpr std::int64_t explained_in_a_queue = 32;

// What is in the way of a workload that waits, as of the last cycle. Nothing: it does not wait for the scheduler, or
// the scheduler has not seen it yet.
void write_in_the_way(JsonWriter& out, const Turn& turn, const WorkloadRun& workload) {
    Core::State& state = turn.state;
    if (workload.object.status->phase != WorkloadPhase::pending || !state.asked) return;
    const auto job = state.asked->jobs.find(workload.key);
    if (job == state.asked->jobs.end() || !state.asked->engine.waiting(job->second)) return;
    const sched::BlockingNames names{
        .node = [&](std::uint32_t node) { return state.fleet.at(node).name; },
        .workload =
            [&](std::int64_t key) {
                const auto found = state.workloads.find(key);
                return found == state.workloads.end() ? std::string{} : found->second.object.metadata.name;
            },
        .tenant = [&](sched::TenantNo tenant) { return state.relations.name(tenant); },
        .is_own =
            [&](sched::TenantNo tenant) {
                return turn.rights.may(Permission::read_tenant, state.relations.name(tenant));
            },
    };
    const sched::Waiting waiting = state.asked->engine.explain(job->second, turn.now);
    if (!waiting.blocking) return;
    out.key("inTheWay");
    write(out, sched::in_the_way(*waiting.blocking, names, turn.audience()));
}

// The reasons that are kept with the workload are worded for its tenant; an operator reads the numbers too.
void write_reasons(JsonWriter& out, const Turn& turn, const WorkloadRun& workload) {
    out.key("reasons");
    out.begin_array();
    const GpuWorkloadStatus& status = *workload.object.status;
    const bool waits = status.phase == WorkloadPhase::pending && !workload.waits.empty();
    if (waits && turn.audience() == Audience::fleet_operator)
        for (const Reason& reason : workload.waits)
            out.value(fill(sched::words_of(reason.code), reason.arguments, Audience::fleet_operator));
    else
        for (const std::string& reason : status.reasons) out.value(reason);
    out.end_array();
}

// By the reservation that the last cycle made for it.
void write_expected_start(JsonWriter& out, const WorkloadRun& workload) {
    if (workload.object.status->phase != WorkloadPhase::pending) return;
    const auto reason = std::ranges::find(workload.waits, "wait.expected", &Reason::code);
    if (reason != workload.waits.end())
        out.member("expectedStart", std::get<std::string>(reason->arguments.front().value));
}

}  // namespace

std::string explain(Turn& turn, WorkloadRun& workload) {
    refresh_declared(turn);
    JsonWriter out{JsonLayout::compact};
    const GpuWorkloadStatus& status = *workload.object.status;
    out.begin_object();
    out.member("workload", workload.object.metadata.name);
    out.member("tenant", workload.object.spec.tenant);
    out.member("phase", word(status.phase));
    if (status.since) out.member("since", print(*status.since));
    if (!status.lease.empty()) out.member("lease", status.lease);
    write_reasons(out, turn, workload);
    write_expected_start(out, workload);
    write_in_the_way(out, turn, workload);
    if (status.failure) {
        out.key("failure");
        write(out, *status.failure);
    }
    std::vector<std::string> placed;
    if (const auto lease = turn.state.leases.find(workload.lease); lease != turn.state.leases.end())
        for (const Part& part : lease->second.parts)
            if (const auto node = turn.state.nodes.find(part.node); node != turn.state.nodes.end())
                placed.push_back(node->second.object.metadata.name);
    Decision decision = turn.state.compiler->compile(workload.object, turn.audience(), Written::in_full, placed);
    // When the fleet was last declared anew is the operator's to know.
    if (turn.audience() == Audience::tenant) std::visit([&](auto& made) { made.asOf = turn.now; }, decision);
    if (const Contract* contract = std::get_if<Contract>(&decision)) {
        out.key("contract");
        write(out, *contract);
    } else {
        out.key("refusal");
        write(out, std::get<Refusal>(decision));
    }
    out.end_object();
    return out.take();
}

std::string queue(Turn& turn, bool in_the_way) {
    JsonWriter out{JsonLayout::compact};
    out.begin_object();
    out.key("items");
    out.begin_array();
    std::vector<const WorkloadRun*> waiting;
    waiting.reserve(turn.state.pending.size());
    // Places are counted among the workloads that the caller may see: a tenant does not learn how many others wait.
    for (const Key key : turn.state.pending)
        if (const WorkloadRun& one = turn.state.workloads.at(key);
            turn.rights.may(Permission::read_tenant, one.object.spec.tenant))
            waiting.push_back(&one);
    std::ranges::sort(waiting, {}, [](const WorkloadRun* one) {
        return std::pair{one->contract ? -one->contract->priority : 1, one->key};
    });
    std::int64_t place = 0;
    for (const WorkloadRun* one : waiting) {
        const GpuWorkloadStatus& status = *one->object.status;
        out.begin_object();
        out.member("place", ++place);
        out.member("workload", one->object.metadata.name);
        out.member("tenant", one->object.spec.tenant);
        out.member("phase", word(status.phase));
        out.member("priority", one->contract ? one->contract->priority : 0);
        if (one->contract) out.member("gpus", print(one->contract->gpus));
        if (status.since) out.member("since", print(*status.since));
        write_reasons(out, turn, *one);
        write_expected_start(out, *one);
        if (in_the_way && place <= explained_in_a_queue) write_in_the_way(out, turn, *one);
        out.end_object();
    }
    out.end_array();
    out.end_object();
    return out.take();
}

}  // namespace bulkhead
