# A card with virtual functions, tenants in network namespaces, soft-RoCE on each function.
physical() {  # the card's own network device, once it is there
    local folder
    for folder in /sys/class/net/*; do
        [ "$(basename "$(readlink -f "$folder/device/driver")")" = igb ] && { echo "${folder##*/}"; return; }
    done
    return 1
}
card_up() {  # its device is $pf then, its place on the bus $nic
    modprobe igb
    until_true 30 physical
    pf=$(physical)
    nic=$(basename "$(readlink -f "/sys/class/net/$pf/device")")
    ip link set "$pf" up
}
functions_up() {  # COUNT: made, and left without a driver until they are set
    card_up
    echo 0 >"/sys/class/net/$pf/device/sriov_drivers_autoprobe"
    echo "$1" >"/sys/class/net/$pf/device/sriov_numvfs"
    check functions "$(ls -d "/sys/class/net/$pf/device"/virtfn* | wc -l)" "$1"
}
function_mac() { echo "02:b0:00:00:00:0$1"; }
set_function() {  # N VLAN: as the host does before a tenant sees it
    ip link set "$pf" vf "$1" mac "$(function_mac "$1")"
    ip link set "$pf" vf "$1" vlan "$2" spoofchk on trust off
    until_true 30 ip link set "$pf" vf "$1" max_tx_rate 100  # EINVAL while the card has no link, and making functions takes it away for a moment
}
functions_bound() {
    local folder
    modprobe igbvf
    for folder in "/sys/class/net/$pf/device"/virtfn*; do
        [ -e "$folder/driver" ] && continue
        echo igbvf >"$folder/driver_override"  # without which the kernel binds no function of a card whose functions are not bound by themselves
        basename "$(readlink -f "$folder")" >/sys/bus/pci/drivers_probe
    done
}
function_device() { ls "/sys/class/net/$pf/device/virtfn$1/net" 2>/dev/null; }  # N
# What the tenants exchange their queue pairs over, out of band: the attack is then RoCE itself, not a TCP connection before it.
side_channel() {
    ip link add side type bridge
    ip link set side up
}
tenant() {  # NAME N ADDRESS SIDE-ADDRESS
    local device
    until_true 20 function_device "$2"
    device=$(function_device "$2")
    ip netns add "$1"
    ip link set "$device" netns "$1" name net0
    ip link add "side-$1" type veth peer name side netns "$1"
    ip link set "side-$1" master side up
    ip -n "$1" link set lo up
    ip -n "$1" addr add "$4/24" dev side
    ip -n "$1" link set side up
    ip -n "$1" addr add "$3/24" dev net0
    ip -n "$1" link set net0 up
}
in_tenant() { ip netns exec "$@"; }
roce() { in_tenant "$1" rdma link add "rxe_$1" type rxe netdev net0; }
# The server of an exchange is there to be asked: port 18515, of either family.
listens() { in_tenant "$1" cat /proc/net/tcp /proc/net/tcp6 | grep -E ":$(printf %04X "${2:-18515}") 0*:0000 0A" >/dev/null; }  # NAMESPACE [PORT]
# RoCE between two tenants: the server's name, the client's, the server's side address, the client's row of its GID table.
exchange() {
    local rc=0
    (exec /usr/bin/ip netns exec "$1" ibv_rc_pingpong -d "rxe_$1" -g 1 -n 20 -s 1024 >"/tmp/pong-$1.log" 2>&1) &
    server=$!
    until_true 30 listens "$1"
    in_tenant "$2" timeout 20 ibv_rc_pingpong -d "rxe_$2" -g "$4" -n 20 -s 1024 "$3" >"/tmp/ping-$2.log" 2>&1 || rc=$?
    # Whoever still has the device open keeps `rdma link del` waiting for ever.
    kill $server 2>/dev/null || true
    wait $server 2>/dev/null || true
    return $rc
}
# Our module lets a soft-RoCE device be moved into a namespace, as those of real NICs can be; false: it is not in this guest.
soft_roce_moves() {
    [ -e /lab/bulkhead_lab_rxe.ko ] || return 1
    modprobe rdma_rxe
    modprobe ib_uverbs
    insmod /lab/bulkhead_lab_rxe.ko || fail "the lab's kernel module does not load: $(dmesg | tail -n 3)"
}
