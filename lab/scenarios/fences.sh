# shows: the agent attacks its own fences when it starts, when asked and after it was killed in the middle; what it found is signed, and verified outside
# limit: 240
machine() { card; }
functions_left() {  # what is not nobody's
    for f in /sys/class/net/"$pf"/device/virtfn*; do [ -e "$f/driver" ] && basename "$f"; done
    ls /run/bulkhead/*/functions /run/bulkhead/*/net 2>/dev/null | grep -vE '^$|:$'
    ip link show "$pf" | grep -E 'vf [0-9]' | grep -vE 'link/ether 00:00:00:00:00:00.*spoof checking on, link-state auto, trust off$'
    true
}
tests() { bulkhead audit list $door | grep -c fabric-selftest; }
tested() { [ "$(tests)" -ge "$1" ]; }
under_test() { ls /run/bulkhead/*/functions/0000:* >/dev/null 2>&1; }
found() {  # FENCE: what the newest test with it comes to
    bulkhead get nodes gpu-1 -o yaml $door >/tmp/node.yaml
    awk -v fence="$1" '{ gsub(/["\047]/, "") } / fence:/ { mine = ($NF == fence) } / found:/ { if (mine) print $NF }' /tmp/node.yaml
}
guest() {
    . /lab/fabric.sh
    . /lab/fleet.sh
    modprobe igbvf
    card_up
    node_up --tenant-nic "$nic=2"
    until_true 90 tested 2
    ev tested_s "$(cut -d ' ' -f 1 /proc/uptime)"
    check fence_on "$(found on)" closed
    # The emulated card shows its check of sources and does not do it.
    check fence_nic "$(found nic)" open
    check left_by_start "$(functions_left)" ""
    until_true 60 wiped vf1
    local rc=0
    bulkhead selftest fabric --node gpu-1 $door >/tmp/asked.log 2>&1 || rc=$?
    cat /tmp/asked.log
    check asked "$rc" 0
    check after_asking "$(tests)" 4
    # Killed in the middle, as an agent and its hands may be.
    (bulkhead selftest fabric --node gpu-1 $door >/dev/null 2>&1 &)
    until_true 30 under_test
    check agent_and_hands "$(of_agent | wc -l)" 2
    kill -9 $(of_agent)
    agent_up --tenant-nic "$nic=2"
    until_true 90 tested 6
    check fence_after_the_kill "$(found on)" closed
    check left_after_the_kill "$(functions_left)" ""
    mkdir -p /tmp/out
    bulkhead certificate --node gpu-1 -o /tmp/out/node.json $door || fail "no certificate of gpu-1"
    cp "$state/server/keys/log.vkey" /tmp/out/
    hand_out /tmp/out
}
outside() {
    "$project/build/bin/bulkhead" verify out/node.json --key out/log.vkey --node gpu-1 --accept-lab >verified.txt || return 1
    grep -c 'attacked the fences' verified.txt || return 1
    python3 "$project/docs/verify/verify_certificate.py" out/node.json --key out/log.vkey --node gpu-1 --accept-lab >independent.txt || return 1
    grep -c 'attacked the fences' independent.txt
}
