// What the core's thread pays for a submit: a workload that is accepted, waits for quota, and is taken back.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/core.hpp"

namespace bulkhead {
namespace {

constexpr Instant now{1'800'000'000'000};

// Nodes that can serve the work, and a quota that lets none of it be placed.
Core fleet(std::int64_t nodes) {
    Core core{1, 0, {.simulated_fleet = true, .secret = "bench"}};
    std::int64_t key = 0;
    const auto put = [&](Table table, const auto& object) {
        invariant(core.load({table, ++key, to_compact_json(object), false}).has_value(), "what was written is read");
    };
    FleetPolicy policy;
    policy.metadata.name = "fleet";
    policy.spec.threatModel = ThreatModel::internal;
    policy.spec.sites.push_back({"here", "eu"});
    policy.spec.versionGate.shippedAdvisories = false;
    put(Table::policy, policy);
    Tenant tenant;
    tenant.metadata.name = "acme";
    tenant.spec.tenantClass = "batch";
    tenant.spec.quota.limit = Gpus::of_thousandths(1000);
    put(Table::tenant, tenant);
    for (std::int64_t i = 0; i < nodes; ++i) {
        GpuNode node;
        node.metadata.name = fmt::format("node-{}", i);
        node.spec.site = "here";
        node.status.gpus.push_back({.model = "h100-80gb-sxm5", .count = 8});
        node.status.phase = NodePhase::ready;
        put(Table::node, node);
    }
    GpuWorkload holder;
    holder.metadata.name = "holder";
    holder.spec.tenant = "acme";
    holder.spec.gpu.count = 1;
    holder.status = GpuWorkloadStatus{.phase = WorkloadPhase::running, .lease = "lease-0"};
    put(Table::workload, holder);
    GpuLease lease;
    lease.metadata.name = "lease-0";
    lease.spec = {.tenant = "acme", .workload = "holder", .mechanism = Mechanism::whole};
    lease.spec.slices.push_back({.node = "node-0"});
    lease.status = GpuLeaseStatus{.phase = LeasePhase::active, .gpus = Gpus::of_thousandths(1000), .activeAt = now};
    put(Table::lease, lease);
    benchmark::DoNotOptimize(core.start(now));
    return core;
}

Command submit(int number) {
    GpuWorkload work;
    work.metadata.name = fmt::format("w-{}", number);
    work.spec.tenant = "acme";
    work.spec.gpu.count = 1;
    work.spec.gpu.mechanism = Mechanism::whole;
    return {.actor = "bench", .what = command::Apply{.objects = {work}, .mode = command::Mode::create}};
}

Command take_back(int number) {
    return {.actor = "bench",
            .what = command::Delete{.kind = ObjectKind::workload, .name = fmt::format("w-{}", number)}};
}

// As the loop meets them: as many as wait are one batch, and a tick ends it. An item is one command.
void submits_and_deletes(benchmark::State& state) {
    Core core = fleet(state.range(0));
    const int together = static_cast<int>(state.range(1));
    int first = 0;
    const auto ask = [&](Command command) {
        const Effects effects = core.apply(now, std::move(command));
        invariant(effects.answers.at(0).outcome.has_value(), "it is accepted");
        benchmark::DoNotOptimize(effects.rows.data());
    };
    for (auto _ : state) {
        for (int i = 0; i < together; ++i) ask(submit(first + i));
        benchmark::DoNotOptimize(core.apply(now, Tick{}));
        for (int i = 0; i < together; ++i) ask(take_back(first + i));
        benchmark::DoNotOptimize(core.apply(now, Tick{}));
        first += together;
    }
    state.SetItemsProcessed(state.iterations() * together * 2);
}
BENCHMARK(submits_and_deletes)->ArgNames({"nodes", "together"})->Args({1, 1})->Args({1, 64})->Args({1000, 64});

}  // namespace
}  // namespace bulkhead
