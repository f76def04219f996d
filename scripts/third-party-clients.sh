#!/bin/bash
# Runs programs that others wrote against the NVML simulator, unmodified: Debian's nvtop and python3-pynvml. They are fetched from Debian's
# `contrib` into a folder of the build; the machine's own package sources are read for the mirror's address and not changed.
#
#     scripts/third-party-clients.sh <build directory> [bulkhead-gpusim]     exit: 0 all well, 1 a client failed, 77 could not be fetched
set -euo pipefail
build=$(realpath "${1:-build/dev}")
here=$(realpath "$(dirname "$0")/..")
root=$build/third-party
mkdir -p "$root"/{lists/partial,cache/archives/partial,debs,fs}

fetch() {
    local mirror suite
    mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | grep -v security | head -n 1 | tr -d ' ') || true
    suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    [ -n "$mirror" ] && [ -n "$suite" ] || { echo "no Debian mirror is configured here"; return 1; }
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main contrib" >"$root/sources.list"
    local apt=(-o "Dir::Etc::sourcelist=$root/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$root/lists"
               -o "Dir::Cache=$root/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=1)
    timeout 120 apt-get "${apt[@]}" -qq update && (cd "$root/debs" && timeout 120 apt-get "${apt[@]}" -qq download nvtop python3-pynvml)
}
if ! ls "$root"/debs/nvtop_*.deb "$root"/debs/python3-pynvml_*.deb >/dev/null 2>&1; then
    fetch >"$root/fetch.log" 2>&1 || { echo "third-party clients could not be fetched:"; tail -n 3 "$root/fetch.log"; exit 77; }
fi
for deb in "$root"/debs/*.deb; do dpkg-deb -x "$deb" "$root/fs"; done

node=$root/node
export BULKHEAD_SIM_NODE=$node LD_LIBRARY_PATH=$build/nvml-sim/lib
gpusim=${2:-$here/build/bin/bulkhead-gpusim}
"$gpusim" new "$node" --gpus "2 x h200-141gb, 1 x rtx-4090" --name guest
"$gpusim" start "$node" --gpu 0 --pid 1 --memory-mib 4096 --sm-percent 40
echo "== pynvml $(dpkg-deb -f "$root"/debs/python3-pynvml_*.deb Version)"
PYTHONPATH=$root/fs/usr/lib/python3/dist-packages python3 "$here/nvml-sim/pynvml-walk.py"

# It draws on a terminal: give it one, let it draw for a moment, and look for what it should have drawn.
echo "== nvtop $(dpkg-deb -f "$root"/debs/nvtop_*.deb Version)"
nvtop=$root/fs/usr/bin/nvtop
if "$nvtop" --help 2>&1 | grep -q -- --snapshot; then
    "$nvtop" -s >"$root/nvtop.txt"
else
    TERM=xterm COLUMNS=160 LINES=50 timeout 30 python3 - "$nvtop" "$root/nvtop.txt" <<'P'
import fcntl, os, pty, select, struct, sys, termios, time
pid, master = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "-d", "2"])
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
drawn, end = b"", time.time() + 4
while time.time() < end:
    if select.select([master], [], [], 0.2)[0]:
        try:
            drawn += os.read(master, 65536)
        except OSError:
            break
os.write(master, b"q")
time.sleep(0.3)
open(sys.argv[2], "wb").write(drawn)
P
fi
for wanted in "NVIDIA H200" "GeForce RTX 4090"; do
    grep -aq "$wanted" "$root/nvtop.txt" || { echo "nvtop did not show $wanted"; exit 1; }
done
echo "nvtop showed both kinds of GPU"
