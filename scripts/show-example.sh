#!/usr/bin/env bash
# What `make run` shows: the shipped example under all three threat models, its contracts and refusals, what to try next.
set -uo pipefail
cd "$(dirname "$0")/.."

# 3 means "some are refused", which is what the example is there to show.
bulkhead() {
    build/bin/bulkhead "$@"
    local status=$?
    [ $status -eq 0 ] || [ $status -eq 3 ] || exit $status
}

echo "One fleet, four tenant classes, three threat models:"
echo
bulkhead contract -f examples/ --threat-model all
echo
bulkhead contract -f examples/
cat <<'TRY'

Try next:
  build/bin/bulkhead contract -f examples/ -w fraud-scoring        one contract, whole: what is isolated, and what is not
  build/bin/bulkhead contract -f examples/broken/three-typos.yaml  every mistake with its place, exit 2
  build/bin/bulkhead mig plan --gpu h100-80gb-sxm5 --have 1g.10gb@0,1g.10gb@1,1g.10gb@5 --want 3g.40gb
  build/bin/bulkhead catalogue                                     what each mechanism and tier isolates, and how we know
TRY
