// What one more leaf costs, and what proving and checking one costs. Times depend on the machine.
#include <benchmark/benchmark.h>

#include "bulkhead/evidence/certificate.hpp"
#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/evidence/merkle.hpp"

namespace bulkhead::evidence {
namespace {

void append_leaf(benchmark::State& state) {
    Frontier frontier;
    const std::string salt(16, 's'), payload(400, 'p');
    for (auto _ : state) frontier.append(leaf_hash(bytes_of(commit_to(salt, payload))));
    benchmark::DoNotOptimize(frontier.root());
}
BENCHMARK(append_leaf);

void verify_proof_of_a_million(benchmark::State& state) {
    constexpr std::uint64_t size = 1'000'000;
    std::vector<Hash> of_level{leaf_hash("same")};
    for (int i = 1; i < 21; ++i) of_level.push_back(node_hash(of_level.back(), of_level.back()));
    const SubtreeReader reader = [&](unsigned level, std::uint64_t) -> Result<Hash> { return of_level[level]; };
    const Hash root = root_of(size, reader).value();
    const auto proof = prove_inclusion(777, size, reader).value();
    for (auto _ : state) benchmark::DoNotOptimize(verify_inclusion({777, size, of_level[0], root}, proof));
}
BENCHMARK(verify_proof_of_a_million);

void write_a_record(benchmark::State& state) {
    Record record{.kind = RecordKind::lease_active, .at = {1'790'000'000'000}, .actor = "node:node-7"};
    record.tenant = "acme";
    record.object = "GpuWorkload/fraud-scoring";
    record.node = "node-7";
    record.lease = "lease-81";
    for (auto _ : state) benchmark::DoNotOptimize(payload_of(record));
}
BENCHMARK(write_a_record);

void sign_a_checkpoint(benchmark::State& state) {
    const SigningKey key = SigningKey::from_seed(std::string(32, 'k')).value();
    for (auto _ : state) benchmark::DoNotOptimize(sign_checkpoint({"log.example/fleet", 8, {}, {}}, key));
}
BENCHMARK(sign_a_checkpoint);

}  // namespace
}  // namespace bulkhead::evidence
