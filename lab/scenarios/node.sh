# shows: server, agent and a tenant's command on a stock kernel in a machine of their own, up to a certificate verified outside it
# limit: 150
machine() { :; }
guest() {
    . /lab/fleet.sh
    node_up
    until_true 120 wiped gpu-1
    ev node_s "$(cut -d ' ' -f 1 /proc/uptime)"
    local rc=0
    said=$(bulkhead run --keep --name hello --tenant vision --cpu 1 --memory 256Mi $door -- /bin/sh -c 'echo "$BULKHEAD_TENANT has $CUDA_VISIBLE_DEVICES"; exit 3') || rc=$?
    ev said "$said"
    check exit_code "$rc" 3
    wiped vision >/dev/null || fail "no wipe of what vision used is in the log"
    certificate_out "$(lease_of hello)"
}
outside() {
    "$project/build/bin/bulkhead" verify out/wipe.json --key out/log.vkey --tenant vision --node gpu-1 --accept-lab
}
