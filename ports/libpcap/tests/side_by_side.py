#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Debian's tcpdump twice, on the same traffic: on Debian's libpcap, which uses V3,
and on ours, which uses V4.

    side_by_side.py PCAP [--short]

As root. Both have to see the same packets: bytes, lengths on the wire, VLAN tags,
order, time stamps. Then both under overload, zero-copy mode beside a tcpdump at the
other end, and other programs on our libpcap. PCAP is build/pcap; output is TAP. The
short form leaves out what others test, too, or what is more of the same.
"""

import fcntl
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tap import end, result, skip

TMP = Path(tempfile.mkdtemp())
PCAP = Path(sys.argv[1])
OURS = {"LD_LIBRARY_PATH": str(PCAP / "lib")}
# What sends runs on one CPU, and so does what the kernel does with it: two sockets see
# the packets in one order then.
SENDER = ["taskset", "-c", "0"]
READER = ["taskset", "-c", "1"]
PATIENCE = 120
# How far the stamps of one packet may be apart where each socket makes its own: a
# kernel that looks for leaks, and so for all the rest, is slow between the two.
STAMP_LIMIT = 1e-3 if os.path.exists("/sys/kernel/debug/kmemleak") else 50e-6
COUNT = re.compile(r"(\d+) packets? (captured|received by filter|dropped by kernel)")
DEVICE_COUNT = re.compile(r"(\S+): packets: (\d+)")
Packet = tuple[float, int, bytes]  # stamp, length on the wire, bytes
Done = subprocess.CompletedProcess[str]


def attempt(*command: str, ours: bool = False, text: str = "") -> Done:
    return subprocess.run(
        command,
        check=False,
        env=os.environ | (OURS if ours else {}),
        input=text,
        text=True,
        capture_output=True,
    )


def run(*command: str, text: str = "") -> str:
    done = attempt(*command, text=text)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def left(*command: str) -> str:
    return run("ip", "netns", "exec", "left", *command)


def wait_for(there: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while not there():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


# --- programs that capture -----------------------------------------------------


@dataclass
class Capture:
    """A tcpdump or dumpcap that runs."""

    name: str
    args: list[str]
    ours: bool
    namespace: str = "left"
    program: list[str] = field(default_factory=lambda: ["tcpdump", "-Z", "root"])
    said: str = ""

    def __post_init__(self) -> None:
        which = "v4" if self.ours else "v3"
        self.file = TMP / f"{self.name}.{which}"
        self.log = TMP / f"{self.name}.{which}.log"
        command = ["ip", "netns", "exec", self.namespace, *READER, *self.words()]
        env = os.environ | (OURS if self.ours else {})
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, env=env, stderr=log, stdout=log, stdin=subprocess.DEVNULL
            )

    def words(self) -> list[str]:
        # what has options of its own ends with the expression
        return [*self.program, "-w", str(self.file), *self.args]

    def begin(self) -> Self:
        if not wait_for(self.has_begun):
            raise RuntimeError(f"{self.args}: {self.log.read_text()}")
        return self

    def has_begun(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.args}: {self.log.read_text()}")
        begun = "listening on|File: |Engine started"
        return re.search(begun, self.log.read_text()) is not None

    def uses_v4(self) -> bool:
        maps = Path(f"/proc/{self.process.pid}/maps").read_text()
        return "memfd:tpacket4" in maps

    def end(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)
        self.said = self.log.read_text()

    def counts(self) -> dict[str, int]:
        return {what: int(n) for n, what in COUNT.findall(self.said)}

    def packets(self) -> list[Packet]:
        cooked = (
            "v1" if "LINUX_SLL" in self.args else "v2" if "any" in self.args else ""
        )
        return [(t, n, clean(data, cooked)) for t, n, data in read_file(self.file)]


def read_file(path: Path) -> list[Packet]:
    data = path.read_bytes()
    fraction = {0xA1B2C3D4: 1e6, 0xA1B23C4D: 1e9}[struct.unpack("=I", data[:4])[0]]
    packets, pos = [], 24
    while pos < len(data):
        sec, part, cap, length = struct.unpack("=IIII", data[pos : pos + 16])
        pos += 16
        packets.append((sec + part / fraction, length, data[pos : pos + cap]))
        pos += cap
    return packets


# --- traffic -------------------------------------------------------------------

SERVER = """
import socket, sys, threading
def serve(conn):
    total = 0
    while total < int(sys.argv[1]):
        total += len(conn.recv(1 << 16))
    conn.sendall(bytes(total))
    conn.close()
listener = socket.create_server(("192.0.2.2", 80))
print("ready", flush=True)
while True:
    serve(listener.accept()[0])
"""
CLIENT = """
import socket, sys
conn = socket.create_connection(("192.0.2.2", 80))
total = int(sys.argv[1])
conn.sendall(bytes(total))
while total:
    total -= len(conn.recv(1 << 16))
"""
BURST = """
import socket, sys
address, nr, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(nr):
    sock.sendto(i.to_bytes(4, "big") + bytes(size), (address, 4242))
"""
BULK = """
import socket, sys, threading
listener = socket.create_server(("::1", 81), family=socket.AF_INET6)
def receive():
    conn = listener.accept()[0]
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    while conn.recv(1 << 20):
        pass
receiver = threading.Thread(target=receive)
receiver.start()
conn = socket.create_connection(("::1", 81))
conn.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
conn.sendall(bytes(int(sys.argv[1])))
conn.close()
receiver.join()
"""
FLOWS = """
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(int(sys.argv[1])):
    sock.sendto(i.to_bytes(4, "big") + bytes(60), ("203.0.113.2", 4242 + i % 64))
"""


def python(program: str, *args: object, namespace: str = "left") -> list[str]:
    words = ["python3", "-c", program, *map(str, args)]
    return ["ip", "netns", "exec", namespace, *SENDER, *words]


def burst(address: str, nr: int, size: int) -> None:
    run(*python(BURST, address, nr, size))


def ping(address: str, *args: str) -> None:
    left(*SENDER, "ping", "-q", "-i", "0.01", "-W", "20", *args, address)


def traffic() -> None:
    """Some of everything."""
    ping("192.0.2.2", "-c", "20")
    ping("192.0.2.2", "-c", "5", "-s", "8000")  # one frame of a jumbo MTU
    ping("192.0.2.2", "-c", "5", "-s", "20000")  # fragments
    ping("2001:db8::2", "-c", "5")
    ping("198.51.100.2", "-c", "10")  # VLAN 5
    ping("127.0.0.1", "-c", "5")
    burst("198.51.100.2", 50, 1200)
    burst("192.0.2.2", 500, 100)
    run(*python(CLIENT, 300000))  # with GSO, both ways
    time.sleep(0.5)


def set_up() -> None:
    for name in ("left", "right"):
        run("ip", "netns", "add", name)
        # Nothing but what is sent on purpose
        for setting in "accept_ra=0", "router_solicitations=0", "addr_gen_mode=1":
            quiet = f"net.ipv6.conf.default.{setting}"
            run("ip", "netns", "exec", name, "sysctl", "-qw", quiet)
        run("ip", "-n", name, "link", "set", "lo", "up")
    link = "name veth0 mtu 9000 numtxqueues 1 numrxqueues 1 address"
    run(
        *f"ip -n left link add {link} 02:00:00:00:00:01"
        f" type veth peer {link} 02:00:00:00:00:02 netns right".split()
    )
    for name, last, other in (("left", 1, 2), ("right", 2, 1)):
        batch = f"""
            link set veth0 up
            addr add 192.0.2.{last}/24 dev veth0
            addr add 2001:db8::{last}/64 dev veth0 nodad
            link add link veth0 name veth0.5 type vlan id 5
            link set veth0.5 up
            addr add 198.51.100.{last}/24 dev veth0.5
            neigh add 192.0.2.{other} lladdr 02:00:00:00:00:0{other} dev veth0
            neigh add 2001:db8::{other} lladdr 02:00:00:00:00:0{other} dev veth0
            neigh add 198.51.100.{other} lladdr 02:00:00:00:00:0{other} dev veth0.5
        """
        run("ip", "-n", name, "-batch", "-", text=batch)
    wait_for(lambda: "state UP" in left("ip", "link", "show", "veth0"))
    time.sleep(3)  # what IPv6 has to say of its addresses


# --- both see the same ---------------------------------------------------------

# name: options and expression, and whether there has to be a packet
CASES: dict[str, tuple[str, bool]] = {
    "all": ("-i veth0", True),
    "snaplen": ("-i veth0 -s 96", True),
    "short-snaplen-filtered": ("-i veth0 -s 60 icmp", True),
    "tcp": ("-i veth0 tcp port 80", True),
    "vlan": ("-i veth0 vlan and udp", True),
    "not-vlan": ("-i veth0 ip and not vlan", True),
    "ip": ("-i veth0 ip", True),
    "long": ("-i veth0 greater 1000", True),
    "fragments": ("-i veth0 ip[6:2] & 0x3fff != 0", True),
    "nothing": ("-i veth0 udp port 9", False),
    "in": ("-i veth0 -Q in", True),
    "out": ("-i veth0 -Q out", True),
    "inout": ("-i veth0 -Q inout -p", True),
    "immediate": ("-i veth0 --immediate-mode -B 65536", True),
    "any": ("-i any", True),
    "any-v1": ("-i any -y LINUX_SLL", True),
    "any-in": ("-i any -Q in", True),
    "any-v1-filtered": ("-i any -y LINUX_SLL icmp", True),
    "any-v2-filtered": ("-i any icmp", True),
    "lo": ("-i lo", True),
    "tun": ("-i tun0", True),
}


def clean(packet: bytes, cooked: str) -> bytes:
    """Without what is behind the address in a cooked header: V3 leaves it as it was."""
    if cooked == "v1":
        end = 6 + int.from_bytes(packet[4:6], "big")
        return packet[:end] + bytes(14 - end) + packet[14:]
    if cooked == "v2":
        end = 12 + packet[11]
        return packet[:end] + bytes(20 - end) + packet[20:]
    return packet


def same(name: str, old: list[Packet], new: list[Packet], some: bool = True) -> bool:
    """Compare what was captured; returns whether there was no difference."""
    why = [f"{len(old)} and {len(new)} packets"]
    good = len(old) == len(new) and bool(old) == some
    for i, (a, b) in enumerate(zip(old, new)):
        if a[1:] != b[1:]:
            good = False
            why.append(f"packet {i}: {a[1]} bytes, {a[2][:64].hex()}")
            why.append(f"packet {i}: {b[1]} bytes, {b[2][:64].hex()}")
            if len(why) > 8:
                break
    return result(good, f"{name}: the same packets ({len(new)})", *why)


def test_same(title: str, cases: dict[str, tuple[str, bool]], nano: bool) -> None:
    precision = ["--time-stamp-precision=nano"] if nano else []
    pairs = []
    for name, (words, some) in cases.items():
        args = [*precision, *words.split()]
        pair = [Capture(f"{title}-{name}", args, ours) for ours in (False, True)]
        pairs.append((name, some, pair))
    for _, _, pair in pairs:
        for capture in pair:
            capture.begin()
    versions = [(old.uses_v4(), new.uses_v4()) for _, _, (old, new) in pairs]
    wrong = [n for (n, _, _), v in zip(pairs, versions) if v != (False, True)]
    result(not wrong, f"{title}: ours uses V4, Debian's does not", f"{wrong}")
    traffic()
    if "tun" in cases:
        write_to_tun()
    time.sleep(2)
    stamps: list[float] = []
    for name, some, (old, new) in pairs:
        old.end()
        new.end()
        a, b = old.packets(), new.packets()
        if same(f"{title}: {name}", a, b, some):
            off = [abs(x[0] - y[0]) for x, y in zip(a, b)]
            if max(off, default=0) > STAMP_LIMIT:
                print(
                    f"# {name}: packet {off.index(max(off))}: {max(off) * 1e6:.1f} us"
                )
            stamps += off
        counts = [c.counts() for c in (old, new)]
        result(
            counts[0] == counts[1] and counts[1]["captured"] == len(b),
            f"{title}: {name}: the same statistics",
            f"{counts[0]}, {counts[1]}, {len(b)} in the file",
        )
    worst = max(stamps, default=9.0)
    near = sum(s <= STAMP_LIMIT for s in stamps)
    limit = f"{STAMP_LIMIT * 1e6:.0f} us"
    far = f"{len(stamps) - near} of {len(stamps)} stamps differ by more than {limit}"
    print(f"# {title}: {far}, {worst * 1e6:.1f} us at most")
    # A packet that has no stamp yet (with nano, TCP's: they have a time to be sent at)
    # is stamped by each socket for itself; the machine may stand still in between.
    result(
        bool(stamps) and near >= len(stamps) * (0.98 if nano else 0.9),
        f"{title}: time stamps within {limit}",
        far,
    )


def test_inbound() -> None:
    """Of V3's first block, a filter on the direction refuses all: here, it must not."""
    pair = [
        Capture(f"inbound-{i}", ["-i", "veth0", *words.split()], True).begin()
        for i, words in enumerate(("-Q in", "inbound", "-Q out", "outbound"))
    ]
    traffic()
    time.sleep(2)
    for capture in pair:
        capture.end()
    got = [capture.packets() for capture in pair]
    same("inbound and -Q in", got[0], got[1])
    same("outbound and -Q out", got[2], got[3])


tun_fd = -1


def open_tun() -> None:
    """A device without a link-layer header, in this process's namespace: left."""
    global tun_fd
    tun_fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun_fd, 0x400454CA, struct.pack("16sH22x", b"tun0", 0x1001))
    run("ip", "link", "set", "tun0", "netns", "left")
    left("ip", "link", "set", "tun0", "up")


def write_to_tun() -> None:
    header = bytes.fromhex("450000540000000040010000c0000263c0000264")
    for i in range(20):
        os.write(tun_fd, header + bytes([i]) * 64)


# --- overload ------------------------------------------------------------------


def test_overload() -> None:
    """Neither reads while so many arrive: what is lost is told."""
    nr = 30000
    for ours in (False, True):
        args = ["-i", "veth0", "-Q", "out", "-B", "2048", "udp"]
        capture = Capture(f"overload-{ours}", args, ours).begin()
        capture.process.send_signal(signal.SIGSTOP)
        burst("192.0.2.2", nr, 600)
        capture.process.send_signal(signal.SIGCONT)
        time.sleep(3)
        capture.end()
        counts, got = capture.counts(), len(capture.packets())
        print(f"# {'ours' if ours else 'Debian'}: {counts}")
        result(
            counts["received by filter"] == nr
            and counts["dropped by kernel"] > 0
            and got + counts["dropped by kernel"] == nr,
            f"overload: {'V4' if ours else 'V3'} counts each of {nr} packets",
            f"{counts}, {got} in the file",
        )


# --- many ----------------------------------------------------------------------


def test_many() -> None:
    nr = 20000
    args = ["-i", "veth0", "-s", "80", "-B", "65536", "udp"]
    pair = [Capture("many", args, ours).begin() for ours in (False, True)]
    burst("192.0.2.2", nr, 100)
    time.sleep(3)
    for capture in pair:
        capture.end()
    a, b = (capture.packets() for capture in pair)
    same(f"{nr} packets", a, b)
    result(len(b) == nr, f"{nr} packets: all of them", f"{len(a)}, {len(b)}")


# --- long packets --------------------------------------------------------------


def test_long_packets() -> None:
    """BIG TCP: packets are longer than the longest snapshot, and nothing cuts them."""
    longest = 262144
    left("ip", "link", "set", "lo", "gso_max_size", "524280", "gro_max_size", "524280")
    capture = Capture("long", ["-i", "any", "-U", "-B", "65536"], True).begin()
    for _ in range(20):
        run(*python(BULK, 64 << 20))
        time.sleep(2)
        if capture.process.poll() is not None:
            break
        if any(length > longest for _, length, _ in read_file(capture.file)):
            break
    ended = capture.process.poll()
    capture.end()
    packets = read_file(capture.file)
    lengths = [(length, len(data)) for _, length, data in packets if length > longest]
    result(
        ended is None and bool(lengths) and all(n == longest for _, n in lengths),
        "packets of more than 256 KiB are cut",
        f"{lengths[:5]}",
        capture.said,
    )


# --- zero-copy mode ------------------------------------------------------------


def right_ifindex() -> int:
    show = run("ip", "-n", "right", "-json", "link", "show", "veth0")
    index: int = json.loads(show)[0]["ifindex"]
    return index


def test_zerocopy() -> None:
    for name, words, options in (
        ("all", "", ""),
        ("filter", "udp port 4242", ""),
        ("vlan", "vlan and udp", ""),
        ("ip", "ip", ""),
        ("inbound", "inbound", ""),
        ("ifindex", f"ifindex {right_ifindex()}", ""),
        ("snaplen", "udp", "-s 100"),
    ):
        # What the one end sends is what the other one receives.
        sent = "" if name in ("inbound", "ifindex") else words
        args = ["-i", "veth0", "-Q", "out", *f"{options} {sent}".split()]
        old = Capture(f"zc-{name}", args, False).begin()
        args = ["-i", "zc:veth0", *f"{options} {words}".split()]
        new = Capture(f"zc-{name}", args, True, "right").begin()
        burst("192.0.2.2", 300, 100)
        burst("198.51.100.2", 100, 100)
        burst("192.0.2.2", 50, 8000)
        pings = "ping -q -c 3 -i 0.1 -W 1 192.0.2.2"
        lost = attempt("ip", "netns", "exec", "left", *SENDER, *pings.split())
        time.sleep(1)
        old.end()
        new.end()
        same(f"zero-copy: {name}", old.packets(), new.packets())
        counts = new.counts()
        result(
            counts["captured"] == counts["received by filter"] == len(new.packets())
            and not counts["dropped by kernel"],
            f"zero-copy: {name}: statistics",
            f"{counts}",
        )
        if name == "all":
            result(lost.returncode == 1, "zero-copy: the host does not see the packets")
    if shutil.which("dumpcap") and shutil.which("editcap"):
        args = ["-i", "veth0", "-Q", "out"]
        old = Capture("zc-dumpcap", args, False).begin()
        program = ["dumpcap", "-q"]
        args = ["-i", "zc:veth0"]
        new = Capture("zc-dumpcap", args, True, "right", program).begin()
        burst("192.0.2.2", 300, 1000)
        time.sleep(2)
        old.end()
        new.end()
        classic = TMP / "zc-dumpcap.pcap"
        run("editcap", "-F", "nsecpcap", str(new.file), str(classic))
        same("zero-copy: dumpcap", old.packets(), read_file(classic))
    else:
        skip("no dumpcap or editcap: lab/build/deps test installs it")
    out = Capture("zc-out", ["-i", "zc:veth0", "-Q", "out"], True, "right").begin()
    burst("192.0.2.2", 20, 100)
    time.sleep(1)
    out.end()
    result(not out.packets(), "zero-copy: -Q out finds nothing")
    pings = "ping -q -c 3 -i 0.01 -W 20 192.0.2.2"
    again = attempt("ip", "netns", "exec", "left", *SENDER, *pings.split())
    result(not again.returncode, "zero-copy: after it, the host sees its packets again")
    limited = "setpriv --bounding-set=-ipc_lock prlimit --memlock=65536"
    for name, text, wrapper in (
        ("lo", "no zero-copy mode", ""),
        ("veth0", "needs CAP_NET_ADMIN", "setpriv --bounding-set=-net_admin"),
        ("veth0", "RLIMIT_MEMLOCK", limited),
    ):
        words = f"ip netns exec right {wrapper} tcpdump -i zc:{name}".split()
        said = attempt(*words, ours=True).stderr
        result(text in said, f"zero-copy: {text}", said)


def test_to_stack() -> None:
    """In zero-copy mode, with packets given back to the host"""
    old = Capture("zc-stack", ["-i", "veth0", "-Q", "out"], False).begin()
    new = Capture("zc-stack", ["-i", "zc:veth0:0+stack"], True, "right").begin()
    # beside it, what the host sees
    host = Capture("zc-host", ["-i", "veth0", "-Q", "in"], False, "right").begin()
    burst("192.0.2.2", 300, 100)
    burst("198.51.100.2", 100, 100)
    burst("192.0.2.2", 50, 8000)
    pings = "ping -q -c 20 -i 0.05 -W 20"
    for address in "192.0.2.2", "2001:db8::2", "198.51.100.2":
        words = f"{pings} {address}".split()
        done = attempt("ip", "netns", "exec", "left", *SENDER, *words)
        result(
            " 0% packet loss" in done.stdout,
            f"zero-copy, to the stack too: {address} answers",
            done.stdout,
        )
    run(*python(CLIENT, 300000))
    time.sleep(2)
    for capture in (old, new, host):
        capture.end()
    same("zero-copy, to the stack too", old.packets(), new.packets())
    same("zero-copy, to the stack too: what it sees", old.packets(), host.packets())
    words = ["ip", "netns", "exec", "right", "tcpdump", "-i", "zc:veth0:x+stack"]
    said = attempt(*words, ours=True).stderr
    result("is not a list of queues" in said, "zero-copy: not a queue", said)


def test_queues() -> None:
    """zc:DEVICE has all queues of a device: each packet once, in order."""
    queues = "numtxqueues 4 numrxqueues 4"
    run(
        *f"ip -n left link add wide0 {queues} type veth"
        f" peer name wide0 {queues} netns right".split()
    )
    for name, last in ("left", 1), ("right", 2):
        run("ip", "-n", name, "addr", "add", f"203.0.113.{last}/24", "dev", "wide0")
        run("ip", "-n", name, "link", "set", "wide0", "up")
    # In zero-copy mode, what is received has its checksums.
    left("ethtool", "-K", "wide0", "tx", "off")
    ping("203.0.113.2", "-c", "3")

    nr = 1000
    old = Capture("queues", ["-i", "wide0", "-Q", "out", "udp"], False).begin()
    new = Capture("queues", ["-i", "zc:wide0+stack", "udp"], True, "right").begin()
    words = ["ip", "netns", "exec", "right", "tcpdump", "-i", "zc:wide0:3"]
    said = attempt(*words, ours=True).stderr
    result("queue 3 of wide0 is already used" in said, "zc:DEVICE has queue 3", said)
    # All of the first half is there when it goes on: they can be in order.
    new.process.send_signal(signal.SIGSTOP)
    run(*python(FLOWS, nr // 2))
    new.process.send_signal(signal.SIGCONT)
    run(*python(FLOWS, nr // 2))
    words = ["ping", "-q", "-c", "10", "-i", "0.05", "-W", "20", "203.0.113.2"]
    done = attempt("ip", "netns", "exec", "left", *SENDER, *words)
    result(
        " 0% packet loss" in done.stdout, "all queues: the host answers", done.stdout
    )
    # The device goes, and comes back.
    run("ip", "-n", "right", "link", "set", "wide0", "down")
    time.sleep(0.5)
    run("ip", "-n", "right", "link", "set", "wide0", "up")
    wait_for(lambda: "state UP" in left("ip", "link", "show", "wide0"))
    time.sleep(1)
    run(*python(FLOWS, nr // 2))
    time.sleep(2)
    old.end()
    new.end()
    a, b = old.packets(), new.packets()
    same("all queues, in order", a[: nr // 2], b[: nr // 2])
    result(
        len(b) == nr * 3 // 2 and sorted(p[2] for p in a) == sorted(p[2] for p in b),
        "all queues: each packet once",
        f"{len(a)} and {len(b)} packets",
    )
    counts = new.counts()
    result(
        counts["received by filter"] == len(b) and not counts["dropped by kernel"],
        "all queues: statistics",
        f"{counts}",
    )

    part = Capture("some", ["-i", "zc:wide0:1-2", "udp"], True, "right").begin()
    run(*python(FLOWS, nr))
    time.sleep(2)
    part.end()
    got = len(part.packets())
    result(0 < got < nr, "queues 1 to 2 have a part of the packets", f"{got} of {nr}")
    for text in "2-1", "1-", "1-9":
        words = f"ip netns exec right tcpdump -i zc:wide0:{text}".split()
        said = attempt(*words, ours=True).stderr
        why = "has no queue 4" if text == "1-9" else "is not a list of queues"
        result(why in said, f"zero-copy: queues {text}: {why}", said)


# --- other programs ------------------------------------------------------------


def test_fallback() -> None:
    """Who may not lock as much memory as the buffer takes gets V3, and is not told."""
    for name, limit, options in (
        ("small", 64 << 10, []),
        ("large", 9 << 20, ["-B", "65536"]),
    ):
        limited = f"setpriv --bounding-set=-ipc_lock prlimit --memlock={limit}"
        program = f"{limited} tcpdump -Z root".split()
        args = ["-i", "veth0", *options, "icmp"]
        capture = Capture(f"fallback-{name}", args, True, program=program)
        capture.begin()
        v4 = capture.uses_v4()
        ping("192.0.2.2", "-c", "5")
        time.sleep(2)
        capture.end()
        nr = len(capture.packets())
        title = f"V3 where less memory may be locked than a {name} buffer takes"
        result(not v4 and nr == 10, title, f"{v4}, {nr}")
        lines = capture.said.splitlines()
        words = {line.split()[0] for line in lines if line.split()}
        result(
            "tcpdump:" in words
            and "WARNING" not in capture.said
            and "V4" not in capture.said,
            "and nothing is said of it",
            capture.said,
        )


def test_dumpcap() -> None:
    if not shutil.which("dumpcap") or not shutil.which("editcap"):
        skip("no dumpcap or editcap: lab/build/deps test installs it")
        return
    old = Capture("dumpcap", ["-i", "veth0"], False).begin()
    new = Capture("dumpcap", ["-i", "veth0"], True, program=["dumpcap", "-q"]).begin()
    result(new.uses_v4(), "dumpcap uses V4")
    traffic()
    time.sleep(2)
    for capture in (old, new):
        capture.end()
    classic = TMP / "dumpcap.pcap"
    run("editcap", "-F", "nsecpcap", str(new.file), str(classic))
    same("dumpcap", old.packets(), read_file(classic))
    for file in (new.file, TMP / "nano-all.v4"):
        bad = run("tshark", "-n", "-r", str(file), "-Y", "_ws.malformed")
        result(not bad, f"tshark finds no malformed packet in {file.name}", bad[:500])


class Rotated(Capture):
    """A tcpdump that begins a new file now and then, as a user without privileges"""

    def words(self) -> list[str]:
        directory = TMP / self.name
        directory.mkdir()
        directory.chmod(0o777)
        size = ["-w", str(directory / "file"), "-C", "1"]
        times = ["-w", str(directory / "%s"), "-G", "1"]
        kind = size if self.name == "size" else times
        return ["tcpdump", "-Z", "nobody", *kind, *self.args]

    def files(self) -> list[Path]:
        """By the number behind the name, or by the seconds that are the name"""

        def number(path: Path) -> int:
            return int(path.name.removeprefix("file") or 0)

        return sorted((TMP / self.name).iterdir(), key=number)

    def packets(self) -> list[Packet]:
        return [packet for file in self.files() for packet in read_file(file)]


def test_rotation() -> None:
    """The files have all packets, in order."""
    TMP.chmod(0o755)
    old = Capture("whole", ["-i", "veth0", "-Q", "out", "udp"], False).begin()
    new = [
        Rotated(kind, ["-i", "veth0", "-Q", "out", "udp"], True).begin()
        for kind in ("size", "time")
    ]
    for _ in range(3):
        burst("192.0.2.2", 1000, 1000)
        time.sleep(1.1)
    for capture in (old, *new):
        capture.end()
    for capture in new:
        same(f"files by {capture.name}", old.packets(), capture.packets())
        files = capture.files()
        owners = {file.owner() for file in files}
        good = len(files) > 1 and owners == {"nobody"}
        result(good, f"several files by {capture.name}, of nobody", files, owners)


class Suricata(Capture):
    """It needs libraries that the machine does not have, and a configuration.

    Its arguments are devices. It has a thread for each.
    """

    CONFIG = """%YAML 1.1
---
outputs:
  - eve-log: {enabled: yes, filename: eve.json, types: [flow]}
pcap:
  - {interface: default, snaplen: 65550}
"""

    def words(self) -> list[str]:
        home = PCAP / "suricata"
        libraries = ":".join(map(str, [PCAP / "lib", *home.glob("usr/lib/*-gnu")]))
        self.dir = TMP / f"{self.name}.logs"
        self.dir.mkdir()
        config = self.dir / "suricata.yaml"
        config.write_text(self.CONFIG)
        command = f"env LD_LIBRARY_PATH={libraries} {home}/usr/bin/suricata"
        devices = " ".join(f"--pcap={device}" for device in self.args)
        return (
            f"{command} -c {config} -l {self.dir} {devices} --runmode workers -k none"
        ).split()

    def flows(self) -> list[dict[str, Any]]:
        lines = (self.dir / "eve.json").read_text().splitlines()
        return [json.loads(line) for line in lines]


def test_suricata() -> None:
    """It follows the connection, and counts what a tcpdump beside it does."""
    if not (PCAP / "suricata").exists():
        skip("no suricata: lab/build/progs suricata says why")
        return
    old = Capture("suricata", ["-i", "veth0", "tcp"], False).begin()
    new = Suricata("suricata", ["veth0"], True).begin()
    result(new.uses_v4(), "suricata uses V4")
    traffic()
    time.sleep(2)
    for capture in (old, new):
        capture.end()
    seen = [each["flow"] for each in new.flows() if each.get("proto") == "TCP"]
    counts = [
        sum(flow[f"{what}_{to}"] for flow in seen for to in ("toserver", "toclient"))
        for what in ("pkts", "bytes")
    ]
    sent = [length for _, length, _ in old.packets()]
    result(
        len(seen) == 1 and counts == [len(sent), sum(sent)] and len(sent) > 10,
        "suricata follows a connection, each packet and byte",
        f"{counts}, {len(sent)} packets, {sum(sent)} bytes: {seen}",
        new.said,
    )


def test_suricata_queues() -> None:
    """A thread for each queue: together they see each packet once."""
    if not (PCAP / "suricata").exists():
        skip("no suricata: lab/build/progs suricata says why")
        return
    nr = 1000
    devices = [f"zc:wide0:{queue}" for queue in range(4)]
    old = Capture("threads", ["-i", "wide0", "-Q", "out", "udp"], False).begin()
    new = Suricata("threads", devices, True, "right").begin()
    run(*python(FLOWS, nr))
    time.sleep(2)
    old.end()
    new.end()
    sent = [length for _, length, _ in old.packets()]
    seen = [each["flow"] for each in new.flows() if each.get("proto") == "UDP"]
    counts = [
        sum(flow[f"{what}_toserver"] for flow in seen) for what in ("pkts", "bytes")
    ]
    result(
        len(sent) == nr and len(seen) == 64 and counts == [nr, sum(sent)],
        "suricata with a thread for each of four queues sees each packet once",
        f"{len(sent)} sent, {len(seen)} flows, {counts}",
        new.said,
    )
    per_device = {name: int(nr) for name, nr in DEVICE_COUNT.findall(new.said)}
    result(
        sorted(per_device) == devices and min(per_device.values()) > 0,
        "each of suricata's threads has packets",
        f"{per_device}",
        new.said,
    )


def test_arping() -> None:
    if not shutil.which("arping"):
        skip("no arping: lab/build/deps test installs it")
        return
    arping = ["arping", "-c", "3", "-i", "veth0", "192.0.2.2"]
    done = attempt("ip", "netns", "exec", "left", *arping, ours=True)
    good = "3 packets received" in done.stdout and not done.returncode
    result(good, "arping injects, and gets answers", done.stdout, done.stderr)


def main() -> None:
    short = "--short" in sys.argv[2:]
    print("TAP version 13")
    set_up()
    open_tun()
    server = subprocess.Popen(
        python(SERVER, 300000, namespace="right"), stdout=subprocess.PIPE, text=True
    )
    assert server.stdout
    server.stdout.readline()
    try:
        test_same("nano", CASES, True)
        test_fallback()
        test_arping()
        if not short:
            few = {name: CASES[name] for name in ("all", "tcp", "any")}
            test_same("micro", few, False)
            test_inbound()
            test_many()
            test_overload()
            test_long_packets()
            test_dumpcap()
            test_rotation()
            test_suricata()
        # In zero-copy mode, what is received has its checksums.
        left("ethtool", "-K", "veth0", "tx", "off")
        if not short:
            test_zerocopy()
        test_to_stack()
        test_queues()
        if not short:
            test_suricata_queues()
    finally:
        server.terminate()
        for name in ("left", "right"):
            attempt("ip", "netns", "del", name)
        shutil.rmtree(TMP)
    end()


if __name__ == "__main__":
    main()
