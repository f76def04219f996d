#!/usr/bin/env bash
# Runs the tests of one built preset, or of one part of it (inner, outer), and closes with "N passed, N failed"; skipped tests are named above it.
set -uo pipefail
cd "$(dirname "$0")/.."
preset=$1
part=${2:-}
log=build/$preset/test.log
# System libraries are compiled without the sanitizer: their locks are not seen, so what they do is not looked at.
export TSAN_OPTIONS=${TSAN_OPTIONS:-ignore_noninstrumented_modules=1 suppressions=$PWD/scripts/tsan.suppressions}
ctest --test-dir "build/$preset" -j "$(nproc)" --output-on-failure --no-tests=error ${part:+-L "$part"} >"$log" 2>&1
status=$?

skipped=$(grep -cE '\*\*\*Skipped' "$log")
failed=$(grep -cE '\*\*\*(Failed|Timeout|Exception)|\*\*\*Not Run' "$log")
passed=$(grep -cE ' Passed ' "$log")
[ "$status" -eq 0 ] || grep -vE ' Passed ' "$log" | tail -n 200
[ "$skipped" -eq 0 ] || { echo "$skipped skipped:"; grep -E '\*\*\*Skipped' "$log"; }
grep -ahoE 'policy (cross product|story): .*' "build/$preset/Testing/Temporary/LastTest.log" | sort -u | head -n 5
echo "$passed passed, $failed failed"
exit $status
