// A million leases of a month: how long a report of them takes, and how long it takes to read them in.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <array>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/meter/rates.hpp"
#include "bulkhead/meter/report.hpp"

namespace bulkhead::meter {
namespace {

constexpr std::int64_t bench_leases = 1'000'000;
constexpr Instant bench_month{1'793'491'200'000};  // 2026-11-01

Pricing bench_pricing() {
    Pricing pricing{.currency = "EUR"};
    for (const int half : {0, 1}) {
        PriceList list{.name = fmt::format("list-{}", half), .validFrom = {bench_month.ms + half * 15 * ms_per_day}};
        for (const char* model : {"h100-80gb-sxm5", "h200-141gb-sxm5", "a100-80gb-sxm4"})
            for (const char* profile : {"", "1g.10gb", "3g.40gb"})
                list.prices.push_back({model, profile, false, "", Money{2'400'000'000 + half * 100'000'007}});
        pricing.lists.push_back(std::move(list));
    }
    return pricing;
}

// Of 260 tenants; most run for minutes to hours, some for weeks; one in four under compliance mode.
UsageRow bench_lease(Rng& rng, const Pricing& pricing, std::int64_t number) {
    constexpr std::array<const char*, 3> models{"h100-80gb-sxm5", "h200-141gb-sxm5", "a100-80gb-sxm4"},
        profiles{"", "1g.10gb", "3g.40gb"};
    constexpr std::array<const char*, 4> classes{"batch", "research", "slo-serving", "frontier-training"};
    const std::uint64_t tenant = rng.below(260);
    const Instant from{bench_month.ms + rng.between(0, 29 * ms_per_day)};
    const std::int64_t ms = rng.chance(20) ? rng.between(0, 20 * ms_per_day) : rng.between(1, 4 * 3'600'000);
    UsageRow row{.lease = fmt::format("lease-{:012x}", number),
                 .tenant = fmt::format("tenant-{:03}", tenant),
                 .workload = fmt::format("work-{}", number),
                 .gpus = Gpus::whole(1),
                 .from = from,
                 .to = {from.ms + ms},
                 .currency = "EUR"};
    row.metered = Metered{
        .tenantClass = classes[tenant % 4],
        .compliance = tenant % 4 == 0 ? Compliance::dedicated : Compliance::off,
        .units = {{models[rng.below(3)], profiles[rng.below(3)], false, Gpus::whole(std::int64_t{1} << rng.below(4))}},
        .leaf = number};
    if (tenant % 4 == 0) row.metered->covered = {{row.from, row.to}};
    row.rates = rates_for(pricing, *row.metered, row.from, row.to);
    return row;
}

const Ledger& bench_ledger() {
    static const Ledger ledger = [] {
        Ledger out;
        Rng rng{1};
        const Pricing pricing = bench_pricing();
        for (std::int64_t i = 0; i < bench_leases; ++i) (void)out.add(bench_lease(rng, pricing, i));
        return out;
    }();
    return ledger;
}

const Question bench_question{.window = {bench_month, {bench_month.ms + 30 * ms_per_day}},
                              .now = {bench_month.ms + 60 * ms_per_day}};

void report_of_a_million_leases(benchmark::State& state) {
    const Ledger& ledger = bench_ledger();
    const Ledger open;
    std::size_t bytes = 0;
    for (auto _ : state) bytes = report_json(report({ledger, open}, bench_question)).size();
    state.counters["bytes"] = static_cast<double>(bytes);
    state.counters["terms"] = static_cast<double>(ledger.terms().size());
}
BENCHMARK(report_of_a_million_leases)->Unit(benchmark::kMillisecond);

void report_of_one_tenant_among_a_million_leases(benchmark::State& state) {
    const Ledger& ledger = bench_ledger();
    const Ledger open;
    Question question = bench_question;
    question.tenants = {"tenant-007"};
    for (auto _ : state) benchmark::DoNotOptimize(report_json(report({ledger, open}, question)));
}
BENCHMARK(report_of_one_tenant_among_a_million_leases)->Unit(benchmark::kMillisecond);

// As at the start of a server: from stored rows.
void ledger_of_100k_stored_rows(benchmark::State& state) {
    Rng rng{2};
    const Pricing pricing = bench_pricing();
    std::vector<std::string> bodies;
    for (std::int64_t i = 0; i < 100'000; ++i) bodies.push_back(to_compact_json(bench_lease(rng, pricing, i)));
    for (auto _ : state) {
        Ledger ledger;
        for (const std::string& body : bodies) (void)ledger.add(from_json<UsageRow>("row", body).value());
        benchmark::DoNotOptimize(ledger.entries().size());
    }
}
BENCHMARK(ledger_of_100k_stored_rows)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bulkhead::meter
