# shows: the emulated drives and the kernel's driver behave as the lab relies on; nothing of Bulkhead runs
# limit: 180
machine() {
    drive LAB-NVME-0 256
    drive_with_namespaces LAB-NVME-1 64 64
}
guest() {
    drives_up 2
    ev nvme_s "$(cut -d ' ' -f 1 /proc/uptime)"
    local c d a b ses
    c=$(controller LAB-NVME-0)
    d=$(block LAB-NVME-0)
    check oacs "$(identify "$c" oacs)" 0x12a
    check fna "$(identify "$c" fna)" 0
    check sanicap "$(identify "$c" sanicap)" 0
    check nn "$(identify "$c" nn)" 256

    # The emulator ignores the kind of erase asked for, and answers even a reserved one (3) with success: never proof of anything.
    for ses in 0 1 2 3; do
        write_marker "$d" tenant-secret 7
        holds "$d" tenant-secret 7 || fail "the marker was not written"
        nvme admin-passthru "$c" --opcode=0x80 --namespace-id=1 --cdw10=$((ses << 9)) >/tmp/format.log 2>&1 || fail "format, SES=$ses: $(cat /tmp/format.log)"
        gone "$d" tenant-secret 7 || fail "the marker is still there after SES=$ses"
        [ -z "$(read_raw "$d" 7 | tr -d '\0' | head -c 1)" ] || fail "what SES=$ses left is not zeros"
    done
    ev format "SES 0,1,2,3: zeros"
    check sanitize "$(nvme sanitize "$c" --sanact=4 2>&1 | grep -o 'Invalid Command Opcode' | head -n 1)" "Invalid Command Opcode"

    # The kernel lets a Format pass while the device is held open: to refuse is the agent's duty.
    write_marker "$d" held 3
    (exec 3<"$d"; nvme format "$c" -n 1 --ses=1 --force >/tmp/format.log 2>&1) || fail "a drive held open is not formatted: $(cat /tmp/format.log)"
    gone "$d" held 3 || fail "held open, and kept its data"
    ev held_open "formatted all the same"

    c=$(controller LAB-NVME-1)
    a=$(block LAB-NVME-1 1)
    b=$(block LAB-NVME-1 2)
    write_marker "$a" first 1
    write_marker "$b" second 1
    nvme format "$c" -n 1 --ses=1 --force >/tmp/format.log 2>&1 || fail "format of namespace 1: $(cat /tmp/format.log)"
    gone "$a" first 1 || fail "namespace 1 kept its marker"
    holds "$b" second 1 || fail "the format of namespace 1 took namespace 2 along"
    nvme format "$c" -n 0xffffffff --ses=1 --force >/tmp/format.log 2>&1 || fail "format of all namespaces: $(cat /tmp/format.log)"
    gone "$b" second 1 || fail "namespace 2 kept its marker"
    ev namespaces "each alone, or all"
}
