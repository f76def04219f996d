# A whole small fleet inside the guest: server, agent and tenants are the real programs, the GPUs below them are simulated.
door=
node_up() {  # agent's further arguments
    export BULKHEAD_CONTEXT=/tmp/context BULKHEAD_SIM_NODE=/tmp/gpus LD_LIBRARY_PATH=/opt/bulkhead/lib
    mkdir -p "${state:=/tmp/state}"
    [ -e /tmp/gpus ] || bulkhead-gpusim new /tmp/gpus --gpus "${gpus:-2} x h200-141gb" >/dev/null
    rm -f "$state/server/address"
    # The same doors after a boot as before it: an agent remembers where its control plane is.
    bulkhead serve --data "$state/server" --port 7443 --agent-port 7444 --simulated-fleet >>/tmp/server.log 2>&1 &
    server=$!
    until_true 120 test -s "$state/server/address"
    door="--server $(head -n 1 "$state/server/address") --token-file $state/server/keys/admin.token --ca $state/server/keys/ca.crt"
    ev server_s "$(cut -d ' ' -f 1 /proc/uptime)"
    if [ ! -e "$state/node.token" ]; then
        bulkhead apply -f "${fleet:-/lab/examples/fleet.yaml}" $door
        bulkhead token node gpu-1 $door 2>/dev/null >"$state/node.token"
        chmod 600 "$state/node.token"
    fi
    agent_up "$@"
}
agent_up() {  # its further arguments
    bulkhead agent --data "$state/node" --name gpu-1 --server "$(head -n 1 "$state/server/address")" --ca "$state/server/keys/ca.crt" \
        --token-file "$state/node.token" --hardware gpu "$@" >>/tmp/agent.log 2>&1 &
    agent=$!
}
# The agent and its hands.
of_agent() { for p in /proc/[0-9]*; do { tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null | grep -qE '^[^ ]* agent(-hands)? --data ' && echo "${p#/proc/}"; done; true; }
# When a scenario has failed: what the fleet knew.
account() { bulkhead queue $door; bulkhead audit list $door; bulkhead audit export $door | grep -E "wipe-failed|quarantin|lease-ending"; bulkhead fleet $door; cat /tmp/node.yaml; }
wiped() { bulkhead audit list $door | grep -E " wiped .*$1"; }
lease_of() {  # WORKLOAD: the newest lease the log knows of it
    bulkhead audit export $door | grep "$1" | grep -o 'lease-[0-9a-f]\{12\}' | tail -n 1
}
certificate_out() {  # LEASE: when all of it is wiped; and the key to check it with, out of the guest
    mkdir -p /tmp/out
    until_true 60 bulkhead certificate --lease "$1" -o /tmp/out/wipe.json $door
    cp "$state/server/keys/log.vkey" /tmp/out/
    hand_out /tmp/out
}
# A workload of vision's with a drive of its own: COMMAND sees it as the first of $BULKHEAD_DRIVES.
drive_work() {  # NAME COMMAND
    cat >"/tmp/$1.yaml" <<Y
apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata: {name: $1}
spec:
  tenant: vision
  gpu: {count: 1, mechanism: whole}
  cpu: 1
  memory: 128Mi
  storage: {localNvme: 32Mi}
  command:
    - /bin/sh
    - -c
    - |
      $2
Y
    bulkhead apply -f "/tmp/$1.yaml" $door
}
# What the control plane says of a drive, by its serial number: available, in_use, sanitizing, quarantined. Sanitizing need not be said.
drive_state() {
    bulkhead get nodes gpu-1 -o yaml $door >/tmp/node.yaml
    awk -v serial="$1" '/serial:/ { mine = ($NF == serial); seen = seen || mine; if (mine) said = "sanitizing" } / state:/ { if (mine) { said = $NF; mine = 0 } } END { print said }' /tmp/node.yaml
}
drive_is() { [ "$(drive_state "$1")" = "$2" ]; }
# Work with a function of a NIC of its own, and RDMA on it.
rdma_work() {  # NAME TENANT COMMAND
    cat >"/tmp/$1.yaml" <<Y
apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata: {name: $1}
spec:
  tenant: $2
  gpu: {count: 1, mechanism: whole}
  memory: 128Mi
  isolation: {node: same-domain}
  network: {rdma: true}
  command:
    - /bin/sh
    - -c
    - |
$(echo "$3" | sed 's/^/      /')
Y
    bulkhead apply -f "/tmp/$1.yaml" $door
}
# What a tenant's command prints is for its tenant's people alone: operators are refused.
printed() {  # WORKLOAD TENANT
    [ -s "/tmp/$2.token" ] || { bulkhead token create --role tenant-user --tenant "$2" --subject reader $door 2>/dev/null >"/tmp/$2.token"; chmod 600 "/tmp/$2.token"; }
    bulkhead logs "$1" --server "$(head -n 1 "$state/server/address")" --token-file "/tmp/$2.token" --ca "$state/server/keys/ca.crt"
}
said() { printed "$1" "$2" | grep -E "$3"; }  # WORKLOAD TENANT PATTERN
