#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts instructions per packet, for AF_PACKET and AF_XDP, on i40e, virtio_net and veth.

Boots the plain kernel on one virtual CPU, with one nanosecond per instruction: with an
i40e port and a virtio_net device that have a generator and a sink, and with a veth pair.
For each version, the cheapest way to wait counts. Prints a table and writes
out/bench.json, which lab/measure/bench_plot.py plots.
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD, TOP
from lab.run import proc

OUT = TOP / "out"
HERE = TOP / "lab/measure"
VERSIONS = ("V3", "V4", "V4+ZC", "AF_XDP", "AF_XDP+ZC")
BENCHMARKS = ("rxdrop", "txpush", "l2fwd", "tcpdump")
CRC = 4
# Packets a second: more than any version takes, by a line of so many Gbit/s that
# it carries them; and few enough for who has to receive by interrupts and to send
# at the same time: in a flood, Linux would do nothing but receive. Idle time does
# not count.
FLOOD = 8_000_000
LINE = 100
STREAM = 100_000
STREAM_VERSIONS = ("V3", "V4", "AF_XDP")


@dataclass
class Result:
    """Instructions a packet, and what share of them was whose."""

    device: str
    benchmark: str
    size: int
    queues: int
    version: str
    wait: str
    instructions: float
    kernel: float | None
    program: float | None
    drops: int
    packets: int


def share(ns: float | None) -> float | None:
    """Of tcpdump, nobody knows the shares."""
    return None if ns is None else round(ns, 1)


def parse_line(line: str) -> Result | None:
    """What lab/measure/bench-guest said of one run; None if that failed."""
    mark, device, benchmark, size, queues, version, wait, *rest = line.split(" ", 7)
    assert mark == "@"
    try:
        said = json.loads(rest[0] if rest else "")
    except ValueError:
        return None
    if not said["packets"]:
        return None
    return Result(
        device,
        benchmark,
        int(size),
        int(queues),
        version,
        wait,
        round(said.get("busy_ns_per_packet", said["ns_per_packet"]), 1),
        share(said.get("kernel_ns_per_packet")),
        share(said.get("user_ns_per_packet")),
        said["drops"],
        said["packets"],
    )


def best_of(results: list[Result]) -> list[Result]:
    """Of each cell, the run in the cheapest way to wait."""
    best: dict[tuple[str, str, int, int, str], Result] = {}
    for r in results:
        cell = (r.device, r.benchmark, r.size, r.queues, r.version)
        if cell not in best or r.instructions < best[cell].instructions:
            best[cell] = r
    return list(best.values())


def table(results: list[Result]) -> str:
    """A line a benchmark, size and number of queues; a column a version."""
    cells = {
        (r.device, r.benchmark, r.size, r.queues, r.version): r
        for r in best_of(results)
    }
    lines = []
    for device in dict.fromkeys(r.device for r in results):
        versions = [
            v for v in VERSIONS if any(key[0::4] == (device, v) for key in cells)
        ]
        head = f"{device:8} {'bytes':>5} {'queues':>6}"
        lines += ["", head + "".join(f"  {v:>22}" for v in versions)]
        rows = dict.fromkeys(key[1:4] for key in cells if key[0] == device)
        for benchmark, size, queues in rows:
            text = f"{benchmark:8} {size:5} {queues:6}"
            for version in versions:
                r = cells.get((device, benchmark, size, queues, version))
                said = "-"
                if r:
                    said = f"{r.instructions:.0f}"
                    if r.kernel is not None:
                        said += f" ({r.kernel:.0f} + {r.program:.0f})"
                    said += f" {r.wait:5}"
                text += f"  {said:>22}"
            lines.append(text)
    return "\n".join(lines[1:])


def run_vm(
    name: str,
    device: str,
    nic: str,
    benchmarks: str,
    words: list[str],
    args: argparse.Namespace,
) -> list[Result]:
    """Boot a machine and have lab/measure/bench-guest measure in it."""
    versions, queues, sizes = words
    command = [str(TOP / "lab/run/vm"), "--icount", "-k", args.kernel, "-t", "3600"]
    command += ["-l", str(BUILD / "log" / name)]
    if nic:
        command += ["--nic", nic, "--qemu", args.qemu]
    command += ["--", str(HERE / "bench-guest"), device, args.tpbench]
    command.append(args.tcpdump_lib)
    command += [benchmarks, sizes, queues, versions]
    print(f"bench: {name}", file=sys.stderr)
    results = []
    process = proc.start(command)
    assert process.stdout
    for raw in process.stdout:
        line = raw.decode(errors="replace").strip()
        if not line.startswith("@ "):
            if line.startswith(("failed:", "skipped:", "tpbench:")):
                print(line, file=sys.stderr)
        elif not (result := parse_line(line)):
            print("bench: no result:", line, file=sys.stderr)
        else:
            print(
                f"{result.device} {result.benchmark} {result.size}"
                f" bytes, {result.queues} queues, {result.version}"
                f" {result.wait}: {result.instructions:.0f}",
                file=sys.stderr,
            )
            results.append(result)
    if proc.finish(process):
        log = (BUILD / "log" / name).relative_to(TOP)
        sys.exit(f"bench: the VM failed; its kernel log is {log}")
    return results


def nic_of(device: str, rate: int, size: str) -> str:
    """A port that receives by itself, and what it sends is gone."""
    if device == "virtio":
        return f"virtio-gen,rate={rate},flows=64,size={size}"
    return (
        f"xl710-gen,gen-rate={rate},gen-flows=64"
        f",gen-size={int(size) + CRC},gen-line={LINE}"
    )


def run_generator(device: str, args: argparse.Namespace) -> list[Result]:
    """Measure on such a port."""
    asked, queues = args.versions.split(), args.queues
    if device == "virtio":
        # The model has one queue, and Linux 6.12's driver no zero-copy mode of AF_XDP.
        asked = [v for v in asked if v != "AF_XDP+ZC"]
        queues = "1"
    streams = [v for v in asked if v in STREAM_VERSIONS]
    floods = [v for v in asked if v not in STREAM_VERSIONS]
    results: list[Result] = []
    for size in args.sizes.split():
        for benchmark, rate, versions in (
            ("rxdrop", FLOOD, asked),
            ("tcpdump", FLOOD, asked if device == "i40e" else []),
            ("l2fwd", FLOOD, floods),
            ("l2fwd", STREAM, streams),
            ("txpush", 0, asked),
        ):
            if benchmark not in args.benchmarks.split() or not versions:
                continue
            name = f"bench-{device}-{benchmark}-{size}-{rate}"
            words = [" ".join(versions), queues, size]
            nic = nic_of(device, rate, size)
            results += run_vm(name, device, nic, benchmark, words, args)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", default="i40e virtio veth")
    parser.add_argument("--benchmarks", default=" ".join(BENCHMARKS))
    parser.add_argument("--sizes", default="64 1500")
    parser.add_argument("--queues", default="1 2 4")
    parser.add_argument("--versions", default=" ".join(VERSIONS))
    parser.add_argument("--kernel", default="plain")
    parser.add_argument("--qemu", help="a QEMU with the XL710 model")
    parser.add_argument("--tpbench", default=str(BUILD / "tpbench/tpbench"))
    parser.add_argument("--tcpdump-lib", default=str(BUILD / "pcap/lib"))
    parser.add_argument("--json", type=Path, default=OUT / "bench.json")
    args = parser.parse_args()
    proc.stop_on_signals()
    results: list[Result] = []
    for device in "i40e", "virtio":
        if device in args.devices.split():
            if not args.qemu:
                sys.exit("bench: needs --qemu with what lab/build/qemu --print prints")
            results += run_generator(device, args)
    if "veth" in args.devices.split():
        versions = " ".join(v for v in args.versions.split() if v != "AF_XDP+ZC")
        words = [versions, args.queues, args.sizes]
        results += run_vm("bench-veth", "veth", "", args.benchmarks, words, args)
    if not results:
        sys.exit("bench: nothing was measured")
    order = {b: i for i, b in enumerate(BENCHMARKS)}
    results.sort(key=lambda r: (r.device, order[r.benchmark], r.size, r.queues))
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(
        json.dumps([asdict(r) for r in results], indent=1, sort_keys=True) + "\n"
    )
    print("Instructions a packet (the kernel's + the program's) and how it waits\n")
    print(table(results))
    return 0


if __name__ == "__main__":
    proc.main(main)
