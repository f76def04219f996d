// What an acknowledged write costs, alone and among others, with every commit on the disk; and what reading costs.
#include <benchmark/benchmark.h>
#include <fmt/core.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <semaphore>
#include <thread>

#include "bulkhead/auth/token.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/persisted.hpp"
#include "bulkhead/shell/catalog.hpp"
#include "bulkhead/shell/loop.hpp"

namespace bulkhead::shell {
namespace {

// A store as a control plane leaves it: four leases on every GPU, 3,125 nodes of eight.
void fill(store::Store& store, int leases) {
    constexpr int per_gpu = 4, per_node = 8 * per_gpu;
    const std::int64_t epoch = *store.raise_epoch(0);
    Batch batch{.epoch = epoch, .clock = Instant{1'800'000'000'000}};
    std::int64_t key = 1;
    const auto put = [&](Table table, const auto& object) {
        batch.rows.push_back({table, ++key, to_compact_json(object), false});
        return key;
    };
    FleetPolicy policy;
    policy.metadata.name = "fleet";
    policy.spec.sites.push_back({"here", "eu"});
    put(Table::policy, policy);
    Tenant tenant;
    tenant.metadata.name = "acme";
    tenant.spec.tenantClass = "batch";
    tenant.status.emplace();
    put(Table::tenant, tenant);
    for (int n = 0; n < leases / per_node; ++n) {
        GpuNode node;
        node.metadata.name = fmt::format("node-{}", n);
        node.spec.site = "here";
        node.status.gpus.push_back({.model = "h100-80gb-sxm5", .count = 8});
        node.status.phase = NodePhase::ready;
        const std::int64_t node_key = put(Table::node, node);
        put(Table::gate,
            GateRow{.node = node_key, .kind = UnitKind::host, .runs = {{.state = lifecycle::UnitState::in_use}}});
        for (int g = 0; g < 8; ++g) {
            GateRow gate{.node = node_key, .kind = UnitKind::memory, .device = g};
            for (int i = 0; i < per_gpu; ++i) {
                GpuWorkload work;
                work.metadata.name = fmt::format("w-{}-{}-{}", n, g, i);
                work.spec.tenant = "acme";
                work.spec.gpu.profile = "1g.20gb";
                GpuLease lease;
                lease.metadata.name = fmt::format("lease-{:012x}", key);
                work.status = GpuWorkloadStatus{.phase = WorkloadPhase::running, .lease = lease.metadata.name};
                lease.spec = {.tenant = "acme", .workload = work.metadata.name, .mechanism = Mechanism::mig};
                lease.spec.slices.push_back({node.metadata.name, g, "1g.20gb", i * 2});
                lease.status = GpuLeaseStatus{
                    .phase = LeasePhase::active, .gpus = Gpus::of_thousandths(250), .activeAt = batch.clock};
                put(Table::workload, work);
                gate.runs.push_back(
                    {.count = 2, .state = lifecycle::UnitState::in_use, .lease = put(Table::lease, lease)});
            }
            put(Table::gate, gate);
        }
        if (batch.rows.size() > 10'000 || n + 1 == leases / per_node) {
            invariant(store.commit(batch).has_value(), "the store takes it");
            batch.rows.clear();
        }
    }
}

class Follows final : public Follower {
public:
    void loaded(const Reign& reign) override { static_cast<void>(catalog.replace(reign.rows)); }
    void committed(const Batch& batch) override { static_cast<void>(catalog.feed(batch.rows)); }
    Catalog catalog{1};
};

struct Running {
    explicit Running(int leases = 0) {
        std::string pattern = std::filesystem::temp_directory_path() / "bulkhead-bench-XXXXXX";
        folder = ::mkdtemp(pattern.data());
        Loop::Settings settings;
        settings.store.path = folder / "store.db";
        settings.batch = 512;
        if (leases > 0) {
            auto store = store::Store::open(settings.store);
            fill(*store, leases);
        }
        loop = *Loop::start(std::move(settings), {&follows}, log);
        if (leases > 0) return;
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

// Work that is accepted, waits for quota, and is taken back, by 64 callers of which each asks again when it was
// answered; an item is one command. Callers cost next to nothing here: the process's CPU is the loop's.
void submits_and_deletes_of_64_callers(benchmark::State& state) {
    Running running{32};
    Tenant tenant;
    tenant.metadata.name = "acme";
    tenant.spec.tenantClass = "batch";
    tenant.spec.quota.limit = Gpus::of_thousandths(1000);
    invariant(running.loop->ask("bench", command::Apply{.objects = {tenant}}).outcome.has_value(), "it is accepted");
    constexpr int callers = 64, in_a_row = 128;
    std::counting_semaphore<callers> finished{0};
    std::function<void(int, int)> call = [&](int caller, int number) {
        if (number == in_a_row) return finished.release();
        std::string name = fmt::format("submit-{}-{}", caller, number / 2);
        decltype(Command::what) what = command::Delete{.kind = ObjectKind::workload, .name = name};
        if (number % 2 == 0) {
            GpuWorkload work;
            work.metadata.name = std::move(name);
            work.spec.tenant = "acme";
            work.spec.gpu.count = 1;
            work.spec.gpu.mechanism = Mechanism::whole;
            what = command::Apply{.objects = {std::move(work)}, .mode = command::Mode::create};
        }
        const auto taken = running.loop->submit("bench", std::move(what), [&, caller, number](const Answer& answer) {
            invariant(answer.outcome.has_value(), "it is accepted");
            call(caller, number + 1);
        });
        invariant(taken.has_value(), "there is room in the queue");
    };
    for (auto _ : state) {
        for (int caller = 0; caller < callers; ++caller) call(caller, 0);
        for (int caller = 0; caller < callers; ++caller) finished.acquire();
    }
    state.SetItemsProcessed(state.iterations() * callers * in_a_row);
}
BENCHMARK(submits_and_deletes_of_64_callers)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);

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

// What a tenant's list costs between the socket and the socket: who is asking, among as many tokens as tenants; what
// they may see; and the text of their 10 among everybody's 10,000.
void a_tenants_list_of_10_among_10000(benchmark::State& state) {
    constexpr int tenants = 1000, each = 10;
    Catalog catalog{1};
    auth::TokenBook tokens;
    std::vector<std::string> texts;
    for (int i = 0; i < tenants; ++i) {
        const std::string tenant = "t" + std::to_string(i);
        for (int j = 0; j < each; ++j)
            static_cast<void>(catalog.feed(std::vector{Row{
                Table::workload, i * each + j,
                fmt::format(R"({{"apiVersion":"bulkhead.dev/v1alpha1","kind":"GpuWorkload","metadata":{{"name":"w{}",)"
                            R"("resourceVersion":"0123456789ab"}},"spec":{{"tenant":"{}","gpu":{{"count":1}}}},)"
                            R"("status":{{"phase":"pending","reasons":["too few GPUs are free"]}}}})",
                            j, tenant),
                false}}));
        auto minted = auth::mint_api_token({.role = Role::tenant_user, .subject = "somebody", .tenant = tenant},
                                           Instant{1'800'000'000'000});
        static_cast<void>(tokens.put(minted->stored));
        texts.push_back(minted->text);
    }
    std::size_t number = 0;
    for (auto _ : state) {
        const auto caller = tokens.caller(texts[++number % tenants], Instant{1'800'000'000'001});
        const auto whose = caller->rights.where(Permission::read_tenant);
        const Catalog::Page page = catalog.list(ObjectKind::workload, {.tenant = std::string{whose.front()}});
        std::string body;
        for (const ObjectPtr& object : page.objects) body += object->read_by(true);
        invariant(page.objects.size() == each, "they are its own, and all of them");
        benchmark::DoNotOptimize(body);
    }
}
BENCHMARK(a_tenants_list_of_10_among_10000);

// From a closed file to the first answer: opened, checked, read, the core built, the fact on record.
void recovery_of_100000_leases(benchmark::State& state) {
    std::string pattern = std::filesystem::temp_directory_path() / "bulkhead-bench-XXXXXX";
    const std::filesystem::path folder = ::mkdtemp(pattern.data());
    Loop::Settings settings;
    settings.store.path = folder / "store.db";
    {
        auto store = store::Store::open(settings.store);
        fill(*store, 100'000);
    }
    Log log{-1};
    for (auto _ : state) {
        auto follows = std::make_unique<Follows>();
        auto loop = Loop::start(settings, {follows.get()}, log);
        invariant(loop.has_value(), "it starts");
        state.PauseTiming();
        loop->reset();
        follows.reset();
        state.ResumeTiming();
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
}
BENCHMARK(recovery_of_100000_leases)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace bulkhead::shell
