# shows: an agent whose NIC has no driver yet goes on without it, and offers its functions by itself once it has one
# limit: 100
machine() { card; }
card_address() {
    local folder
    for folder in /sys/bus/pci/devices/*; do
        [ "$(cat "$folder/vendor") $(cat "$folder/device")" = "0x8086 0x10c9" ] && { echo "${folder##*/}"; return; }
    done
    return 1
}
guest() {
    . /lab/fabric.sh
    . /lab/fleet.sh
    address=$(card_address)
    ev nic "$address"
    node_up --tenant-nic "$address=2"
    until_true 120 grep "no virtual functions for tenants: " /tmp/agent.log
    cat /tmp/last
    until_true 120 wiped gpu-1
    functions() { bulkhead get nodes gpu-1 -o yaml $door | grep -c "physical:"; }
    check functions_before "$(functions)" 0
    modprobe igb
    until_true 90 grep "can be had now: 2 of $address" /tmp/agent.log
    until_true 120 wiped vf1
    check functions_after "$(functions)" 2
    # The same agent, in a second session.
    check hellos "$(grep -c 'an agent says hello' /tmp/server.log)" 2
}
