#!/usr/bin/env python3
"""Changes what an emulated drive says about itself, while it runs: finds its Identify Controller page in the emulator's memory and edits
it, at the guest's own request. QEMU offers no switch for these fields, and the rules that read them need every combination.

    edit-identify.py PID ASK-SOCKET      requests, one a line: SERIAL FIELD=VALUE...      answers: ok N (pages edited) | no WHY
    fields: oacs fna sanicap (as in the NVMe base specification: little endian at bytes 256, 524, 328)
"""
import os
import re
import socket
import sys

FIELDS = {"oacs": (256, 2), "sanicap": (328, 4), "fna": (524, 1)}


def pages_of(pid, serial):
    """Addresses of 4096-byte Identify pages: the serial and QEMU's model number, each padded with blanks, behind two vendor ids."""
    wanted = re.compile(re.escape(serial.ljust(20).encode()) + rb"QEMU NVMe Ctrl {26}")
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, mode, *rest = line.split()
            begin, end = (int(x, 16) for x in span.split("-"))
            # The emulator's own heap: private memory that is not a file, and not the guest's (which is far larger).
            if not mode.startswith("rw") or (len(rest) > 3 and rest[3].startswith("/")) or end - begin > 512 << 20:
                continue
            try:
                memory.seek(begin)
                content = memory.read(end - begin)
            except (OSError, ValueError):
                continue
            for found in wanted.finditer(content):
                yield begin + found.start() - 4


def edit(pid, request):
    serial, *changes = request.split()
    # The controller's own page, not a copy on its way to the guest: its vendor id is one that QEMU gives, and NN is set.
    pages = list(pages_of(pid, serial))
    if not pages:
        return f"no page of a drive {serial}"
    with open(f"/proc/{pid}/mem", "r+b", 0) as memory:
        for page in pages:
            for change in changes:
                name, value = change.split("=")
                at, size = FIELDS[name]
                memory.seek(page + at)
                memory.write(int(value, 0).to_bytes(size, "little"))
    return f"ok {len(pages)}"


def main():
    pid, path = int(sys.argv[1]), sys.argv[2]
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        requests = line.makefile("rw")
        for request in requests:
            if not request.strip():
                continue
            try:
                answer = edit(pid, request.strip())
            except (KeyError, ValueError, OSError) as problem:
                answer = f"no {problem}"
            print(request.strip(), "->", answer, flush=True)
            requests.write(answer + "\n")
            requests.flush()


main()
