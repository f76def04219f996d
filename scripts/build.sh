#!/usr/bin/env bash
# Configures one preset of CMakePresets.json and builds all of it, or the targets named after it. Quiet unless it fails.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
targets=("${@:2}")
log=build/$preset/build.log
mkdir -p "build/$preset"
echo "build: $preset (log in $log)"
if ! { cmake --preset "$preset" && cmake --build --preset "$preset" -j "${JOBS:-$(nproc)}" ${targets:+--target "${targets[@]}"}; } >"$log" 2>&1; then
    grep -nE 'error|Error|FAILED' "$log" | head -n 40 >&2 || true
    tail -n 40 "$log" >&2
    echo "build: $preset failed; the whole log is in $log" >&2
    exit 1
fi
