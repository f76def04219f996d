# shows: a drive that is mounted, or held open, is not erased: its data stays, and it is never leased; a file with a drive's name is nobody's use
# limit: 180
machine() {
    drive LAB-NVME-0 64
    drive LAB-NVME-1 64
    drive LAB-NVME-2 64
}
guest() {
    . /lab/fleet.sh
    modprobe ext4
    drives_up 3
    mkfs.ext4 -q "$(block LAB-NVME-0)"
    mkdir -p /mnt
    mount -t ext4 "$(block LAB-NVME-0)" /mnt
    echo somebody-works-here >/mnt/file
    sync
    write_marker "$(block LAB-NVME-2)" a-program-has-it-open 7
    sleep 600 <"$(block LAB-NVME-2)" &
    holder=$!
    # What any tenant may do: files with the names of drives, in the memory that all share, and kept open.
    pretended=/dev/shm/$(basename "$(block LAB-NVME-1)")
    echo nothing >"$pretended"
    sleep 600 <"$pretended" &
    pretender=$!
    mkdir -p /tmp/pretended
    mount -t tmpfs "$(block LAB-NVME-1)" /tmp/pretended
    bulkhead drives
    check mounted "$(bulkhead drives | awk '$1 == "LAB-NVME-0" { print $(NF - 2), $(NF - 1); exit }')" "in use"
    check pretended "$(bulkhead drives | awk '$1 == "LAB-NVME-1" { print $(NF - 1); exit }')" free
    check held_open "$(bulkhead drives | awk '$1 == "LAB-NVME-2" { print $(NF - 2), $(NF - 1); exit }')" "in use"
    node_up --tenant-drive LAB-NVME-0 --tenant-drive LAB-NVME-1 --tenant-drive LAB-NVME-2
    until_true 60 drive_is LAB-NVME-1 available
    until_true 60 drive_is LAB-NVME-0 quarantined
    until_true 60 drive_is LAB-NVME-2 quarantined
    ev why "$(bulkhead audit export $door | grep -o 'LAB-NVME-0 is in use[^"]*' | tail -n 1)"
    holds "$(block LAB-NVME-2)" a-program-has-it-open 7 || fail "a drive that is held open was erased"
    echo 3 >/proc/sys/vm/drop_caches
    check content "$(cat /mnt/file)" somebody-works-here
    kill $holder $pretender
}
