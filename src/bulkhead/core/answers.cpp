// Questions: why a workload waits, and who is in the queue.
#include <algorithm>

#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/state.hpp"

namespace bulkhead {

namespace {

// What is kept with the workload is written for its tenant; whoever runs the fleet is told the numbers too.
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

std::string queue(Turn& turn) {
    JsonWriter out{JsonLayout::compact};
    out.begin_object();
    out.key("items");
    out.begin_array();
    std::vector<const WorkloadRun*> waiting;
    waiting.reserve(turn.state.pending.size());
    // Whose place is counted among those that the caller may see: how many others wait is nobody's business.
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
        out.end_object();
    }
    out.end_array();
    out.end_object();
    return out.take();
}

}  // namespace bulkhead
