# What scenarios say inside the guest. Read by busybox's shell; a failed check ends the scenario.
# Busybox's shell takes its own commands first; these are the real ones.
ip() { /usr/bin/ip "$@"; }
tc() { /usr/bin/tc "$@"; }
modprobe() { /usr/bin/modprobe "$@"; }
ev() { echo "EV $1=$2"; }
fail() { echo "FAIL $*"; exit 1; }
account() { :; }  # what a scenario with more to tell says when it has failed
check() {  # WHAT ACTUAL EXPECTED
    if [ "$2" = "$3" ]; then ev "$1" "$2"; else fail "$1 is '$2', expected '$3'"; fi
}
until_true() {  # SECONDS COMMAND...
    local left=$1
    shift
    while ! "$@" >/tmp/last 2>&1; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || { cat /tmp/last; fail "never: $*"; }
        sleep 1
    done
}

# Drives, by serial and namespace: names change between boots.
drives_up() {  # how many
    modprobe nvme
    until_true 60 drives_are "$1"
}
drives_are() { [ "$(cat /sys/class/nvme/*/serial 2>/dev/null | wc -l)" = "$1" ] && [ "$(cat /sys/class/nvme/*/state | grep -c live)" = "$1" ]; }
controller() {  # SERIAL
    local folder
    for folder in /sys/class/nvme/*; do
        if [ "$(tr -d ' ' <"$folder/serial")" = "$1" ]; then echo "/dev/${folder##*/}"; return; fi
    done
    fail "no drive has the serial $1"
}
block() {  # SERIAL [NSID]
    local folder controller
    controller=$(controller "$1")
    for folder in "/sys/class/nvme/${controller#/dev/}"/nvme*n* /sys/class/nvme-subsystem/*/nvme*n*; do
        [ -e "$folder/nsid" ] && [ "$(cat "$folder/nsid")" = "${2:-1}" ] && [ -b "/dev/${folder##*/}" ] || continue
        case $folder in
            /sys/class/nvme-subsystem/*) [ -e "${folder%/*}/${controller#/dev/}" ] || continue ;;
        esac
        echo "/dev/${folder##*/}"
        return
    done
    fail "drive $1 has no namespace ${2:-1}"
}
identify() {  # CONTROLLER FIELD: a number of Identify Controller as nvme-cli reads it
    nvme id-ctrl "$1" | sed -n "s/^$2 *: *//p" | head -n 1
}
write_marker() {  # BLOCK TEXT MIB: all of that MiB
    yes "$2" | head -c 1048576 | dd of="$1" bs=1M seek="$3" oflag=direct 2>/dev/null
}
read_raw() {  # BLOCK MIB [COUNT]
    dd if="$1" bs=1M skip="$2" count="${3:-1}" iflag=direct 2>/dev/null
}
holds() { read_raw "$1" "$3" | grep -q "$2"; }  # BLOCK TEXT MIB
# The same MiB was read, all of it, from a block device, and the text is not in it. What cannot be read is not gone.
gone() {  # BLOCK TEXT MIB
    [ -b "$1" ] || fail "'$1' is no block device"
    read_raw "$1" "$3" >/tmp/gone || fail "$1 cannot be read at $3 MiB"
    [ "$(wc -c </tmp/gone)" -eq 1048576 ] || fail "$1 gave $(wc -c </tmp/gone) bytes at $3 MiB"
    ! grep -q "$2" /tmp/gone
}

state_disk() {  # where the node keeps what outlives a boot
    modprobe virtio_blk
    modprobe ext4
    until_true 20 test -b /dev/vda
    mkdir -p /state
    mount -t ext4 /dev/vda /state 2>/dev/null || { mkfs.ext4 -q /dev/vda >/tmp/mkfs.log 2>&1 && mount -t ext4 /dev/vda /state; }
}
port() {  # NAME: the virtio-serial port of that name
    local folder
    for folder in /sys/class/virtio-ports/*; do
        if [ "$(cat "$folder/name")" = "$1" ]; then echo "/dev/${folder##*/}"; return; fi
    done
    fail "no port is called $1"
}
hand_out() {  # FOLDER: its files leave the guest
    tar -C "$1" -cf "$(port lab.out)" .
}
# Asks the program outside (lab/outside.py). The port is opened once: one that is closed drops what is on its way.
outside_do() {
    local answer
    [ -n "${asking:-}" ] || { exec 8<>"$(port lab.ask)"; asking=yes; }
    echo "$*" >&8
    read -r answer <&8
    case $answer in ok*) ;; *) fail "outside: $*: $answer" ;; esac
}
# A command to a drive has been under way for a while: by the stack of whoever waits for it. None takes a second of itself.
in_command() { grep -lE 'nvme_(submit_)?user_cmd' /proc/[0-9]*/task/[0-9]*/stack 2>/dev/null; }
until_held() {
    until_true 60 in_command
    sleep 3
    in_command >/dev/null || fail "the Format was to be held up, and was not"
}
