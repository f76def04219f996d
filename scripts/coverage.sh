#!/usr/bin/env bash
# Line coverage by room, from the gcov data that the coverage preset's tests left.
set -euo pipefail
cd "$(dirname "$0")/../build/coverage"
find . -name '*.gcda' -path '*bulkhead_*.dir*' -print0 | xargs -0 gcov -n 2>/dev/null |
    awk '/^File .*\/src\/bulkhead\// { split($0, part, "/src/bulkhead/"); split(part[2], room, "/"); name = room[1]; wanted = 1; next }
         /^File / { wanted = 0 }
         /^Lines executed/ && wanted { split($0, p, ":"); split(p[2], q, "% of "); lines[name] += q[2]; hit[name] += q[1] * q[2] / 100; wanted = 0 }
         END { for (n in lines) printf "%-8s %6.1f %% of %d lines\n", n, 100 * hit[n] / lines[n], lines[n] }' | sort
