#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts instructions per packet on an Rx queue of i40e that is not in zero-copy mode.

Packets go to the stack, with and without GRO, and to XDP_DROP, XDP_TX and XDP_REDIRECT to
the same port. With several kernels, the ratio of the last one to the first is printed,
too.

One virtual CPU, with one nanosecond per instruction, only receives: the generator of the
XL710 sends more packets than it can take. The packets have another destination MAC
address, so that the stack receives them in promiscuous mode and ip_rcv() drops them
early: mostly the driver, GRO and the skb are measured.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import TOP
from lab.measure import icount
from lab.measure.bench_guest import NET, run, set_up, wait_for_link
from lab.run import proc

CELLS = ("stack", "stack-nogro", "drop", "tx", "redirect")
# More packets than any kernel can receive, on a line that carries them
RATE, LINE = 40_000_000, 1000
PROGRAM = "/sys/fs/bpf/bench_rx"


def statistic(port: str, name: str) -> int:
    """A counter of ethtool -S"""
    command = ["ethtool", "-S", port]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return int(said.partition(f" {name}: ")[2].split()[0])


def attach(port: str, cell: str) -> None:
    """Attach the cell's XDP program, which resets the port."""
    Path(PROGRAM).unlink(missing_ok=True)
    index = (NET / port / "ifindex").read_text().strip()
    loader = str(TOP / "lab/xl710/tests/bpf.py")
    run("python3", loader, cell, PROGRAM, "--ifindex", index)
    run("ip", "link", "set", port, "xdpdrv", "pinned", PROGRAM)
    wait_for_link([port])


def measure(port: str, cell: str) -> float:
    counter = NET / port / "statistics/rx_packets"

    def look() -> tuple[int, int]:
        return int(counter.read_text()), time.monotonic_ns()

    lost = statistic(port, "port.rx_discards")
    sent = statistic(port, "port.tx_unicast")
    first, before = look()
    time.sleep(1)
    last, after = look()
    if statistic(port, "port.rx_discards") == lost:
        print(f"{cell}: the CPU was idle at times, as no packet was discarded")
    sent = statistic(port, "port.tx_unicast") - sent
    if cell in ("tx", "redirect") and sent < 0.99 * (last - first):
        print(f"{cell}: only {sent} packets of {last - first} were sent")
    return (after - before) / (last - first)


def guest() -> None:
    if not os.path.ismount("/sys/fs/bpf"):
        run("mount", "-t", "bpf", "bpf", "/sys/fs/bpf")
    [port] = set_up("i40e", 1)
    # A higher priority than the NAPI threads and softirqs that are measured
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    run("ip", "link", "set", port, "promisc", "on")
    for cell in CELLS:
        if cell.startswith("stack"):
            run("ethtool", "-K", port, "gro", "off" if "nogro" in cell else "on")
        else:
            attach(port, cell)
        icount.report({"cell": cell, "cost": measure(port, cell)})
        run("ip", "link", "set", port, "xdp", "off")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="64 1500")
    parser.add_argument("--guest", help=argparse.SUPPRESS)
    parser.add_argument("kernels", nargs="*", default=["plain"], metavar="KERNEL")
    args = parser.parse_args()
    if args.guest:
        guest()
        return 0
    proc.stop_on_signals()
    for size in map(int, args.sizes.split()):
        nic = icount.generator("i40e", RATE, size, line=LINE)
        costs: dict[str, list[float]] = {cell: [] for cell in CELLS}
        for kernel in args.kernels:
            name = f"bench-rx-{Path(kernel).name}-{size}"
            for said in icount.boot(name, __file__, "all", kernel, nic):
                costs[said["cell"]].append(said["cost"])
        print(f"{'i40e':12} bytes", *(f"{Path(k).name:>10}" for k in args.kernels))
        for cell, row in costs.items():
            ratio = f" {row[-1] / row[0]:6.3f}" if len(row) > 1 else ""
            print(f"{cell:12} {size:5}", *(f"{cost:10.1f}" for cost in row), ratio)
    return 0


if __name__ == "__main__":
    proc.main(main)
