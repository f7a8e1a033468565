#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts instructions per packet of programs in Rust and Go, next to those of C.

All run on the XL710 model, with one CPU, as in lab/measure/bench.py: kernel, driver and
program all in all. l2fwd in zero-copy mode forwards the packets of a generator that sends
more than a CPU can take: tpbench, and the examples called forward. A capture in copy mode
writes packets of a lower rate to /dev/null: tcpdump with libpcap's V4, and the examples
called capture. Time and packets are counted while the program runs, so that starting does not
count. Builds the programs, for the plain kernel of `make test`. Fails if a program needs
more than its limit, as a multiple of C's.
"""

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD, TOP
from lab.measure import bench_guest, bench_switch, capture, icount
from lab.run import proc

SIZE = 60
RING = "2048"  # that of the examples
CAPTURE_RATE = 200_000  # packets per second
WARM_UP, PACKETS = 50_000, 400_000
# The most instructions of a program, as a multiple of C's
LIMITS = {
    ("l2fwd", "Rust"): 1.1,
    ("l2fwd", "Go"): 1.8,
    ("capture", "Rust"): 1.1,
    ("capture", "Go"): 1.5,
}
EXAMPLES = {"Rust": BUILD / "rust/release/examples", "Go": BUILD / "go"}
PROGRAMS = ("tpbench", "pcap", "rust", "go")


def command(kind: str, language: str, port: str) -> list[str]:
    """What runs until it is ended"""
    if language in EXAMPLES:
        if kind == "l2fwd":
            return [str(EXAMPLES[language] / "forward"), port, str(1 << 30), "0"]
        return [str(EXAMPLES[language] / "capture"), port, "/dev/null", str(1 << 30)]
    if kind == "capture":
        tcpdump = ["tcpdump", "-Z", "root", "-w", "/dev/null", "-i", port]
        return ["env", f"LD_LIBRARY_PATH={capture.PCAP}", *tcpdump]
    tpbench = [str(BUILD / "tpbench/tpbench"), "-l", "-i", port, "-v", "4", "-z", "0"]
    return [*tpbench, "-R", RING, "--poll", "-q"]


class Sample(NamedTuple):
    """The time that the CPU was busy, in ns, which are instructions; and packets"""

    busy: int
    packets: int


def sample(port: str, counter: str, packets: int) -> Sample:
    """Waits until the device has had so many packets."""
    path = bench_guest.NET / port / "statistics" / counter
    for _ in range(1000):
        now = Sample(bench_switch.busy(), int(path.read_text()))
        if now.packets >= packets:
            return now
        time.sleep(0.01)
    sys.exit(f"bench: {now.packets} of {packets} packets")


def guest(kind: str, language: str) -> None:
    [port] = bench_guest.set_up("i40e", 1)
    # The examples have no option for it.
    subprocess.run(["ip", "link", "set", port, "promisc", "on"], check=True)
    counter = "tx_packets" if kind == "l2fwd" else "rx_packets"
    program = subprocess.Popen(command(kind, language, port))
    if kind == "capture":
        time.sleep(1)
    before = sample(port, counter, 0)
    first = sample(port, counter, before.packets + WARM_UP)
    last = sample(port, counter, first.packets + PACKETS)
    program.kill()
    program.wait()
    icount.report((last.busy - first.busy) / (last.packets - first.packets))


def build() -> None:
    for name in PROGRAMS:
        done = subprocess.run([str(TOP / "lab/build/progs"), name], check=False)
        if done.returncode:
            sys.exit(f"bench: {name} is not built")


def main() -> int:
    parser = icount.arguments(__doc__)
    args = parser.parse_args()
    if args.guest:
        guest(*args.guest)
        return 0
    proc.stop_on_signals()
    build()
    costs: dict[str, dict[str, float]] = {}
    for kind, rate in ("l2fwd", icount.FLOOD), ("capture", CAPTURE_RATE):
        costs[kind] = {}
        for language in "C", *EXAMPLES:
            name = f"bench-bindings-{kind}-{language}"
            nic = icount.generator("i40e", rate, SIZE)
            job = [kind, language]
            [costs[kind][language]] = icount.boot(name, __file__, job, args.kernel, nic)
    print("\nInstructions per packet of 60 bytes on i40e, all in all\n")
    print(f"{'':10} {'C':>7} {'Rust':>7} {'of C':>5} {'Go':>7} {'of C':>5}")
    too_much = False
    for kind, row in costs.items():
        text = f"{kind:10} {row['C']:7.1f}"
        for language in EXAMPLES:
            times = row[language] / row["C"]
            text += f" {row[language]:7.1f} {times:5.2f}"
            too_much |= times > LIMITS[kind, language]
        print(text)
    return int(too_much)


if __name__ == "__main__":
    proc.main(main)
