# shows: every namespace of a drive is erased, a detached one too; a drive of two namespaces comes back whole
# limit: 180
machine() { drive_with_namespaces LAB-NVME-1 64 64; }
there() { (block "$@") >/dev/null 2>&1; }  # SERIAL NAMESPACE
guest() {
    . /lab/fleet.sh
    drives_up 1
    c=$(controller LAB-NVME-1)
    write_marker "$(block LAB-NVME-1 1)" first 3
    write_marker "$(block LAB-NVME-1 2)" second 3
    nvme detach-ns "$c" -n 2 -c "$(identify "$c" cntlid)" >/tmp/detach.log 2>&1 || fail "detach: $(cat /tmp/detach.log)"
    nvme ns-rescan "$c"
    check active "$(nvme list-ns "$c" | grep -c '\[')" 1
    check allocated "$(nvme list-ns "$c" --all | grep -c '\[')" 2
    bulkhead drives
    node_up --tenant-drive LAB-NVME-1
    until_true 40 drive_is LAB-NVME-1 available
    nvme attach-ns "$c" -n 2 -c "$(identify "$c" cntlid)" >/tmp/attach.log 2>&1 || true
    nvme ns-rescan "$c"
    until_true 30 there LAB-NVME-1 2
    gone "$(block LAB-NVME-1 1)" first 3 || fail "namespace 1 was not erased"
    gone "$(block LAB-NVME-1 2)" second 3 || fail "namespace 2, which was detached, was not erased"
    ev namespaces "both erased"
}
