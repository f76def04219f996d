#!/usr/bin/env bash
# Runs every fuzz target: over its committed corpus once (0 seconds), or that and then on for so many seconds each.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
for source in $(git ls-files '*_fuzz.cpp'); do
    name=$(basename "$source" .cpp)
    target=build/asan/bin/$name
    [ -x "$target" ] && [ ! "$source" -nt "$target" ] || { echo "fuzz: $name is not built, and was left out"; continue; }
    corpus=fuzz/corpus/$name
    mkdir -p "build/fuzz/$name"
    found=()
    [ -d "$corpus" ] && found=("$corpus")
    if [ "$seconds" -eq 0 ]; then
        "$target" -runs=0 "${found[@]}" >"build/fuzz/$name.log" 2>&1 || { tail -n 40 "build/fuzz/$name.log"; exit 1; }
    else
        "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
            -artifact_prefix="build/fuzz/$name/" "build/fuzz/$name" "${found[@]}" >"build/fuzz/$name.log" 2>&1 ||
            { tail -n 40 "build/fuzz/$name.log"; exit 1; }
    fi
    echo "fuzz: $name $(grep -oE '(stat::number_of_executed_units: *[0-9]+|Done [0-9]+ runs.*|INITED.*)' "build/fuzz/$name.log" | tail -n 1)"
done
