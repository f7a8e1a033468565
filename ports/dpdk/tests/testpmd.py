#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Debian's dpdk-testpmd on net_tpacket4, on a veth pair.

    testpmd.py PMD [--short] [TEST...]

As root, in a machine of its own: it takes huge pages and creates devices. PMD is
librte_net_tpacket4.so; output is TAP. The short form leaves out what is more of the
same.
"""

import os
import pty
import re
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tap import end, result

SHORT = "--short" in sys.argv
PROMPT = "testpmd> "
SO_TIMESTAMPNS = 35  # not in the module socket
IFF_PROMISC = 0x100
PATIENCE = 60
# Runs a command as nobody, who may lock the memory that DPDK takes
USER = ("prlimit", "--memlock=1000000000:1000000000")
USER += ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
# User Mode Linux has no huge pages.
HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")
WITHOUT = ("--no-huge", "-m", "200", "--no-shconf")
MEMORY = ("--in-memory",) if HUGE_PAGES.exists() else WITHOUT
# Packets that may be on their way when testpmd stops: a burst each way
IN_FLIGHT = 64


def run(*command: str) -> str:
    done = subprocess.run(command, check=False, text=True, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def library_of_gcc(name: str) -> str:
    return run("gcc", f"-print-file-name={name}").strip()


def loadable(plugin: str) -> str:
    """The plugin, or a copy: EAL loads none below a directory that all may write to."""
    path = Path(plugin).resolve()
    if not any(parent.stat().st_mode & stat.S_IWOTH for parent in path.parents):
        return str(path)
    run_dir = Path("/run")
    run_dir.chmod(0o755)  # as it is on machines of users
    copy = run_dir / f"{path.parent.name}-{path.name}"
    if not copy.exists():  # or another testpmd runs it
        shutil.copy(path, copy)
    return str(copy)


class Testpmd:
    """dpdk-testpmd, whose commands are answered."""

    def __init__(
        self,
        vdevs: list[str],
        args: tuple[str, ...] = (),
        eal: tuple[str, ...] = MEMORY,
        prefix: tuple[str, ...] = (),
        pmd: str | None = None,
        driver: str = "net_tpacket4_",
        lcores: str = "0@0,1@0",
        preload: tuple[str, ...] = (),
    ) -> None:
        command = [*prefix, "dpdk-testpmd", "--lcores", lcores, "--no-pci", *eal]
        pmd = sys.argv[1] if pmd is None else pmd
        env = dict(os.environ)
        if Path(pmd).parent.name == "sanitized":
            preload = (*map(library_of_gcc, ("libasan.so", "libubsan.so")), *preload)
            env["ASAN_OPTIONS"] = "detect_leaks=0"  # DPDK's own
        if preload:
            env["LD_PRELOAD"] = ":".join(preload)
        command += ["-d", loadable(pmd)] if pmd else []
        for i, vdev in enumerate(vdevs):
            command += ["--vdev", f"{driver}{i},{vdev}"]
        # It reads commands from a terminal.
        self.tty, other = pty.openpty()
        self.process = subprocess.Popen(
            [*command, "--", "-i", "--total-num-mbufs=16384", *args],
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
            env=env,
        )
        os.close(other)
        self.log = ""
        self.started = self.read()

    def read(self) -> str:
        """Returns what it says until it asks for a command, or has ended."""
        text = ""
        end = time.monotonic() + PATIENCE
        while not text.endswith(PROMPT) and time.monotonic() < end:
            if not select.select([self.tty], [], [], 1)[0]:
                continue
            try:
                text += os.read(self.tty, 65536).decode(errors="replace")
            except OSError:  # it has ended
                break
        self.log += text
        return text

    def __call__(self, command: str) -> str:
        os.write(self.tty, f"{command}\n".encode())
        text = self.read()
        # The terminal's echo may come with a prompt.
        return (
            text
            if text.strip().count("\n") or self.ended()
            else text + self.read_more()
        )

    def says(self, text: str) -> bool:
        """Reads until it has said that, without a command."""
        end = time.monotonic() + PATIENCE
        while text not in self.log and time.monotonic() < end and not self.ended():
            if select.select([self.tty], [], [], 1)[0]:
                self.log += os.read(self.tty, 65536).decode(errors="replace")
        return text in self.log

    def read_more(self) -> str:
        return self.read() if select.select([self.tty], [], [], 0.2)[0] else ""

    def ended(self) -> bool:
        return self.process.poll() is not None

    def counters(self) -> list[dict[str, int]]:
        """The counters of each port"""
        text = self("show port stats all")
        ports = re.split(r"NIC statistics for port \d+", text)[1:]
        found = [dict(re.findall(r"([RT]X-\w+):\s+(\d+)", port)) for port in ports]
        return [{name: int(value) for name, value in port.items()} for port in found]

    def xstat(self, name: str) -> int:
        text = self("show port xstats all")
        return sum(int(n) for n in re.findall(rf"\b{name}: (\d+)", text))

    def free_mbufs(self) -> tuple[int, int]:
        """The mbufs in the pool, and all of them"""
        text = self("dump_mempool mb_pool_0")
        counts = re.findall(r"\b(?:total_cache_count|common_pool_count)=(\d+)", text)
        return sum(map(int, counts)), int(re.findall(r"\bsize=(\d+)", text)[0])

    def stop_ports(self, title: str) -> None:
        """Stops the ports, and tests that they give back all mbufs."""
        self("port stop all")
        free, size = self.free_mbufs()
        result(free == size, f"{title}: all mbufs are free", free, size)

    def quit(self) -> int:
        """Ends it. Returns the exit status."""
        if not self.ended():
            os.write(self.tty, b"quit\n")
        while self.read():
            pass
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        os.close(self.tty)
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()
            os.close(self.tty)


@contextmanager
def veth(mtu: int = 1500, queues: int = 1) -> Iterator[None]:
    many = ["numrxqueues", str(queues), "numtxqueues", str(queues)]
    run("ip", "link", "add", "v0", *many, "type", "veth", "peer", "name", "v1", *many)
    try:
        for name in "v0", "v1":
            run("sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=1")
            run("ip", "link", "set", name, "mtu", str(mtu), "up")
        yield
    finally:
        subprocess.run(["ip", "link", "del", "v0"], check=False, capture_output=True)


def ping(address: str, *options: str, inside: tuple[str, ...] = ()) -> str:
    """Returns what 20 pings print, in a namespace if inside enters one."""
    options = ("-c", "20", "-i", "0.05", "-W", "5", *options)
    command = [*inside, "ping", *options, address]
    done = subprocess.run(command, check=False, text=True, capture_output=True)
    return done.stdout


def both(options: str = "") -> list[str]:
    return [f"iface=v0{options}", f"iface=v1{options}"]


def forward(
    title: str, options: str = "", *args: str, mtu: int = 1500, burst: int = 1
) -> None:
    """Packets go round between two ports, and none is lost."""
    with veth(mtu), Testpmd(both(options), args) as pmd:
        pmd(f"start tx_first {burst}")
        time.sleep(1 if SHORT else 3)
        pmd("stop")
        time.sleep(0.2)
        ports = pmd.counters()
        errors = pmd("show port xstats all")
        good = len(ports) == 2 and all(
            port["RX-packets"] > 100
            and not port["RX-nombuf"]
            and not port["TX-errors"]
            and 0 <= peer["TX-packets"] - port["RX-packets"] <= IN_FLIGHT * burst
            for port, peer in (ports, reversed(ports))
        )
        result(good, f"{title}: no packet is lost", ports, errors)
        pmd.stop_ports(title)
        result(not pmd.quit(), f"{title}: it ends", pmd.log[-2000:])


def test_forwarding() -> None:
    for zerocopy in 1, 0:
        mode = f"zerocopy={zerocopy}"
        options = f",{mode}"
        forward(f"io {mode}", options, "--forward-mode=io")
        forward(f"mac 1500 {mode}", options, "--forward-mode=mac", "--txpkts=1500")
        forward(f"checksums {mode}", options, "--forward-mode=csum", "--txpkts=200")
        forward(
            f"segments {mode}",
            options,
            "--forward-mode=io",
            "--txpkts=1000,2000,60,2000",
            "--tx-offloads=0x8000",
            "--rx-offloads=0x2000",
            mtu=9000,
        )
        forward(
            f"mbufs that are no frames {mode}",
            options,
            "--forward-mode=io",
            "--mp-alloc=xbuf",
        )
        if not SHORT:
            forward(
                f"9000 bytes {mode}",
                options,
                "--forward-mode=io",
                "--txpkts=2000,2000,2000,2000,1000",
                "--tx-offloads=0x8000",
                "--rx-offloads=0x2000",
                mtu=9000,
            )
            forward(f"macswap 64 {mode}", options, "--forward-mode=macswap")
            forward(f"5tswap {mode}", options, "--forward-mode=5tswap", "--txpkts=100")
            forward(f"anonymous memory {mode}", options, "--mp-alloc=anon")
            forward(f"small rings {mode}", options, "--rxd=256", "--txd=256", burst=4)


def arrives(title: str, source: Testpmd, sink: Testpmd, port: int) -> None:
    """Each packet that port 0 of the source has sent is received, or counted as missed.

    A process that does both leaves its last burst in the ring.
    """
    source("stop")
    time.sleep(0.2)
    sink("stop")
    sent, got = source.counters()[0], sink.counters()[port]
    good = got["RX-packets"] > 100 and not sent["TX-errors"]
    lost = sent["TX-packets"] - got["RX-packets"] - got["RX-missed"]
    left = IN_FLIGHT if source is sink else 0
    result(good and 0 <= lost <= left, title, lost, sent, got)
    for pmd in {source, sink}:
        pmd.stop_ports(title)
        result(not pmd.quit(), f"{title}: it ends", pmd.log[-2000:])


def test_sources() -> None:
    """The forwarding modes that send as fast as they can"""
    for zerocopy in 1, 0:
        for size in (64,) if SHORT else (64, 1500):
            mode = f",zerocopy={zerocopy}"
            send = ("--forward-mode=txonly", f"--txpkts={size}")
            with (
                veth(),
                Testpmd([f"iface=v1{mode}"], ("--forward-mode=rxonly",)) as sink,
                Testpmd([f"iface=v0{mode}"], send) as source,
            ):
                sink("start")
                source("start")
                time.sleep(1)
                arrives(f"txonly {size} zerocopy={zerocopy}", source, sink, 0)
        with veth(), Testpmd(both(mode), ("--forward-mode=flowgen",)) as pmd:
            pmd("start")
            time.sleep(1)
            arrives(f"flowgen zerocopy={zerocopy}", pmd, pmd, 1)


def test_offloads() -> None:
    """Checksums that the device computes: the peer's stack accepts the packets."""
    for zerocopy in 1, 0:
        forward(
            f"metadata zerocopy={zerocopy}",
            f",zerocopy={zerocopy}",
            "--forward-mode=io",
            "--rx-offloads=0xc",
            "--tx-offloads=0xc",
        )


def test_capabilities() -> None:
    """In zero-copy mode, those of the device"""
    sums, tso, uso = {"UDP_CKSUM", "TCP_CKSUM"}, {"TCP_TSO"}, {"UDP_TSO"}
    always = {"MULTI_SEGS", "VLAN_INSERT"}
    tap = always | sums | tso | uso | {"SEND_ON_TIMESTAMP"}
    with veth():
        for off, zerocopy, expected in (
            ("", 1, always | sums | tso | uso),
            ("tx-udp-segmentation", 1, always | sums | tso),
            ("tso", 1, always | sums),
            ("tx", 1, always),
            ("", 0, tap),
        ):
            if off:
                run("ethtool", "-K", "v0", off, "off")
            with Testpmd([f"iface=v0,zerocopy={zerocopy}"]) as pmd:
                text = pmd("show port 0 tx_offload capabilities")
                per_port = re.search(r"Per Port *:(.*)", text)
                found = set(per_port[1].split()) if per_port else set()
                pmd.quit()
            title = f"Tx offloads, zerocopy={zerocopy} {off and off + ' off'}"
            result(found == expected, title, found ^ expected, text)


def test_tags() -> None:
    """VLAN tags are removed from received packets, and inserted in sent ones."""
    copied = "--mp-alloc=xbuf"
    for mode, *more in ("zerocopy=1",), ("zerocopy=0",), ("zerocopy=1", copied):
        title = " ".join((mode, *more))
        args = ("--forward-mode=rxonly", "--rx-offloads=0x1", *more)
        with veth(), Testpmd([f"iface=v0,{mode}"], args) as pmd:
            pmd("set verbose 1")
            pmd("start")
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
                sock.bind(("v1", 0))
                sock.send(bytes(12) + b"\x81\x00\x00\x07\x88\xb5" + bytes(60))
                sock.send(bytes(12) + b"\x88\xb5" + bytes(60))
                sock.send(bytes(12) + b"\x81\x00")  # no room for a tag
            # The stack, of which copy mode is a tap, drops the last one.
            nr = 2 if mode == "zerocopy=0" else 3
            wait_for(lambda p=pmd, n=nr: p.counters()[0]["RX-packets"] >= n)
            pmd("stop")
            pmd.quit()
            found = re.findall(r"type=0x(\w+) - length=(\d+)", pmd.log)
            expected = [("88b5", "74"), ("88b5", "74"), ("8100", "14")]
            good = found == expected[:nr]
            good &= pmd.log.count("RX_VLAN_STRIPPED") == 1 and "VLAN tci=0x7" in pmd.log
            result(good, f"a tag is removed, {title}", found, pmd.log[-3000:])
        args = ("--forward-mode=txonly", "--txpkts=200", *more)
        with (
            veth(),
            Testpmd([f"iface=v0,{mode}"], args) as pmd,
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock,
        ):
            run(
                "ip",
                "link",
                "add",
                "link",
                "v1",
                "name",
                "v1.7",
                "type",
                "vlan",
                "id",
                "7",
            )
            run("ip", "link", "set", "v1.7", "up")
            sock.bind(("v1.7", 0x0800))
            sock.settimeout(PATIENCE)
            for command in "port stop 0", "tx_vlan set 0 7", "port start 0", "start":
                pmd(command)
            packets = [sock.recv(4096) for _ in range(100)]
            pmd("stop")
            good = all(len(p) == 200 and p[12:14] == b"\x08\x00" for p in packets)
            result(good, f"a tag is inserted, {title}", packets[0], pmd.log[-2000:])
            pmd.stop_ports(f"tags, {title}")
            pmd.quit()


def test_launch_times() -> None:
    """fq sends each packet at the time that testpmd asks for."""
    gap, nr = 20_000_000, 21  # nanoseconds, packets
    args = ("--forward-mode=txonly", "--burst=1", "--tx-offloads=0x200000")
    with veth(), Testpmd(["iface=v0,zerocopy=0,launch=fq"], args) as pmd:
        run("tc", "qdisc", "add", "dev", "v0", "root", "fq")
        pmd(f"set txtimes {gap},0")
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x0300) as sock:
            sock.bind(("v1", 0x0003))
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            sock.settimeout(PATIENCE)
            pmd("start")
            times = []
            while len(times) < nr:
                stamp = sock.recvmsg(64, 64)[1][0][2]
                seconds, nanoseconds = struct.unpack("qq", stamp)
                times.append(seconds * 1_000_000_000 + nanoseconds)
        pmd("stop")
        took = times[-1] - times[0]
        good = took > 0.95 * gap * (nr - 1)
        result(good, "packets at launch times", took, pmd.log[-2000:])
        pmd.quit()


def ipv4(checksum_error: int) -> bytes:
    """A UDP packet of 60 bytes"""
    start, addresses = struct.pack("!BBHHHBB", 0x45, 0, 46, 0, 0, 64, 17), bytes(8)
    total = sum(struct.unpack("!9H", start + addresses))
    checksum = 0xFFFF - (total % 0xFFFF or 0xFFFF) ^ checksum_error
    ip = start + struct.pack("!H", checksum) + addresses
    return bytes(12) + b"\x08\x00" + ip + struct.pack("!HHHH", 9, 9, 26, 0) + bytes(18)


def test_ip_checksum() -> None:
    """rxonly prints the flags of packets."""
    for zc in 0, 1:
        args = ("--enable-rx-cksum", "--forward-mode=rxonly")
        with veth(), Testpmd([f"iface=v0,zerocopy={zc}"], args) as pmd:
            pmd("set verbose 1")
            pmd("start")
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
                sock.bind(("v1", 0))
                for checksum_error in 0, 0, 1:
                    sock.send(ipv4(checksum_error))
            end = time.monotonic() + PATIENCE
            while pmd.counters()[0]["RX-packets"] < 3 and time.monotonic() < end:
                time.sleep(0.1)
            pmd("stop")
            pmd.quit()
            counts = [
                pmd.log.count(f"RX_IP_CKSUM_{which}") for which in ("GOOD", "BAD")
            ]
            good = counts == [2, 1]
            title = f"checksum of IPv4 headers, zerocopy={zc}"
            result(good, title, counts, pmd.log[-3000:])


def test_ping() -> None:
    """The peer's stack gets answers, which testpmd makes of its requests."""
    echo = ("--forward-mode=icmpecho",)
    for zerocopy in 1, 0:
        with veth(), Testpmd([f"iface=v0,zerocopy={zerocopy}"], echo) as pmd:
            run("ip", "addr", "add", "10.74.0.1/24", "dev", "v1")
            pmd("start")
            neighbour = ["10.74.0.2", "lladdr", "02:00:00:00:00:99", "dev", "v1"]
            run("ip", "neigh", "add", *neighbour)
            answers = ping("10.74.0.2", "-s", "1400")
            result(", 0% packet loss" in answers, f"ping zerocopy={zerocopy}", answers)
            pmd.quit()


def test_lifecycle() -> None:
    rounds = 5 if SHORT else 100
    with veth(), Testpmd(both()) as pmd:
        for _ in range(rounds):
            pmd("start tx_first 1")
            pmd("stop")
            pmd("port stop all")
            pmd("port start all")
        pmd.stop_ports(f"port stop and start, {rounds} times")
        pmd("port start all")
        pmd("set promisc all off")
        flags = int(Path("/sys/class/net/v0/flags").read_text(encoding="ascii"), 16)
        result(not flags & IFF_PROMISC, "promiscuous mode is off", hex(flags))
        pmd("port stop all")
        for _ in range(rounds):
            pmd("port detach 0")
            pmd("port attach net_tpacket4_0,iface=v0")
        text = pmd("show port info 0")
        result("net_tpacket4" in text, f"port detach and attach, {rounds} times", text)
        pmd.quit()
    with veth(), Testpmd(both(), ("--forward-mode=io", "--no-rmv-interrupt")) as pmd:
        pmd("start tx_first 1")
        for state in "down", "up":
            run("ip", "link", "set", "v1", state)
            time.sleep(0.3)
        pmd("stop")
        pmd("start tx_first 1")
        time.sleep(1)
        pmd("stop")
        before = pmd.counters()
        result(
            before[0]["RX-packets"] > 100,
            "it goes on after ip link down and up",
            before,
        )
        pmd("start tx_first 1")
        run("ip", "link", "del", "v0")
        time.sleep(0.5)
        pmd("stop")
        pmd.stop_ports("the devices are removed")
        result(not pmd.quit(), "it ends without its devices", pmd.log[-2000:])
    with veth(), Testpmd(both(), ("--forward-mode=io",)) as pmd:
        pmd("start tx_first 1")
        pmd.process.send_signal(signal.SIGKILL)
        pmd.process.wait()
        # Its frames are free, and its queues can be used again.
        with Testpmd(both()) as again:
            result(
                "Port 1:" in again.started,
                "it was killed, and starts again",
                again.started,
            )
            again.quit()


def wait_for(condition: Callable[[], object]) -> bool:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def test_events() -> None:
    """testpmd prints events, and detaches a port whose interface was removed."""
    with veth(), Testpmd(both()) as pmd:
        for state in "down", "up":
            before = pmd.log.count("Port 0: link state change event")
            run("ip", "link", "set", "v1", state)

            def changed(before: int = before, state: str = state) -> bool:
                text = pmd("show port info 0")
                count = pmd.log.count("Port 0: link state change event")
                return count > before and f"Link status: {state}" in text

            result(wait_for(changed), f"event of link {state}", pmd.log[-2000:])
        pmd("port stop all")
        pmd("port start all")
        run("ip", "link", "del", "v0")
        good = pmd.says("Now total ports is 0")
        good &= all(f"Port {i}: device removal event" in pmd.log for i in range(2))
        result(good, "event of removal", pmd.log[-3000:])
        free, size = pmd.free_mbufs()
        result(free == size, "event of removal: all mbufs are free", free, size)
        result(not pmd.quit(), "event of removal: it ends", pmd.log[-2000:])


def test_mtu() -> None:
    """An mbuf has a packet of the largest MTU, and a larger one is refused."""
    for zerocopy, mtu in (1, 2176 - 128 - 256 - 18), (0, 2176 - 128 - 18):
        mode = f"zerocopy={zerocopy}"
        with (
            veth(9000),
            Testpmd([f"iface=v0,{mode}"], ("--forward-mode=rxonly",)) as pmd,
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock,
        ):
            sock.bind(("v1", 0))

            def receives(size: int, name: str, count: int, pmd: Testpmd = pmd) -> bool:
                tag = b"\x81\x00\x00\x01\x88\xb5"
                sock.send(b"\x02" * 12 + tag + bytes(size - 18))
                return wait_for(lambda: pmd.counters()[0][name] >= count)

            notice = "MTU of 9000: an mbuf of mb_pool_0 holds" in pmd.log
            result(notice, f"notice of a large MTU, {mode}", pmd.log[-2000:])
            pmd(f"port config mtu 0 {mtu}")
            pmd("start")
            receives(mtu + 18, "RX-packets", 1)
            ports = pmd.counters()
            good = ports[0]["RX-packets"] == 1 and ports[0]["RX-bytes"] == mtu + 18
            result(good, f"the largest MTU, {mode}", ports, pmd.log[-2000:])
            text = pmd(f"port config mtu 0 {mtu + 1}")
            now = int(Path("/sys/class/net/v0/mtu").read_text(encoding="ascii"))
            good = "Set MTU failed" in text and "RX_OFFLOAD_SCATTER" in text
            result(good and now == mtu, f"a larger MTU, {mode}", now, text)
            run("ip", "link", "set", "v0", "mtu", "9000")
            receives(3000, "RX-errors", 1)
            ports = pmd.counters()
            good = ports[0]["RX-errors"] == 1 and ports[0]["RX-bytes"] == mtu + 18
            result(good, f"a packet that is dropped, {mode}", ports, pmd.log[-2000:])
            pmd("stop")
            pmd.quit()
    args = ("--forward-mode=rxonly", "--mbuf-size=1024")
    with veth(), Testpmd(["iface=v0"], args) as pmd:
        good = "MTU of 1500: an mbuf of mb_pool_0 holds 896 bytes" in pmd.log
        result(good, "mbufs for less than the MTU", pmd.log[-2000:])
        pmd.quit()


def test_rename() -> None:
    """A port is an interface, whatever its name is."""
    with veth(), Testpmd(both(), ("--forward-mode=io",)) as pmd:
        for name, other in ("v0", "w0"), ("w0", "v0"):
            run("ip", "link", "set", name, "name", other)
            text = pmd("show port info 0")
            result("Link status: up" in text, f"link of {other}", text)
            pmd("port stop all")
            pmd("port start all")
            before = pmd.counters()[0]["RX-packets"]
            pmd("start tx_first 1")
            good = wait_for(lambda b=before: pmd.counters()[0]["RX-packets"] > b + 100)
            pmd("stop")
            result(good, f"{name} is renamed to {other}", pmd.log[-2000:])
        pmd.quit()


def test_notices() -> None:
    """What an application may not expect of a port that has started"""
    queues = (
        "the port has 1 Rx queues: the kernel receives the packets of queues 1 to 1"
    )
    mbufs = "mb_pool_0 has 2000 mbufs, but the rings have room for 2112"
    rings = ("--rxd=1024", "--txd=1024")
    with veth(queues=2):
        for options, args, expected in (
            ("", (*rings, "--total-num-mbufs=2000"), {queues, mbufs}),
            (",queue_count=1", rings, set()),
            (",zerocopy=0", rings, set()),
        ):
            with Testpmd([f"iface=v0{options}"], args) as pmd:
                pmd.quit()
                found = {text for text in (queues, mbufs) if text in pmd.log}
                good = found == expected
                result(good, f"notices {options} {args}", found, pmd.log[-2000:])


def test_dry_pool() -> None:
    """An empty mempool: packets wait or are missed, none is lost without a count."""
    rings, nr = 2048, 5000
    args = (f"--rxd={rings}", f"--txd={rings}", "--mbcache=0", "--forward-mode=rxonly")
    for zerocopy in 1, 0:
        for spare in 0, 1:
            title = f"{spare} spare mbufs, zerocopy={zerocopy}"
            mbufs = (f"--total-num-mbufs={rings + spare}",)
            with (
                veth(),
                Testpmd([f"iface=v0,zerocopy={zerocopy}"], args + mbufs) as pmd,
                socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock,
            ):
                sock.bind(("v1", 0))
                pmd("start")
                for _ in range(nr):
                    sock.send(b"\x02" * 12 + b"\x88\xb5" + bytes(46))

                def accounted(pmd: Testpmd = pmd, spare: int = spare) -> bool:
                    port = pmd.counters()[0]
                    # What waits in the ring is neither.
                    waits = 0 if spare else rings
                    return port["RX-packets"] + port["RX-missed"] + waits == nr

                good = wait_for(accounted)
                port = pmd.counters()[0]
                good &= bool(port["RX-packets"]) == bool(spare)
                good &= bool(spare) or port["RX-nombuf"] > 0
                result(good, f"dry mempool, {title}", port, pmd.log[-2000:])
                pmd("stop")
                pmd.stop_ports(f"dry mempool, {title}")
                result(not pmd.quit(), f"dry mempool, {title}: it ends")


def test_queues() -> None:
    """Several queues, in copy mode by fanout"""
    for zerocopy in 1, 0:
        args = ("--rxq=2", "--txq=2", "--forward-mode=io")
        with veth(queues=2), Testpmd(both(f",zerocopy={zerocopy}"), args) as pmd:
            pmd("start tx_first 1")
            fewer = subprocess.run(
                ["ethtool", "-L", "v0", "rx", "1", "tx", "1"],
                check=False,
                capture_output=True,
            )
            result(
                bool(fewer.returncode) == bool(zerocopy),
                f"ethtool -L, zerocopy={zerocopy}",
                fewer.stderr,
            )
            time.sleep(1)
            pmd("stop")
            ports = pmd.counters()
            good = len(ports) == 2 and all(p["RX-packets"] > 100 for p in ports)
            result(good, f"two queues zerocopy={zerocopy}", ports, pmd.log[-2000:])
            pmd.stop_ports(f"two queues zerocopy={zerocopy}")
            pmd.quit()


def test_queue_stop() -> None:
    """A queue that is stopped, or whose start is deferred, has no packets."""
    packet = b"\x02" * 12 + b"\x88\xb5" + bytes(46)
    for zerocopy in 1, 0:
        mode = f"zerocopy={zerocopy}"
        args = ("--forward-mode=rxonly",)
        with (
            veth(),
            Testpmd([f"iface=v0,{mode}"], args) as pmd,
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock,
        ):
            sock.bind(("v1", 0))
            for how in "stop", "deferred_start on":
                before = pmd.counters()[0]
                pmd("port stop 0" if " " in how else "show port info 0")
                pmd(f"port 0 rxq 0 {how}")
                pmd("port start 0" if " " in how else "show port info 0")
                for _ in range(10):
                    sock.send(packet)
                pmd("port 0 rxq 0 start")
                pmd("start")
                for _ in range(5):
                    sock.send(packet)
                title = f"Rx queue, {how}, {mode}"

                def received(
                    pmd: Testpmd = pmd, before: dict[str, int] = before
                ) -> bool:
                    port = pmd.counters()[0]
                    return port["RX-packets"] - before["RX-packets"] == 5

                good = wait_for(received)
                port = pmd.counters()[0]
                missed = port["RX-missed"] - before["RX-missed"]
                result(good and missed == 10, title, before, port, pmd.log[-2000:])
                pmd("stop")
            pmd.stop_ports(f"Rx queue, {mode}")
            pmd.quit()
        args = ("--forward-mode=txonly",)
        with veth(), Testpmd([f"iface=v0,{mode}"], args) as pmd:
            for how in "stop", "deferred_start on":
                before = pmd.counters()[0]["TX-packets"]
                pmd("port stop 0" if " " in how else "show port info 0")
                pmd(f"port 0 txq 0 {how}")
                pmd("port start 0" if " " in how else "show port info 0")
                pmd("start")
                pmd("stop")
                stopped = pmd.counters()[0]["TX-packets"]
                pmd("port 0 txq 0 start")
                pmd("start")
                good = wait_for(
                    lambda p=pmd, b=stopped: p.counters()[0]["TX-packets"] > b + 100
                )
                good &= stopped == before
                text = pmd("stop")
                result(good, f"Tx queue, {how}, {mode}", before, stopped, text)
            pmd.stop_ports(f"Tx queue, {mode}")
            pmd.quit()


def test_errors() -> None:
    """A sentence for each mistake"""
    run("ip", "link", "add", "d0", "type", "dummy")
    run("ip", "link", "set", "d0", "up")
    with veth():
        for vdev, expected in (
            ("", "iface=NAME is missing"),
            ("iface=nope", "no such interface"),
            ("iface=v0,start_queue=7", "has 1 queues"),
            ("iface=v0,queue_count=2", "has 1 queues"),
            ("iface=v0,busy_budget=x", "not a number"),
            ("iface=v0,fanout_mode=x", "hash, lb, cpu"),
            ("iface=v0,launch=x", "fq or etf"),
            ("iface=v0,colour=red", "invalid arguments"),
            ("iface=d0", "zerocopy=0"),
            ("iface=lo", "no Ethernet address"),
        ):
            with Testpmd([vdev]) as pmd:
                pmd.quit()
                result(
                    expected in pmd.log,
                    f"error of {vdev or 'no option'}",
                    pmd.log[-1500:],
                )
        with Testpmd(["iface=v0"]) as first, Testpmd(["iface=v0"]) as second:
            second.quit()
            busy = "in use" in second.log or "busy" in second.log
            result(busy, "error of a queue that is in use", second.log[-1500:])
            first.quit()
    run("ip", "link", "del", "d0")


def test_version() -> None:
    """A driver for another version is refused, though the ABI has the same number."""
    library = "/run/version.so"
    code = "unsigned int rte_version_year(void) { return 99; }"
    compiler = ["gcc", "-shared", "-o", library, "-x", "c", "-"]
    subprocess.run(compiler, input=code, check=True, text=True)
    with veth(), Testpmd(["iface=v0"], preload=(library,)) as pmd:
        pmd.quit()
        good = "this driver is for DPDK" in pmd.log
        result(good, "error of another version of DPDK", pmd.log[-1500:])


def test_privileges() -> None:
    """Root of a user namespace needs no more."""
    script = "ip link add v0 type veth peer name v1 && "
    script += "ip link set v0 up && ip link set v1 up && exec "
    prefix = (*USER, "unshare", "-Urn", "sh", "-c", script + '"$@"', "sh")
    args = ("--no-numa", "--forward-mode=io")
    with Testpmd(both(), args, WITHOUT, prefix) as pmd:
        pmd("start tx_first 1")
        time.sleep(1)
        pmd("stop")
        ports = pmd.counters()
        good = len(ports) == 2 and ports[0]["RX-packets"] > 100
        result(good, "root of a user namespace, without huge pages", pmd.log[-2500:])
        pmd.quit()


TESTS: tuple[Callable[[], None], ...] = (
    test_forwarding,
    test_sources,
    test_offloads,
    test_capabilities,
    test_tags,
    test_ip_checksum,
    test_launch_times,
    test_ping,
    test_lifecycle,
    test_events,
    test_mtu,
    test_rename,
    test_notices,
    test_dry_pool,
    test_queues,
    test_queue_stop,
    test_errors,
    test_version,
    test_privileges,
)


def set_up() -> None:
    """A directory for DPDK's files, and huge pages"""
    os.environ["XDG_RUNTIME_DIR"] = "/run"
    if HUGE_PAGES.exists():
        HUGE_PAGES.write_text("200", encoding="ascii")


def run_tests(tests: tuple[Callable[[], None], ...], only: list[str]) -> None:
    """Runs those with these names, or all, and exits."""
    print("TAP version 13", flush=True)
    for test in tests:
        if not only or test.__name__.removeprefix("test_") in only:
            test()
    end()


def main() -> None:
    if not shutil.which("dpdk-testpmd"):
        print("1..0 # SKIP no dpdk-testpmd: the package dpdk-dev has it")
        sys.exit(4)
    set_up()
    run_tests(TESTS, [word for word in sys.argv[2:] if word != "--short"])


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if len(sys.argv) > 1 else 2)
    main()
