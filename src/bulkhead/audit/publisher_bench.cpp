// What a leaf costs until it is published on disk, in batches. The disk's share is in the wall time, ours in the CPU
// time.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>

#include "bulkhead/audit/publisher.hpp"
#include "bulkhead/audit/tile_reader.hpp"

namespace bulkhead::audit {
namespace {

struct Scratch {
    std::filesystem::path path;
    Scratch() {
        std::string name = (std::filesystem::temp_directory_path() / "bulkhead-audit-XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    ~Scratch() { std::filesystem::remove_all(path); }
};

evidence::SigningKey key() { return evidence::SigningKey::from_seed(std::string(32, 'L')).value(); }

void publish_batches(benchmark::State& state) {
    const Scratch scratch;
    Publisher publisher = Publisher::open(scratch.path.string(), "log.example/fleet", key()).value();
    const Hash entry = sha256("entry");
    for (auto _ : state) {
        for (std::int64_t i = 0; i < state.range(0); ++i) publisher.append(entry);
        if (!publisher.publish()) return state.SkipWithError("cannot publish");
    }
    state.SetItemsProcessed(state.iterations() * state.range(0));
    using benchmark::Counter;
    state.counters["cpu_per_leaf"] =
        Counter(static_cast<double>(state.iterations() * state.range(0)), Counter::kIsRate | Counter::kInvert);
}
BENCHMARK(publish_batches)->Arg(1)->Arg(64)->Arg(256)->Arg(1024);

void prove_in_a_hundred_thousand(benchmark::State& state) {
    const Scratch scratch;
    constexpr std::uint64_t size = 100'000;
    Publisher publisher = Publisher::open(scratch.path.string(), "log.example/fleet", key()).value();
    for (std::uint64_t i = 0; i < size; ++i) publisher.append(sha256(std::to_string(i)));
    if (!publisher.publish()) return state.SkipWithError("cannot publish");
    const TileReader reader = TileReader::open(scratch.path.string()).value();
    std::uint64_t index = 0;
    for (auto _ : state) benchmark::DoNotOptimize(reader.prove(index = (index + 7919) % size, size));
}
BENCHMARK(prove_in_a_hundred_thousand);

void verify_all_of_a_hundred_thousand(benchmark::State& state) {
    const Scratch scratch;
    constexpr std::uint64_t size = 100'000;
    Publisher publisher = Publisher::open(scratch.path.string(), "log.example/fleet", key()).value();
    for (std::uint64_t i = 0; i < size; ++i) publisher.append(sha256(std::to_string(i)));
    if (!publisher.publish()) return state.SkipWithError("cannot publish");
    const TileReader reader = TileReader::open(scratch.path.string()).value();
    for (auto _ : state) benchmark::DoNotOptimize(reader.verify_all(publisher.verifier_key()));
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(size));
}
BENCHMARK(verify_all_of_a_hundred_thousand)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bulkhead::audit
