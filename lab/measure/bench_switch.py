#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts instructions per packet of tpswitch: sender, switch and receiver.

Between ring ports, callgrind counts those of the switch and of swperf, which sends and
receives in batches of 64; no kernel with V4 is needed. Both share a CPU and the switch
does not spin, so that polling without packets does not count. The difference between a
long and a short run is taken, so that starting does not count.

With devices, the plain kernel is booted as by lab/measure/bench.py, and the kernel
counts, too. Writes out/switch.json. Fails if a figure is above its limit.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD, TOP
from lab.run import proc

SHORT, LONG = 100_000, 500_000  # packets
# More than a CPU can take would be lost between the switch and the receiver.
NIC = "xl710-gen,gen-rate={},gen-flows=64,gen-size=64,gen-line=100"


@dataclass
class Row:
    """One case.

    `vale` is what netmap's VALE needs for the same packets in the same machine, measured
    once by the same means. `mark` is the goal. More than `limit` fails: it is the goal,
    or close to the last figure. `rate` is that of the generator of i40e.
    """

    case: str
    title: str
    mark: int
    limit: int
    vale: int | None = None
    options: tuple[str, ...] = ()
    rate: int = 0
    switch: float | None = None
    program: float | None = None
    instructions: float | None = None


def rows() -> list[Row]:
    return [
        Row("ring-60", "ring to ring, 60 bytes", 230, 230, 415, ("-s", "60")),
        Row("ring-1500", "ring to ring, 1500 bytes", 400, 400, 967, ("-s", "1500")),
        Row("ring-idle", "60 bytes, 62 idle ports", 230, 230, None, ("-i", "62")),
        Row("i40e", "i40e to a ring, 2 million/s", 263, 300, rate=2000000),
        Row("i40e", "i40e to a ring, 3 million/s", 263, 263, rate=3000000),
        Row("veth", "veth to veth", 700, 700),
        Row("veth-plain", "veth to veth, meta=off", 700, 620),
    ]


def callgrind(directory: Path, name: str, *command: str) -> list[str]:
    return [
        "valgrind",
        "--tool=callgrind",
        f"--callgrind-out-file={directory / name}",
        f"--log-file={directory / name}.log",
        *command,
    ]


def total(path: Path) -> int:
    for line in path.read_text().splitlines():
        if line.startswith("totals: "):
            return int(line.split()[1])
    sys.exit(f"bench: callgrind has counted nothing in {path.name}")


def count(programs: Path, packets: int, options: tuple[str, ...]) -> tuple[int, int]:
    """The instructions of the switch and of swperf."""
    with tempfile.TemporaryDirectory() as name:
        directory, socket = Path(name), str(Path(name) / "port")
        command = [str(programs / "tpswitch"), "-S", socket, "--spin", "0"]
        switch = proc.start(callgrind(directory, "switch", *command))
        until = time.monotonic() + 60
        while not Path(socket).exists():
            if switch.poll() is not None or time.monotonic() > until:
                sys.exit("bench: tpswitch does not start under callgrind")
            time.sleep(0.05)
        command = [str(programs / "swperf"), "-S", socket, "-n", str(packets)]
        command = callgrind(directory, "program", *command, *options)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        switch.terminate()
        if proc.finish(switch):
            sys.exit("bench: tpswitch has failed under callgrind")
        return total(directory / "switch"), total(directory / "program")


def measure_rings(table: list[Row], programs: Path) -> None:
    for row in table:
        if not row.options:
            continue
        print(f"bench: tpswitch, {row.title}", file=sys.stderr)
        short = count(programs, SHORT, row.options)
        long = count(programs, LONG, row.options)
        row.switch, row.program = (
            round((b - a) / (LONG - SHORT), 1) for a, b in zip(short, long, strict=True)
        )
        row.instructions = round(row.switch + row.program, 1)


def measure_devices(table: list[Row], args: argparse.Namespace) -> None:
    for row in table:
        if row.options:
            continue
        print(f"bench: tpswitch, {row.title}", file=sys.stderr)
        command = [str(TOP / "lab/run/vm"), "--icount", "-k", args.kernel, "-t", "900"]
        command += ["-l", str(BUILD / f"log/bench-switch-{row.case}")]
        if row.rate:
            command += ["--nic", NIC.format(row.rate), "--qemu", args.qemu]
        command += ["--", str(TOP / "lab/measure/switch-guest"), str(args.programs)]
        process = proc.start([*command, row.case])
        assert process.stdout
        for raw in process.stdout:
            line = raw.decode(errors="replace").strip()
            print(line, file=sys.stderr)
            if line.startswith("@ "):
                row.instructions = json.loads(line.split(" ", 2)[2])["ns_per_packet"]
        if proc.finish(process):
            sys.exit(f"bench: the machine of tpswitch, {row.title}, failed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="plain")
    parser.add_argument("--qemu", help="a QEMU with the XL710 model; else rings only")
    parser.add_argument("--programs", type=Path, default=BUILD / "tpswitch")
    parser.add_argument("--out", type=Path, default=TOP / "out", metavar="DIR")
    args = parser.parse_args()
    proc.stop_on_signals()
    table = rows()
    if shutil.which("valgrind"):
        cpus = os.sched_getaffinity(0)
        os.sched_setaffinity(0, [min(cpus)])
        measure_rings(table, args.programs)
        os.sched_setaffinity(0, cpus)
    else:
        print("skipped: rings: no valgrind: lab/build/deps bench installs it")
        table = [row for row in table if not row.options]
    if args.qemu:
        measure_devices(table, args)
    else:
        table = [row for row in table if row.options]
    print("\nInstructions per packet of tpswitch, with sender and receiver\n")
    print(f"{'':28} {'switch':>7} {'swperf':>7} {'sum':>7} {'at most':>8} {'VALE':>5}")
    failed = not table
    for row in table:
        failed |= row.instructions is None or row.instructions > row.limit
        missed = " missed" if (row.instructions or 0) > row.mark else ""
        print(
            f"{row.title:28} {row.switch or '':>7} {row.program or '':>7}"
            f" {row.instructions or '-':>7} {row.mark:>8} {row.vale or '':>5}{missed}"
        )
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "switch.json").write_text(
        json.dumps([asdict(row) for row in table], indent=1) + "\n"
    )
    return int(failed)


if __name__ == "__main__":
    proc.main(main)
