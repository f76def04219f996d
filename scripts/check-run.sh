#!/usr/bin/env bash
# What a newcomer does: `make run`, then the three things it says to try, then the way back; and that it stops.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf build/fleet build/check-run
export XDG_CONFIG_HOME=$PWD/build/check-run
mkdir -p "$XDG_CONFIG_HOME"
say() { echo "check-run: $*"; }

make build  # with no limit: a machine's first build takes what it takes

# A group of its own, so that one signal reaches make and all it started, as Ctrl-C does.
set -m
make run >build/check-run/output 2>&1 &
run=$!
set +m
# Whatever happens, what `make run` said is shown, and nothing is left running.
finish() {
    local status=$?
    set +e
    kill -KILL -- "-$run" 2>/dev/null
    wait "$run" 2>/dev/null
    cat build/check-run/output
    [ "$status" -eq 0 ] || say "failed with $status"
    exit "$status"
}
trap finish EXIT

for _ in $(seq 3000); do
    grep -q "things to try" build/check-run/output && break
    kill -0 "$run" 2>/dev/null || { say "make run has ended by itself"; exit 1; }
    sleep 0.2
done
grep -q "things to try" build/check-run/output || { say "it never came up"; exit 1; }
say "up"
bulkhead=build/bin/bulkhead
wait_for() {  # WHAT COMMAND...: until the command succeeds, half a minute at most
    local what=$1; shift
    for _ in $(seq 150); do "$@" >/dev/null 2>&1 && { say "$what"; return; }; sleep 0.2; done
    say "not within 30 s: $what"; "$@" || true; exit 1
}
# An answer is read whole before it is looked at: a reader that leaves early kills the writer, and pipefail calls that "no".
says() { local answer; answer=$("${@:2}") && grep -q "$1" <<< "$answer"; }
running() { says '"running"' "$bulkhead" get workloads "$1" -o json; }
gone() { ! "$bulkhead" get workloads "$1"; }
quiet() { local answer; answer=$("$bulkhead" get leases -o json) && ! grep -q '"name"' <<< "$answer"; }
ended() { ! kill -0 "$run"; }
# Anything that still runs on this fleet's data.
left_running() { pgrep -f -- "--data $PWD/build/fleet"; }

"$bulkhead" apply -f build/fleet/first-steps.yaml
wait_for "a gang runs" running pretrain
leases=$("$bulkhead" get leases -o json | grep -o '"lease-[0-9a-f]*"' | tr -d '"')
lease=${leases%%$'\n'*}
set +e
"$bulkhead" apply -f build/fleet/refused.yaml; status=$?
set -e
[ "$status" -eq 3 ] || { say "a refused manifest ended with $status, not 3"; exit 1; }
say "a refused manifest is refused, with reasons"
# A node on a simulated driver runs commands, where this machine lets us start containers.
commands() {
    local status=0 out=build/check-run/out err=build/check-run/err guest=(--tenant guest --cpu 1 --memory 1Gi)
    timeout 120 "$bulkhead" run "${guest[@]}" -- bulkhead-gpus >"$out" 2>"$err" || status=$?
    { [ "$status" -eq 0 ] && grep -q '^simulated: ' "$out" && grep -q '^GPU 0: .*simulated$' "$out"; } ||
        { say "bulkhead-gpus ended with $status"; cat "$out" "$err"; exit 1; }
    say "a command lists the GPU it was leased, and says that it is simulated"
    status=0; timeout 120 "$bulkhead" run --keep --name three "${guest[@]}" -- /bin/sh -c 'exit 3' 2>"$err" || status=$?
    { [ "$status" -eq 3 ] && grep -q 'failed (exited' "$err"; } || { say "a command that ended with 3 became $status"; cat "$err"; exit 1; }
    says 'failed: exited 3' "$bulkhead" get workloads three || { say "get does not show why it failed"; exit 1; }
    status=0; timeout 20 "$bulkhead" run --name three "${guest[@]}" -- true 2>"$err" || status=$?
    { [ "$status" -ne 0 ] && grep -q -- '--replace' "$err"; } || { say "a kept workload was not refused: $status"; cat "$err"; exit 1; }
    timeout 120 "$bulkhead" run --name three --replace "${guest[@]}" -- true 2>"$err" || { say "--replace failed"; cat "$err"; exit 1; }
    status=0; timeout 120 "$bulkhead" run "${guest[@]}" -- no-such-program 2>"$err" || status=$?
    { [ "$status" -eq 127 ] && grep -q 'program-not-found' "$err"; } || { say "a missing program became $status"; cat "$err"; exit 1; }
    say "exit statuses are the command's own, and failures say why"
    # Started by a subshell that does not ignore SIGINT, as a shell does for what it starts in the background.
    python3 -c 'import signal,os,sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' \
        "$bulkhead" run --name long "${guest[@]}" -- sleep 600 2>"$err" &
    local waiting=$!
    wait_for "a long command runs" running long
    kill -INT "$waiting"
    wait_for "Ctrl-C asks" grep -q 'press Ctrl-C again' "$err"
    running long || { say "it was cancelled without being asked twice"; exit 1; }
    kill -INT "$waiting"
    status=0; wait "$waiting" || status=$?
    { [ "$status" -eq 130 ] && grep -q 'long is cancelled' "$err"; } || { say "the second Ctrl-C ended run with $status"; cat "$err"; exit 1; }
    wait_for "the second Ctrl-C cancels it" gone long
    local detached
    detached=$("$bulkhead" run --detach "${guest[@]}" -- true)
    wait_for "what was detached ends by itself" says '"finished"' "$bulkhead" get workloads "$detached" -o json
    "$bulkhead" delete workloads "$detached" > /dev/null
    for state in finished failed cancelled; do
        says "$state" "$bulkhead" history --tenant guest --state "$state" || { say "the history has nothing that $state"; exit 1; }
    done
    "$bulkhead" history -o wide
    say "the history has all of them"
}
if grep -q "runs commands in containers" build/check-run/output; then
    commands
else
    grep "^Left out" build/check-run/output || true
    status=0; timeout 20 "$bulkhead" run --tenant guest -- true 2>build/check-run/err || status=$?
    { [ "$status" -ne 0 ] && grep -q "no node of this fleet can run a command" build/check-run/err; } ||
        { say "run on model nodes was not refused: $status"; cat build/check-run/err; exit 1; }
    say "no node runs commands here, and run says so"
fi
"$bulkhead" fleet
"$bulkhead" explain pretrain
for name in pretrain fraud-scoring notebook embed-archive; do "$bulkhead" delete workloads "$name"; done
wait_for "the gang is gone" gone pretrain
wait_for "everything is reclaimed" quiet
"$bulkhead" certificate --lease "$lease" -o build/check-run/certificate.json
"$bulkhead" verify build/check-run/certificate.json --key build/fleet/keys/log.vkey --accept-lab
set +e
"$bulkhead" verify build/check-run/certificate.json --key build/fleet/keys/log.vkey > /dev/null; status=$?
set -e
[ "$status" -eq 5 ] || { say "a certificate of model GPUs was taken for one of hardware: $status, not 5"; exit 1; }
"$bulkhead" audit verify --tiles build/fleet/tiles --key build/fleet/keys/log.vkey
say "the certificate and the log verify"

kill -INT -- "-$run"
wait_for "it stops" ended
if left=$(left_running); then say "still running: $left"; exit 1; fi
say "nothing is left running"
