#!/usr/bin/env bash
# clang-tidy, with the short list of .clang-tidy, over every source of the rooms (tests are left to the compiler).
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset tidy >/dev/null
cmake --build --preset tidy --target bulkhead_agent_proto >/dev/null  # headers that are generated
git ls-files 'src/*.cpp' | grep -vE '_(test|bench|fuzz)\.cpp$' |
    xargs -P "$(nproc)" -n 2 clang-tidy-19 -p build/tidy --quiet 2> >(grep -vE 'warnings? generated|Suppressed|Use -header-filter' >&2)
echo "tidy: clean"
