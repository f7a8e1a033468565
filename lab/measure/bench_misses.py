#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts cache lines missed per packet in zero-copy mode on i40e, with 64 bytes.

A plugin of QEMU models an L1 data cache of 32 KiB with 8 ways. It counts from the start
of the machine to its end. So each case runs in two machines that differ only in the number
of packets, and the difference counts. The card's accesses are not modelled: what it has
written hits the cache, if it was there before. Writes out/misses.json.
"""

import argparse
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD, TOP
from lab.measure import bench_guest
from lab.measure.bench import FLOOD, generator
from lab.run import proc

SIZE = 64
# The way to wait that is the cheapest in lab/measure/bench.py
WAITS = {"rxdrop": "busy", "txpush": "spin", "l2fwd": "busy"}
VERSIONS = ("V4+ZC", "AF_XDP+ZC")
PACKETS = (200_000, 1_000_000)
CACHE = "dcachesize=32768,dassoc=8,dblksize=64,evict=lru,limit=1"


def guest(run: bench_guest.Run, packets: int, ring: int, tpbench: str) -> None:
    job = bench_guest.Job("i40e", [], [SIZE], [1], [], tpbench, "", packets, ring)
    ends = bench_guest.set_up("i40e", 1)
    if not bench_guest.set_queues("i40e", ends, 1):
        sys.exit(1)
    bench_guest.run_tpbench(job, ends, run)


def parse_misses(report: str) -> int:
    """The data misses in the plugin's report: a line of core, accesses, misses, rate."""
    found = re.search(r"(?m)^(?:0|sum)\s+\d+\s+(\d+)\s", report)
    if not found:
        sys.exit(f"bench_misses: the plugin reports no misses: {report[:300]}")
    return int(found[1])


def count(
    benchmark: str, version: str, packets: int, args: argparse.Namespace
) -> tuple[int, int]:
    """Packets and misses of a machine."""
    log = BUILD / f"log/misses-{benchmark}-{version}"
    output = log.with_name(log.name + ".plugin")
    output.unlink(missing_ok=True)
    run = bench_guest.Run(benchmark, SIZE, 1, version, WAITS[benchmark])
    job = json.dumps([vars(run), packets, args.ring, args.tpbench])
    command = [str(TOP / "lab/run/vm"), "--icount", "-k", args.kernel, "-t", "3600"]
    command += ["-l", str(log), "--qemu", args.qemu]
    command += ["--nic", generator("i40e", 0 if benchmark == "txpush" else FLOOD, SIZE)]
    command += ["--plugin", f"{Path(args.qemu).with_name('libcache.so')},{CACHE}"]
    command += ["--", str(Path(__file__).resolve()), "--guest", job]
    done = 0
    process = proc.start(command)
    assert process.stdout
    for raw in process.stdout:
        line = raw.decode(errors="replace").strip()
        if line.startswith("@ "):
            done = json.loads(line.removeprefix("@ "))["packets"]
        else:
            print(line, file=sys.stderr)
    if proc.finish(process) or not done:
        sys.exit(f"bench_misses: the VM failed; its kernel log is {log}")
    return done, parse_misses(output.read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--benchmarks", default=" ".join(WAITS))
    parser.add_argument("--versions", default=" ".join(VERSIONS))
    parser.add_argument("--ring", type=int, default=512, help="tpbench --ring")
    parser.add_argument("--kernel", default="plain")
    parser.add_argument(
        "--qemu", help="what lab/build/qemu --plugins --print has printed"
    )
    parser.add_argument("--tpbench", default=str(BUILD / "tpbench/tpbench"))
    parser.add_argument("--out", type=Path, default=TOP / "out", metavar="DIR")
    parser.add_argument("--guest", help=argparse.SUPPRESS, metavar="JOB")
    args = parser.parse_args()
    if args.guest:
        run, packets, ring, tpbench = json.loads(args.guest)
        guest(bench_guest.Run(**run), packets, ring, tpbench)
        return 0
    if not args.qemu:
        sys.exit("bench_misses: needs --qemu: lab/build/qemu --plugins --print")
    proc.stop_on_signals()
    versions = args.versions.split()
    rows: list[dict[str, str | float]] = []
    for benchmark in args.benchmarks.split():
        row: dict[str, str | float] = {"benchmark": benchmark}
        for version in versions:
            print(f"bench: misses, {benchmark}, {version}", file=sys.stderr)
            few, many = (count(benchmark, version, n, args) for n in PACKETS)
            row[version] = round((many[1] - few[1]) / (many[0] - few[0]), 2)
        rows.append(row)
    print(f"\nL1 data cache lines missed per packet, rings of {args.ring}\n")
    print(f"{'i40e':8}", *(f"{version:>10}" for version in versions))
    for row in rows:
        misses = (f"{row[version]:>10.2f}" for version in versions)
        print(f"{row['benchmark']:8}", *misses)
    args.out.mkdir(parents=True, exist_ok=True)
    report = {"ring": args.ring, "size": SIZE, "rows": rows}
    (args.out / "misses.json").write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    proc.main(main)
