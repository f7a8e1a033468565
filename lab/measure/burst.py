#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts packets that tcpdump's buffer holds while tcpdump is stopped: V3 and V4.

Boots the plain kernel. For each size, a veth pair carries 200000 packets to a stopped
tcpdump, with Debian's libpcap and with that of make pcap, and the same -B. Prints a
table; fails if V4 holds less than 0.9 of V3's packets.
"""

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BASE, BUILD, TOP
from lab.measure import bench_guest, capture
from lab.run import proc
from lab.run.result import SKIP

LEAST = 0.9
BATCH = 60
MIX = [60] * 7 + [600] * 4 + [1500]
ENDS = ["tp4A", "tp4B"]
PATIENCE = 300


def is_stopped(pid: int) -> bool:
    return "\nState:\tT" in Path(f"/proc/{pid}/status").read_text()


def count_held(lib: Path | None, buffer: int, sizes: list[int], count: int) -> int:
    """The packets of a burst that a stopped tcpdump gets when it goes on."""
    tcpdump = capture.Tcpdump(ENDS[1], buffer, lib, subprocess.DEVNULL)
    tcpdump.process.send_signal(signal.SIGSTOP)
    while not is_stopped(tcpdump.process.pid):
        time.sleep(0.01)
    sender = capture.Sender(ENDS[0], sizes * (BATCH // len(sizes)))
    left = count
    while left:
        # A batch that is cut would shift the mix, but loses no packet.
        left -= sender.send(min(left, BATCH))
    tcpdump.process.send_signal(signal.SIGCONT)
    # All packets are either captured or dropped: wait until they have been read.
    captured = dropped = 0
    end = time.monotonic() + PATIENCE
    while captured + dropped < count:
        if time.monotonic() > end:
            sys.exit(f"burst: {captured} captured, {dropped} dropped of {count}")
        time.sleep(0.1)
        captured, dropped = tcpdump.counters()
    tcpdump.end()
    return captured


def guest(args: argparse.Namespace) -> int:
    pair = ["type", "veth", "peer", "name", ENDS[1]]
    bench_guest.run("ip", "link", "add", ENDS[0], *pair)
    for end in ENDS:
        bench_guest.run("ip", "link", "set", end, "mtu", "9100")
    bench_guest.set_up_links(ENDS)
    print(f"{'-B KiB':>8}{'bytes':>8}{'V3':>10}{'V4':>10}{'V4/V3':>8}", flush=True)
    worst = None
    for buffer in map(int, args.buffers.split()):
        for size in args.sizes.split():
            sizes = MIX if size == "mix" else [int(size)]
            v3 = count_held(None, buffer, sizes, args.count)
            v4 = count_held(capture.PCAP, buffer, sizes, args.count)
            ratio = v4 / v3
            worst = min(worst or ratio, ratio)
            line = f"{buffer:>8}{size:>8}{v3:>10}{v4:>10}{ratio:>8.2f}"
            print(line + ("  too few" if ratio < LEAST else ""), flush=True)
    return worst is None or worst < LEAST


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="60 200 600 1500 9000 mix")
    parser.add_argument("--buffers", default="2048 32768", help="-B, in KiB")
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--guest", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if reason := capture.no_tcpdump(None):
        print("SKIP:", reason)
        return SKIP
    if reason := capture.no_tcpdump(capture.PCAP):
        sys.exit(f"burst: {reason}")
    if args.guest:
        return guest(args)
    proc.stop_on_signals()
    command = [str(TOP / "lab/run/vm"), "-t", "3600", "-l", str(BUILD / "log/burst")]
    command += ["--", "env", f"BASE={BASE}", str(Path(__file__).resolve())]
    command += ["--guest", *sys.argv[1:]]
    return proc.finish(proc.start(command, pipe=False))


if __name__ == "__main__":
    proc.main(main)
