#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Measures nanoseconds per packet on a veth pair, natively, by User Mode Linux.

Boots the um kernel and runs tpbench, with V2, V3, V4, V4 in zero-copy mode and AF_XDP in
copy mode, and tcpdump with Debian's libpcap (V3) and with that of make pcap (V4). Sender,
stack and receiver share one CPU, and all of their work counts. Only the cost of entering
system calls, which is much higher than on a machine, is measured and taken off. The
versions take turns, and the best of all rounds counts, of which a busy machine gets more.
Prints a table.
"""

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD
from lab.measure import bench_guest, capture, icount
from lab.run import proc

VERSIONS = {
    "V2": ["-v", "2"],
    "V3": ["-v", "3"],
    "V4": ["-v", "4"],
    "V4+ZC": ["-v", "4", "-z", "0"],
    "one buffer": ["-v", "4", "-z", "0", "--shared"],
    "AF_XDP": ["-v", "xdp"],
}
ENDS = ["tp4A", "tp4B"]
BATCH = 512
WARMUP = 8_192
PACKETS = 16_384
PATIENCE = 60  # seconds: tpbench has a number of packets, not a time
BUFFER_KIB = 8_192  # tcpdump -B: more than a burst
TCPDUMP_RUNS = 10
BURST = 4  # batches: with V4, tcpdump sleeps after each burst, and that is dear here
# poll(), and on V4 setsockopt() of SO_RCVLOWAT before and after it
CALLS_PER_SLEEP = {"V3": 1, "V4": 3}
STDIO = "1M"  # or tcpdump would write each three packets
# The median run of a cell takes so many times as long as the best one
BUSY = 1.3
ENOUGH = 5  # rounds on a machine that is not busy


Cell = tuple[str, str, int]  # benchmark, version, size


@dataclass
class Sample:
    """One run: nanoseconds and system calls per packet"""

    benchmark: str
    version: str
    size: int
    ns: float
    calls: float

    def cell(self) -> Cell:
        return self.benchmark, self.version, self.size


def rows() -> Iterator[tuple[str, str]]:
    """The benchmarks and versions of the table, in its order"""
    for benchmark in "rxdrop", "txpush", "l2fwd":
        for version in VERSIONS:
            # Both ends of l2fwd can share a buffer. In l2fwd, V3 mostly waits for the
            # timer that closes a block.
            if version != ("V3" if benchmark == "l2fwd" else "one buffer"):
                yield benchmark, version
    yield "tcpdump", "V3"
    yield "tcpdump", "V4"


def spread(samples: list[Sample]) -> float:
    """How many times as long as the best run of a cell its median takes, mostly"""
    cells = defaultdict(list)
    for s in samples:
        cells[s.cell()].append(s.ns)
    return median(median(runs) / min(runs) for runs in cells.values())


# --- in the guest ------------------------------------------------------------


def time_call() -> float:
    """Nanoseconds of a system call that does nothing"""
    best = 1e9
    for _ in range(50):
        start = time.monotonic_ns()
        for _ in range(20):
            os.getppid()
        best = min(best, (time.monotonic_ns() - start) / 20)
    return best


def run_tpbench(benchmark: str, version: str, size: int) -> Sample:
    first, second = ENDS
    command = [str(BUILD / "tpbench/tpbench"), "-q", *VERSIONS[version]]
    command += ["-b", str(BATCH), "-w", str(WARMUP), "-n", str(PACKETS)]
    command += ["-s", str(size)]
    command += {
        "rxdrop": ["-i", f"{second},{first}", "--lockstep", "--rxdrop"],
        "txpush": ["-i", first, "--txpush"],
        "l2fwd": ["-i", f"{first},{second}", "--lockstep", "--veth", str(BATCH)],
    }[benchmark]
    done = subprocess.run(
        command,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=PATIENCE,
    )
    said = json.loads(done.stdout)
    kicks = said["kicks"] / said["packets"]
    # Of l2fwd's ends, one is counted; rxdrop's generator has its own calls.
    calls = {"rxdrop": 1 / BATCH, "txpush": kicks, "l2fwd": 2 * kicks}[benchmark]
    return Sample(benchmark, version, size, said["ns_per_packet"], calls)


def send_and_wait(sender: capture.Sender, stat: int) -> int:
    """Send a burst, and leave the CPU to tcpdump until it sleeps; returns the calls."""
    for _ in range(BURST):
        if sender.send(BATCH) != BATCH:
            raise RuntimeError("a batch was cut")
    calls = BURST + 1
    while b" S " not in os.pread(stat, 100, 0):
        os.sched_yield()
        calls += 2
    return calls


def count_sleeps(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def run_tcpdump(version: str, size: int) -> Iterator[Sample]:
    lib = None if version == "V3" else capture.PCAP
    buffer = "stdbuf", f"-o{STDIO}"
    tcpdump = capture.Tcpdump(ENDS[1], BUFFER_KIB, lib, subprocess.DEVNULL, *buffer)
    pid = tcpdump.process.pid
    # It does not take the CPU from the sender in the midst of a batch.
    os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))
    sender = capture.Sender(ENDS[0], [size] * BATCH)
    stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    # A page of the buffer is dear when it is used first.
    for _ in range(BUFFER_KIB * 1024 // (size * BATCH * BURST) + 1):
        send_and_wait(sender, stat)
    for _ in range(TCPDUMP_RUNS):
        sleeps, start = count_sleeps(pid), time.monotonic_ns()
        calls = 0
        for _ in range(PACKETS // (BATCH * BURST)):
            calls += send_and_wait(sender, stat)
        ns = time.monotonic_ns() - start
        calls += (count_sleeps(pid) - sleeps) * CALLS_PER_SLEEP[version]
        yield Sample("tcpdump", version, size, ns / PACKETS, calls / PACKETS)
    os.close(stat)
    _, lost = tcpdump.counters()
    if lost:
        raise RuntimeError(f"{lost} packets were lost")
    tcpdump.end()


def run_cell(benchmark: str, version: str, size: int) -> Iterator[Sample]:
    try:
        if benchmark == "tcpdump":
            yield from run_tcpdump(version, size)
        else:
            yield run_tpbench(benchmark, version, size)
    except (subprocess.SubprocessError, RuntimeError) as error:
        sys.exit(f"{benchmark}, {version}, {size} bytes: {error}")


def guest(rounds: int, sizes: list[int]) -> None:
    cells = list(rows())
    for version, lib in ("V3", None), ("V4", capture.PCAP):
        if why := capture.no_tcpdump(lib):
            print(f"skipped: tcpdump, {version}: {why}")
            cells.remove(("tcpdump", version))
    bench_guest.run("ip", "link", "add", ENDS[0], "type", "veth", "peer", ENDS[1])
    bench_guest.set_up_links(ENDS)
    samples: list[Sample] = []
    for number in range(rounds):
        if number >= ENOUGH and spread(samples) < BUSY:
            return
        icount.report({"call_ns": time_call()})
        for (benchmark, version), size in product(cells, sizes):
            for sample in run_cell(benchmark, version, size):
                icount.report(asdict(sample))
                samples.append(sample)


# --- on the host -------------------------------------------------------------


def show(text: str) -> None:
    """Progress, in one line of a terminal"""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def best_of(samples: list[Sample], call_ns: float) -> dict[Cell, float]:
    """The best run of each cell, without the entry to its system calls"""
    best: dict[Cell, float] = {}
    for s in samples:
        ns = s.ns - s.calls * call_ns
        best[s.cell()] = min(ns, best.get(s.cell(), ns))
    return best


def table(samples: list[Sample], call_ns: float) -> str:
    best = best_of(samples, call_ns)
    sizes = sorted({size for _, _, size in best})
    lines = [
        " " * 19 + "".join(f"{f'{size} bytes':>19}" for size in sizes),
        " " * 19 + f"{'ns':>10}{'speed':>9}" * len(sizes),
    ]
    last = ""
    for benchmark, version in rows():
        if (benchmark, version, sizes[0]) not in best:
            continue
        if benchmark != last and last:
            lines.append("")
        line = f"{benchmark if benchmark != last else '':8} {version:10}"
        last = benchmark
        for size in sizes:
            old = (best.get((benchmark, v, size)) for v in ("V2", "V3"))
            base = min((ns for ns in old if ns), default=0)
            ns = best[benchmark, version, size]
            speed = f"{base / ns:.2f}" if base else ""
            line += f"{ns:10.0f}{speed:>9}"
        lines.append(line)
    return "\n".join(lines)


def main() -> int:
    parser = icount.arguments(__doc__)
    parser.set_defaults(kernel="um")
    parser.add_argument(
        "--rounds", type=int, default=10, help=f"on a busy machine; else {ENOUGH}"
    )
    parser.add_argument("--sizes", default="64 1500")
    args = parser.parse_args()
    if args.guest:
        guest(**args.guest)
        return 0
    proc.stop_on_signals()
    sizes = [int(size) for size in args.sizes.split()]
    job = {"rounds": args.rounds, "sizes": sizes}
    samples: list[Sample] = []
    calls: list[float] = []
    for said in icount.boot("bench-um", __file__, job, args.kernel, [], clock=()):
        if "call_ns" in said:
            calls.append(said["call_ns"])
            if not sys.stderr.isatty():
                print(f"round {len(calls)} of {args.rounds}", file=sys.stderr)
            continue
        samples.append(last := Sample(**said))
        where = f"{last.benchmark} {last.version} {last.size} bytes"
        show(f"round {len(calls)} of {args.rounds}: {where}")
    show("")
    call_ns = min(calls)
    print(
        f"\nNanoseconds per packet on a veth pair, sender, stack and receiver on one CPU,"
        f" best of {len(calls)} runs\n"
    )
    print(table(samples, call_ns))
    print(
        "\nSpeed: 1 is the better of V2 and V3. Entering system calls"
        f" ({call_ns / 1000:.1f} us here; 1 for {BATCH} packets, AF_XDP 32) is taken off."
    )
    if (times := spread(samples)) > BUSY:
        print(
            f"This machine is busy: half of the runs took {times:.1f} times the best one"
            " or more."
        )
    return 0


if __name__ == "__main__":
    proc.main(main)
