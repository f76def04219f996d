// What a commit costs in CPU, on real files, by the number of submits that share one: two rows of 600 bytes and a leaf
// of 500 each. The wait for the disk is the machine's; its median is printed beside, measured on the same file system.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/store/reader.hpp"
#include "bulkhead/store/scratch_test.hpp"

namespace bulkhead::store {
namespace {

std::string random_bytes(Rng& rng, std::size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(rng.next());
    return bytes;
}

double cpu_us() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e3;
}

// The median time to append 4 KiB and have them on the disk.
double fsync_p50_us(const Scratch& scratch) {
    static double known = 0;
    if (known > 0) return known;
    const int file = ::open(scratch.path("fsync").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const std::string page(4096, 'p');
    std::vector<double> times;
    for (int i = 0; i < 200; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        if (::write(file, page.data(), page.size()) < 0 || ::fdatasync(file) != 0) break;
        times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    ::close(file);
    if (times.empty()) return 0;
    std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
    return known = times[times.size() / 2];
}

struct Submits {
    explicit Submits(std::size_t group) : batches(group) {
        for (Batch& batch : batches) {
            batch.epoch = 1;
            batch.rows = {{Table::workload, 0, random_bytes(rng, 600)}, {Table::lease, 0, random_bytes(rng, 600)}};
            batch.leaves = {{0, random_bytes(rng, 16), random_bytes(rng, 500)}};
        }
    }
    const std::vector<Batch>& next() {
        for (Batch& batch : batches) {
            batch.clock = {count};
            for (Row& row : batch.rows) row.key = count;
            batch.leaves[0].index = count++;
        }
        return batches;
    }
    Rng rng{1};
    std::int64_t count = 0;
    std::vector<Batch> batches;
};

void commit(benchmark::State& state) {
    const Scratch scratch;
    Store store = Store::open(scratch.options()).value();
    (void)store.raise_epoch().value();
    Submits submits{static_cast<std::size_t>(state.range(0))};
    const double begin = cpu_us();
    for (auto _ : state)
        if (auto done = store.commit(submits.next()); !done) return state.SkipWithError(done.error().what.c_str());
    state.counters["cpu_us_per_submit"] = (cpu_us() - begin) / static_cast<double>(submits.count);
    state.counters["fsync_p50_us"] = fsync_p50_us(scratch);
    state.SetItemsProcessed(submits.count);
}
BENCHMARK(commit)->Arg(1)->Arg(16)->Arg(64)->UseRealTime()->Unit(benchmark::kMicrosecond);

// A store of so many submits: to open (with its check), to load, and to read the log in pages.
void reopen(benchmark::State& state, void (*work)(benchmark::State&, const Options&)) {
    const Scratch scratch;
    Options options = scratch.options();
    options.sync = Sync::off;
    {
        Store store = Store::open(options).value();
        (void)store.raise_epoch().value();
        Submits submits{64};
        while (submits.count < state.range(0))
            if (auto done = store.commit(submits.next()); !done) return state.SkipWithError(done.error().what.c_str());
    }
    work(state, options);
    state.SetItemsProcessed(state.iterations() * state.range(0));
}

void open_and_check(benchmark::State& state, const Options& options) {
    for (auto _ : state) benchmark::DoNotOptimize(Store::open(options).value());
}
void load_rows(benchmark::State& state, const Options& options) {
    const Store store = Store::open(options).value();
    for (auto _ : state) {
        std::size_t bytes = 0;
        (void)store.load([&](Row&& row) -> Result<> {
            bytes += row.body.size();
            return {};
        });
        benchmark::DoNotOptimize(bytes);
    }
}
void read_log(benchmark::State& state, const Options& options) {
    const Reader reader = Reader::open(options).value();
    for (auto _ : state)
        for (std::int64_t at = 0; at < state.range(0); at += 256) benchmark::DoNotOptimize(reader.leaves(at, 256));
}
BENCHMARK_CAPTURE(reopen, open_and_check, open_and_check)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(reopen, load_rows, load_rows)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(reopen, read_log, read_log)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bulkhead::store
