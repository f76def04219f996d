#!/usr/bin/env bash
# A guarantee comes back, played on a live control plane with model nodes: first a node that a tenth of a GPU keeps
# closed, then a guaranteed tenant who arrives after the first steps of `bulkhead up` have filled the fleet.
set -euo pipefail
cd "$(dirname "$0")/.."
work=build/check-guarantee
rm -rf "$work"
mkdir -p "$work"
export XDG_CONFIG_HOME=$PWD/$work
bulkhead=${BULKHEAD:-$PWD/build/bin/bulkhead}
say() { echo "check-guarantee: $*"; }
[ -x "$bulkhead" ] || { say "there is no $bulkhead; run \`make build\`"; exit 1; }

fleet=""
stop() {
    [ -n "$fleet" ] || return 0
    kill -INT -- "-$fleet" 2>/dev/null || true
    for _ in $(seq 100); do kill -0 "$fleet" 2>/dev/null || break; sleep 0.1; done
    kill -KILL -- "-$fleet" 2>/dev/null || true
    wait "$fleet" 2>/dev/null || true
    fleet=""
}
finish() {
    local status=$?
    set +e
    if [ "$status" -ne 0 ]; then
        "$bulkhead" queue
        "$bulkhead" fleet
        cat "$work"/output-* 2>/dev/null
        say "failed with $status"
    fi
    stop
    exit "$status"
}
trap finish EXIT

start() {  # NAME NODES: a fleet of that many nodes with eight GPUs each
    rm -rf "$work/bulkhead"
    set -m
    "$bulkhead" up --simulated --nodes "$2" --gpus 8 --time 50 --port 0 --agent-port 0 --data "$work/$1" \
        >"$work/output-$1" 2>&1 &
    fleet=$!
    set +m
    for _ in $(seq 900); do
        grep -q "things to try" "$work/output-$1" && { say "$1: up"; return; }
        kill -0 "$fleet" 2>/dev/null || break
        sleep 0.1
    done
    say "$1: the fleet did not come up"; exit 1
}
# An answer is read whole before it is looked at: a reader that leaves early kills the writer, and pipefail calls that "no".
phase() { "$bulkhead" get workloads "$1" -o json | grep -o '"phase": *"[a-z]*"' | head -n 1 | sed 's/.*"\([a-z]*\)"$/\1/'; }
running() { [ "$(phase "$1")" = running ]; }
wait_for() {  # SECONDS WHAT COMMAND...: until the command succeeds
    local limit=$1 what=$2; shift 2
    for _ in $(seq $((limit * 5))); do "$@" >/dev/null 2>&1 && { say "$what"; return; }; sleep 0.2; done
    say "not within $limit s: $what"; exit 1
}
node_of() {  # the nodes that a workload's lease names
    local lease; lease=$("$bulkhead" get workloads "$1" -o json | grep -o '"lease-[0-9a-f]*"' | head -n 1 | tr -d '"')
    [ -n "$lease" ] || return 0
    "$bulkhead" get leases "$lease" -o json | grep -o '"node": *"[^"]*"' | sort -u | sed 's/.*"\([^"]*\)"$/\1/'
}
work_of() {  # NAME TENANT GPU MORE: a workload's document
    printf -- '---\napiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: %s}\nspec: {tenant: %s, gpu: {%s}%s}\n' "$@"
}
tenant_of() {  # NAME CLASS GUARANTEE
    printf -- '---\napiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: %s}\nspec: {class: %s, quota: {guarantee: %s}, priorityGrant: 100}\n' "$@"
}

# ---- a tenth of a GPU keeps a node closed ----

start crumbs 2
{ tenant_of s1 batch 0; tenant_of s2 batch 0; tenant_of s3 batch 0; tenant_of big frontier-training 8; } >"$work/tenants.yaml"
"$bulkhead" apply -f "$work/tenants.yaml"
{ work_of c1 s1 "fraction: 0.1" ""; work_of c2 s2 "fraction: 0.1" ""; } >"$work/crumbs.yaml"
"$bulkhead" apply -f "$work/crumbs.yaml"
wait_for 60 "two tenants that distrust each other run a tenth of a GPU each" running c1
wait_for 60 "each of them closes a node of eight" running c2
first=$(node_of c1) second=$(node_of c2)
[ "$first" != "$second" ] || { say "both are on $first"; exit 1; }
work_of train big "count: 8" ", priority: 100" >"$work/train.yaml"
work_of thief s3 "fraction: 0.1" "" >"$work/thief.yaml"
"$bulkhead" apply -f "$work/train.yaml"
"$bulkhead" apply -f "$work/thief.yaml"
for _ in $(seq 450); do
    thief=$(phase thief)
    running train && break
    [ "$thief" = pending ] || { say "the thief is $thief while the guaranteed gang waits"; exit 1; }
    sleep 0.2
done
running train || { "$bulkhead" explain train; say "the guaranteed gang did not start within 90 s"; exit 1; }
say "the guaranteed gang runs on $(node_of train), and no other work took the node meanwhile"
stayed=0
for crumb in c1 c2; do running "$crumb" && stayed=$((stayed + 1)); done
[ "$stayed" -eq 1 ] || { say "$stayed of the two small jobs run on, not one"; exit 1; }
"$bulkhead" audit verify --tiles "$work/crumbs/tiles" --key "$work/crumbs/keys/log.vkey"
stop

# ---- the first steps of `bulkhead up` leave room for a guarantee ----

start steps 4
"$bulkhead" apply -f "$work/steps/first-steps.yaml"
for name in pretrain fraud-scoring notebook embed-archive; do wait_for 60 "$name runs" running "$name"; done
tenant_of late frontier-training 8 >"$work/late.yaml"
work_of latecomer late "count: 8" ", priority: 100" >>"$work/late.yaml"
"$bulkhead" apply -f "$work/late.yaml"
wait_for 90 "a tenant that comes later gets the node it is guaranteed" running latecomer
stop
say "guarantees came back"
