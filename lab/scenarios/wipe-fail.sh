# shows: a Format that fails puts the drive into quarantine with its reason, and it is never leased
# limit: 180
machine() { failing_drive LAB-NVME-0 64; }
guest() {
    . /lab/fleet.sh
    drives_up 1
    write_marker "$(block LAB-NVME-0)" from-before 7
    node_up --tenant-drive LAB-NVME-0
    until_true 40 drive_is LAB-NVME-0 quarantined
    bulkhead audit list $door
    ev why "$(bulkhead audit export $door | grep -o 'drive[^"]*nternal[^"]*' | tail -n 1)"
    drive_work scratch 'echo ran'
    sleep 5
    if bulkhead get leases -o yaml $door | grep -q scratch; then fail "a drive in quarantine was leased"; fi
    check state "$(drive_state LAB-NVME-0)" quarantined
    bulkhead explain scratch $door || true
}
