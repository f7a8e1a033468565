#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts instructions per packet, for AF_PACKET and AF_XDP, on i40e, virtio_net and veth.

Boots the plain kernel on one virtual CPU, with one nanosecond per instruction: with an
i40e port and with a virtio_net device that have a generator and a sink, and with a veth
pair. As many machines run at the same time as there are CPUs. For each version, the
cheapest way to wait counts. Prints a table and writes out/bench.json.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import TOP
from lab.measure import bench_guest, icount
from lab.run import proc

VERSIONS = ("V3", "V4", "V4+ZC", "AF_XDP", "AF_XDP+ZC")
# rxdrop by the two members of a fanout group that a queue feeds, or without a group
FANOUT = tuple(
    f"fanout-{t}" for t in ("none", "lb", "qm", "cpu", "rnd", "hash", "cbpf", "xdp")
)
RXDROP = ("rxdrop", *bench_guest.METADATA)
BENCHMARKS = (*RXDROP, *FANOUT, "txpush", "l2fwd", "tcpdump")
# Packets per second. It leaves time to programs that receive by interrupts and send at
# the same time: in a flood, the kernel would only receive. Idle time does not count.
STREAM = 100_000
STREAM_VERSIONS = ("V3", "V4", "AF_XDP")
# In a flood, the kernel would only distribute packets that the members have no room for.
FANOUT_RATE = 1_000_000


@dataclass
class Result:
    """Instructions per packet, of the kernel and of the program."""

    device: str
    benchmark: str
    size: int
    queues: int
    version: str
    wait: str
    instructions: float
    kernel: float | None  # unknown for tcpdump
    program: float | None
    drops: int
    packets: int


def parse(said: dict) -> Result:
    """The result of a run in the guest."""
    kernel, program = (said.get(f"{part}_ns_per_packet") for part in ("kernel", "user"))
    cost = said.get("busy_ns_per_packet", said["ns_per_packet"])
    same = {f.name: said[f.name] for f in fields(Result) if f.name in said}
    return Result(instructions=round(cost, 1), kernel=kernel, program=program, **same)


@dataclass
class Machine:
    """A machine to boot, and the measurements in it."""

    name: str
    nic: list[str]  # options of lab/run/vm
    job: bench_guest.Job


def measure(machine: Machine, args: argparse.Namespace) -> list[Result]:
    """Boot a machine and measure in it."""
    options = machine.nic + (["--append", args.append] if args.append else [])
    job = vars(machine.job)
    results = []
    for said in icount.boot(machine.name, __file__, job, args.kernel, options):
        if not said["packets"]:
            print("bench: no packets:", said, file=sys.stderr)
            continue
        r = parse(said)
        print(
            f"{r.device} {r.benchmark} {r.size} bytes, {r.queues} queues,"
            f" {r.version} {r.wait}: {r.instructions:.0f}",
            file=sys.stderr,
        )
        results.append(r)
    return results


def ports(job: bench_guest.Job) -> Iterator[Machine]:
    """The machines with such a port."""
    if job.device == "virtio":
        # Zero-copy AF_XDP needs virtio-dma, and a newer driver than that of Linux 6.12.
        job.versions = [v for v in job.versions if v != "AF_XDP+ZC"]
    asked = job.versions
    streams = [v for v in asked if v in STREAM_VERSIONS]
    floods = [v for v in asked if v not in STREAM_VERSIONS]
    for size in job.sizes:
        for group, rate, versions in (
            (list(RXDROP), icount.FLOOD, asked),
            (list(FANOUT), FANOUT_RATE, asked),
            (["tcpdump"], icount.FLOOD, asked if job.device == "i40e" else []),
            (["l2fwd"], icount.FLOOD, floods),
            (["l2fwd"], STREAM, streams),
            (["txpush"], 0, asked),
        ):
            benchmarks = [b for b in group if b in job.benchmarks]
            if not benchmarks or not versions:
                continue
            part = replace(job, benchmarks=benchmarks, sizes=[size], versions=versions)
            name = f"bench-{job.device}-{benchmarks[0]}-{size}-{rate}"
            nic = icount.generator(job.device, rate, size)
            yield Machine(name, nic, part)


def veth_pairs(job: bench_guest.Job) -> Iterator[Machine]:
    """The machines with a veth pair."""
    job.versions = [v for v in job.versions if v != "AF_XDP+ZC"]
    for benchmark in job.benchmarks:
        for size in job.sizes if benchmark not in FANOUT else []:
            part = replace(job, benchmarks=[benchmark], sizes=[size])
            yield Machine(f"bench-veth-{benchmark}-{size}", [], part)


def machines(args: argparse.Namespace) -> Iterator[Machine]:
    """The machines that measure what was asked for."""
    for device in args.devices.split():
        job = bench_guest.Job(
            device,
            args.benchmarks.split(),
            [int(size) for size in args.sizes.split()],
            [1],  # the models have one
            args.versions.split(),
            args.defer,
        )
        if device == "veth":
            job.queues = [int(queues) for queues in args.queues.split()]
            yield from veth_pairs(job)
        elif device == "igb":
            # By two of QEMU's devices; both ends count, but for rxdrop.
            yield Machine("bench-igb", ["--nic", "igb"], job)
        else:
            yield from ports(job)


def cell(runs: list[Result]) -> str:
    """The run with the cheapest way to wait"""
    if not runs:
        return "-"
    r = min(runs, key=lambda r: r.instructions)
    shares = "" if r.kernel is None else f" ({r.kernel:.0f} + {r.program:.0f})"
    return f"{r.instructions:.0f}{shares} {r.wait:5}"


def table(results: list[Result]) -> str:
    """One line per benchmark, size and number of queues; one column per version."""
    lines = []
    for device in dict.fromkeys(r.device for r in results):
        rows: dict[tuple[str, int, int], list[Result]] = {}
        for r in results:
            if r.device == device:
                rows.setdefault((r.benchmark, r.size, r.queues), []).append(r)
        here = {r.version for runs in rows.values() for r in runs}
        versions = [v for v in VERSIONS if v in here]
        head = f"{device:11} {'bytes':>5} {'queues':>6}"
        lines += ["", head + "".join(f"  {v:>22}" for v in versions)]
        for (benchmark, size, queues), runs in rows.items():
            cells = [cell([r for r in runs if r.version == v]) for v in versions]
            text = f"{benchmark:11} {size:5} {queues:6}"
            lines.append(text + "".join(f"  {c:>22}" for c in cells))
    return "\n".join(lines[1:])


def main() -> int:
    parser = icount.arguments(__doc__)
    parser.add_argument(
        "--devices",
        default="i40e virtio veth",
        help="and virtio-dma: virtio_net with DMA addresses; igb, with BASE=7.3",
    )
    parser.add_argument("--benchmarks", default=" ".join(BENCHMARKS))
    parser.add_argument("--sizes", default="64 1500")
    parser.add_argument("--queues", default="1", help="of a veth pair: 1 2 4")
    parser.add_argument("--versions", default=" ".join(VERSIONS))
    parser.add_argument("--append", help="kernel arguments: load=afxdp_only")
    parser.add_argument(
        "--defer",
        action="store_true",
        help="defer the NAPI of tcpdump's device, by 200 us at most",
    )
    args = parser.parse_args()
    if args.guest:
        bench_guest.guest(bench_guest.Job(**args.guest))
        return 0
    proc.stop_on_signals()
    cpus = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(cpus) as pool:
        measured = pool.map(lambda machine: measure(machine, args), machines(args))
        results = [r for part in measured for r in part]
    if not results:
        sys.exit("bench: nothing was measured")
    order = {b: i for i, b in enumerate(BENCHMARKS)}
    results.sort(key=lambda r: (r.device, order[r.benchmark], r.size, r.queues))
    out = TOP / "out"
    out.mkdir(exist_ok=True)
    (out / "bench.json").write_text(
        json.dumps([asdict(r) for r in results], indent=1, sort_keys=True) + "\n"
    )
    print(
        "Instructions per packet (the kernel's + the program's), and the way to wait\n"
    )
    print(table(results))
    return 0


if __name__ == "__main__":
    proc.main(main)
