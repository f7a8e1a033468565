#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts packets that tcpdump's buffer holds while tcpdump is stopped: V3 and V4.

Boots the plain kernel. For each size, a veth pair carries 200000 packets to a stopped
tcpdump, with Debian's libpcap and with that of make pcap, and the same -B. Prints a
table; fails if V4 holds less than 0.9 of V3's packets.
"""

import argparse
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.build.place import BUILD, TOP
from lab.measure.bench_guest import ETHERTYPE, Iovec, Message, run
from lab.run import proc

LEAST = 0.9
BATCH = 60
MIX = [60] * 7 + [600] * 4 + [1500]
ENDS = ("tp4A", "tp4B")
PATIENCE = 300


def send(device: str, sizes: list[int], count: int) -> None:
    """Send packets whose sizes repeat, in batches."""
    header = bytes.fromhex("020000000002" + "020000000001" + ETHERTYPE)
    messages = (Message * BATCH)()
    keep = []
    for i, message in enumerate(messages):
        size = sizes[i % len(sizes)]
        packet = ctypes.create_string_buffer(header, size)
        iov = Iovec(ctypes.addressof(packet), size)
        keep.append((packet, iov))
        message.iov, message.iovlen = ctypes.pointer(iov), 1
    sendmmsg = ctypes.CDLL(None, use_errno=True).sendmmsg
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sock.bind((device, 0))
    while count:
        sent = sendmmsg(sock.fileno(), messages, min(count, BATCH), 0)
        if sent < 0:
            sys.exit(f"burst: sendmmsg: {os.strerror(ctypes.get_errno())}")
        # A batch that is cut would shift the mix, but loses no packet.
        count -= sent


def is_stopped(pid: int) -> bool:
    return "\nState:\tT" in Path(f"/proc/{pid}/status").read_text()


def wait_for(
    log: Path, pattern: str, tcpdump: subprocess.Popen[bytes]
) -> re.Match[str]:
    end = time.monotonic() + PATIENCE
    while not (found := re.search(pattern, log.read_text())):
        if tcpdump.poll() is not None or time.monotonic() > end:
            sys.exit(f"burst: tcpdump: no {pattern!r} in {log.read_text()!r}")
        time.sleep(0.02)
    return found


def count_held(lib: str, buffer: int, sizes: list[int], count: int) -> int:
    """The packets of a burst that a stopped tcpdump gets when it goes on."""
    log = Path(tempfile.mkstemp()[1])
    command = ["tcpdump", "-Z", "root", "-i", ENDS[1], "-w", "/dev/null"]
    command += ["-B", str(buffer)]
    env = dict(os.environ) | ({"LD_LIBRARY_PATH": lib} if lib else {})
    with log.open("a") as errors:
        tcpdump = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=errors, env=env
        )
    wait_for(log, "listening", tcpdump)
    tcpdump.send_signal(signal.SIGSTOP)
    while not is_stopped(tcpdump.pid):
        time.sleep(0.01)
    send(ENDS[0], sizes, count)
    tcpdump.send_signal(signal.SIGCONT)
    # All packets are either captured or dropped: wait until they have been read.
    captured = dropped = 0
    end = time.monotonic() + PATIENCE
    while captured + dropped < count:
        if time.monotonic() > end:
            sys.exit(f"burst: {captured} captured, {dropped} dropped of {count}")
        time.sleep(0.1)
        os.truncate(log, 0)
        tcpdump.send_signal(signal.SIGUSR1)
        pattern = r"(?s)(\d+) packets? captured.* (\d+) packets? dropped by kernel"
        found = wait_for(log, pattern, tcpdump)
        captured, dropped = int(found[1]), int(found[2])
    tcpdump.terminate()
    tcpdump.wait()
    log.unlink()
    return captured


def guest(args: argparse.Namespace) -> int:
    run("ip", "link", "add", ENDS[0], "type", "veth", "peer", "name", ENDS[1])
    for end in ENDS:
        # Only the packets of the burst: no neighbour discovery
        Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
        run("ip", "link", "set", end, "mtu", "9100", "up")
    print(f"{'-B KiB':>8}{'bytes':>8}{'V3':>10}{'V4':>10}{'V4/V3':>8}", flush=True)
    worst = None
    for buffer in map(int, args.buffers.split()):
        for size in args.sizes.split():
            sizes = MIX if size == "mix" else [int(size)]
            v3 = count_held("", buffer, sizes, args.count)
            v4 = count_held(args.lib, buffer, sizes, args.count)
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
    parser.add_argument("--kernel", default="plain")
    parser.add_argument("--lib", default=str(BUILD / "pcap/lib"), metavar="DIR")
    parser.add_argument("--guest", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not shutil.which("tcpdump"):
        print("SKIP: no tcpdump: lab/build/deps pcap installs it")
        return 4
    if not Path(args.lib, "libpcap.so.0.8").exists():
        sys.exit("burst: no libpcap with V4: make pcap")
    if args.guest:
        return guest(args)
    proc.stop_on_signals()
    command = [str(TOP / "lab/run/vm"), "-k", args.kernel, "-t", "3600"]
    command += ["-l", str(BUILD / "log/burst"), "--", str(Path(__file__).resolve())]
    command += ["--guest", "--sizes", args.sizes, "--buffers", args.buffers]
    command += ["--count", str(args.count), "--lib", args.lib]
    return proc.finish(proc.start(command, pipe=False))


if __name__ == "__main__":
    proc.main(main)
