# shows: virtual functions, VLANs and soft-RoCE behave as the lab relies on; a forged address works without the fence
# limit: 200
machine() { card; }
guest() {
    . /lab/fabric.sh
    modprobe rdma_rxe
    modprobe ib_uverbs
    rdma system set netns exclusive || fail "a clean machine refuses exclusive RDMA namespaces"
    check rdma_mode "$(rdma system | grep -o 'netns [a-z]*' | head -n 1)" "netns exclusive"
    rdma system set netns shared
    functions_up 3
    check iommu_groups "$(for f in /sys/class/net/"$pf"/device/virtfn*; do basename "$(readlink -f "$f/iommu_group")"; done | sort -u | wc -l)" 3
    set_function 0 101
    set_function 1 101
    set_function 2 102
    ip link show "$pf" | grep -E 'vf [0-9]'
    check settings "$(ip link show "$pf" | grep -cE 'vf [0-9].*vlan 10[12],.* max_tx_rate 100Mbps, spoof checking on.*trust off')" 3
    functions_bound
    side_channel
    tenant a1 0 10.66.1.1 192.168.9.1
    tenant a2 1 10.66.1.2 192.168.9.2
    tenant c 2 10.66.1.3 192.168.9.3
    ev tenants_s "$(cut -d ' ' -f 1 /proc/uptime)"
    in_tenant a1 ping -c 3 -W 5 10.66.1.2 >/tmp/ping.log || fail "a tenant's own functions do not reach each other"
    if in_tenant c ping -c 3 -W 1 10.66.1.1 >/tmp/ping.log; then fail "another VLAN reaches across"; fi
    ev vlan "separates"
    if in_tenant c ip link set net0 address 02:b0:00:00:00:01 2>/tmp/mac.log; then fail "a tenant took another MAC"; fi
    ev mac "$(head -n 1 /tmp/mac.log)"

    for name in a1 a2 c; do roce $name; done
    exchange a1 a2 192.168.9.1 1 || fail "RoCE inside the tenant: $(cat /tmp/ping-a2.log /tmp/pong-a1.log)"
    ev roce_inside passes
    # c forges a2's address: a new row of its GID table, which the kernel gives to whoever may set addresses.
    in_tenant c ip addr add 10.66.1.2/24 dev net0
    if exchange a1 c 192.168.9.1 2; then fail "a forged address crossed the fence"; fi
    grep 'remote address' /tmp/ping-c.log >/dev/null || fail "RoCE with a forged address was not tried: $(cat /tmp/ping-c.log)"
    ev roce_forged_fenced "$(tail -n 1 /tmp/ping-c.log)"
    # The fence off: all in one VLAN, nothing else changed but a2, whose address it is, being down.
    ip link set "$pf" vf 2 vlan 101
    in_tenant a2 ip link set net0 down
    in_tenant c ip link set net0 down
    in_tenant c ip link set net0 up
    in_tenant a1 ip neigh flush dev net0
    until_true 30 in_tenant c ping -c 1 -W 2 10.66.1.1 >/tmp/ping.log
    exchange a1 c 192.168.9.1 2 || fail "with the fence off the forged address does not work either: the check above proves nothing: $(cat /tmp/ping-c.log)"
    ev roce_forged_open succeeds

    for name in a1 a2 c; do rdma link del rxe_$name 2>/dev/null || in_tenant $name rdma link del rxe_$name; ip netns del $name; done
    echo 0 >"/sys/class/net/$pf/device/sriov_numvfs"
    check left_rdma "$(ls /sys/class/infiniband | wc -l)" 0
    check left_functions "$(ls -d "/sys/class/net/$pf/device"/virtfn* 2>/dev/null | wc -l)" 0
}
