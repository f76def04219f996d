# The guest's hardware, put together by a scenario's `machine` function. All of it is emulated; nothing of it reaches a network.
arch=$(dpkg --print-architecture)

machine_begin() {  # ROOT SCENARIO PHASE
    ports=0
    local append="quiet mitigations=off panic=-1 lab.test=$2 lab.phase=$3 ${kernel_words:-}"
    case $arch in
        amd64) qemu=(qemu-system-x86_64 -machine q35,kernel-irqchip=split -cpu max -device intel-iommu,intremap=on); append="console=ttyS0 intel_iommu=on no_timer_check $append" ;;
        arm64) qemu=(qemu-system-aarch64 -machine virt,gic-version=3,iommu=smmuv3 -cpu cortex-a57); append="console=ttyAMA0 $append" ;;
        *) echo "lab: no machine is described for $arch" >&2; return 1 ;;
    esac
    qemu+=(-accel tcg,thread=multi,tb-size=256 -smp 2 -m "${memory:-1536}" -nodefaults -no-user-config -no-reboot -display none
           -L "$1/emulator/usr/share/qemu" -L "$1/emulator/usr/share/seabios" -L "$1/emulator/usr/lib/ipxe/qemu"
           -kernel "$(echo "$1"/kernel/usr/lib/modules/*/vmlinuz)" -initrd "${initrd:-$build/initrd.cpio}" -append "$append"
           -chardev "file,id=con,path=console.txt" -serial chardev:con
           -device virtio-rng-pci -device virtio-serial-pci
           -chardev "file,id=out,path=out.tar" -device virtserialport,chardev=out,name=lab.out
           -chardev "socket,id=ask,path=ask.sock,server=on,wait=off" -device virtserialport,chardev=ask,name=lab.ask
           -chardev "socket,id=monitor,path=monitor.sock,server=on,wait=off" -mon chardev=monitor,mode=readline)
}
root_port() {
    ports=$((ports + 1))
    qemu+=(-device "pcie-root-port,id=rp$ports,chassis=$ports,slot=$ports")
}
image() {  # FILE MIB: kept if it is there: a second boot finds what the first left
    [ -e "$1" ] || truncate -s "$2M" "$1"
}
drive() {  # SERIAL MIB [FILE-NODE-OPTIONS]: one namespace
    root_port
    image "$1.img" "$2"
    qemu+=(-blockdev "${3:-driver=raw,node-name=$1,discard=unmap,file.driver=file,file.filename=$1.img}" -device "nvme,id=ctrl-$1,bus=rp$ports,drive=$1,serial=$1")
}
# A drive whose Format answers an error, by blkdebug; and one whose Format can be held up (`outside_do hold`).
failing_drive() {  # SERIAL MIB
    drive "$1" "$2" "$(debug_node "$1" ',"inject-error":[{"event":"none","iotype":"write-zeroes","errno":5}]')"
}
slow_drive() {  # SERIAL MIB
    drive "$1" "$2" "$(debug_node "$1" '')"
}
debug_node() {  # SERIAL ERRORS
    printf '{"driver":"raw","node-name":"%s","discard":"unmap","file":{"driver":"blkdebug","node-name":"%s-debug","image":{"driver":"file","filename":"%s.img"}%s}}' \
        "$1" "$1" "$1" "$2"
}
# One that is not in the machine yet, and a port for it (`outside_do plug`). Its Format can be held up.
drive_to_plug_in() {  # SERIAL MIB
    image "$1.img" "$2"
    ports=$((ports + 1))
    qemu+=(-device "pcie-root-port,id=port-$1,chassis=$ports,slot=$ports" -blockdev "$(debug_node "$1" '')")
}
# A disk of the machine's own, for what a node keeps over a boot; no drive of tenants.
state_disk() {
    image state.img 256
    qemu+=(-blockdev driver=raw,node-name=state,file.driver=file,file.filename=state.img -device virtio-blk-pci,drive=state,serial=state)
}
drive_with_namespaces() {  # SERIAL MIB...
    local serial=$1 id=0 mib
    shift
    root_port
    qemu+=(-device "nvme-subsys,id=subsys-$serial,nqn=$serial" -device "nvme,bus=rp$ports,id=ctrl-$serial,subsys=subsys-$serial,serial=$serial")
    for mib in "$@"; do
        id=$((id + 1))
        image "$serial.$id.img" "$mib"
        qemu+=(-blockdev "driver=raw,node-name=$serial.$id,discard=unmap,file.driver=file,file.filename=$serial.$id.img"
               -device "nvme-ns,drive=$serial.$id,bus=ctrl-$serial,nsid=$id")
    done
}
# A hub with no other member: what the card sends has nowhere to go but its own virtual functions.
card() {
    root_port
    qemu+=(-netdev "hubport,id=h$ports,hubid=$ports" -device "igb,bus=rp$ports,netdev=h$ports,mac=52:54:00:1a:b0:0$ports")
}
# A card that stands for a GPU where one is to leave the host: alone behind a port, and it can be reset by itself.
stand_in() {
    root_port
    qemu+=(-netdev "hubport,id=h$ports,hubid=$ports" -device "igb,bus=rp$ports,addr=0,netdev=h$ports,mac=52:54:00:1a:b1:0$ports")
}
