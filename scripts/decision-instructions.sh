#!/usr/bin/env bash
# Prints what one decision of the scheduler costs, in instructions, as callgrind counts them, in fleets of growing size:
# the same on a busy machine to a few per cent. Only the decisions of jobs that come and go in the full fleet are counted; it is
# built and filled without, else this would take hours.
#   scripts/decision-instructions.sh [NODES...]          needs the built program and valgrind; default 1000 10000 100000
set -euo pipefail
cd "$(dirname "$0")/.."
sizes=("${@:-}")
[ -n "${sizes[0]}" ] || sizes=(1000 10000 100000)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Counting begins when the program says, as it does to a terminal, that it measures decisions, and ends when it says what
# comes next.
said() {
    until grep -qa "$1" "$work/said"; do
        kill -0 "$child" 2>/dev/null || { cat "$work/said" >&2; exit 1; }
        sleep 0.05
    done
}
count() { callgrind_control -i "$1" "$(pgrep -nf "callgrind-out-file=$work/counts")" >/dev/null 2>&1; }

one() {
    local nodes=$1 mix=$2
    : >"$work/said"
    script -qefc "exec valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file=$work/counts build/bin/bulkhead bench scheduler --nodes $nodes --mix bench/mixes/$mix.yaml --decisions 60000 --rounds 1 -o json" "$work/said" >/dev/null &
    local child=$!
    said 'measuring decisions' && count on
    said 'asking for gangs' && count off
    wait "$child"
    callgrind_annotate --inclusive=yes --tree=caller --threshold=100 "$work/counts" >"$work/read" 2>/dev/null
    # The line of the function itself begins with its instructions; those above it, of its callers, say how often: (N x).
    python3 - "$work/read" "$nodes" "$mix" <<'P'
import re, sys
path, nodes, mix = sys.argv[1:]
calls = 0
for line in open(path, errors="replace"):
    mark = re.match(r"\s*([\d,]+)\s.*?([<*])\s+(.*)", line)
    if not mark: continue
    if mark[2] == "<":
        times = re.search(r"\(([\d,]+)x\)", line)
        calls += int(times[1].replace(",", "")) if times else 0
    else:
        if "sched::Engine::allocate(" in mark[3] and calls:
            print(f"{mix:9} {int(nodes):7} nodes {int(mark[1].replace(',', '')) // calls:8} instructions a decision ({calls} decisions)")
            break
        calls = 0
else:
    sys.exit("no decision was counted")
P
}

for mix in coarse distinct; do
    for nodes in "${sizes[@]}"; do one "$nodes" "$mix"; done
done
