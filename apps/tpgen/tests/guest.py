#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests each option of tpgen on a veth pair: guest.py TPGEN IF PEER [CASE...]

tcpdump and the kernel's counters judge what tpgen sends, and capture files that are
written here, with known faults, what it receives. Prints TAP. Needs root and a kernel
with V4. With TPGEN_SHORT=1, rates are held for two seconds instead of ten, and cases
that take long are left out.
"""

import itertools
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Self

TPGEN, A, B = sys.argv[1:4]
SHORT = bool(os.getenv("TPGEN_SHORT"))
DIR = Path(tempfile.mkdtemp(prefix="tpgen-"))
LIMIT = 120  # seconds until something is taken for hanging
MAGIC = 0x7067
TAKE_LONG = ("poisson", "qdisc", "burst", "replay_timing")
# For devices that stamp all packets, if their clock is a second ahead of the kernel's
NOT_ON_VETH = ("hardware_stamps",)
Packet = dict[str, str]


class Skip(Exception):
    """A case that cannot run here; its text is the reason."""


# A case that fails hides no other one.
FAILURES = (AssertionError, OSError, LookupError, ValueError, TypeError, AttributeError)
FAILURES += (subprocess.SubprocessError, struct.error, xml.etree.ElementTree.ParseError)


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


def start(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [TPGEN, *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    out, errors = process.communicate(timeout=LIMIT)
    check(process.returncode == code, f"exit code {process.returncode}: {errors}{out}")
    return out, errors


def stop(process: subprocess.Popen[str]) -> tuple[str, str]:
    # Before it starts its threads, the program blocks the signal.
    until = time.monotonic() + LIMIT
    tasks = Path(f"/proc/{process.pid}/task")
    while process.poll() is None and len(list(tasks.iterdir())) < 2:
        check(time.monotonic() < until, "no thread starts")
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    return finish(process)


def run(*words: object, code: int = 0) -> str:
    out, errors = finish(start(*words), code)
    return out + errors


def result(process: subprocess.Popen[str]) -> dict:
    return json.loads(finish(process)[0])


def run_json(*words: object) -> dict:
    return result(start(*words, "--json", "-", "-q"))


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


def counter(interface: str, name: str) -> int:
    return int(Path(f"/sys/class/net/{interface}/statistics/{name}").read_text())


base = 0


def wait_for(packets: int) -> None:
    until = time.monotonic() + 20
    while counter(B, "rx_packets") - base < packets and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.3)


class Capture:
    """What an interface receives while the body of a with statement runs."""

    def __init__(self, interface: str = B) -> None:
        self.interface = interface

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
            "16384",
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


# --- capture files ---------------------------------------------------------------


def signature(run_id: int, stream: int, seq: int, stamp: int) -> bytes:
    return struct.pack(">HHHIQ", MAGIC, run_id, stream, seq & 0xFFFFFFFF, stamp)


def udp(payload: bytes, port: int = 9) -> bytes:
    """A packet whose UDP has no checksum."""
    head = struct.pack(">HHHH", 7, port, 8 + len(payload), 0)
    ip = struct.pack(
        ">BBHIBBH4s4s",
        0x45,
        0,
        28 + len(payload),
        0,
        64,
        17,
        0,
        b"\x0a\0\0\1",
        b"\x0a\0\0\2",
    )
    words = sum(struct.unpack(">10H", ip))
    words = (words & 0xFFFF) + (words >> 16)
    ip = ip[:10] + struct.pack(">H", ~words & 0xFFFF) + ip[12:]
    ethernet = b"\x02\0\0\0\0\2" + b"\x02\0\0\0\0\1" + b"\x08\0"
    return ethernet + ip + head + payload


def pcap(
    packets: list[tuple[int, bytes]], order: str = "<", nano: bool = False
) -> bytes:
    data = struct.pack(
        f"{order}IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1
    )
    for ns, packet in packets:
        part = ns % 10**9 // (1 if nano else 1000)
        data += struct.pack(f"{order}IIII", ns // 10**9, part, len(packet), len(packet))
        data += packet
    return data


def pcapng(packets: list[tuple[int, bytes]], order: str = "<") -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        size = 12 + len(body)
        return (
            struct.pack(f"{order}II", kind, size)
            + body
            + struct.pack(f"{order}I", size)
        )

    data = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
    option = struct.pack(f"{order}HHB3xHH", 9, 1, 9, 0, 0)
    data += block(1, struct.pack(f"{order}HHI", 1, 0, 0) + option)
    for ns, packet in packets:
        head = struct.pack(
            f"{order}IIIII", 0, ns >> 32, ns & 0xFFFFFFFF, len(packet), len(packet)
        )
        data += block(6, head + packet)
    return data


def write(data: bytes) -> Path:
    path = DIR / "file"
    path.write_bytes(data)
    return path


def replayed(data: bytes, *words: object) -> Capture:
    with Capture() as capture:
        run("replay", "-i", A, "-q", "-f", write(data), *words)
    return capture


def gaps(times: list[float]) -> list[float]:
    return [b - a for a, b in itertools.pairwise(times)]


def median(some: list[float]) -> float:
    return sorted(some)[len(some) // 2]


# --- packets ---------------------------------------------------------------------


def test_count_and_size() -> None:
    said = run("tx", "-i", A, "-n", 1500, "-l", 64, "-q")
    check("sent 1500 packets, 96000 bytes" in said, said)
    check(counter(A, "tx_packets") - base >= 1500, "the device has counted fewer")
    check(all(p["length"] == "100" for p in sent(70, "-l", 100)), "length")


def test_sizes() -> None:
    lengths = [int(p["length"]) for p in sent(50, "-l", "100-109")]
    check(lengths == [100 + i % 10 for i in range(50)], lengths)
    lengths = [
        int(p["length"]) for p in sent(300, "-l", "80-300", "--random", "length")
    ]
    check(min(lengths) >= 80 and max(lengths) <= 300, lengths)
    check(len(set(lengths)) > 100, lengths)
    found = Counter(int(p["length"]) for p in sent(120, "-l", "imix"))
    check(found == {60: 70, 590: 40, 1514: 10}, found)


def test_protocols() -> None:
    for family in "-4", "-6":
        for protocol in "udp", "tcp", "icmp":
            packets = sent(
                6,
                family,
                "--proto",
                protocol,
                "-l",
                "100-103",
                "--ttl",
                9,
                "--tos",
                "0x10",
            )
            for p in packets:
                fields = p.get("ttl") or p.get("hlim"), p.get("tos") or p.get("class")
                check(fields == ("9", "0x10"), p["text"])


def test_addresses_in_turn() -> None:
    packets = sent(24, "-s", "10.0.0.254-10.0.1.1:7-9", "-d", "192.168.0.1:80")
    want = [
        (f"10.0.{a >> 8}.{a & 255}", str(port), "192.168.0.1", "80")
        for a in range(254, 258)
        for port in (7, 8, 9)
    ] * 2
    found = values(packets, "from", "from_port", "to", "to_port")
    check(found == want, found)
    # more than the frames hold, so that they are written
    with Capture() as capture:
        run(
            "tx", "-i", A, "-n", 3000, "-q", "-R", "5k", "-d", "10.1.0.0-10.1.3.255:5-7"
        )
    found = values(good(capture.packets(), 3000), "to", "to_port")
    want = [
        (f"10.1.{a >> 8}.{a & 255}", str(port))
        for a in range(1000)
        for port in (5, 6, 7)
    ]
    check(found == want, "addresses in turn, rewritten")


def test_addresses_ipv6() -> None:
    packets = sent(
        12, "-s", "[fd00::fffe-fd00::1:1]:1-3", "-d", "fd00::9", "--dport", 4000
    )
    want = [
        (a, str(port), "fd00::9", "4000")
        for a in ("fd00::fffe", "fd00::ffff", "fd00::1:0", "fd00::1:1")
        for port in (1, 2, 3)
    ]
    found = values(packets, "from", "from_port", "to", "to_port")
    check(found == want, found)


def test_addresses_random() -> None:
    packets = sent(
        400,
        "-s",
        "10.0.0.0-10.0.255.255:1000-1999",
        "-d",
        "1.2.3.4-1.2.3.7",
        "--dport",
        "1-4",
        "--random",
        "src,sport,dst,dport",
    )
    for name, fewest in ("from", 300), ("from_port", 250), ("to", 4), ("to_port", 4):
        found = {p[name] for p in packets}
        check(len(found) >= fewest, f"{name}: {len(found)} values")
    check(all(1000 <= int(p["from_port"]) < 2000 for p in packets), "ports")
    check(all(p["from"].startswith("10.0.") for p in packets), "addresses")


def test_macs() -> None:
    packets = sent(
        6,
        "-S",
        "02:00:00:00:00:ff-02:00:00:00:01:01",
        "-D",
        "02:00:00:00:00:01-02:00:00:00:00:02",
    )
    want = [
        (f"02:00:00:00:{s >> 8:02x}:{s & 255:02x}", f"02:00:00:00:00:0{d}")
        for d in (1, 2)
        for s in (255, 256, 257)
    ]
    found = values(packets, "smac", "dmac")
    check(found == want, found)
    own = Path(f"/sys/class/net/{A}/address").read_text().strip()
    found = values(sent(1), "smac", "dmac")
    check(found == [(own, "ff:ff:ff:ff:ff:ff")], found)
    macs = {
        p["smac"]
        for p in sent(
            100, "-S", "02:00:00:00:00:00-02:00:ff:00:00:00", "--random", "src-mac"
        )
    }
    check(len(macs) == 100, macs)


def test_vlan() -> None:
    packets = sent(6, "--vlan", "99-101", "--priority", 5, "-6", "-l", 90)
    found = values(packets, "vlan", "priority")
    check(found == [(str(99 + i % 3), "5") for i in range(6)], found)


def test_frames() -> None:
    for size, frames in (1500, 3), (8000, None), (9014, 4):
        some = ["-F", frames] if frames else []
        with Capture() as capture:
            run("tx", "-i", A, "-n", 5, "-q", "-l", size, *some)
        found = [int(p["length"]) for p in good(capture.packets(), 5)]
        check(found == [size] * 5, found)
    check("more frames" in run("tx", "-i", A, "-l", 9000, "-F", 1, code=2), "one frame")


def test_dump() -> None:
    with Capture() as capture:
        said, _ = finish(start("tx", "-i", A, "-n", 3, "-q", "--dump=2", "-l", 75))
    lines = re.findall(r"^[0-9a-f]{6}  ((?:[0-9a-f]{2} )+)", said, re.MULTILINE)
    found = bytes.fromhex("".join(lines))
    check(found == b"".join(capture.contents()[:2]), said)
    rx = receiver("rx", "-n", 1, "-X")
    run("tx", "-i", A, "-n", 1, "-q", "-l", 66)
    check("# received, 66 bytes" in finish(rx)[0], "rx -X")


# --- rate ------------------------------------------------------------------------


def held(words: list[object], pps: float) -> None:
    seconds = 2 if SHORT else 10
    before = counter(A, "tx_packets")
    r = run_json("tx", "-i", A, "-t", seconds, *words)
    close(r["asked_pps"], pps, 0.01, "asked rate")
    close(r["pps"] * r["seconds"], counter(A, "tx_packets") - before, 0.01, "packets")
    # It does not claim what it has not done.
    due = r["tx_packets"] + r["left_out"]
    check(
        r["left_out"] or due > pps * seconds * 0.9, f"{due} packets of {pps * seconds}"
    )
    close(r["pps"], pps, 1, " ".join(map(str, words)))


@timed
def test_rate_packets() -> None:
    held(["-R", "2k"], 2000)


@timed
def test_rate_bits() -> None:
    held(["-R", "1Mbps", "-l", 125], 1000)


@timed
def test_rate_wire() -> None:
    held(["-R", "1Mbpsl1", "-l", 101], 1000)


@timed
def test_rate_percent() -> None:
    # The speed of a veth pair is 10 Gbit/s.
    held(["-R", "0.01%", "-l", 101], 1000)


@timed
def test_burst() -> None:
    with Capture() as capture:
        run("tx", "-i", A, "-n", 200, "-q", "-R", 500, "-b", 10)
    times = capture.times()
    check(len(times) == 200, len(times))
    close(median(gaps(times[::10])), 0.02, 25, "from burst to burst")
    within = [t for i, t in enumerate(gaps(times)) if i % 10 != 9]
    check(median(within) < 0.002, f"within a burst: {median(within)}")


@timed
def test_poisson() -> None:
    def short_gaps(*words: str) -> float:
        with Capture() as capture:
            run("tx", "-i", A, "-n", 250, "-q", "-R", 100, *words)
        found = gaps(capture.times())
        check(len(found) == 249, len(found))
        return sum(g < 0.005 for g in found) / len(found)

    # Of exponential gaps, 39 % are shorter than half the mean.
    share = short_gaps("--poisson")
    check(0.29 < share < 0.5, f"{share:.0%} of the random gaps are short")
    share = short_gaps()
    check(share < 0.15, f"{share:.0%} of the constant gaps are short")


def tc(*words: str) -> None:
    done = subprocess.run(
        ["tc", "qdisc", "replace", "dev", A, "root", *words],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Skip(f"tc {words[0]}: {done.stderr.strip()}")


def launched(qdisc: str) -> list[float]:
    """When 20 packets arrive, from the start on; each is posted 3 s too early."""
    words = ["-n", 20, "-R", 10, "--launch", qdisc, "--ahead", 3000000]
    with Capture() as capture:
        begun = time.time()
        run("tx", "-i", A, "-q", *words)
    return [at - begun for at in capture.times()]


@timed
def test_launch_fq() -> None:
    tc("pfifo")
    times = launched("fq")
    check(times[0] < 2.5, f"without a qdisc for it: {times}")
    tc("fq")
    try:
        times = launched("fq")
    finally:
        tc("noqueue")
    check(len(times) == 20, f"{len(times)} packets")
    check(times[0] >= 3, f"too early: {times}")
    close(times[-1] - times[0], 1.9, 15, "from the first to the last packet")
    close(median(gaps(times)), 0.1, 15, "gap")


@timed
def test_launch_etf() -> None:
    tc("etf", "clockid", "CLOCK_TAI", "delta", "5000000")
    try:
        times = launched("etf")
    finally:
        tc("noqueue")
    # It drops the packets that it is too late for.
    check(len(times) > 17, f"etf has dropped {20 - len(times)} packets")
    check(times[0] >= 2.9, f"too early: {times}")
    close(median(gaps(times)), 0.1, 15, "gap")


@timed
def test_qdisc() -> None:
    def seconds(*words: str) -> float:
        with Capture() as capture:
            run("tx", "-i", A, "-n", 10, "-q", "-l", 1000, *words)
        times = capture.times()
        check(len(times) == 10, f"{len(times)} packets")
        return times[-1] - times[0]

    tc("tbf", "rate", "100kbit", "burst", "1600", "limit", "100000")
    try:
        check(seconds("--qdisc") > 0.3, "the qdisc has not limited the rate")
        check(seconds() < 0.3, "the qdisc has limited the rate")
    finally:
        tc("noqueue")


# --- receiving -------------------------------------------------------------------


def test_loss_order_duplicates() -> None:
    order = [*range(100), *range(103, 200), 202, 201, 200, 150, 203, 203, 300, 301, 5]
    random.seed(1)
    tail = list(range(310, 360))
    random.shuffle(tail)
    order += tail
    seen: set[int] = set()
    top, reordered, duplicates = -1, 0, 0
    for seq in order:
        if seq in seen:
            duplicates += 1
        elif seq < top:
            reordered += 1
        seen.add(seq)
        top = max(top, seq)
    stamp = time.time_ns()
    for first in 0, 0xFFFFFFF0, 12345:
        packets = [(0, udp(signature(7, 3, first + seq, stamp))) for seq in order]
        packets.insert(5, (0, udp(b"something else that has no number")))
        rx = receiver("rx", "--seq")
        run("replay", "-i", A, "-q", "-R", "2k", "-f", write(pcap(packets)))
        r = stop_json(rx)
        check(len(r["streams"]) == 1, r["streams"])
        s = r["streams"][0]
        found = s["stream"], s["received"], s["lost"], s["reordered"], s["duplicate"]
        want = 3, len(seen), 360 - len(seen), reordered, duplicates
        check(found == want, f"from {first}: {found}, not {want}")
        check(r["rx_other"] == 1, r["rx_other"])
        count = s["latency"]["count"]
        check(count == len(order), count)
        check(sum(n for _, n in s["latency"]["histogram"]) == count, "histogram")
        for low, high in (("min", "p50"), ("p50", "p99"), ("p99_9", "max")):
            low, high = s["latency"][f"{low}_ns"], s["latency"][f"{high}_ns"]
            check(low <= high * 1.04, f"{low} > {high}")


def test_latency() -> None:
    """Packets whose stamps are exactly so old when they are sent."""
    old = time.time_ns() - 5 * 10**9
    packets = [(0, udp(signature(7, 0, seq, old))) for seq in range(10)]
    packets += [(0, udp(signature(7, 1, 0, old + 3600 * 10**9)))]
    rx = receiver("rx", "--seq")
    start_ns = time.time_ns()
    run("replay", "-i", A, "-q", "-R", "max", "-f", write(pcap(packets)))
    r = stop_json(rx)
    end_ns = time.time_ns()
    first = r["streams"][0]["latency"]
    check(start_ns - old <= first["min_ns"] <= end_ns - old, first)
    check(first["min_ns"] <= first["max_ns"] <= end_ns - old, first)
    check(r["streams"][1]["negative_latency"] == 1, r["streams"][1])


def through(tx: list[object], rx: list[object], count: int, sockets: int = 1) -> dict:
    process = receiver("rx", "--seq", *rx, sockets=sockets)
    run("tx", "-i", A, "-q", "--seq", "-n", count, "-R", "20k", *tx)
    return stop_json(process, count)


def nothing_lost(r: dict, count: int, streams: int = 1) -> None:
    check(r["rx_dropped"] == 0, f"{r['rx_dropped']} dropped")
    check(len(r["streams"]) == streams, r["streams"])
    found = [(s["received"], s["lost"], s["duplicate"]) for s in r["streams"]]
    check(found == [(count // streams, 0, 0)] * streams, found)
    check(r["rx_other"] == 0, r["rx_other"])


def test_seq() -> None:
    for words in [], ["-6", "-l", 80], ["--proto", "tcp", "-l", 90], ["--vlan", 7]:
        nothing_lost(through(words, [], 3000), 3000)
    with Capture() as capture:
        before = time.time_ns()
        run("tx", "-i", A, "-q", "--seq", "-n", 5, "--stream", 77, "-l", 60)
    good(capture.packets(), 5)
    for seq, data in enumerate(capture.contents()):
        magic, _, stream, number, stamp = struct.unpack(">HHHIQ", data[42:60])
        check((magic, stream, number) == (MAGIC, 77, seq), data.hex())
        check(before <= stamp <= time.time_ns(), stamp)


def test_stamps() -> None:
    r = through([], ["--stamps", "software"], 500)
    nothing_lost(r, 500)
    check(r["streams"][0]["latency"]["count"] == 500, r["streams"])
    said = run("rx", "-i", B, "--seq", "--stamps", "hardware", code=1)
    check("cannot stamp" in said, said)


def test_hardware_stamps() -> None:
    rx = receiver("rx", "-z", 0, "--seq", "--stamps", "hardware", "-n", 500)
    run("tx", "-i", A, "-q", "--seq", "-n", 500, "-R", "20k")
    r = result(rx)
    nothing_lost(r, 500)
    check(r["hardware_stamps"] == 500, r["hardware_stamps"])
    latency = r["streams"][0]["latency"]
    check(latency["count"] == 500, latency)
    check(10**9 <= latency["min_ns"] <= latency["max_ns"] < 9 * 10**9, latency)


def test_threads() -> None:
    # as many threads receive, by fanout
    many = ["-s", "10.0.0.1-10.0.0.50", "-p", 2]
    r = through(many, ["-p", 2], 4000, sockets=2)
    nothing_lost(r, 4000, streams=2)
    check(r["threads"] == 2, r["threads"])


def test_cpus() -> None:
    process = start("tx", "-i", A, "-q", "-R", 10, "-a", "0")
    until = time.monotonic() + LIMIT
    while len(list(Path(f"/proc/{process.pid}/task").iterdir())) < 2:
        check(time.monotonic() < until, "no thread starts")
        time.sleep(0.02)
    time.sleep(1)
    found = set()
    for status in Path(f"/proc/{process.pid}/task").glob("*/status"):
        if status.parent.name != str(process.pid):
            found.add(
                re.search(r"Cpus_allowed_list:\s(.*)", status.read_text()).group(1)
            )
    stop(process)
    check(found == {"0"}, found)
    said = run("tx", "-i", A, "-n", 1, "-q", "-a", "999", code=1)
    check("CPU 999" in said, said)


def test_promisc() -> None:
    def flags() -> int:
        return int(Path(f"/sys/class/net/{B}/flags").read_text(), 16) & 0x100

    rx = receiver("rx", "--promisc")
    check(flags(), "not promiscuous")
    stop(rx)
    check(not flags(), "still promiscuous")


def test_zerocopy() -> None:
    nothing_lost(through(["-z", 0], ["-z", 0], 3000), 3000)
    nothing_lost(through([], ["-z", 0], 2000), 2000)
    nothing_lost(through(["-z", 0, "-l", "80-200"], [], 2000), 2000)
    nothing_lost(through(["-z", 0, "-s", "1.0.0.1-1.0.9.9:1-5"], [], 2000), 2000)
    packets = sent(50, "-z", 0, "-d", "10.0.0.1-10.0.0.9", "-l", 1400, "-F", 2)
    check(len({p["to"] for p in packets}) == 9, "addresses")
    said = run("tx", "-i", "lo", "-z", 0, "-n", 1, code=1)
    check("Operation not supported" in said, said)


# --- ping and pong ---------------------------------------------------------------


def test_ping() -> None:
    kinds: list[list[object]] = [
        ["-6", "--proto", "icmp", "-l", 100],
        ["--vlan", 9, "--proto", "tcp", "-l", 100],
        ["--proto", "icmp", "-l", 100],
        ["-6", "-l", 100],
        [],
    ]
    for words in kinds[:2] if SHORT else kinds:
        pong = receiver("pong")
        with Capture(A) as back, Capture(B) as there:
            r = run_json("ping", "-i", A, "-n", 20, *words)
        answers = json.loads(stop(pong)[0])
        found = r["tx_packets"], r["streams"][0]["received"], r["timeouts"]
        check(found == (20, 20, 0), f"{words}: {found}")
        check(r["streams"][0]["lost"] == 0, r)
        check(0 < r["streams"][0]["latency"]["min_ns"] < 10**9, r["streams"])
        check(answers["tx_packets"] == 20, answers)
        ways = ("from", "to", "from_port", "to_port", "smac", "dmac")
        ((a, b, c, d, e, f),) = set(values(good(there.packets(), 20), *ways))
        (answer,) = set(values(good(back.packets(), 20), *ways))
        check(answer == (b, a, d, c, f, e), answer)


@timed
def test_ping_rate() -> None:
    pong = receiver("pong")
    r = run_json("ping", "-i", A, "-R", 50, "-t", 2)
    stop(pong)
    close(r["tx_packets"], 100, 10, "pings")
    check(r["streams"][0]["received"] == r["tx_packets"], r)


def test_ping_timeout() -> None:
    r = run_json("ping", "-i", A, "-n", 2)
    check(r["timeouts"] == 2 and not r["streams"], r)


def test_ping_zerocopy() -> None:
    pong = receiver("pong", "-z", 0)
    r = run_json("ping", "-i", A, "-z", 0, "-n", 200)
    stop(pong)
    check(r["streams"][0]["received"] == 200 and not r["timeouts"], r)


# --- replay ----------------------------------------------------------------------

STEP = 20_000_000
TIMED = [(10**18 + i * STEP, udp(bytes([i]) * (20 + 150 * i))) for i in range(10)]


def same(capture: Capture, packets: list[tuple[int, bytes]]) -> None:
    found = capture.contents()
    want = [data for _, data in packets]
    check(found == want, f"{len(found)} packets, {len(want)} wanted, or other data")


def test_replay_formats() -> None:
    for data in (
        pcap(TIMED),
        pcap(TIMED, ">"),
        pcap(TIMED, ">", nano=True),
        pcapng(TIMED),
        pcapng(TIMED, ">"),
    ):
        same(replayed(data, "-R", "max"), TIMED)
    if shutil.which("editcap"):
        path = DIR / "edited"
        subprocess.run(
            ["editcap", "-F", "pcapng", write(pcap(TIMED)), path], check=True
        )
        same(replayed(path.read_bytes(), "-R", "max"), TIMED)


@timed
def test_replay_timing() -> None:
    for data in pcap(TIMED), pcapng(TIMED):
        capture = replayed(data)
        same(capture, TIMED)
        close(median(gaps(capture.times())), STEP / 1e9, 15, "gap")
    close(median(gaps(replayed(data, "-x", 4).times())), STEP / 4e9, 30, "faster")
    close(median(gaps(replayed(data, "-R", 100).times())), 0.01, 20, "by a rate")


def test_replay_loops() -> None:
    same(replayed(pcap(TIMED), "-R", "1k", "-L", 4), TIMED * 4)
    same(replayed(pcap(TIMED), "-R", "1k", "-L", 0, "-n", 25), (TIMED * 3)[:25])
    same(replayed(pcap(TIMED), "-L", 2), TIMED * 2)
    # More than the frames hold
    many = [(i, udp(struct.pack(">I", i) * 8)) for i in range(3000)]
    r = replayed(pcap(many), "-R", "5k", "-L", 2)
    same(r, many * 2)


def test_replay_threads() -> None:
    flows = [
        (0, udp(b"x" * 30)[:26] + bytes([10, 0, 0, i % 7]) + udp(b"x" * 30)[30:])
        for i in range(500)
    ]
    with Capture() as capture:
        r = run_json("replay", "-i", A, "-p", 2, "-R", "2k", "-f", write(pcap(flows)))
    check(r["tx_packets"] == 500, r)
    check(sorted(capture.contents()) == sorted(p for _, p in flows), "packets")


def test_replay_jumbo() -> None:
    big = [
        (0, udp(os.urandom(8900))),
        (0, udp(b"small" * 9)),
        (0, udp(os.urandom(4000))),
    ]
    same(replayed(pcap(big), "-R", "max"), big)
    same(replayed(pcap(big), "-R", "max", "-z", 0), big)


def test_replay_refused() -> None:
    for data, why in (
        (b"nonsense of some length", "neither"),
        (b"", "empty"),
        (pcap(TIMED)[:24], "no packet"),
        (pcap(TIMED)[:20] + b"\x71\0\0\0" + pcap(TIMED)[24:], "not Ethernet"),
    ):
        said = run("replay", "-i", A, "-f", write(data), code=1)
        check(why in said, said)
    said = run("replay", "-i", A, "-q", "-f", write(pcap(TIMED)[:-5]))
    check("ends within a record" in said and "sent 9 packets" in said, said)


# --- reports ---------------------------------------------------------------------


def test_ctrl_c() -> None:
    for words in (
        ["tx", "-R", "100"],
        ["tx", "-R", "0.1"],
        ["tx"],
        ["rx"],
        ["pong"],
        ["ping", "-R", "5"],
        ["replay", "-f", write(pcap(TIMED)), "-L", 0],
    ):
        process = start(*words[:1], "-i", A, *words[1:])
        time.sleep(1.2)
        before = time.monotonic()
        out, _ = stop(process)
        seconds = time.monotonic() - before
        check(re.search(r"^(sent|received) \d+ packets", out, re.MULTILINE), out)
        check(seconds < 5, f"{words}: {seconds:.1f} s")


@timed
def test_time() -> None:
    r = run_json("tx", "-i", A, "-t", "1.5", "-R", "200")
    close(r["seconds"], 1.5, 20, "time")


def test_interval() -> None:
    said = run("tx", "-i", A, "-R", "100", "-t", "1.2", "-T", "0.25")
    lines = re.findall(r"^ *\d+\.\d s  sent ", said, re.MULTILINE)
    check(3 <= len(lines) <= 5, said)
    check("sent" not in finish(start("tx", "-i", A, "-n", 9, "-q"))[1], "-q")


def test_json() -> None:
    path = DIR / "json"
    said = run("tx", "-i", A, "-n", 10, "-q", "--json", path)
    r = json.loads(path.read_text())
    check(r["mode"] == "tx" and r["tx_packets"] == 10 and r["tx_bytes"] == 600, r)
    check("sent 10 packets" in said, said)


def test_plot() -> None:
    path = DIR / "plot.svg"
    pong = receiver("pong")
    run("ping", "-i", A, "-q", "-R", 100, "-t", 1.5, "-T", 0.2, "--plot", path)
    stop(pong)
    lines = [
        e
        for e in xml.etree.ElementTree.parse(path).iter()
        if e.tag.endswith("polyline")
    ]
    check(len(lines) == 5, f"{len(lines)} lines")  # two rates, three of latency
    check(all(4 <= len(e.get("points").split()) <= 8 for e in lines), "points")


def test_link() -> None:
    subprocess.run(["ip", "link", "set", B, "down"], check=True)
    try:
        said = run("tx", "-i", A, "-n", 1, "-w", "0.3", code=1)
        check("no link" in said, said)
    finally:
        subprocess.run(["ip", "link", "set", B, "up"], check=True)
    r = run_json("tx", "-i", A, "-n", 1, "-w", 10)
    check(r["tx_packets"] == 1, r)


def test_link_lost() -> None:
    """The summary and an error follow when the device goes away."""
    process = start("rx", "-i", B, "-q")
    time.sleep(1)
    subprocess.run(["ip", "link", "set", B, "down"], check=True)
    try:
        out, errors = finish(process, 1)
        check("received 0 packets" in out and "Network is down" in errors, out + errors)
    finally:
        subprocess.run(["ip", "link", "set", B, "up"], check=True)
        run("tx", "-i", A, "-n", 1, "-q", "-w", 10)


def test_refused_options() -> None:
    for words, why in (
        ("tx", "-R 0"),
        ("tx", "-R 5x"),
        ("tx", "-l 59-40"),
        ("tx", "-l 20"),
        ("tx", "-s 1.2.3"),
        ("tx", "-s 1.2.3.4 -d ::1"),
        ("tx", "-S 1:2"),
        ("tx", "--random sport"),
        ("tx", "--random colour"),
        ("tx", "--poisson"),
        ("tx", "--launch fq"),
        ("tx", "--priority 1"),
        ("tx", "-z 0 --qdisc"),
        ("tx", "-z 0 -p 2"),
        ("tx", "-f x"),
        ("rx", "-l 60"),
        ("rx", "-R 1"),
        ("replay", ""),
        ("tx", "--proto icmp --sport 1"),
        ("tx", "--ring 300"),
        ("tx", "-d 10.0.0.9-10.0.0.1"),
        ("pong", "--seq"),
        ("tx", "-n 0"),
        ("tx", "-p 2 -a 0"),
        ("sing", ""),
        ("tx", "-s fd00::1-fd01::1"),
    ):
        run(words, "-i", A, *why.split(), code=2)
    check("No such device" in run("tx", "-i", "nothing0", code=1), "no device")
    check("usage: tpgen" in run("--help"), "--help")
    check("tpgen" in run("--version"), "--version")


def main() -> int:
    global base
    chosen = sys.argv[4:]
    tests = {n[5:]: f for n, f in globals().items() if n.startswith("test_")}
    if not chosen:
        left_out = NOT_ON_VETH + (TAKE_LONG if SHORT else ())
        chosen = [name for name in tests if name not in left_out]
    bad = 0
    for name in chosen:
        if name not in tests:
            sys.exit(f"guest.py: there is no case {name}")
    print(f"TAP version 13\n1..{len(chosen)}", flush=True)
    for number, name in enumerate(chosen, 1):
        base = counter(B, "rx_packets")
        begun = time.monotonic()
        try:
            tests[name]()
            line = f"ok {number} {name}"
        except Skip as reason:
            line = f"ok {number} {name} # SKIP {reason}"
        except FAILURES as why:
            print(f"# {name}: {type(why).__name__}: {why}")
            line = f"not ok {number} {name}"
            bad = 1
        print(
            f"{line}" if "#" in line else f"{line} # {time.monotonic() - begun:.1f} s",
            flush=True,
        )
    shutil.rmtree(DIR)
    return bad


if __name__ == "__main__":
    sys.exit(main())
