// What an acknowledged write costs, alone and among others, with every commit on the disk; and what reading costs.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "bulkhead/shell/catalog.hpp"
#include "bulkhead/shell/loop.hpp"

namespace bulkhead::shell {
namespace {

class Follows final : public Follower {
public:
    void loaded(const Reign& reign) override { static_cast<void>(catalog.replace(reign.rows)); }
    void committed(const Batch& batch) override { static_cast<void>(catalog.feed(batch.rows)); }
    Catalog catalog{1};
};

struct Running {
    Running() {
        std::string pattern = std::filesystem::temp_directory_path() / "bulkhead-bench-XXXXXX";
        folder = ::mkdtemp(pattern.data());
        Loop::Settings settings;
        settings.store.path = folder / "store.db";
        settings.batch = 512;
        loop = *Loop::start(std::move(settings), {&follows}, log);
        FleetPolicy policy;
        policy.metadata.name = "fleet";
        policy.spec.sites.push_back({"here", "eu"});
        invariant(loop->ask("bench", command::Apply{.objects = {policy}}).outcome.has_value(),
                  "the policy is accepted");
    }
    ~Running() {
        loop.reset();
        std::error_code ignored;
        std::filesystem::remove_all(folder, ignored);
    }
    static command::Apply change(int number) {
        Tenant tenant;
        tenant.metadata.name = "tenant-" + std::to_string(number % 50);
        tenant.spec.tenantClass = "batch";
        tenant.spec.quota.weight = 1 + number % 1000;
        return {.objects = {tenant}};
    }
    std::filesystem::path folder;
    Log log{-1};
    Follows follows;
    std::unique_ptr<Loop> loop;
};

void one_write_at_a_time(benchmark::State& state) {
    Running running;
    int number = 0;
    for (auto _ : state) benchmark::DoNotOptimize(running.loop->ask("bench", Running::change(++number)));
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(one_write_at_a_time)->UseRealTime();

void writes_with_64_waiting(benchmark::State& state) {
    Running running;
    std::atomic<int> waiting{0};
    int number = 0;
    for (auto _ : state) {
        while (waiting.load() >= 64) std::this_thread::yield();
        ++waiting;
        invariant(
            running.loop->submit("bench", Running::change(++number), [&](const Answer&) { --waiting; }).has_value(),
            "there is room in the queue");
    }
    while (waiting.load() > 0) std::this_thread::yield();
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(writes_with_64_waiting)->UseRealTime();

void read_one_of_10000(benchmark::State& state) {
    Catalog catalog{1};
    for (int i = 0; i < 10'000; ++i)
        static_cast<void>(catalog.feed(
            std::vector{Row{Table::tenant, i,
                            R"({"apiVersion":"bulkhead.dev/v1alpha1","kind":"Tenant","metadata":{"name":"t)" +
                                std::to_string(i) + R"("},"spec":{"class":"batch"}})",
                            false}}));
    int number = 0;
    for (auto _ : state)
        benchmark::DoNotOptimize(catalog.get(ObjectKind::tenant, "t" + std::to_string(++number % 10'000)));
}
BENCHMARK(read_one_of_10000);

}  // namespace
}  // namespace bulkhead::shell
