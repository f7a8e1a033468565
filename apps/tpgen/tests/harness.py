# SPDX-License-Identifier: GPL-2.0
"""Runs tpgen and captures what it sends, for the cases of guest.py."""

import contextlib
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Self

TPGEN, A, B = sys.argv[1:4]
SHORT = bool(os.getenv("TPGEN_SHORT"))
DIR = Path(tempfile.mkdtemp(prefix="tpgen-"))
LIMIT = 120  # seconds until something is taken for hanging
MAGIC = 0x7067
Packet = dict[str, str]


class Skip(Exception):
    """A case that cannot run here; its text is the reason."""


def check(condition: object, what: object) -> None:
    if not condition:
        raise AssertionError(str(what))


def close(value: float, want: float, percent: float, what: str) -> None:
    off = abs(value - want) / want * 100
    check(off <= percent, f"{what}: {value:g} is {off:.2f} % away from {want:g}")


class Clock(threading.Thread):
    """Notes how late this machine wakes up who sleeps."""

    STEP = 0.002

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.late: list[float] = []
        self.ended = False

    def run(self) -> None:
        while not self.ended:
            begun = time.monotonic()
            time.sleep(self.STEP)
            self.late.append(time.monotonic() - begun - self.STEP)

    def busy(self) -> str:
        """Why times cannot be measured here, if so."""
        self.ended = True
        late = sorted(self.late)
        # Of ten sleeps one, or a long one, is enough to disturb each of these tests.
        often, worst = late[len(late) * 9 // 10], late[-1]
        if often < self.STEP / 2 and worst < 0.02:
            return ""
        return (
            f"the machine is busy: one of ten sleeps of 2 ms is {often * 1e3:.1f} ms"
            f" late, one was {worst * 1e3:.0f} ms late"
        )


def timed(case: Callable[[], None]) -> Callable[[], None]:
    """A case that measures time: it fails only if the machine can keep time."""

    def wrapped() -> None:
        clock = Clock()
        clock.start()
        try:
            case()
        except AssertionError as why:
            if busy := clock.busy():
                raise Skip(f"{busy}; {why}") from why
            raise
        finally:
            clock.ended = True

    return wrapped


# --- running programs ------------------------------------------------------------


def start(
    *words: object, stdin: IO[bytes] | None = None, prefix: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*prefix, TPGEN, *map(str, words)],
        stdin=stdin or subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="surrogateescape",
    )


def first_line(process: subprocess.Popen[str]) -> str:
    """What it prints first to standard error."""
    assert process.stderr
    if not select.select([process.stderr], [], [], 20)[0]:
        process.kill()
    return process.stderr.readline()


def finish(process: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    out, errors = process.communicate(timeout=LIMIT)
    check(process.returncode == code, f"exit code {process.returncode}: {errors}{out}")
    return out, errors


def threads_run(process: subprocess.Popen[str]) -> None:
    """Before it starts its threads, the program blocks signals that end it."""
    until = time.monotonic() + LIMIT
    tasks = Path(f"/proc/{process.pid}/task")
    while process.poll() is None and len(list(tasks.iterdir())) < 2:
        check(time.monotonic() < until, "no thread starts")
        time.sleep(0.02)


def stop(process: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    threads_run(process)
    process.send_signal(signal.SIGINT)
    return finish(process, code)


def run(*words: object, code: int = 0) -> str:
    out, errors = finish(start(*words), code)
    return out + errors


def result(process: subprocess.Popen[str], code: int = 0) -> dict:
    return json.loads(finish(process, code)[0])


def run_json(*words: object, code: int = 0) -> dict:
    return result(start(*words, "--json", "-", "-q"), code)


def is_bound(interface: str, sockets: int = 1) -> bool:
    index = Path(f"/sys/class/net/{interface}/ifindex").read_text().strip()
    lines = Path("/proc/net/packet").read_text().splitlines()[1:]
    # What receives has a protocol.
    return sum(s.split()[3:5] == ["0003", index] for s in lines) >= sockets


def receiver(mode: str, *words: object, sockets: int = 1) -> subprocess.Popen[str]:
    """Start rx or pong on B, and wait until it is bound."""
    process = start(mode, "-i", B, "-q", "--json", "-", *words)
    until = time.monotonic() + LIMIT
    while not is_bound(B, sockets) and process.poll() is None:
        check(time.monotonic() < until, f"{mode} does not start")
        time.sleep(0.02)
    return process


def stop_json(process: subprocess.Popen[str], packets: int = 0) -> dict:
    """Stop a receiver when so many packets have arrived at B, or none do any more."""
    wait_for(packets)
    return json.loads(stop(process)[0])


@contextlib.contextmanager
def mtu(size: int) -> Iterator[None]:
    """Both ends have this MTU while the body of a with statement runs."""
    before = Path(f"/sys/class/net/{A}/mtu").read_text().strip()
    try:
        for end in A, B:
            subprocess.run(["ip", "link", "set", end, "mtu", str(size)], check=True)
        yield
    finally:
        for end in A, B:
            subprocess.run(["ip", "link", "set", end, "mtu", before], check=True)


def counter(interface: str, name: str) -> int:
    return int(Path(f"/sys/class/net/{interface}/statistics/{name}").read_text())


base = 0


def begin() -> None:
    """A case begins: wait_for() counts from here on."""
    global base
    base = counter(B, "rx_packets")


def wait_for(packets: int) -> None:
    until = time.monotonic() + 20
    while counter(B, "rx_packets") - base < packets and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.3)


class Capture:
    """What an interface receives while the body of a with statement runs.

    The buffer takes 10 KiB for each packet that tcpdump has not written yet.
    """

    def __init__(self, interface: str = B, kib: int = 16384) -> None:
        self.interface = interface
        self.kib = kib

    def __enter__(self) -> Self:
        self.file = DIR / f"capture-{self.interface}"
        command = [
            "tcpdump",
            "-i",
            self.interface,
            "-w",
            str(self.file),
            "-U",
            "-B",
            str(self.kib),
        ]
        command += ["--immediate-mode", "-s", "10000", "-Z", "root", "-Q", "in"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr
        for line in self.process.stderr:
            if line.startswith("tcpdump: listening"):
                break
        self.before = counter(self.interface, "rx_packets")
        return self

    def __exit__(self, *_: object) -> None:
        # tcpdump may be behind what the device has received.
        had, until = -1, time.monotonic() + 10
        while time.monotonic() < until:
            have = len(self.contents())
            if have >= counter(self.interface, "rx_packets") - self.before:
                break
            if have != had:
                had, until = have, time.monotonic() + 10
            time.sleep(0.1)
        time.sleep(0.2)
        self.process.send_signal(signal.SIGINT)
        self.process.wait(LIMIT)

    def packets(self) -> list[Packet]:
        """What tcpdump prints of each packet, and the fields in it."""
        command = ["tcpdump", "-r", str(self.file), "-nn", "-e", "-vvv", "-tt"]
        text = subprocess.run(
            command, check=False, capture_output=True, text=True
        ).stdout
        return [parse(p) for p in re.split(r"\n(?=\d+\.\d{6} )", text.strip()) if p]

    def times(self) -> list[float]:
        return [float(p["time"]) for p in self.packets()]

    def contents(self) -> list[bytes]:
        data, at, all_of_them = self.file.read_bytes(), 24, []
        while at + 16 <= len(data):
            size = struct.unpack_from("<I", data, at + 8)[0]
            if at + 16 + size > len(data):
                break  # being written
            all_of_them.append(data[at + 16 : at + 16 + size])
            at += 16 + size
        return all_of_them


PATTERNS = {
    "time": r"^(\d+\.\d+)",
    "smac": r" ([0-9a-f:]{17}) > ",
    "dmac": r" > ([0-9a-f:]{17}),",
    "length": r" length (\d+)[:,]",
    "vlan": r"vlan (\d+),",
    "priority": r"vlan \d+, p (\d)",
    "tos": r"tos (0x\w+)",
    "class": r"class (0x\w+)",
    "ttl": r"ttl (\d+)",
    "hlim": r"hlim (\d+)",
    "from": r"\s([0-9a-f.:]+) > [0-9a-f.:]+: ",
    "to": r" > ([0-9a-f.:]+): (?!ethertype)",
}


def parse(text: str) -> Packet:
    packet = {"text": text}
    for name, pattern in PATTERNS.items():
        if found := re.search(
            pattern,
            text.split("\n", 1)[-1]
            if name in ("from", "to") and "\n" in text
            else text,
        ):
            packet[name] = found.group(1)
    for name in "from", "to":
        address, _, port = packet.get(name, "").rpartition(".")
        if re.fullmatch(r"(\d+\.){3}\d+|[0-9a-f:]+", address):
            packet[name], packet[f"{name}_port"] = address, port
    return packet


def good(packets: list[Packet], count: int) -> list[Packet]:
    """So many packets, and tcpdump likes all of them."""
    check(len(packets) == count, f"{len(packets)} packets, not {count}")
    for p in packets:
        text = p["text"]
        bad = re.search(r"bad|incorrect|wrong|invalid|truncated|malformed", text)
        check(not bad, text)
        if "proto UDP" in text or "next-header UDP" in text:
            check("udp sum ok" in text, text)
        elif "Flags" in text:
            check("(correct)" in text, text)
        elif "ICMP6" in text:
            check("icmp6 sum ok" in text, text)
    return packets


def sent(count: int, *words: object, mode: str = "tx") -> list[Packet]:
    with Capture() as capture:
        run(mode, "-i", A, "-n", count, "-q", *words)
    return good(capture.packets(), count)


def values(packets: list[Packet], *names: str) -> list[tuple[str, ...]]:
    return [tuple(p.get(name, "") for name in names) for p in packets]
