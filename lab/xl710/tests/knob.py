#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Set what README.md calls knobs: knob.py PCI-ADDRESS [NAME VALUE]..."""

import mmap
import sys

PAGE = 0x3FF000
KNOBS = (
    "tx-delay",
    "tx-burst",
    "rs-only",
    "stop-delay",
    "reset-delay",
    "stuck-tx",
    "stuck-rx",
)


def main() -> None:
    pci, args = sys.argv[1], sys.argv[2:]
    with open(f"/sys/bus/pci/devices/{pci}/resource0", "r+b") as file:
        page = mmap.mmap(file.fileno(), mmap.PAGESIZE, offset=PAGE)
    # accesses of 32 bits, which a slice of the mapping might not be
    registers = memoryview(page).cast("I")
    for name, text in zip(args[::2], args[1::2], strict=True):
        value = int(text) & 0xFFFFFFFF
        registers[KNOBS.index(name)] = value
        if registers[KNOBS.index(name)] != value:
            sys.exit(f"{name} does not take {text}")


if __name__ == "__main__":
    main()
