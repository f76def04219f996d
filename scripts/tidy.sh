#!/usr/bin/env bash
# clang-tidy, with the short list of .clang-tidy, over every source of the rooms (tests, and what runs on GPUs, are left to the compiler), those that
# changed last before the others. With TIDY_MINUTES it stops beginning new files after so long, and says what it left.
set -euo pipefail
cd "$(dirname "$0")/.."
export until=$(($(date +%s) + ${TIDY_MINUTES:-600} * 60)) unread
unread=$(mktemp)
trap 'rm -f "$unread" "$unread".*' EXIT
cmake --preset tidy >/dev/null
cmake --build --preset tidy --target bulkhead_agent_proto >/dev/null  # headers that are generated

read_some() {
    if [ "$(date +%s)" -ge "$until" ]; then
        printf '%s\n' "$@" >>"$unread"
    else
        clang-tidy-19 -p build/tidy --quiet "$@"
    fi
}
export -f read_some

{ git log --format= --name-only -n 100 -- 'src/*.cpp'; git ls-files 'src/*.cpp'; } | awk '!seen[$0]++' |
    grep -vE '_(test|bench|fuzz)\.cpp$|/kernels/' | while read -r file; do [ ! -f "$file" ] || echo "$file"; done |
    { xargs -P "$(nproc)" -n 2 bash -c 'read_some "$@"' read_some 2>&1 || touch "$unread.failed"; } |
    { grep -vE 'warnings? generated|Suppressed|Use -header-filter|Processing file .*[a-z]\.$' || true; } | tee "$unread.found"
if [ -f "$unread.failed" ]; then
    echo "tidy: found, once more in short:"
    grep -E '(error|warning): ' "$unread.found" | sort -u
    exit 1
fi
left=$(wc -l <"$unread")
[ "$left" -eq 0 ] || { echo "tidy: out of time; these $left files, the longest unchanged, were not read:"; paste -sd' ' "$unread"; }
echo "tidy: clean$([ "$left" -eq 0 ] || echo ", as far as it was read")"
