# shows: a drive that is mounted, or held open, is not erased: its data stays, and it is never leased
# limit: 180
machine() {
    drive LAB-NVME-0 64
    drive LAB-NVME-1 64
}
guest() {
    . /lab/fleet.sh
    modprobe ext4
    drives_up 2
    mkfs.ext4 -q "$(block LAB-NVME-0)"
    mkdir -p /mnt
    mount -t ext4 "$(block LAB-NVME-0)" /mnt
    echo somebody-works-here >/mnt/file
    sync
    bulkhead drives
    check mounted "$(bulkhead drives | awk '$1 == "LAB-NVME-0" { print $(NF - 2), $(NF - 1); exit }')" "in use"
    node_up --tenant-drive LAB-NVME-0 --tenant-drive LAB-NVME-1
    until_true 40 drive_is LAB-NVME-1 available
    sleep 5
    state_of=$(drive_state LAB-NVME-0)
    ev state_of_mounted "$state_of"
    [ "$state_of" != available ] || fail "a drive that is mounted is offered to tenants"
    echo 3 >/proc/sys/vm/drop_caches
    check content "$(cat /mnt/file)" somebody-works-here
    bulkhead audit list $door
}
