#!/bin/sh
# Prints what a question to the MIG geometry costs, in instructions, as callgrind counts them: exact, and the same on a
# busy machine. Each question is asked N and 2N times; the difference over N leaves out start-up and table building.
#   scripts/count-instructions.sh          needs g++, libfmt-dev and valgrind
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sources=$(ls "$root"/src/bulkhead/gpu/*.cpp "$root"/src/bulkhead/base/*.cpp | grep -vE '_(test|bench|fuzz)\.cpp$')
# shellcheck disable=SC2086
${CXX:-g++} -std=c++23 -O2 -DNDEBUG -I"$root/src" $sources "$root/scripts/count_instructions.cpp" -lfmt -o "$work/ask"

collected() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$work/ask" "$1" "$2" 2>&1 >/dev/null | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

per_question() {
    once=$(collected "$1" "$2")
    twice=$(collected "$1" $((2 * $2)))
    echo $(((twice - once) / $2))
}

failed=0
report() {
    figure=$(per_question "$2" "$4")
    printf '%-34s %8d instructions, at most %d\n' "$1" "$figure" "$3"
    [ "$figure" -le "$3" ] || failed=1
}
report "fit (all starts)" fit 200 100000
report "place (best start)" place 200 100000
report "plan (full GPU, mean of six)" plan 50000 600
report "plan (full GPU, the dearest known)" plan-worst 50000 100
report "plan (refused, with a move found)" plan-refused 100000 50
exit $failed
