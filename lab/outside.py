#!/usr/bin/env python3
"""What the guest may ask of the world outside it, over a port of its own: the runner starts one of these beside every guest.

    outside.py PID        in the run's folder, where the emulator keeps ask.sock and monitor.sock

Requests, one a line; the answer is "ok ..." or "no WHY":
    identify SERIAL FIELD=VALUE...   from now on the emulated drive says this of itself: its Identify Controller page is found in the
                                     emulator's memory and edited. QEMU has no switch for these fields, and the rules that read
                                     them need every combination. Fields: oacs fna sanicap.
    hold SERIAL                      the next Format of that drive begins and does not end (needs `slow_drive`)
    release SERIAL                   now it ends
    plug SERIAL, pull SERIAL         the drive is put into its port, or taken out of it (needs `drive_to_plug_in`)
"""
import re
import socket
import sys
import time

FIELDS = {"oacs": (256, 2), "sanicap": (328, 4), "fna": (524, 1)}  # byte and size in the page, little endian


def pages_of(pid, serial):
    """Addresses of Identify pages: the serial and QEMU's model number, each padded with blanks, behind two vendor ids."""
    wanted = re.compile(re.escape(serial.ljust(20).encode()) + rb"QEMU NVMe Ctrl {26}")
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, mode, *rest = line.split()
            begin, end = (int(x, 16) for x in span.split("-"))
            # The emulator's own heap: no file, and not the guest's memory, which is far larger.
            if not mode.startswith("rw") or (len(rest) > 3 and rest[3].startswith("/")) or end - begin > 512 << 20:
                continue
            try:
                memory.seek(begin)
                content = memory.read(end - begin)
            except (OSError, ValueError):
                continue
            for found in wanted.finditer(content):
                yield begin + found.start() - 4


known_pages = {}


def identify(pid, serial, *changes):
    if serial not in known_pages:
        known_pages[serial] = list(pages_of(pid, serial))
    if not known_pages[serial]:
        return f"no page of a drive {serial}"
    with open(f"/proc/{pid}/mem", "r+b", 0) as memory:
        for page in known_pages[serial]:
            for change in changes:
                name, value = change.split("=")
                at, size = FIELDS[name]
                memory.seek(page + at)
                memory.write(int(value, 0).to_bytes(size, "little"))
    return f"ok {len(known_pages[serial])}"


def monitor(command):
    """The emulator's own door: what a person at the machine could do."""
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(20)
        door.connect("monitor.sock")
        for say in (b"", command.encode() + b"\n"):
            door.sendall(say)
            heard = b""
            while b"(qemu)" not in heard.replace(say.strip(), b""):
                heard += door.recv(4096)
    return "no " + re.sub(r"\s+", " ", heard.decode(errors="replace")) if b"Error:" in heard else "ok"


def answer(pid, request):
    match request.split():
        case ["identify", serial, *changes]:
            return identify(pid, serial, *changes)
        case ["hold", serial]:
            return monitor(f'qemu-io {serial} "break pwritev_zero held"')
        case ["release", serial]:
            # By the device: to attach a second user to the node would wait for the very request that is held.
            return monitor(f'qemu-io -d ctrl-{serial} "remove_break held"')  # lets go what waits at it, too
        case ["plug", serial]:
            return monitor(f"device_add nvme,id=ctrl-{serial},bus=port-{serial},drive={serial},serial={serial}")
        case ["pull", serial]:
            return monitor(f"device_del ctrl-{serial}")
    return "no such request"


def main():
    pid = int(sys.argv[1])
    with socket.socket(socket.AF_UNIX) as line:
        for _ in range(100):
            try:
                line.connect("ask.sock")
                break
            except OSError:
                time.sleep(0.1)
        requests = line.makefile("rw")
        for request in requests:
            request = request.strip()
            if not request:
                continue
            try:
                said = answer(pid, request)
            except (KeyError, ValueError, OSError) as problem:
                said = f"no {problem}"
            print(request, "->", said, flush=True)
            requests.write(said + "\n")
            requests.flush()


main()
