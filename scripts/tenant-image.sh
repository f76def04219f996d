#!/usr/bin/env bash
# A boot image for tenants' machines, the smallest there can be: Debian's kernel for clouds and busybox, whose init runs what the
# agent's seed says and powers off. An example of what a node may admit, and what the tests boot.
#   scripts/tenant-image.sh DIR [KERNEL]     makes DIR/kernel and DIR/initrd; does nothing where this script has made both
# Needs busybox-static ($BUSYBOX: another one), and a Debian mirror once: the kernel is unpacked, not installed. KERNEL is a folder with
# the packages of a kernel, unpacked: then nothing is fetched.
set -euo pipefail
target=${1:?where to: scripts/tenant-image.sh DIR}
version=$(sha256sum "$0" | cut -c 1-16)
[ -s "$target/kernel" ] && [ -s "$target/initrd" ] && [ "$(cat "$target/made-by" 2>/dev/null)" = "$version" ] && exit 0
busybox=${BUSYBOX:-/bin/busybox}
[ -x "$busybox" ] || { echo "tenant-image: busybox-static is not installed" >&2; exit 1; }

architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$target"
kernel=${2:-$work/kernel}
if [ -z "${2:-}" ]; then
    package=$(apt-cache depends "linux-image-cloud-$architecture" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
    [ -n "$package" ] || { echo "tenant-image: no linux-image-cloud-$architecture is known; run apt-get update" >&2; exit 1; }
    (cd "$work" && apt-get -q -o APT::Sandbox::User=root download "$package") >"$work/log" 2>&1 || { tail -n 3 "$work/log" >&2; exit 1; }
    dpkg-deb -x "$work"/linux-image-*.deb "$kernel"
fi

root=$work/root
mkdir -p "$root/bin" "$root/modules"
cp "$busybox" "$root/bin/busybox"
# In the order they are loaded; one that is built in, or that this kernel does not have, is left out.
modules="virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk"
for module in $modules; do
    file=$(find "$kernel" -name "$module.ko*" | head -n 1)
    case "$file" in
        *.ko) cp "$file" "$root/modules/" ;;
        *.ko.xz) xz -dc "$file" >"$root/modules/$module.ko" ;;
    esac
done
cat >"$root/init" <<INIT
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /seed /tmp
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in $modules; do [ -e /modules/\$module.ko ] && insmod /modules/\$module.ko; done
mkdir -p /dev/disk/by-id
for disk in /sys/block/vd*; do
    serial=\$(cat \$disk/serial 2>/dev/null)
    # As udev calls them: by these names the command finds its drives.
    [ -n "\$serial" ] && ln -s /dev/\${disk##*/} /dev/disk/by-id/virtio-\$serial
    [ "\$serial" = bulkhead-seed ] && tar -xf /dev/\${disk##*/} -C /seed
done
status=127
if [ -e /seed/run ]; then
    sh /seed/run
    status=\$?
else
    echo "bulkhead: this machine was given no seed"
fi
echo
echo "bulkhead-exit: \$status"
sync
poweroff -f
INIT
chmod 755 "$root/init"
(cd "$root" && find . | LC_ALL=C sort | "$busybox" cpio -o -H newc) >"$target/initrd.new" 2>/dev/null
install -m 644 "$(find "$kernel" -name 'vmlinu?' -o -name 'vmlinu?-*' | head -n 1)" "$target/kernel.new"
chmod 644 "$target/initrd.new"
mv "$target/kernel.new" "$target/kernel"
mv "$target/initrd.new" "$target/initrd"
echo "$version" >"$target/made-by"
