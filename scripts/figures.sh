#!/usr/bin/env bash
# Measures the figures of docs/promises.md on this machine. Instruction counts repeat; times are this machine's.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "== instructions per geometry query (callgrind)"
scripts/count-instructions.sh

echo "== policy cross product, release flags"
scripts/build.sh dev programs benches policy_test
( time build/dev/bin/policy_test --gtest_filter='*xhaustive*' ) 2>&1 | grep -E 'cross product|^user'

echo "== clean build, two jobs"
rm -rf build/clean-figure
( time { cmake -S . -B build/clean-figure -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O2 \
    -DBULKHEAD_TESTS=OFF -DCMAKE_CXX_COMPILER_LAUNCHER=env >/dev/null && ninja -C build/clean-figure -j2 >/dev/null; } ) 2>&1 | grep -E 'real|user'
rm -rf build/clean-figure

echo "== the durable core"
scripts/server-figures.py
build/bin/bulkhead-sim --seeds 105..108 --quiet | tail -1
build/dev/bin/shell_bench --benchmark_filter=recovery
build/dev/bin/audit_bench
build/dev/bin/store_bench
BULKHEAD_BENCH_AGENTS="${AGENTS:-10000}" build/dev/bin/agent_bench
