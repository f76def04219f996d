# shows: the drive's claims (FNA, OACS, SANICAP) in every combination, and the plan Bulkhead makes of each
# limit: 400
machine() { drive LAB-NVME-0 64; }
conduct() {
    start_guest "" || return 1
    await '^EV nvme_s' "$limit" || return 1
    "$lab/edit-identify.py" "$guest" ask.sock >edits.txt 2>&1 &
    local editor=$!
    finish
    local status=$?
    kill "$editor" 2>/dev/null
    return $status
}
guest() {
    drives_up 1
    ev nvme_s "$(cut -d ' ' -f 1 /proc/uptime)"
    local c
    c=$(controller LAB-NVME-0)
    check fna_before "$(identify "$c" fna)" 0
    drive_says LAB-NVME-0 fna=4 sanicap=3
    check fna_after "$(identify "$c" fna)" 0x4
    check sanicap_after "$(identify "$c" sanicap)" 0x3
    drive_says LAB-NVME-0 fna=0 sanicap=0
    check fna_again "$(identify "$c" fna)" 0
}
