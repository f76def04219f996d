#!/usr/bin/env bash
# What a newcomer with an identity provider does: a server that believes it, `bulkhead login`, the code entered on the provider's page,
# and then work as the person one is. The provider is a real one; only the person at the browser is a program.
#
#     scripts/check-login.sh     exit: 0 all well, 1 it is not, 77 the provider could not be fetched
set -euo pipefail
cd "$(dirname "$0")/.."
say() { echo "check-login: $*"; }
modules=$(scripts/test-provider.sh) || exit $?
bulkhead=$PWD/build/bin/bulkhead
[ -x "$bulkhead" ] || make build
work=$PWD/build/check-login
rm -rf "$work"
mkdir -p "$work"
export XDG_CONFIG_HOME=$work/config
unset BULKHEAD_SERVER BULKHEAD_TOKEN_FILE BULKHEAD_CA BULKHEAD_CONTEXT BULKHEAD_LOGIN
pids=()
finish() {
    local status=$?
    set +e
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
    wait 2>/dev/null
    [ "$status" -eq 0 ] || { say "failed with $status"; tail -n 20 "$work"/*.log; }
    exit "$status"
}
trap finish EXIT
wait_for() {  # WHAT COMMAND...: until the command succeeds, half a minute at most
    local what=$1; shift
    for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
    say "not within 30 s: $what"; exit 1
}

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/provider.key" -out "$work/provider.crt" -days 2 \
    -subj /CN=provider -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:TRUE 2>/dev/null
mkfifo "$work/open"
sleep 600 >"$work/open" & pids+=($!)
OIDC_MODULES=$modules node testdata/oidc/provider.mjs "$work/provider.key" "$work/provider.crt" 300 <"$work/open" >"$work/provider.log" 2>&1 & pids+=($!)
wait_for "the provider" grep -q '^https://' "$work/provider.log"
issuer=$(grep -m 1 '^https://' "$work/provider.log")
say "a provider at $issuer"

"$bulkhead" serve --data "$work/data" --port 0 --agent-port 0 --simulated-fleet --oidc-issuer "$issuer" --oidc-ca "$work/provider.crt" >"$work/serve.log" 2>&1 & pids+=($!)
wait_for "the server" test -s "$work/data/address"
server=$(head -n 1 "$work/data/address")
say "a server at $server"
# Who is what is the fleet's to say: an administrator makes the policy, and a security-admin binds people in it.
cat >"$work/policy.yaml" <<'P'
apiVersion: bulkhead.dev/v1alpha1
kind: FleetPolicy
metadata: {name: fleet}
spec:
  threatModel: internal
  sites: [{name: here, jurisdiction: eu}]
P
apply_with() { "$bulkhead" apply -f "$work/policy.yaml" --server "$server" --token-file "$work/data/keys/$1.token" --ca "$work/data/keys/ca.crt"; }
apply_with admin
echo '  bindings: [{role: platform-admin, group: /fleet/platform-admins}]' >>"$work/policy.yaml"
apply_with security

log_in_as() {  # NAME
    "$bulkhead" login --server "$server" --ca "$work/data/keys/ca.crt" --oidc-ca "$work/provider.crt" >"$work/login.log" 2>&1 &
    local login=$!
    wait_for "a code" grep -q 'Or both at once' "$work/login.log"
    NODE_EXTRA_CA_CERTS=$work/provider.crt node testdata/oidc/approve.mjs "$(sed -n 's/^Or both at once: //p' "$work/login.log")" "$1" >"$work/browser.log" 2>&1
    wait "$login"
}
log_in_as ada
sed 's/^/  | /' "$work/login.log"
file=$XDG_CONFIG_HOME/bulkhead/login
[ "$(stat -c %a "$file")" = 600 ] || { say "$file is not of mode 600"; exit 1; }
"$bulkhead" get policies
say "ada is in, as the platform-admin her group makes her, and her tokens are in a file of mode 600"

chmod 644 "$file"
if "$bulkhead" get policies 2>"$work/wide.log"; then say "a file that others can read was believed"; exit 1; fi
chmod 600 "$file"
"$bulkhead" logout
[ ! -e "$file" ] || { say "it is still there"; exit 1; }
log_in_as eve
set +e
"$bulkhead" get policies 2>"$work/eve.log"; status=$?
set -e
[ "$status" -eq 4 ] || { say "eve, of /acme-evil, ended with $status, not 4"; exit 1; }
sed 's/^/  | /' "$work/eve.log"
say "eve has a token too, and nothing is bound to her"
"$bulkhead" logout
say "all well"
