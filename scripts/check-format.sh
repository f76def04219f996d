#!/usr/bin/env bash
# Every source is as clang-format leaves it.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files '*.cpp' '*.hpp' | xargs clang-format-19 --dry-run --Werror
echo "format: clean"
