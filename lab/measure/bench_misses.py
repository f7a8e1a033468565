#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts cache lines missed per packet in zero-copy mode on i40e, with 64 bytes.

A plugin of QEMU models an L1 data cache of 32 KiB with 8 ways. It counts from the start
of the machine to its end. So each case runs in two machines that differ only in the number
of packets, and the difference counts. The card's accesses are not modelled: what it has
written hits the cache, if it was there before.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD
from lab.measure import bench, bench_guest, icount
from lab.run import proc

SIZE = 64
# The way to wait that is the cheapest in lab/measure/bench.py
WAITS = {"rxdrop": "busy", "txpush": "spin", "l2fwd": "busy"}
VERSIONS = ("V4+ZC", "AF_XDP+ZC")
PACKETS = (200_000, 1_000_000)
CACHE = "dcachesize=32768,dassoc=8,dblksize=64,evict=lru,limit=1"


def parse_misses(report: str) -> int:
    """The data misses in the plugin's report: a line of core, accesses, misses, rate."""
    found = re.search(r"(?m)^(?:0|sum)\s+\d+\s+(\d+)\s", report)
    if not found:
        sys.exit(f"bench_misses: the plugin reports no misses: {report[:300]}")
    return int(found[1])


def count(
    benchmark: str, version: str, packets: int, ring: int, kernel: str
) -> tuple[int, int]:
    """Packets and misses of a machine."""
    name = f"misses-{benchmark}-{version}"
    output = BUILD / f"log/{name}.plugin"
    output.unlink(missing_ok=True)
    rate = 0 if benchmark == "txpush" else icount.FLOOD
    options = icount.generator("i40e", rate, SIZE, "--plugins")
    library = Path(icount.qemu("--plugins")).with_name("libcache.so")
    options += ["--plugin", f"{library},{CACHE}"]
    job = bench_guest.Job(
        "i40e", [benchmark], [SIZE], [1], [version], waits=(WAITS[benchmark],)
    )
    job.packets, job.ring = packets, ring
    found = list(icount.boot(name, bench.__file__, vars(job), kernel, options))
    if not found or not found[0]["packets"]:
        sys.exit(f"bench_misses: {name}: no packets")
    return found[0]["packets"], parse_misses(output.read_text())


def main() -> int:
    parser = icount.arguments(__doc__)
    parser.add_argument("--ring", type=int, default=512, help="tpbench --ring")
    args = parser.parse_args()
    proc.stop_on_signals()
    lines = []
    for benchmark in WAITS:
        line = f"{benchmark:8}"
        for version in VERSIONS:
            few, many = (
                count(benchmark, version, n, args.ring, args.kernel) for n in PACKETS
            )
            line += f" {(many[1] - few[1]) / (many[0] - few[0]):>10.2f}"
        lines.append(line)
    print(f"\nL1 data cache lines missed per packet, rings of {args.ring}\n")
    print(f"{'i40e':8}", *(f"{version:>10}" for version in VERSIONS))
    print(*lines, sep="\n")
    return 0


if __name__ == "__main__":
    proc.main(main)
