// Bytes as a trace of jobs: refused or read, never anything else; what was read, if it is small, can be replayed to its
// end under either policy.
#include <cstdint>

#include "bulkhead/replay/queueing_figures.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace bulkhead;
    using namespace bulkhead::replay;
    const auto trace = read_gang_trace("fuzz", {reinterpret_cast<const char*>(data), size});
    if (!trace || trace->size() > 40) return 0;
    const TraceFleet fleet{.gpus = 16, .node_gpus = 4, .tenants = 2};
    const auto scenario = scenario_of(*trace, fleet);
    if (!scenario) return 0;
    for (const QueuePolicy policy : {QueuePolicy::fifo, QueuePolicy::bulkhead}) {
        const auto run = run_queueing(*scenario, policy, {.wipe = {30'000}});
        invariant(run.has_value(), "every job that fits the empty fleet ends");
        const QueueingFigures figures = figures_of(*scenario, *run, {});
        invariant(figures.utilisation <= 1 + 1e-9, "no more than all GPUs are in use");
    }
    return 0;
}
