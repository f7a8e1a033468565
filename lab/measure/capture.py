# SPDX-License-Identifier: GPL-2.0
"""tcpdump and its packets, for the guests of lab/measure/bench.py and burst.py."""

import ctypes
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from lab.build.place import BUILD

PCAP = BUILD / "pcap/lib"  # libpcap with V4
# To 02:00:00:00:00:02, of a protocol for experiments
HEADER = bytes.fromhex("020000000002 020000000001 88b5")
IOVEC = struct.Struct("PN")
# struct mmsghdr: name and length, iovecs and number, control and length, flags, sent
MMSGHDR = struct.Struct("PIPNPNi4xI4x")


class Sender:
    """Sends packets of these sizes by one sendmmsg(), which costs little itself."""

    def __init__(self, device: str, sizes: list[int]):
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.sock.bind((device, 0))
        self.packet = ctypes.create_string_buffer(HEADER, max(sizes))
        packet = ctypes.addressof(self.packet)
        self.iovecs = ctypes.create_string_buffer(len(sizes) * IOVEC.size)
        self.messages = ctypes.create_string_buffer(len(sizes) * MMSGHDR.size)
        for i, size in enumerate(sizes):
            IOVEC.pack_into(self.iovecs, i * IOVEC.size, packet, size)
            iovec = ctypes.addressof(self.iovecs) + i * IOVEC.size
            message = 0, 0, iovec, 1, 0, 0, 0, 0
            MMSGHDR.pack_into(self.messages, i * MMSGHDR.size, *message)
        self.sendmmsg = ctypes.CDLL(None, use_errno=True).sendmmsg

    def send(self, count: int) -> int:
        """Send the first packets; returns how many were sent."""
        sent = self.sendmmsg(self.sock.fileno(), self.messages, count, 0)
        if sent < 0:
            raise OSError(ctypes.get_errno(), "sendmmsg")
        return sent


def no_tcpdump(lib: Path | None) -> str:
    """Why tcpdump cannot run with the libpcap in `lib`, or an empty string"""
    if not shutil.which("tcpdump"):
        return "no tcpdump: lab/build/deps pcap installs it"
    if lib and not (lib / "libpcap.so.0.8").exists():
        return "no libpcap with V4: make pcap"
    return ""


class Tcpdump:
    """tcpdump with the libpcap in `lib`, or with Debian's."""

    def __init__(
        self, port: str, kib: int, lib: Path | None, output: int, *prefix: str
    ):
        command = [*prefix, "tcpdump", "-Z", "root", "-B", str(kib)]
        command += ["-w", "-", "-i", port]
        env = dict(os.environ) | ({"LD_LIBRARY_PATH": str(lib)} if lib else {})
        self.log = Path(tempfile.mkstemp()[1])
        with self.log.open("a") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=env,
            )
        self.wait_for("listening")

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until its messages have the pattern."""
        while not (found := re.search(pattern, self.log.read_text())):
            if self.process.poll() is not None:
                raise RuntimeError(f"tcpdump has ended: {self.log.read_text()}")
            time.sleep(0.01)
        return found

    def counters(self) -> tuple[int, int]:
        """The packets captured, and those dropped."""
        os.truncate(self.log, 0)
        self.process.send_signal(signal.SIGUSR1)
        pattern = r"(?s)(\d+) packets? captured.* (\d+) packets? dropped by kernel"
        found = self.wait_for(pattern)
        return int(found[1]), int(found[2])

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.log.unlink()
