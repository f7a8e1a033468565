#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts instructions per packet of programs that receive from 1 to 64 queues.

Boots the plain kernel as lab/measure/bench.py does: one virtual CPU that executes one
instruction per nanosecond of guest time. A veth pair receives bursts of 64 packets, on
one of its queues, or on each in turn, in zero-copy mode and with a deferred NAPI. The
sender and the stack do not count. Fails if a packet costs more than 1.05 of its cost with
one queue.
"""

import contextlib
import ctypes
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD
from lab.measure import bench_guest, capture, icount
from lab.run import proc

COUNTS = (1, 8, 32, 64)
MARK = 1.05
FLOWS = 8  # for each queue: a hash selects it
PACKET = 60
# Seconds between two bursts. NAPI, deferred twice by 200 us, has gone idle by then, however
# few queues take turns: else one queue would save work that is not the program's.
PERIOD = 0.001
HEADERS = 42
SOCKET = "/run/switch"  # in the guest
LIB, TPGEN = str(BUILD / "lib/forward"), str(BUILD / "tpgen/tpgen")
SWITCH, SWPERF = (str(BUILD / "tpswitch" / name) for name in ("tpswitch", "swperf"))
FRAMES = "70000"  # of tpswitch: 1024 for each queue, and as many for Tx
SETTLE = 3  # seconds: with 64 queues, memory is prepared meanwhile
PROGRAMS = ("library", "tpgen rx", "tpswitch")


def header(flow: int) -> bytes:
    """Ethernet, IPv4, UDP, to another host"""
    ethernet = bytes.fromhex("020000000002 020000000001 0800")
    addresses = bytes((10, 0, 0, 1, 10, 0, 0, 2))
    ip = struct.pack(">BBHHHBBH", 0x45, 0, PACKET - 14, 0, 0, 64, 17, 0) + addresses
    return ethernet + ip + struct.pack(">HHHH", 1024 + flow, 9, PACKET - 34, 0)


def start_sender(device: str, flows: int) -> int:
    """Send bursts, each of one flow."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    senders = []
    for flow in range(flows):
        sender = capture.Sender(device, [PACKET] * bench_guest.BURST)
        ctypes.memmove(sender.packet, header(flow), HEADERS)
        senders.append(sender)
    due = time.monotonic()
    while True:
        for sender in senders:
            with contextlib.suppress(OSError):
                sender.send(bench_guest.BURST)
            due += PERIOD
            time.sleep(max(0, due - time.monotonic()))


def start(*command: str) -> subprocess.Popen[bytes]:
    return proc.start(command, pipe=False)


def stop(sender: int) -> None:
    os.kill(sender, signal.SIGKILL)
    os.waitpid(sender, 0)


def counters_of(device: str, way: str) -> Callable[[], tuple[int, int]]:
    """The packets of a device, and those dropped"""
    files = [
        Path("/sys/class/net", device, "statistics", f"{way}_{kind}")
        for kind in ("packets", "dropped")
    ]

    def counters() -> tuple[int, int]:
        packets, dropped = (int(file.read_text()) for file in files)
        return packets, dropped

    return counters


def cost_of_sender(flows: int, queues: int) -> float:
    """A packet that the device drops"""
    add = ["ip", "link", "add", "tp4X", "numtxqueues", str(queues), "type", "dummy"]
    bench_guest.run(*add)
    bench_guest.set_up_links(["tp4X"])
    sender = start_sender("tp4X", flows)
    cost = bench_guest.measure(counters_of("tp4X", "tx"))["ns_per_packet"]
    stop(sender)
    bench_guest.run("ip", "link", "del", "tp4X")
    return cost


@contextlib.contextmanager
def running(program: str, ends: list[str], queues: int) -> Iterator[None]:
    """The program receives from all queues of the second end."""
    started = []
    if program == "library":
        started.append(start(LIB, ends[1], ends[0], "drop", str(queues)))
    elif program == "tpgen rx":
        which = f"0-{queues - 1}" if queues > 1 else "0"
        started.append(start(TPGEN, "rx", "-q", "-i", ends[1], "-z", which))
    else:
        started.append(start(SWITCH, "-S", SOCKET, "--frames", FRAMES))
        while not Path(SOCKET).exists():
            time.sleep(0.05)
        started.append(start(SWPERF, "-S", SOCKET, "--receive", "-n", "1000000000"))
        ctl = [SWITCH, "ctl", "-S", SOCKET, "add", f"zc:{ends[1]}"]
        subprocess.run(ctl, check=True)
    try:
        yield
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGKILL)
            process.wait()
        with contextlib.suppress(FileNotFoundError):
            Path(SOCKET).unlink()


def guest(programs: list[str], counts: list[int]) -> None:
    ends = bench_guest.set_up("veth", max(COUNTS))
    bench_guest.defer_interrupts(ends, busy=True)
    for queues in counts:
        bench_guest.set_queues("veth", ends, queues)
        for active in sorted({1, queues}):
            flows = active if active == 1 else active * FLOWS
            sender_alone = cost_of_sender(flows, queues)
            sender = start_sender(ends[0], flows)
            counters = counters_of(ends[1], "rx")
            for program in programs:
                with running(program, ends, queues):
                    time.sleep(SETTLE)
                    got = bench_guest.measure(counters)
                icount.report(
                    {
                        "program": program,
                        "queues": queues,
                        "active": active,
                        "cost": got["ns_per_packet"] - sender_alone,
                        "drops": got["drops"],
                        "packets": got["packets"],
                    }
                )
            stop(sender)


def main() -> int:
    parser = icount.arguments(__doc__)
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS)
    args = parser.parse_args()
    if args.guest:
        guest(*args.guest)
        return 0
    proc.stop_on_signals()
    costs: dict[tuple[str, bool, int], float] = {}
    job = [args.programs, args.counts]
    for got in icount.boot("bench-queues", __file__, job, args.kernel, []):
        several = got["active"] > 1
        costs[got["program"], several, got["queues"]] = got["cost"]
        if got["drops"]:
            sys.exit(f"bench: packets were dropped: {got}")
    counts = sorted(args.counts)
    print("\nInstructions per packet, 60 bytes, zero-copy mode on veth\n")
    print(f"{'queues':30}", *(f"{count:7}" for count in counts), "at most")
    failed = False
    for program in args.programs:
        one = costs[program, False, counts[0]]
        for several in False, True:
            row = [costs[program, several and n > 1, n] for n in counts]
            title = f"{program}, {'all have' if several else 'one has'} packets"
            print(
                f"{title:30}", *(f"{cost:7.0f}" for cost in row), f"{one * MARK:7.0f}"
            )
            failed |= max(row) > one * MARK
    return int(failed)


if __name__ == "__main__":
    proc.main(main)
