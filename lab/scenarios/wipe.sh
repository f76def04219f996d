# shows: a tenant's drive is sanitizing until it was erased and read back; the certificate is verified outside; other drives are left alone
# limit: 300
machine() {
    drive LAB-NVME-9 64  # first, so that the tenant's drive mostly is not what the kernel calls the first
    slow_drive LAB-NVME-0 256
}
guest() {
    . /lab/fleet.sh
    drives_up 2
    write_marker "$(block LAB-NVME-0)" from-before 100
    write_marker "$(block LAB-NVME-9)" the-operators 7
    node_up --tenant-drive LAB-NVME-0
    until_true 40 drive_is LAB-NVME-0 available
    gone "$(block LAB-NVME-0)" from-before 100 || fail "a drive nobody knows was leased out as it was"
    ev node_s "$(cut -d ' ' -f 1 /proc/uptime)"
    # The agent has it, also while no tenant does: nobody erases it beside the agent.
    if bulkhead erase-drive --serial LAB-NVME-0 --yes >/tmp/erase.log 2>&1; then fail "a drive that an agent has was erased by hand"; fi
    grep -q 'LAB-NVME-0 is in the hands of another agent' /tmp/erase.log || fail "erase-drive: $(cat /tmp/erase.log)"
    bulkhead drives | grep "^LAB-NVME-0.*an agent's" || fail "drives: $(bulkhead drives)"
    ev beside_the_agent refused

    drive_work scratch 'd=${BULKHEAD_DRIVES%%,*}; yes tenant-secret | dd of=$d bs=1M seek=7 count=1 iflag=fullblock conv=fsync 2>/dev/null; echo wrote; sleep 600'
    until_true 60 holds "$(block LAB-NVME-0)" tenant-secret 7
    check while_it_runs "$(drive_state LAB-NVME-0)" in_use
    # The Format is held up: for as long as that lasts the drive is nobody's.
    outside_do hold LAB-NVME-0
    lease=$(bulkhead get leases -o yaml $door | sed -n 's/^ *name: \(lease-.*\)/\1/p' | head -n 1)
    bulkhead delete workload scratch $door
    until_held
    drive_work next 'true'
    sleep 4
    check while_it_is_wiped "$(drive_state LAB-NVME-0)" sanitizing
    if bulkhead get leases -o yaml $door | grep -q 'next'; then fail "the next workload has a lease on a drive that is not clean"; fi
    outside_do release LAB-NVME-0
    until_true 120 wiped "drive.*vision"
    gone "$(block LAB-NVME-0)" tenant-secret 7 || fail "the drive was said to be wiped, and the marker is still there"
    ev wiped_s "$(cut -d ' ' -f 1 /proc/uptime)"
    holds "$(block LAB-NVME-9)" the-operators 7 || fail "a drive that is no tenant's was touched"
    certificate_out "$lease"
}
outside() {
    "$project/build/bin/bulkhead" verify out/wipe.json --key out/log.vkey --tenant vision --node gpu-1 --lease "$(sed -n 's/.*"\(lease-[0-9a-f]*\)".*/\1/p' out/wipe.json | head -n 1)" --accept-lab >verified.txt || return 1
    cat verified.txt
    # Whoever does not say that a lab will do is told that this is one.
    local status=0
    "$project/build/bin/bulkhead" verify out/wipe.json --key out/log.vkey >refused.txt || status=$?
    [ "$status" = 5 ] && grep -q 'LAB ONLY, NOT HARDWARE' refused.txt || { cat refused.txt; return 1; }
    grep -q 'LAB-NVME-0' verified.txt && grep -q 'emulated' verified.txt
}
