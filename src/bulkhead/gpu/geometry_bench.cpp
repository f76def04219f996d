// Times of the questions a scheduler asks of every GPU. Times depend on the machine; scripts/count-instructions.sh has
// the figures that do not.
#include <benchmark/benchmark.h>

#include "bulkhead/gpu/instance_list.hpp"
#include "bulkhead/gpu/layout.hpp"

namespace bulkhead::gpu {
namespace {

const Board& h100() { return *find_board("h100-80gb-sxm5").value(); }

void build_tables(benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(Geometry{h100()});
}
BENCHMARK(build_tables);

void fit(benchmark::State& state) {
    const Geometry geometry{h100()};
    std::size_t i = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(geometry.fit(Occupancy::of_state(i * 37 % 512), i % 7));
        ++i;
    }
}
BENCHMARK(fit);

void place(benchmark::State& state) {
    const Geometry geometry{h100()};
    std::size_t i = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(geometry.place(Occupancy::of_state(i * 37 % 512), i % 7));
        ++i;
    }
}
BENCHMARK(place);

void plan_full_gpu(benchmark::State& state) {
    const Geometry geometry{h100()};
    const auto existing =
        read_existing(h100(), "1g.10gb@0,1g.10gb@1", "1g.10gb@2,1g.10gb@3,1g.10gb@4,1g.10gb@5,1g.10gb@6").value();
    const auto wanted = read_wanted(h100(), "3g.40gb").value();
    for (auto _ : state) benchmark::DoNotOptimize(plan(geometry, existing, wanted));
}
BENCHMARK(plan_full_gpu);

void plan_refused_with_move(benchmark::State& state) {
    const Geometry geometry{h100()};
    const auto existing = read_existing(h100(), "1g.10gb@0,1g.10gb@1,1g.10gb@5", "").value();
    const auto wanted = read_wanted(h100(), "3g.40gb").value();
    for (auto _ : state) benchmark::DoNotOptimize(plan(geometry, existing, wanted));
}
BENCHMARK(plan_refused_with_move);

void all_maximal_sets(benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(maximal_sets(h100(), Include::all));
}
BENCHMARK(all_maximal_sets);

}  // namespace
}  // namespace bulkhead::gpu
