#!/bin/bash
# The life of a workload on a node with (simulated) GPUs, from submit to certified reclaim: server, agent, tenant and wipes are
# the real programs; the driver below them is nvml-sim. Needs root, for tenants run as other users.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ]; then echo "skipped: not root"; exit 0; fi
bulkhead=$PWD/build/bin/bulkhead
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
export BULKHEAD_CONTEXT=$work/context BULKHEAD_SIM_NODE=$work/gpus LD_LIBRARY_PATH=$PWD/build/dev/nvml-sim/lib

build/bin/bulkhead-gpusim new "$work/gpus" --gpus "2 x h200-141gb" > /dev/null
"$bulkhead" serve --data "$work/server" --port 0 --agent-port 0 --simulated-fleet > "$work/server.log" 2>&1 &
until_true() { for _ in $(seq 300); do if "$@" > /dev/null 2>&1; then return 0; fi; sleep 0.2; done; echo "never: $*"; cat "$work"/*.log; exit 1; }
until_true test -f "$work/server/address"
door=(--server "$(head -n 1 "$work/server/address")" --token-file "$work/server/keys/admin.token" --ca "$work/server/keys/ca.crt")
"$bulkhead" apply -f examples/gpu-node/fleet.yaml "${door[@]}"
"$bulkhead" token node gpu-1 "${door[@]}" 2> /dev/null > "$work/node.token"
chmod 600 "$work/node.token"
"$bulkhead" agent --data "$work/node" --name gpu-1 "${door[@]:0:2}" --ca "$work/server/keys/ca.crt" \
    --token-file "$work/node.token" --hardware gpu > "$work/agent.log" 2>&1 &
wiped() { "$bulkhead" audit list "${door[@]}" | grep -E " wiped .*$1"; }
until_true wiped gpu-1

status=0
said=$(timeout 120 "$bulkhead" run --keep --name hello --tenant vision --cpu 1 --memory 1Gi "${door[@]}" -- \
    /bin/sh -c 'echo "$BULKHEAD_TENANT has $CUDA_VISIBLE_DEVICES"; exit 3') || status=$?
test "$status" = 3 || { echo "the command ended with 3, and run with $status"; cat "$work"/*.log; exit 1; }
grep -q "^vision has GPU-" <<< "$said" || { echo "the command said: $said"; exit 1; }
wiped vision > /dev/null || { echo "no wipe of what vision used is in the log"; exit 1; }
"$bulkhead" fleet "${door[@]}"
records=$(curl -s --cacert "$work/server/keys/ca.crt" \
    -H "Authorization: Bearer $(head -n 1 "$work/server/keys/admin.token")" \
    "${door[1]}/v1/log/records?limit=1000")
leases=$(grep -oE 'lease-[0-9a-f]{12}' <<< "$records")
lease=${leases%%$'\n'*}
"$bulkhead" certificate --lease "$lease" -o "$work/wipe.json" "${door[@]}"
"$bulkhead" verify "$work/wipe.json" --key "$work/server/keys/log.vkey" --accept-lab  # simulated GPUs

# What is lent is taken back: saved by its own command, and gone on with from there.
"$bulkhead" apply -f examples/gpu-node/lent.yaml "${door[@]}"
# What it prints is for its tenant's people alone.
"$bulkhead" token create --role tenant-user --tenant speech --subject reader "${door[@]}" 2> /dev/null > "$work/reader.token"
chmod 600 "$work/reader.token"
"$bulkhead" logs sweep "${door[@]}" > /dev/null 2>&1 && { echo "an operator reads what a tenant prints"; exit 1; }
printed() { "$bulkhead" logs sweep "${door[@]:0:2}" --token-file "$work/reader.token" --ca "$work/server/keys/ca.crt" | grep -E "$1"; }
until_true printed '^start 1 from step 0$'
until_true printed '^step [1-9]'  # something is there to be saved
timeout 120 "$bulkhead" run --name claim --tenant vision --cpu 1 --memory 1Gi "${door[@]}" -- true
until_true printed '^start 2 from step [1-9]'
"$bulkhead" audit list "${door[@]}" | grep -E 'lease-closed.*sweep' || { echo "no lease of sweep was closed"; exit 1; }
"$bulkhead" get workload sweep -o yaml "${door[@]}" | grep -E 'interruptions: 1|savedAt:'
"$bulkhead" delete workload sweep "${door[@]}"
echo "a workload's life on simulated GPUs, from submit to certified reclaim: as it should be"
