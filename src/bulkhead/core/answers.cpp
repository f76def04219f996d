// Questions: why a workload waits, and who is in the queue.
#include <algorithm>

#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/state.hpp"

namespace bulkhead {

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
    out.key("reasons");
    out.begin_array();
    for (const std::string& reason : status.reasons) out.value(reason);
    out.end_array();
    const Decision decision = turn.state.compiler->compile(workload.object);
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
    for (const Key key : turn.state.pending) waiting.push_back(&turn.state.workloads.at(key));
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
        out.key("reasons");
        out.begin_array();
        for (const std::string& reason : status.reasons) out.value(reason);
        out.end_array();
        out.end_object();
    }
    out.end_array();
    out.end_object();
    return out.take();
}

}  // namespace bulkhead
