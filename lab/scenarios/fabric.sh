# shows: selftest fabric between two functions: with the fence nothing forged arrives, without it everything does; nothing is left behind
# limit: 400
# module: used
machine() { card; }
left_behind() {
    for f in /sys/class/net/"$pf"/device/virtfn*; do [ -e "$f/driver" ] && basename "$f"; done
    ls /sys/class/infiniband 2>/dev/null
    nft list ruleset
    ls /run/netns 2>/dev/null
    ip link show "$pf" | grep -E 'vf [0-9]' | grep -vE 'link/ether 00:00:00:00:00:00.*spoof checking on, link-state auto, trust off$'
    true
}
guest() {
    . /lab/fabric.sh
    modprobe rdma_rxe
    modprobe ib_uverbs
    modprobe igbvf
    card_up
    ev nic "$nic"
    selftest() { local rc=0; bulkhead selftest fabric --tenant-nic "$nic=2" "$@" >/tmp/selftest.log 2>&1 || rc=$?; cat /tmp/selftest.log >&2; echo $rc; }
    check fence_on "$(selftest --fence on)" 0
    check left_by_on "$(left_behind)" ""
    # The control: without it everything forged must arrive, or the test above proves nothing.
    check fence_off "$(selftest --fence off)" 0
    check left_by_off "$(left_behind)" ""
    # The emulated card shows its check of sources and does not do it: what got through is said, and is no success.
    check fence_nic "$(selftest --fence nic)" 3
    # Stock soft-RoCE cannot be moved into a namespace: closed, and not open.
    check soft_roce "$(selftest --fence on --soft-roce)" 2
    grep -q "cannot be moved to its tenant's namespace" /tmp/selftest.log || fail "soft-RoCE was refused for another reason"
    check left_by_soft_roce "$(left_behind)" ""
    # With it moved, as RDMA devices of real NICs are, its neighbour's is there to be tried: not to be opened.
    if ! soft_roce_moves; then ev moved_soft_roce "not tried: the lab's kernel module is not here"; return 0; fi
    check moved_soft_roce "$(selftest --fence on --soft-roce)" 0
    grep -E 'foreign-uverbs +.*stopped' /tmp/selftest.log || fail "a neighbour's RDMA device was not tried, or opened"
    check left_by_moved_soft_roce "$(left_behind)" ""
}
