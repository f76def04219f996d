# shows: functions with RDMA leased to two tenants: RoCE inside each and not across, limits, a killed agent, nothing left, a certificate
# limit: 600
# module: needed
machine() { card; }
functions_left() {
    local f
    for f in /sys/class/net/"$pf"/device/virtfn*; do [ -e "$f/driver" ] && basename "$f"; done
    rdma dev
    nft list ruleset
    ls "$run/net"
    ls "$run/functions" | grep -v '\.last$'
    find /sys/fs/cgroup/bulkhead -name 'lease-*'
    ip link show "$pf" | grep -E 'vf [0-9]' | grep -vE 'link/ether 00:00:00:00:00:00.*spoof checking on, link-state auto, trust off$'
    true
}
address_of() {  # WORKLOAD: of its lease's only function
    bulkhead get leases -o yaml $door | awk -v name="$1" '$1 == "workload:" { mine = ($2 == name) } mine && $1 == "address:" { sub("/.*", "", $2); print $2; exit }'
}
# The lease's namespace under the name of its work, for somebody with more rights than any tenant: the host's root.
name_space() {  # WORKLOAD ADDRESS SIDE-ADDRESS
    local record lease
    record=$(grep -l "\"$2/" "$run"/functions/*)
    lease=$(sed -n 's/.*"lease": *\([0-9]*\).*/\1/p' "$record" | head -n 1)
    mkdir -p /run/netns
    touch "/run/netns/$1"
    mount --bind "$run/net/lease-$lease" "/run/netns/$1"
    ip link add "side-$1" type veth peer name side netns "$1"
    ip link set "side-$1" master side up
    ip -n "$1" addr add "$3/24" dev side
    ip -n "$1" link set side up
}
forget_space() {  # WORKLOAD
    ip link del "side-$1"
    umount "/run/netns/$1"
    rm "/run/netns/$1"
}
device_of() { in_tenant "$1" rdma dev | sed -n 's/^[0-9]*: \([^:]*\):.*/\1/p'; }  # WORKLOAD: all that are in its namespace
row_of() {  # WORKLOAD ADDRESS: in its GID table; one process, since there are a thousand rows
    in_tenant "$1" ibv_devinfo -v | sed -n "s/.*GID\[ *\([0-9]*\)\]:.*::ffff:$2, RoCE v2/\1/p"
}
# RoCE from one lease's namespace to another's, their queue pairs exchanged over the side channel.
crosses() {  # SERVER CLIENT SERVER-SIDE-ADDRESS ROW-OF-THE-CLIENT
    local rc=0 listening
    (exec /usr/bin/ip netns exec "$1" timeout 30 ibv_rc_pingpong -p 18600 -d "$(device_of "$1")" -g 1 -n 20 -s 1024 >/tmp/pong.log 2>&1) &
    listening=$!
    until_true 30 listens "$1" 18600
    in_tenant "$2" timeout 10 ibv_rc_pingpong -p 18600 -d "$(device_of "$2")" -g "$4" -n 20 -s 1024 "$3" >/tmp/ping.log 2>&1 || rc=$?
    kill $listening 2>/dev/null || true
    wait $listening 2>/dev/null || true
    return $rc
}
# Two who trust each other enough to share a node, as tenants below the VM must.
tenant_of_domain() {  # NAME GPUS
    cat <<Y
---
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {name: $1}
spec:
  class: research
  trustDomain: {name: lab, consent: {by: head of lab, at: 2026-11-01T00:00:00Z}}
  quota: {guarantee: $2}
  accepts:
    - {risk: shared-nvlink, by: head of lab, at: 2026-11-01T00:00:00Z}
    - {risk: shared-fault-domain, by: head of lab, at: 2026-11-01T00:00:00Z}
Y
}
guest() {
    . /lab/fabric.sh
    . /lab/fleet.sh
    soft_roce_moves || fail "the lab's kernel module is not here"
    modprobe igbvf
    card_up
    fleet=/tmp/fleet.yaml
    cat >$fleet <<Y
apiVersion: bulkhead.dev/v1alpha1
kind: FleetPolicy
metadata: {name: fleet}
spec:
  threatModel: internal
  sites: [{name: local, jurisdiction: eu}]
  trustDomains: [{name: lab, members: [vision, speech]}]
  fabric: {kind: ethernet, pool: 10.128.0.0/16, tenantPrefix: 24, vlans: {first: 100, last: 199}, losslessPriority: 3, classes: [{rateMbps: 100, dscp: 26}]}
$(tenant_of_domain vision 2)
$(tenant_of_domain speech 1)
Y
    gpus=3
    node_up --tenant-nic "$nic=3" --soft-roce
    until_true 120 wiped 'gpu0'
    # Its agent attacks the fences first, on two of the three; the order of leases below is then the order of functions.
    until_true 120 fences_tested
    for function in 0 1 2; do until_true 60 function_is "$(function_address $function)" available; done
    ev node_s "$(cut -d ' ' -f 1 /proc/uptime)"
    run=$(dirname /run/bulkhead/*/net)

    # What every tenant here can say of itself.
    about='device=${NCCL_IB_HCA#=}; device=${device%:1}
echo "devices: $(ls /sys/class/infiniband | tr "\n" " ")"
echo "files: $(ls /dev/infiniband | tr "\n" " ")"
echo "lists: $(ls /sys/class/infiniband_verbs /sys/devices/virtual/infiniband_verbs | grep -c uverbs)"
echo "gids: $(ibv_devinfo -v | grep -c ffff:)"
pingpong() { timeout 20 ibv_rc_pingpong -d "$device" -g "$NCCL_IB_GID_INDEX" -n 20 -s 1024 "$@"; }'
    rdma_work a1 vision "$about
echo ready
while :; do pingpong >/dev/null; done"
    until_true 60 said a1 vision '^ready'
    a1=$(address_of a1)
    rdma_work b1 speech "$about
if pingpong $a1; then echo across: passes; else echo across: stopped; fi
ip addr add 10.128.0.99/24 dev fabric1 2>&1 | sed 's/^/address: /'
mknod /tmp/theirs c 231 192 2>&1 | sed 's/^/mknod: /'
cat /dev/infiniband/uverbs0 2>&1 | sed 's/^/theirs: /'
echo \"limit: \$(lab-verbs handles /dev/infiniband/*)\"
echo ready; sleep 600"
    rdma_work a2 vision "$about
for try in 1 2 3 4 5; do if pingpong $a1; then echo inside: passes; break; fi; sleep 1; done
echo ready; sleep 600"
    until_true 90 said a2 vision '^ready'
    until_true 90 said b1 speech '^ready'
    ev tenants_s "$(cut -d ' ' -f 1 /proc/uptime)"
    a2=$(address_of a2)
    b1=$(address_of b1)
    said a2 vision '^inside: passes' || fail "RoCE inside the tenant: $(printed a2 vision)"
    said b1 speech '^across: stopped' || fail "RoCE across tenants: $(printed b1 speech)"
    ev roce "inside a tenant, and not across"
    for work in "a1 vision soft0 uverbs0" "b1 speech soft1 uverbs1" "a2 vision soft2 uverbs2"; do
        set -- $work
        check "$1_sees" "$(printed "$1" "$2" | sed -n 's/^\(devices\|files\|lists\|gids\): //p' | tr '\n' ' ')" "$3  $4  0 1 "
    done
    check "b1_tries" "$(printed b1 speech | grep -cE '^(address|mknod): .*not permitted')" 2
    printed b1 speech | grep -E '^(address|mknod|theirs|limit):'
    said b1 speech '^theirs: .*No such file' >/dev/null || fail "b1 has a file of a1's device"
    check rdma_max "$(cat "/sys/fs/cgroup/bulkhead"/*/lease-*/tenant/rdma.max | grep -o 'soft[0-9] hca_handle=1024 hca_object=262144' | sort | tr '\n' ' ')" \
        "soft0 hca_handle=1024 hca_object=262144 soft1 hca_handle=1024 hca_object=262144 soft2 hca_handle=1024 hca_object=262144 "
    said b1 speech '^limit: handles=1024 Resource temporarily unavailable' >/dev/null || fail "the limit of handles: $(said b1 speech '^limit:')"
    check host_lists "$(rdma dev; ls /sys/class/infiniband)" ""
    # Somebody with all rights in b1's namespace, and the means to exchange queue pairs: the wire itself is tried.
    side_channel
    name_space a1 "$a1" 192.168.9.1
    name_space a2 "$a2" 192.168.9.2
    name_space b1 "$b1" 192.168.9.3
    crosses a1 a2 192.168.9.1 1 || fail "with the side channel RoCE inside the tenant does not pass: $(cat /tmp/ping.log /tmp/pong.log)"
    if crosses a1 b1 192.168.9.1 1; then fail "RoCE crossed from b1 to a1"; fi  # a1 has no way to b1's subnet, and makes no connection
    in_tenant b1 ip addr add "$a2/24" dev fabric1
    until_true 10 row_is_there b1 "$a2"
    if crosses a1 b1 192.168.9.1 "$(row_of b1 "$a2")"; then fail "a forged GID crossed from b1 to a1"; fi
    was_tried
    ev forged_gid "stopped, with queue pairs exchanged"
    in_tenant b1 ip addr del "$a2/24" dev fabric1
    check foreign_uverbs "$(in_tenant b1 lab-verbs open /dev/infiniband/uverbs0)" "open=0 Operation not permitted"
    check own_uverbs "$(in_tenant a1 lab-verbs open /dev/infiniband/uverbs0)" "open=1 and no end"

    # The agent and its hands are killed with all three attached: the next finds them as they were.
    before=$(devices_and_records)
    check killed "$(of_agent | wc -l)" 2
    kill -KILL $(of_agent)
    agent_up --tenant-nic "$nic=3" --soft-roce
    until_true 60 agent_is_back
    sleep 3
    [ "$(devices_and_records)" = "$before" ] || fail "after its agent was killed: $(devices_and_records), and before: $before"
    ev after_the_kill "as before"
    crosses a1 a2 192.168.9.1 1 || fail "after its agent was killed the tenant's RoCE does not pass: $(cat /tmp/ping.log)"
    for work in a1 a2 b1; do forget_space $work; done
    ev killed_s "$(cut -d ' ' -f 1 /proc/uptime)"

    # b1 goes, and what it had is nobody's; its neighbours keep theirs.
    lease=$(bulkhead get leases -o yaml $door | awk '$1 == "name:" { name = $2 } $1 == "workload:" && $2 == "b1" { print name }')
    bulkhead delete workload b1 $door
    until_true 60 wiped 'vf1 .*speech'
    check b1_function "$(ip link show "$pf" | grep -E 'vf 1 .*00:00:00:00:00:00.*trust off$' | wc -l) $(ls "$run/net" | grep -vc '\.sys$') $(ls "$run/functions" | grep -cx "$(function_address 1)")" "1 2 0"
    # A namespace that is nobody's is found when a2's function is verified: it is kept from everybody until that is gone and it was wiped again.
    touch "$run/net/lease-1"
    bulkhead delete workload a2 $door
    until_true 60 function_is "$(function_address 2)" quarantined
    rm "$run/net/lease-1"
    bulkhead repair gpu-1 vf2 --why "what was left is gone" ${door%%--token-file*} --token-file "$state/server/keys/security.token" --ca "$state/server/keys/ca.crt"
    until_true 60 function_is "$(function_address 2)" available
    bulkhead delete workload a1 $door
    until_true 60 wiped 'vf0 .*vision'
    ev released_s "$(cut -d ' ' -f 1 /proc/uptime)"
    until_true 60 nothing_leased
    check left "$(functions_left)" ""
    certificate_out "$lease"
}
# What did not cross was RoCE itself: the client knew the server's queue pair, and nobody answered it.
was_tried() { grep -q '  remote address' /tmp/ping.log || fail "RoCE was not tried: $(cat /tmp/ping.log /tmp/pong.log)"; }
fences_tested() { [ "$(bulkhead audit list $door | grep -c fabric-selftest)" -ge 2 ]; }
function_address() { basename "$(readlink -f "/sys/class/net/$pf/device/virtfn$1")"; }
function_state() { bulkhead get nodes gpu-1 -o yaml $door | awk -v at="$1" '/^  functions:/ { inside = 1 } inside && $2 == "address:" { mine = ($3 == "\"" at "\"") } mine && $1 == "state:" { print $2; exit }'; }
function_is() { [ "$(function_state "$1")" = "$2" ]; }
row_is_there() { [ -n "$(row_of "$@")" ]; }
devices_and_records() { for work in a1 a2 b1; do echo "$work $(device_of $work) $(row_of $work "$(eval echo \$$work)")"; done; cat "$run"/functions/*.?; }
agent_is_back() { [ "$(grep -c 'event=welcome' /tmp/agent.log)" -ge 2 ]; }
nothing_leased() { ! bulkhead get leases -o yaml $door | grep -q 'workload:'; }
outside() {
    "$project/build/bin/bulkhead" verify out/wipe.json --key out/log.vkey --accept-lab --tenant speech --node gpu-1 >verified.txt || return 1
    cat verified.txt
    grep -q 'vf1' verified.txt && grep -q 'emulated' verified.txt
}
