# A whole small fleet inside the guest: server, agent and tenants are the real programs, the GPUs below them are simulated.
door=
node_up() {  # agent's further arguments
    export BULKHEAD_CONTEXT=/tmp/context BULKHEAD_SIM_NODE=/tmp/gpus LD_LIBRARY_PATH=/opt/bulkhead/lib
    mkdir -p "${state:=/tmp/state}"
    [ -e /tmp/gpus ] || bulkhead-gpusim new /tmp/gpus --gpus "2 x h200-141gb" >/dev/null
    rm -f "$state/server/address"
    bulkhead serve --data "$state/server" --port 0 --agent-port 0 --simulated-fleet >>/tmp/server.log 2>&1 &
    server=$!
    until_true 120 test -s "$state/server/address"
    door="--server $(head -n 1 "$state/server/address") --token-file $state/server/keys/admin.token --ca $state/server/keys/ca.crt"
    ev server_s "$(cut -d ' ' -f 1 /proc/uptime)"
    if [ ! -e "$state/node.token" ]; then
        bulkhead apply -f "${fleet:-/lab/examples/fleet.yaml}" $door
        bulkhead token node gpu-1 $door 2>/dev/null >"$state/node.token"
        chmod 600 "$state/node.token"
    fi
    bulkhead agent --data "$state/node" --name gpu-1 --server "$(head -n 1 "$state/server/address")" --ca "$state/server/keys/ca.crt" \
        --token-file "$state/node.token" --hardware gpu "$@" >>/tmp/agent.log 2>&1 &
    agent=$!
}
wiped() { bulkhead audit list $door | grep -E " wiped .*$1"; }
