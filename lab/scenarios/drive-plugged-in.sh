# shows: a drive that is plugged in while the agent runs is numbered, erased and only then lent; one that is pulled is a fault, and comes back by repair and a wipe
# limit: 300
machine() {
    drive LAB-NVME-0 16
    drive_to_plug_in LAB-NVME-1 64
    dd of=LAB-NVME-1.img bs=1M seek=7 count=1 iflag=fullblock conv=notrunc 2>/dev/null < <(yes from-elsewhere)
}
guest() {
    . /lab/fleet.sh
    local before
    drives_up 1
    node_up --tenant-drive LAB-NVME-0 --tenant-drive LAB-NVME-1
    until_true 40 drive_is LAB-NVME-0 available
    check not_here_yet "$(drive_state LAB-NVME-1)" ""
    ev node_s "$(cut -d ' ' -f 1 /proc/uptime)"

    outside_do hold LAB-NVME-1
    outside_do plug LAB-NVME-1
    until_true 60 drives_are 2
    holds "$(block LAB-NVME-1)" from-elsewhere 7 || fail "the drive came without what was on it"
    # Nobody has started the agent again, and nobody may have the drive while its Format is held up.
    until_held
    check while_it_is_wiped "$(drive_state LAB-NVME-1)" sanitizing
    outside_do release LAB-NVME-1
    until_true 60 drive_is LAB-NVME-1 available
    gone "$(block LAB-NVME-1)" from-elsewhere 7 || fail "a drive from elsewhere is available as it came"
    drive_work scratch 'd=${BULKHEAD_DRIVES%%,*}; yes tenant-secret | dd of=$d bs=1M seek=7 count=1 iflag=fullblock conv=fsync 2>/dev/null; sleep 600'
    until_true 60 holds "$(block LAB-NVME-1)" tenant-secret 7
    ev plugged_in_s "$(cut -d ' ' -f 1 /proc/uptime)"
    bulkhead delete workload scratch $door
    until_true 60 drive_is LAB-NVME-1 available
    gone "$(block LAB-NVME-1)" tenant-secret 7 || fail "what the tenant wrote is still there"
    [ "$(grep -c 'welcome' /tmp/agent.log)" -ge 2 ] || fail "the agent did not say again what the node has"

    outside_do pull LAB-NVME-1
    until_true 60 drives_are 1
    until_true 60 drive_is LAB-NVME-1 quarantined
    bulkhead audit export $door | grep -q 'LAB-NVME-1 is gone from this machine' || fail "the log does not say why"
    check the_other "$(drive_state LAB-NVME-0)" available
    outside_do plug LAB-NVME-1
    until_true 60 drives_are 2
    write_marker "$(block LAB-NVME-1)" while-it-was-away 7
    # Where it was nobody knows: an operator lets it in again, and then it is wiped as before. The agent looks every ten seconds, so by now
    # it has seen the drive twice, and let nobody have it.
    sleep 25
    check back "$(drive_state LAB-NVME-1)" quarantined
    bulkhead repair gpu-1 drive1 --why "put back" $(echo "$door" | sed s/admin.token/security.token/)
    until_true 60 drive_is LAB-NVME-1 available
    gone "$(block LAB-NVME-1)" while-it-was-away 7 || fail "what came back with the drive is still there"
    kill -0 "$agent" || fail "the agent has ended meanwhile"
}
