# shows: selftest fabric between two functions: with the fence nothing forged arrives, without it everything does; nothing is left behind
# limit: 240
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
    modprobe igb
    modprobe igbvf
    until_true 30 physical
    pf=$(physical)
    ip link set "$pf" up
    address=$(basename "$(readlink -f "/sys/class/net/$pf/device")")
    ev nic "$address"
    local rc fence
    for fence in on off nic; do
        rc=0
        bulkhead selftest fabric --tenant-nic "$address=2" --soft-roce --fence $fence || rc=$?
        ev "fence_$fence" "$rc"
        ev "left_by_$fence" "$(left_behind | tr '\n' ';')"
    done
}
