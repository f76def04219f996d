#!/usr/bin/env bash
# A boot image for tenants' machines, the smallest there can be: Debian's kernel for clouds and busybox, whose init runs what the
# agent's seed says and powers off. An example of what a node may admit, and what the tests boot.
#   scripts/tenant-image.sh DIR      makes DIR/kernel and DIR/initrd; does nothing where both are
# Needs busybox-static, and a Debian mirror once: the kernel is unpacked, not installed.
set -euo pipefail
target=${1:?where to: scripts/tenant-image.sh DIR}
[ -s "$target/kernel" ] && [ -s "$target/initrd" ] && exit 0
[ -x /bin/busybox ] || { echo "tenant-image: busybox-static is not installed" >&2; exit 1; }

architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$target"
package=$(apt-cache depends "linux-image-cloud-$architecture" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
[ -n "$package" ] || { echo "tenant-image: no linux-image-cloud-$architecture is known; run apt-get update" >&2; exit 1; }
(cd "$work" && apt-get -q -o APT::Sandbox::User=root download "$package") >"$work/log" 2>&1 || { tail -n 3 "$work/log" >&2; exit 1; }
dpkg-deb -x "$work"/linux-image-*.deb "$work/kernel"

root=$work/root
mkdir -p "$root/bin" "$root/modules"
cp /bin/busybox "$root/bin/busybox"
# In the order they are loaded; one that is built in, or that this kernel does not have, is left out.
modules="virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk"
for module in $modules; do
    file=$(find "$work/kernel" -name "$module.ko*" | head -n 1)
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
for disk in /sys/block/vd*; do
    [ "\$(cat \$disk/serial 2>/dev/null)" = bulkhead-seed ] && tar -xf /dev/\${disk##*/} -C /seed
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
(cd "$root" && find . | LC_ALL=C sort | /bin/busybox cpio -o -H newc) >"$target/initrd.new" 2>/dev/null
install -m 644 "$work"/kernel/boot/vmlinu?-* "$target/kernel.new"
chmod 644 "$target/initrd.new"
mv "$target/kernel.new" "$target/kernel"
mv "$target/initrd.new" "$target/initrd"
