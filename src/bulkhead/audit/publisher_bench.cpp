// What a leaf costs until it is published on disk, in batches. The disk's share is in the wall time, ours in the CPU
// time.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
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

// A log of a million leaves on disk, made once for what follows.
const std::string& million() {
    static const Scratch scratch;
    static const std::string path = [] {
        Publisher publisher = Publisher::open(scratch.path.string(), "log.example/fleet", key()).value();
        for (std::uint64_t i = 0; i < 1'000'000; ++i) publisher.append(sha256(std::to_string(i)));
        if (!publisher.publish()) std::abort();
        return scratch.path.string();
    }();
    return path;
}
evidence::VerifierKey log_of_a_million() { return {"log.example/fleet", key().public_key()}; }

// As a server does it that has been asked about each tile before.
void prove_in_a_million(benchmark::State& state) {
    const TileReader reader = TileReader::open(million()).value();
    for (std::uint64_t i = 0; i < 1'000'000; i += 256)
        if (!reader.prove(i, 1'000'000)) return state.SkipWithError("cannot prove");
    std::uint64_t index = 0;
    for (auto _ : state) benchmark::DoNotOptimize(reader.prove(index = (index + 791'919) % 1'000'000, 1'000'000));
}
BENCHMARK(prove_in_a_million);

// As `bulkhead audit prove` does it: nothing is kept from a proof before.
void prove_in_a_million_once(benchmark::State& state) {
    std::uint64_t index = 0;
    for (auto _ : state) {
        const TileReader reader = TileReader::open(million()).value();
        benchmark::DoNotOptimize(reader.prove(index = (index + 791'919) % 1'000'000, 1'000'000));
    }
}
BENCHMARK(prove_in_a_million_once);

void prove_consistency_to_a_million(benchmark::State& state) {
    const TileReader reader = TileReader::open(million()).value();
    std::uint64_t older = 0;
    for (auto _ : state) {
        older = (older + 791'919) % 999'999;
        benchmark::DoNotOptimize(reader.prove_consistency({older + 1, 1'000'000}));
    }
}
BENCHMARK(prove_consistency_to_a_million);

void verify_all_of_a_million(benchmark::State& state) {
    const TileReader reader = TileReader::open(million()).value();
    for (auto _ : state) {
        const auto audited = reader.verify_all(log_of_a_million());
        if (!audited || audited->checkpoint.size != 1'000'000) return state.SkipWithError("it does not verify");
    }
    state.SetItemsProcessed(state.iterations() * 1'000'000);
}
BENCHMARK(verify_all_of_a_million)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bulkhead::audit
