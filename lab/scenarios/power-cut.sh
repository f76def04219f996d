# shows: the machine loses power in the middle of a wipe; it comes back unschedulable, is wiped, and the certificate follows
# limit: 300
machine() {
    state_disk
    slow_drive LAB-NVME-0 64
}
conduct() {
    start_guest first || return 1
    await '^EV in_the_middle' "$limit" || return 1
    stop_guest
    mv console.txt console-first.txt
    boot second
}
guest() {
    . /lab/fleet.sh
    state_disk
    state=/state
    drives_up 1
    if [ "$1" = first ]; then
        node_up --tenant-drive LAB-NVME-0
        until_true 40 drive_is LAB-NVME-0 available
        drive_work scratch 'd=${BULKHEAD_DRIVES%%,*}; yes tenant-secret | dd of=$d bs=1M seek=7 count=1 iflag=fullblock conv=fsync 2>/dev/null; sleep 600'
        until_true 60 holds "$(block LAB-NVME-0)" tenant-secret 7
        outside_do hold LAB-NVME-0
        bulkhead get leases -o yaml $door | sed -n 's/^ *name: \(lease-.*\)/\1/p' | head -n 1 >/state/lease
        sync
        bulkhead delete workload scratch $door
        until_held
        check in_the_log "$(drive_state LAB-NVME-0)" sanitizing
        ev in_the_middle yes
        sleep 600
    fi
    holds "$(block LAB-NVME-0)" tenant-secret 7 || fail "the power went too late: the drive is empty already"
    ev marker "still there"
    outside_do hold LAB-NVME-0
    node_up --tenant-drive LAB-NVME-0
    # As long as nothing has wiped it, it is nobody's.
    until_held
    check before_the_wipe "$(drive_state LAB-NVME-0)" sanitizing
    outside_do release LAB-NVME-0
    until_true 40 drive_is LAB-NVME-0 available
    gone "$(block LAB-NVME-0)" tenant-secret 7 || fail "available, and the marker is still there"
    certificate_out "$(cat /state/lease)"
}
outside() {
    "$project/build/bin/bulkhead" verify out/wipe.json --key out/log.vkey --tenant vision --node gpu-1 --accept-lab >verified.txt || return 1
    cat verified.txt
    grep -q LAB-NVME-0 verified.txt
}
