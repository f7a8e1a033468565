#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Sets knobs of the XL710 model, which lab/xl710/README.md lists."""

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
    if len(sys.argv) % 2 or sys.argv[1] == "--help":
        print("usage: knob.py PCI-ADDRESS [NAME VALUE]...")
        sys.exit(sys.argv[1:] != ["--help"])
    pci, args = sys.argv[1], sys.argv[2:]
    with open(f"/sys/bus/pci/devices/{pci}/resource0", "r+b") as file:
        page = mmap.mmap(file.fileno(), mmap.PAGESIZE, offset=PAGE)
    # Accesses of 32 bits; a slice of the mapping could be accessed by bytes.
    registers = memoryview(page).cast("I")
    for name, text in zip(args[::2], args[1::2], strict=True):
        value = int(text) & 0xFFFFFFFF
        registers[KNOBS.index(name)] = value
        if registers[KNOBS.index(name)] != value:
            sys.exit(f"{name} cannot be set to {text}")


if __name__ == "__main__":
    main()
