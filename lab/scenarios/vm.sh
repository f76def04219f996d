# shows: a tenant's own kernel with a device by VFIO and a drive; both come back reset, rebound and wiped, by a certificate verified outside
# limit: 900
# memory: 2560
# kernel: hugepages=160
# parts: hypervisor
machine() {
    stand_in  # behind the first port: 0000:01:00.0
    drive LAB-NVME-0 64
}
device=0000:01:00.0
driver() { basename "$(readlink "/sys/bus/pci/devices/$device/driver" || echo nobody)"; }
driver_is() { [ "$(driver)" = "$1" ]; }
huge_pages_free() { sed -n 's/^HugePages_Free: *//p' /proc/meminfo; }
machine_runs() { machine_process=$(grep -l 'guest=bh[-]' /proc/[0-9]*/cmdline 2>/dev/null | sed -n 's|/proc/\([0-9]*\)/.*|\1|p' | head -n 1); [ -n "$machine_process" ]; }
# It is there before it has everything, and waits while the agent looks at its drives.
machine_has_all() { machine_runs && [ "$(huge_pages_free)" = 32 ] && [ "$(stat -c %u /dev/bulkhead/bh-*/drive0n1)" != 0 ]; }
work_is() { bulkhead get workloads own-kernel -o yaml $door >/tmp/work.yaml && grep -q "phase: $1" /tmp/work.yaml; }
guest() {
    . /lab/fleet.sh
    mkdir -p /dev/hugepages /run/libvirt-embed/etc
    mount -t hugetlbfs hugetlbfs /dev/hugepages
    check huge_pages "$(huge_pages_free)" 160
    modprobe vfio-pci
    modprobe igb
    until_true 20 driver_is igb
    ev offered_resets "$(cat /sys/bus/pci/devices/$device/reset_method)"
    ev in_its_group "$(ls "/sys/bus/pci/devices/$device/iommu_group/devices" | tr '\n' ' ')"
    drives_up 1
    # libvirt's driver inside the agent; it looks for this user, and no machine runs as it.
    echo 'libvirt-qemu:x:64055:64055::/nonexistent:/bin/false' >>/etc/passwd
    echo 'libvirt-qemu:x:64055:' >>/etc/group
    printf 'stdio_handler = "file"\nnamespaces = []\n' >/run/libvirt-embed/etc/qemu.conf
    # What a kernel in an emulated machine in an emulated machine need not do.
    echo 'mitigations=off nokaslr cryptomgr.notests audit=0 lsm= tsc=reliable' >/lab/images/default/cmdline
    bulkhead-gpusim new /tmp/gpus --gpus "1 x h200-141gb" >/dev/null
    sed -i 's/^pci:.*//' /tmp/gpus/node.yaml
    echo 'pci: 01:00' >>/tmp/gpus/node.yaml  # where the card is that stands for it
    node_up --libvirt 'qemu:///embed?root=/run/libvirt-embed' --vm-images /lab/images --allow-emulated-vms --vm-huge-pages 2048 --vm-stand-ins --tenant-drive LAB-NVME-0
    until_true 120 wiped gpu-1
    until_true 60 drive_is LAB-NVME-0 available
    ev node_s "$(cut -d ' ' -f 1 /proc/uptime)"
    cat >/tmp/own-kernel.yaml <<Y
apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata: {name: own-kernel}
spec:
  tenant: vision
  gpu: {count: 1, mechanism: whole}
  cpu: 1
  memory: 256Mi
  storage: {localNvme: 32Mi}
  isolation: {tier: vm}
  command:
    - /bin/sh
    - -c
    - |
      cat /sys/bus/pci/devices/*/uevent | grep PCI_ID=8086:10C9
      d=\${BULKHEAD_DRIVES%%,*}; echo "drives \$BULKHEAD_DRIVES"
      yes tenant-secret | dd of=\$d bs=1M seek=7 count=1 iflag=fullblock conv=fsync 2>/dev/null && echo wrote
      echo "tenant on \$(uname -r), boot \$(cat /proc/sys/kernel/random/boot_id)"
      sleep 20
      exit 3
Y
    bulkhead apply -f /tmp/own-kernel.yaml $door
    until_true 120 machine_has_all
    lease=$(lease_of own-kernel)
    check while_it_runs "$(driver)" vfio-pci
    check its_user "$(sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "/proc/$machine_process/status")" 900000
    check its_drive "$(stat -c '%u %a' /dev/bulkhead/bh-*/drive0n1)" "900000 600"
    check the_hosts_node "$(stat -c %u "$(block LAB-NVME-0)")" 0
    check huge_pages_left "$(huge_pages_free)" 32
    ev started_s "$(cut -d ' ' -f 1 /proc/uptime)"
    bulkhead render libvirt "$lease" --node gpu-1 $door >/tmp/domain.xml || fail "render: $(cat /tmp/domain.xml)"
    grep -q '<serial>LAB-NVME-0</serial>' /tmp/domain.xml || fail "its drive is not in the domain: $(cat /tmp/domain.xml)"
    until_true 1200 holds "$(block LAB-NVME-0)" tenant-secret 7
    ev on_its_drive_s "$(cut -d ' ' -f 1 /proc/uptime)"
    until_true 300 work_is failed  # as any command that ends with a status other than 0
    ev ran_s "$(cut -d ' ' -f 1 /proc/uptime)"
    check failure "$(sed -n '/^  failure:/,/^  [a-z]*:$/ s/^    reason: //p' /tmp/work.yaml)" exited
    check exit_status "$(sed -n 's/^  exitStatus: //p' /tmp/work.yaml)" 3
    # What a command printed is its tenant's to read, not the operator's.
    bulkhead token create --role tenant-user --tenant vision --subject reader $door 2>/dev/null >/tmp/reader.token
    chmod 600 /tmp/reader.token
    as_tenant="--server $(head -n 1 "$state/server/address") --ca $state/server/keys/ca.crt --token-file /tmp/reader.token"
    bulkhead logs own-kernel $as_tenant >/tmp/said 2>&1 || fail "logs: $(cat /tmp/said)"
    grep -q 'PCI_ID=8086:10C9' /tmp/said || fail "the machine did not see its device: $(cat /tmp/said)"
    grep -q 'drives /dev/disk/by-id/virtio-LAB-NVME-0' /tmp/said || fail "the machine was not told of its drive: $(cat /tmp/said)"
    grep -q 'wrote' /tmp/said || fail "the machine could not write its drive: $(cat /tmp/said)"
    if grep -q "$(cat /proc/sys/kernel/random/boot_id)" /tmp/said; then fail "it ran on the host's kernel"; fi
    ev said "$(grep -o 'tenant on [^ ,]*' /tmp/said)"

    until_true 120 wiped "gpu0.*vision"
    until_true 120 wiped "drive.*vision"
    check afterwards "$(driver)" igb
    if machine_runs; then fail "QEMU is left"; fi
    check huge_pages_back "$(huge_pages_free)" 160
    [ -z "$(ls -d /run/bulkhead/*/machines/bh-* /dev/bulkhead/bh-* 2>/dev/null)" ] || fail "files of the machine are left"
    gone "$(block LAB-NVME-0)" tenant-secret 7 || fail "the drive was said to be wiped, and the marker is still there"
    certificate_out "$lease"
}
outside() {
    "$project/build/bin/bulkhead" verify out/wipe.json --key out/log.vkey --accept-lab --tenant vision --node gpu-1 --lease "$(sed -n 's/.*"\(lease-[0-9a-f]*\)".*/\1/p' out/wipe.json | head -n 1)" >verified.txt || return 1
    cat verified.txt
    tr -s ' \n' ' ' <verified.txt >said.txt  # its lines are broken where they are long
    grep -q 'wiped (vfio-return: flr, rebind igb, overwrite,' said.txt && grep -q 'LAB-NVME-0' said.txt
}
