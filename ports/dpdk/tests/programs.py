#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Programs on DPDK with net_tpacket4, where it is installed.

    programs.py DIR [--short] [TEST...]

As root, in a machine of its own: it takes huge pages, mounts over the directory of DPDK's
drivers and creates devices. DIR has the driver, DPDK's examples and Open vSwitch (see
lab/release/dpdk); output is TAP.
"""

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import testpmd
from tap import result, skip
from testpmd import PATIENCE, Testpmd, both, ping, run, set_up, veth, wait_for

DIR = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
PLUGIN = DIR / "librte_net_tpacket4.so"
LOGS = Path("/run/programs")


def install() -> None:
    """Puts the driver where DPDK's programs look for drivers, as the package does."""
    Path("/dev/hugepages").mkdir(exist_ok=True)
    run("mount", "-t", "hugetlbfs", "hugetlbfs", "/dev/hugepages")
    (drivers,) = map(str, Path("/usr/lib").glob("*/dpdk/pmds-*"))
    copy = "/run/drivers"
    shutil.copytree(drivers, copy, symlinks=True)
    shutil.copy(PLUGIN, copy)
    run("mount", "--bind", copy, drivers)


class Running(NamedTuple):
    """A program and its log"""

    process: subprocess.Popen[bytes]
    path: Path

    def log(self) -> str:
        return self.path.read_text(errors="replace")

    def tail(self) -> str:
        return self.log()[-3000:]

    def says(self, text: str) -> bool:
        wait_for(lambda: text in self.log() or self.process.poll() is not None)
        return text in self.log()

    def cpu_time(self) -> float:
        """Seconds that it has run"""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
        ticks = map(int, stat.rpartition(")")[2].split()[11:13])
        return sum(ticks) / os.sysconf("SC_CLK_TCK")

    def end(self, how: int = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def running(name: str, *command: str | Path) -> Iterator[Running]:
    """A program in the background, which is ended"""
    log = LOGS / f"{name}.log"
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    program = Running(process, log)
    try:
        yield program
    finally:
        program.end()


# --- in namespaces -------------------------------------------------------------------------


@contextmanager
def hosts(*names: str) -> Iterator[None]:
    """Namespaces a, b..., each with a veth pair to a device v0, v1... here"""
    try:
        for i, name in enumerate(names):
            run("ip", "netns", "add", name)
            run(*f"ip link add v{i} type veth peer e0 netns {name}".split())
            run("sysctl", "-qw", f"net.ipv6.conf.v{i}.disable_ipv6=1")
            run("ip", "link", "set", f"v{i}", "up")
            run("ip", "-n", name, "addr", "add", f"10.75.0.{i + 1}/24", "dev", "e0")
            run("ip", "-n", name, "link", "set", "e0", "up")
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


# The command that enters the namespace a
INSIDE = ("ip", "netns", "exec", "a")


def test_openvswitch() -> None:
    """Two namespaces reach each other through a switch with a port for each."""
    root = DIR / "openvswitch/usr"
    if not root.exists():
        skip("no Open vSwitch: its packages were not to be had")
        return
    server = root / "lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
    rundir = LOGS / "ovs"
    rundir.mkdir()
    address, database = f"unix:{rundir}/db.sock", rundir / "conf.db"
    # Libraries that this machine lacks
    libraries = [str(path) for path in root.glob("lib/*-linux-*")]
    os.environ["LD_LIBRARY_PATH"] = ":".join(libraries)
    os.environ["OVS_RUNDIR"] = os.environ["OVS_LOGDIR"] = str(rundir)
    schema = root / "share/openvswitch/vswitch.ovsschema"
    run(str(root / "bin/ovsdb-tool"), "create", str(database), str(schema))

    def configure(*words: str) -> str:
        return run(str(root / "bin/ovs-vsctl"), f"--db={address}", *words)

    with (
        hosts("a", "b"),
        running("ovsdb", root / "sbin/ovsdb-server", f"--remote=p{address}", database),
    ):
        wait_for((rundir / "db.sock").exists)
        configure("--no-wait", "init")
        options = ["dpdk-init=true", "dpdk-socket-mem=300", "dpdk-extra=--no-pci"]
        options = [f"other_config:{option}" for option in options]
        configure("--no-wait", "set", "Open_vSwitch", ".", *options)
        with running("vswitchd", server, address) as switch:
            bridge = ("add-br", "br0", "--", "set", "bridge", "br0")
            configure(*bridge, "datapath_type=netdev")
            for i in range(2):
                port = ("add-port", "br0", f"p{i}", "--", "set", "Interface", f"p{i}")
                devargs = f"options:dpdk-devargs=net_tpacket4_{i},iface=v{i}"
                configure(*port, "type=dpdk", devargs)
            errors = configure("--columns=name,error", "list", "Interface")
            answers = ping("10.75.0.2", "-s", "1400", inside=INSIDE)
            good = ", 0% packet loss" in answers
            result(good, "Open vSwitch: ping", errors, answers, switch.tail())
            for i in range(2):
                configure("del-port", "br0", f"p{i}")
            left = configure("list-ports", "br0").strip()
            result(not left, "Open vSwitch: ports are removed", left, switch.tail())


def received(name: str) -> int:
    """Packets that the device of a namespace has received"""
    text = run("ip", "-n", name, "-j", "-s", "link", "show", "e0")
    packets: int = json.loads(text)[0]["stats64"]["rx"]["packets"]
    return packets


def ping_through(address: str) -> None:
    """Sends ten packets to a router that nobody asks for its address."""
    script = f"""ip neigh replace 10.75.0.99 lladdr 02:00:00:00:00:99 dev e0
        ip route replace {address} via 10.75.0.99
        ping -c 10 -i 0.02 -W 0.1 {address}"""
    subprocess.run([*INSIDE, "sh", "-c", script], check=False, capture_output=True)


def vdevs() -> list[str]:
    return [f"--vdev=net_tpacket4_{i},iface=v{i}" for i in range(2)]


def forwards(title: str, program: Running, address: str) -> None:
    before = received("b")
    ping_through(address)
    good = wait_for(lambda: received("b") >= before + 10)
    result(good, title, before, received("b"), program.tail())


def test_l2fwd() -> None:
    eal = ["-l", "0", "--no-pci", "--in-memory", *vdevs()]
    program = [DIR / "examples/l2fwd", *eal, "--", "-p", "3", "-P", "-q", "2"]
    with hosts("a", "b"), running("l2fwd", *program) as l2fwd:
        l2fwd.says("entering main loop")
        forwards("l2fwd", l2fwd, "2.1.1.1")


def test_l3fwd() -> None:
    """It has a route to each port."""
    eal = ["-l", "0", "--no-pci", "--in-memory", *vdevs()]
    args = ["-p", "3", "-P", "--config=(0,0,0),(1,0,0)", "--parse-ptype"]
    args += ["--rule_ipv4=/run/routes", "--rule_ipv6=/run/routes6"]
    Path("/run/routes").write_text("R2.1.1.0/24 1\nR1.1.1.0/24 0\n", encoding="ascii")
    Path("/run/routes6").write_text("R2001:db8::/64 1\n", encoding="ascii")
    program = [DIR / "examples/l3fwd", *eal, "--", *args]
    with hosts("a", "b"), running("l3fwd", *program) as l3fwd:
        l3fwd.says("entering main loop")
        forwards("l3fwd", l3fwd, "2.1.1.1")


def test_l3fwd_power() -> None:
    """It sleeps until a packet comes: both sockets are interrupts of one lcore."""
    eal = ["-l", "0", "--no-pci", "--in-memory", *vdevs()]
    args = ["-p", "3", "-P", "--config=(0,0,0),(1,0,0)", "--parse-ptype"]
    args += ["--no-numa", "--interrupt-only"]
    program = [DIR / "examples/l3fwd-power", *eal, "--", *args]
    seconds = 2
    limit = 20  # with a busy host or a debug kernel; a program that polls takes all
    with hosts("a", "b"), running("l3fwd-power", *program) as l3fwd:
        l3fwd.says("entering main interrupt loop")
        for time_ in "first", "second":
            forwards(f"l3fwd-power forwards for the {time_} time", l3fwd, "2.1.1.1")
            time.sleep(0.5)
            before = l3fwd.cpu_time()
            time.sleep(seconds)
            share = 100 * (l3fwd.cpu_time() - before) / seconds
            title = f"l3fwd-power sleeps after the {time_} time"
            print(f"# {share:.1f} % of a CPU")
            result(share < limit, title, f"{share} %", l3fwd.tail())


# --- with secondary processes -------------------------------------------------------------


def send_flows(dev: str, flows: int) -> None:
    """Sends a packet for each of several UDP flows, which go to several queues."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((dev, 0))
        for flow in range(flows):
            addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
            ip = struct.pack("!BBHHHBBH", 0x45, 0, 46, 0, 0, 64, 17, 0) + addresses
            udp = struct.pack("!HHHH", 1000 + flow, 9, 26, 0)
            sock.send(bytes(12) + b"\x08\x00" + ip + udp + bytes(18))


def test_symmetric_mp() -> None:
    """Packets go round in each of two processes, which have a queue each of two ports."""

    def start(number: int) -> AbstractContextManager[Running]:
        eal = ["-l", str(number), "--no-pci", "--proc-type=auto", *vdevs()]
        args = ["-p", "3", "--num-procs=2", f"--proc-id={number}"]
        program = [DIR / "examples/symmetric_mp", *eal, "--", *args]
        return running(f"symmetric_mp{number}", *program)

    def has_port(program: Running) -> bool:
        packets = re.findall(r"Port \d+: RX - (\d+)", program.log())
        return len(packets) == 2 and all(int(n) > 200 for n in packets)

    ready = "Finished Process Init"
    with veth(queues=2), start(0) as first:
        result(first.says(ready), "symmetric_mp starts", first.tail())
        with start(1) as second:
            result(second.says(ready), "its second process starts", second.tail())
            send_flows("v0", 32)
            send_flows("v1", 32)
            time.sleep(2)
            second.end()
            result(has_port(second), "its second process forwards", second.tail())
        first.end()
        result(has_port(first), "its first process forwards", first.tail())


def test_restart() -> None:
    """A port is stopped and started while a second process has it."""
    eal = ("--proc-type=auto",)
    args = ("--forward-mode=io", "--rxq=2", "--txq=2", "--num-procs=2")

    def forwards(pmd: Testpmd) -> bool:
        pmd("start tx_first 1")
        time.sleep(1)
        received = re.findall(r"RX-packets: (\d+)", pmd("stop"))
        return len(received) > 1 and all(int(n) > 100 for n in received)

    with (
        veth(queues=2),
        Testpmd(both(), (*args, "--proc-id=0"), eal, pmd="") as first,
        Testpmd([], (*args, "--proc-id=1"), eal, pmd="", lcores="2@1,3@1") as second,
    ):
        for when in "at first", "after port stop and start":
            good = forwards(second)
            result(good, f"the second process forwards {when}", second.log[-3000:])
            good = forwards(first)
            result(good, f"the first process forwards {when}", first.log[-3000:])
            first("port stop all")
            first("port start all")
        second.process.kill()
        second.process.wait()
        good = forwards(first)
        result(good, "the second process was killed", first.log[-3000:])
        first("port stop all")
        result(not first.quit(), "it ends", first.log[-2000:])


def test_dumpcap() -> None:
    """A secondary process copies the packets of the primary one to a file."""
    file = LOGS / "dumpcap.pcap"
    args = ["-P", "-i", "net_tpacket4_0", "-w", str(file), "-c", "20"]
    echo = ("--forward-mode=icmpecho",)
    with hosts("a"), Testpmd(["iface=v0"], echo, (), pmd="") as pmd:
        pmd("start")
        with running("dumpcap", "dpdk-dumpcap", *args) as dumpcap:
            ready = dumpcap.says("Packets captured")
            result(ready, "dumpcap starts", dumpcap.tail(), pmd.log[-2000:])
            neighbour = ["10.75.0.9", "lladdr", "02:00:00:00:00:99", "dev", "e0"]
            run("ip", "-n", "a", "neigh", "add", *neighbour)
            answers = ping("10.75.0.9", "-s", "1000", inside=INSIDE)
            wait_for(lambda: dumpcap.process.poll() is not None)
        good = ", 0% packet loss" in answers
        result(good, "testpmd answers while dumpcap captures", answers)
        text = run("tcpdump", "-nnvvr", str(file), "icmp")
        count = text.count("ICMP echo re")
        good = count >= 15 and "wrong" not in text and "truncated" not in text
        result(
            good, "dumpcap has written what came", count, text[-1000:], dumpcap.tail()
        )
        pmd("stop")
        pmd.stop_ports("after a capture")
        pmd.quit()


# --- the program of driver.c ---------------------------------------------------------------

# Zero-copy mode, copy mode, and an area of the driver's as the mbufs are too small
KINDS = (("zerocopy=1", 2176), ("zerocopy=0", 2176), ("zerocopy=1", 1024))


def drive(devices: list[str], options: str, *args: str) -> str:
    """Runs it. Returns what it says if it fails."""
    eal = ["-l", "0", "--no-pci", "--in-memory"]
    eal += [
        f"--vdev=net_tpacket4_{i},iface={d},{options}" for i, d in enumerate(devices)
    ]
    command = [DIR / "driver", *eal, "--", *args]
    done = subprocess.run(command, check=False, text=True, capture_output=True)
    return done.stdout + done.stderr if done.returncode else ""


def test_held() -> None:
    """A packet that a program holds does not change, also if others like it get a tag."""
    for name in "hold", "tags":
        for options, size in KINDS:
            with veth():
                why = drive(["v0", "v1"], options, name, str(size))
            result(not why, f"{name}: mbufs of {size} bytes, {options}", why)


def test_monitor() -> None:
    """The address for rte_power_monitor()"""
    for options, size in KINDS:
        with veth():
            why = drive(["v0", "v1"], options, "monitor", str(size))
        result(not why, f"monitor address, mbufs of {size} bytes, {options}", why)


def test_stop() -> None:
    """Packets that the device returns in another order, or refuses"""
    for size in 2176, 1700:
        with veth():
            run("tc", "qdisc", "add", "dev", "v0", "root", "fq")
            why = drive(["v0"], "zerocopy=0,launch=fq", "stop", str(size))
        result(not why, f"stop with packets in flight, mbufs of {size} bytes", why)


def segment(zerocopy: int, features: str) -> None:
    """The peer's stack gets the datagrams of one packet, which is segmented on the way."""
    expected = [
        bytes(i % 251 for i in range(4500))[at : at + 1000]
        for at in range(0, 4500, 1000)
    ]
    title = f"UDP segments, zerocopy={zerocopy}, offloads {features}"
    with veth():
        run("ip", "addr", "add", "10.74.0.1/24", "dev", "v1")
        run("sysctl", "-qw", "net.ipv6.conf.v1.disable_ipv6=0")
        run("ip", "addr", "add", "fd74::1/64", "dev", "v1", "nodad")
        # Without them, the kernel segments, and the receiver checks the checksums.
        run("ethtool", "-K", "v0", "tx-udp-segmentation", features, "tx", features)
        mac = Path("/sys/class/net/v1/address").read_text(encoding="ascii").strip()
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as v4,
            socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as v6,
        ):
            v4.bind(("10.74.0.1", 9000))
            v6.bind(("fd74::1", 9000))
            why = drive(["v0"], f"zerocopy={zerocopy}", "segment", mac)
            for name, sock in ("IPv4", v4), ("IPv6", v6):
                sock.settimeout(1)
                try:
                    got = [sock.recv(65536) for _ in expected]
                except TimeoutError:
                    got = []
                good = got == expected
                result(good, f"{title}, {name}", why, [len(data) for data in got])


def test_segment() -> None:
    for zerocopy, features in (1, "on"), (0, "on"), (0, "off"):
        segment(zerocopy, features)


# --- without privileges --------------------------------------------------------------------


def test_broker() -> None:
    """A process without capabilities gets its sockets from another one."""
    path = "/run/broker"
    broker = [sys.executable, "-B", Path(__file__).parent / "broker.py", path, "0"]
    prefix = (*testpmd.USER, "--no-new-privs")
    eal = ("--no-huge", "-m", "200", "--no-shconf")
    args = ("--no-numa", "--forward-mode=io")

    def start(options: str) -> Testpmd:
        return Testpmd(both(options), args, eal, prefix, pmd="")

    with veth(queues=2), running("broker", *broker) as server:
        server.says("ready")
        for zerocopy in 1, 0:
            with start(f",mr_sock={path},queue_count=1,zerocopy={zerocopy}") as pmd:
                pmd("start tx_first 1")
                time.sleep(1)
                pmd("stop")
                ports = pmd.counters()
                good = len(ports) == 2 and all(
                    port["RX-packets"] > 100 for port in ports
                )
                title = f"without privileges, zerocopy={zerocopy}"
                result(good, title, ports, pmd.log[-2500:], server.tail())
                pmd.stop_ports(title)
                pmd.quit()
        for title, options, expected in (
            ("another queue", f",mr_sock={path},start_queue=1", "by the broker"),
            ("no broker", ",mr_sock=/run/nobody", "No such file or directory"),
            ("without a broker", "", "CAP_NET_RAW"),
        ):
            with start(options) as pmd:
                pmd.quit()
                good = expected in pmd.log
                result(good, f"without privileges: {title}", pmd.log[-2500:])


TESTS: tuple[Callable[[], None], ...] = (
    test_broker,
    test_held,
    test_monitor,
    test_segment,
    test_stop,
    test_openvswitch,
    test_l3fwd_power,
    test_restart,
    test_dumpcap,
)
# More of the same
LONG = (test_l2fwd, test_l3fwd, test_symmetric_mp)


def main() -> None:
    set_up()
    LOGS.mkdir()
    install()
    only = [word for word in sys.argv[2:] if word != "--short"]
    testpmd.run_tests(TESTS if testpmd.SHORT else TESTS + LONG, only)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if len(sys.argv) > 1 else 2)
    main()
