#include "bulkhead/replay/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "bulkhead/sched/packing.hpp"

namespace bulkhead::replay {

namespace {

constexpr std::int64_t most_nodes = 100'000, most_tenants = 10'000;

Result<> check(const GangTrace& trace, const TraceFleet& fleet) {
    const std::int64_t per_node = fleet.node_gpus;
    if (per_node < 1 || per_node > static_cast<std::int64_t>(sched::most_gpus_of_node))
        return fail(Code::invalid, fmt::format("a node cannot have {} GPUs", per_node),
                    fmt::format("from 1 to {} for each node", sched::most_gpus_of_node));
    if (fleet.gpus < 1 || fleet.gpus > most_nodes * per_node)
        return fail(Code::invalid, fmt::format("a fleet cannot have {} GPUs", fleet.gpus),
                    fmt::format("from 1 to {}, {} for each node", most_nodes * per_node, per_node));
    if (fleet.tenants < 1 || fleet.tenants > most_tenants)
        return fail(Code::invalid, fmt::format("there cannot be {} tenants", fleet.tenants),
                    fmt::format("from 1 to {}", most_tenants));
    for (std::size_t i = 0; i < trace.size(); ++i) {
        const std::int64_t gpus = trace[i].gpus;
        if (gpus > per_node && gpus % per_node != 0)
            return fail(Code::invalid,
                        fmt::format("job {} asks for {} GPUs; what is more than a node of {} must be whole nodes",
                                    i + 1, gpus, per_node),
                        "nodes of another size");
        if (gpus > fleet.gpus || (gpus > per_node && gpus / per_node > fleet.gpus / per_node))
            return fail(Code::invalid,
                        fmt::format("job {} asks for {} GPUs, and the fleet has {} on nodes of {}", i + 1, gpus,
                                    fleet.gpus, per_node),
                        fmt::format("a fleet of at least {}", gpus));
    }
    return {};
}

}  // namespace

std::int64_t Scenario::units() const {
    std::int64_t sum = 0;
    for (const sched::Node& node : nodes)
        for (const sched::Gpu& gpu : node.gpus)
            sum += gpu_unit * std::popcount(static_cast<unsigned>(gpu.all() & ~gpu.lost)) / gpu.slices;
    return sum;
}

Result<Scenario> scenario_of(const GangTrace& trace, const TraceFleet& fleet) {
    if (const auto good = check(trace, fleet); !good) return std::unexpected(good.error());
    Scenario out;
    for (std::uint32_t i = 0; i < fleet.tenants; ++i) {
        sched::TenantFacts tenant;
        tenant.name = fmt::format("tenant-{}", i + 1);
        tenant.domain = 1;
        tenant.seniority = i;
        out.tenants.push_back(std::move(tenant));
    }
    for (std::int64_t first = 0; first < fleet.gpus; first += fleet.node_gpus) {
        sched::Node node;
        node.name = fmt::format("node-{}", out.nodes.size() + 1);
        node.open = true;
        node.gpus.assign(static_cast<std::size_t>(std::min(fleet.node_gpus, fleet.gpus - first)),
                         sched::Gpu{.model = "gpu", .available = 1});
        out.nodes.push_back(std::move(node));
    }
    std::map<std::int64_t, std::uint32_t> known;  // needs, by GPUs
    for (std::size_t i = 0; i < trace.size(); ++i) {
        const std::int64_t per_task = std::min<std::int64_t>(trace[i].gpus, fleet.node_gpus);
        const auto [need, fresh] = known.emplace(per_task, static_cast<std::uint32_t>(out.needs.size()));
        if (fresh) out.needs.emplace_back().wants.push_back({.model = "gpu", .count = per_task});
        ScenarioJob job{.work = {}, .need = need->second, .duration = trace[i].duration};
        job.work.tenant = static_cast<sched::TenantNo>(i % fleet.tenants);
        job.work.tasks = static_cast<std::int32_t>(trace[i].gpus / per_task);
        job.work.gpus = Gpus::whole(per_task);
        job.work.priority = trace[i].priority;
        job.work.submitted = trace[i].submitted;
        job.work.deadline = trace[i].deadline;
        job.work.checkpoint = fleet.checkpoint;
        out.jobs.push_back(job);
    }
    return out;
}

}  // namespace bulkhead::replay
